package org

import (
	"cmp"
	"context"
	"strings"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/assurance"
)

// mostFoundPlaces is the largest number of tokens and members, together, in the result of a
// search.
const mostFoundPlaces = 5

// Find searches the records of an organization for a decision, an agent, a payee, a tool, a rule,
// a run, a policy version, a token or a member. Without the right to read, the result is empty.
func (r *Room) Find(ctx context.Context, p organizations.Principal, question string) ([]web.Found, error) {
	if p.May(organizations.RightRead) != nil {
		return nil, nil
	}
	found, err := r.queries().Find(ctx, p, question)
	if err != nil {
		return nil, err
	}
	var list []web.Found
	for _, f := range found {
		list = append(list, placeOf(f))
	}
	if p.May(organizations.RightMembers) != nil {
		return list, nil
	}
	people, err := r.findPeople(ctx, p, question)
	return append(list, people...), err
}

func placeOf(f query.Found) web.Found {
	place := web.Found{Name: f.ID, Exact: f.Exact}
	switch f.Kind {
	case query.FoundDecision:
		place.What, place.Href = "Decision", "/decisions/"+f.ID
	case query.FoundAgent:
		place.What, place.Href = "Agent", "/agents/"+f.ID
	case query.FoundTarget:
		place.What, place.Quoted = "Payee", true
		if f.Protocol == assurance.MCP {
			place.What = "Tool"
		}
		place.Href = "/decisions?" + query.Filter{Target: f.ID, Protocol: f.Protocol}.Query().Encode()
	case query.FoundRule:
		place.What, place.Href = "Decisions in which a rule found something", "/decisions?"+query.Filter{Rule: f.ID}.Query().Encode()
	case query.FoundRun:
		place.What, place.Quoted, place.Href = "Run", true, "/decisions?"+query.Filter{Run: f.ID}.Query().Encode()
	case query.FoundPolicy:
		place.What, place.Name, place.Href = "Policy", "version "+f.ID, "/policies/"+f.ID
	}
	return place
}

// findPeople finds tokens by public id or name, and members by id or e-mail address.
func (r *Room) findPeople(ctx context.Context, p organizations.Principal, question string) (list []web.Found, err error) {
	tokens, err := r.Commands.Tokens(ctx, p)
	if err != nil {
		return nil, err
	}
	members, err := r.Commands.Members(ctx, p)
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(question, "svco_"), "_") // cut off the secret if the person pasted a whole token
	for _, t := range tokens {
		if len(list) < mostFoundPlaces && (t.TokenID == id || strings.EqualFold(t.Name, question)) {
			list = append(list, web.Found{What: "Token", Name: cmp.Or(t.Name, "svco_"+t.TokenID), Quoted: t.Name != "", Href: "/keys", Exact: true})
		}
	}
	for _, m := range members {
		if len(list) < mostFoundPlaces && (m.MemberID == question || strings.EqualFold(m.Email, question)) {
			list = append(list, web.Found{What: "Member", Name: m.Email, Href: "/members", Exact: true})
		}
	}
	return list, nil
}
