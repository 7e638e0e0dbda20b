package org

import (
	"net/url"
	"strings"
	"time"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

const activityRows = 25

// activityPage is the data of the page that lists what members, tokens and the service did.
type activityPage struct {
	Kinds []web.Chip // links that limit the list to one kind of event
	Rows  []activityRow
	Next  string // address of the next page
	First string // address of the first page; empty on the first
}

// activityRow is one entry of the list.
type activityRow struct {
	words.Activity
	At       time.Time
	Who      string
	About    string // e-mail address of the member whom the event concerns
	Sequence int64
}

func (r *Room) showActivity(v *web.Visit) (web.View, error) {
	ctx, p, asked := v.Request.Context(), v.Principal, v.Request.URL.Query()
	kind := asked.Get("kind")
	types, known := words.ActivityTypes(kind)
	if !known {
		return web.View{}, policy.Refuse("invalid_enum", "/kind", "kind must be empty or one of the filters of this page")
	}
	before, ok := projections.SequenceOf(asked.Get("cursor"))
	if !ok {
		return web.View{}, policy.Refuse("invalid_format", "/cursor", projections.WrongCursor)
	}
	// Read one row more than a page shows, to know whether there is a next page.
	audit := query.Audit{Projections: r.Projections, Clock: r.Commands.Clock}
	rows, err := audit.Access(ctx, p, projections.AccessFilter{Types: types, Before: before}, activityRows+1)
	if err != nil {
		return web.View{}, err
	}
	page := activityPage{Kinds: []web.Chip{{Name: "All", Href: "/activity", Current: kind == ""}}}
	for _, k := range words.ActivityKinds {
		page.Kinds = append(page.Kinds, web.Chip{Name: k.Name, Href: activityAddress(k.Name, ""), Current: kind == k.Name})
	}
	if asked.Get("cursor") != "" {
		page.First = activityAddress(kind, "")
	}
	if len(rows) > activityRows {
		rows = rows[:activityRows]
		page.Next = activityAddress(kind, projections.Cursor(rows[activityRows-1].Sequence))
	}
	// The rows do not contain the payloads, so read the events and describe them in words.
	sequences := make([]int64, len(rows))
	for i, row := range rows {
		sequences[i] = row.Sequence
	}
	found, err := r.Commands.Ledger.BySequence(ctx, p.OrgID, sequences)
	if err != nil {
		return web.View{}, ground.Refusal(err)
	}
	people := web.PeopleOf(ctx, r.Commands.Organizations, p)
	for _, row := range rows {
		stored, err := found[row.Sequence].Stored()
		if err != nil {
			return web.View{}, err
		}
		shown := activityRow{At: row.At, Who: actorShown(people, row.Actor), Sequence: row.Sequence}
		if shown.Activity, ok = words.Did(stored); !ok {
			shown.Did = "caused the event " + row.Type
		}
		if shown.Whom != "" {
			shown.About = people.Name(shown.Whom)
		}
		page.Rows = append(page.Rows, shown)
	}
	return web.View{Template: "activity.html", Data: page}, nil
}

// actorShown returns the name of an event's actor, capitalized for the beginning of a sentence.
func actorShown(people web.People, actor string) string {
	if strings.HasPrefix(actor, "svco_") {
		return "The token " + actor
	}
	return strings.Replace(people.Name(actor), "the ", "The ", 1)
}

func activityAddress(kind, cursor string) string {
	q := url.Values{}
	for name, value := range map[string]string{"kind": kind, "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return web.Address("/activity", q)
}
