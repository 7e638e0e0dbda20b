package org

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/api/pack"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/projections"
)

const evidenceRows = 25

// evidencePage is the data of the page with the evidence for auditors: the verification of the
// ledger, the forms that create bundles, figures about reviews, and the bundles that were created.
type evidencePage struct {
	Check    ledger.SelfCheck // last self-check of the ledger
	State    ledger.Condition
	Quarters []quarter

	Quarter   string // quarter of Oversight: the one that the forms propose
	Oversight projections.Oversight
	Reviewers []reviewerRow

	Frameworks []pack.Framework
	Made       []madeRow
	Next       string // address of the next page
	First      string // address of the first page; empty on the first
}

// quarter is a quarter that the forms offer.
type quarter struct {
	Name    string
	Running bool // the quarter has not ended
	Usual   bool // the newest quarter that has ended, or the first one of the organization
}

// reviewerRow has the figures of one reviewer.
type reviewerRow struct {
	projections.Reviewer
	Who string
}

// madeRow is an export in the list.
type madeRow struct {
	evidence.Made
	Who string
}

// Decision returns the id of the decision that a dispute pack is about.
func (m madeRow) Decision() string {
	if m.Manifest.Dispute == nil {
		return ""
	}
	return strings.TrimPrefix(m.Manifest.Dispute.Streams[0].Stream, "decision/")
}

func (r *Room) showEvidence(v *web.Visit) (web.View, error) {
	ctx, p, cursor := v.Request.Context(), v.Principal, v.Request.URL.Query().Get("cursor")
	before, ok := projections.SequenceOf(cursor)
	if !ok {
		return web.View{}, policy.Refuse("invalid_format", "/cursor", projections.WrongCursor)
	}
	page := evidencePage{Frameworks: pack.Frameworks, Check: r.Commands.Ledger.LastCheck(), State: r.Commands.Ledger.Condition()}
	// Offer the quarters since the organization was created.
	first, err := r.Commands.Ledger.BySequence(ctx, p.OrgID, []int64{1})
	if err != nil {
		return web.View{}, ground.Refusal(err)
	}
	page.Quarters = quartersSince(first[1].Occurred(), r.Commands.Now())
	audit := query.Audit{Projections: r.Projections, Clock: r.Commands.Clock}
	people := web.PeopleOf(ctx, r.Commands.Organizations, p)
	// Count the reviews of the proposed quarter.
	page.Quarter = page.Quarters[slices.IndexFunc(page.Quarters, func(q quarter) bool { return q.Usual })].Name
	from, to, _ := query.Period(page.Quarter)
	if page.Oversight, err = audit.Oversight(ctx, p, from, to); err != nil {
		return web.View{}, err
	}
	for _, reviewer := range page.Oversight.Reviewers {
		page.Reviewers = append(page.Reviewers, reviewerRow{reviewer, actorShown(people, reviewer.MemberID)})
	}
	// Read one row more than a page shows, to know whether there is a next page.
	rows, err := audit.Access(ctx, p, projections.AccessFilter{Types: []string{events.TypeExportCreated}, Before: before}, evidenceRows+1)
	if err != nil {
		return web.View{}, err
	}
	if cursor != "" {
		page.First = "/evidence"
	}
	if len(rows) > evidenceRows {
		rows = rows[:evidenceRows]
		page.Next = web.Address("/evidence", url.Values{"cursor": {projections.Cursor(rows[evidenceRows-1].Sequence)}})
	}
	var sequences []int64
	for _, row := range rows {
		sequences = append(sequences, row.Sequence)
	}
	made, err := r.Evidence.Commands.Made(ctx, p, sequences)
	if err != nil {
		return web.View{}, err
	}
	for _, m := range made {
		page.Made = append(page.Made, madeRow{m, actorShown(people, m.Actor)})
	}
	return web.View{Template: "evidence.html", Data: page}, nil
}

// quartersSince returns the running quarter and at most four earlier ones, newest first, without
// those that ended before the organization was created.
func quartersSince(created, now time.Time) (list []quarter) {
	for n := range 5 {
		name := query.Quarter(now)
		from, to, _ := query.Period(name) // Quarter returns a valid name
		if n > 0 && !to.After(created) {
			break
		}
		list = append(list, quarter{Name: name, Running: n == 0, Usual: n == 1})
		now = from.Add(-time.Second)
	}
	list[0].Usual = len(list) == 1
	return list
}

// periodIn returns the filters of a form: its period, and whether to leave out personal data.
func periodIn(v *web.Visit) (f bundle.Filters, err error) {
	from, to, err := query.Bounds(v.Form.Get("period"), v.Form.Get("from"), v.Form.Get("to"))
	if !from.IsZero() {
		f.From = from.Format(time.RFC3339)
	}
	if !to.IsZero() {
		f.To = to.Format(time.RFC3339)
	}
	f.NoPersonal = v.Form.Get("noPersonal") != ""
	return f, err
}

// postExport creates an export of a period and redirects to its bundle.
func (r *Room) postExport(v *web.Visit) (web.View, error) {
	f, err := periodIn(v)
	if err != nil {
		return web.View{}, err
	}
	return r.export(v, evidence.Export{Filters: f})
}

// postStatement creates a statement about an agent and redirects to its bundle.
func (r *Room) postStatement(v *web.Visit) (web.View, error) {
	f, err := periodIn(v)
	if err != nil {
		return web.View{}, err
	}
	f.Agent = v.Form.Get("agent")
	return r.export(v, evidence.Export{Filters: f, Statement: true})
}

// postDispute creates the dispute pack of a decision and redirects to its bundle.
func (r *Room) postDispute(v *web.Visit) (web.View, error) {
	id := strings.TrimSpace(v.Form.Get("decision"))
	if !strings.HasPrefix(id, "asd_") {
		return web.View{}, policy.Refuse("invalid_format", "/decision", "decision must be the id of a decision, which begins with asd_")
	}
	return r.export(v, evidence.Export{Dispute: id, Filters: bundle.Filters{NoPersonal: v.Form.Get("noPersonal") != ""}})
}

// postPack creates an evidence pack and answers with its file, because it cannot be built again.
func (r *Room) postPack(v *web.Visit) (web.View, error) {
	from, to, err := query.Bounds(v.Form.Get("period"), v.Form.Get("from"), v.Form.Get("to"))
	if err != nil {
		return web.View{}, err
	}
	id, packed, err := r.Evidence.Pack(v.Request.Context(), v.Principal, pack.Order{Framework: v.Form.Get("framework"), From: from, To: to,
		RequestedBy: strings.TrimSpace(v.Form.Get("requestedBy")), NoPersonal: v.Form.Get("noPersonal") != ""})
	return web.View{File: &web.File{Name: id + ".tar.gz", Media: "application/gzip", Content: packed}}, err
}

func (r *Room) export(v *web.Visit, e evidence.Export) (web.View, error) {
	place, err := r.Evidence.Export(v.Request.Context(), v.Principal, e)
	return web.View{Location: place}, err
}
