package web

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// reviewList is what waits for a person.
type reviewList struct {
	Organization string
	Items        []ListedDecision
	More         bool
	Resolved     string // the decision that was resolved a moment ago
	MayDecide    bool
}

func listReviews(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.reader(v, commands.RightRead)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	items, more, err := s.openReviewList(v.request.Context(), p)
	if err != nil {
		return view{}, err
	}
	list := reviewList{p.OrgID, items, more, v.request.URL.Query().Get("resolved"), p.May(commands.RightApprove) == nil}
	return view{template: "reviews.html", data: list}, nil
}

// openReviewList is what waits for a verdict, the newest first.
func (s *Handler) openReviewList(ctx context.Context, p commands.Principal) (items []ListedDecision, more bool, err error) {
	open, err := s.projections.OpenReviews(ctx, p.OrgID, openReviews)
	if err != nil {
		return nil, false, HistoryError(err)
	}
	mine := map[string]bool{}
	if p.OwnOnly() {
		for _, o := range open {
			if _, err := s.app.ExplainDecision(ctx, p, o.DecisionID); err == nil {
				mine[o.DecisionID] = true
			}
		}
	}
	sequences := []int64{}
	for _, o := range open {
		if !p.OwnOnly() || mine[o.DecisionID] {
			sequences = append(sequences, o.Sequence)
		}
	}
	records, err := s.app.DecisionRecords(ctx, p, sequences)
	if err != nil {
		return nil, false, err
	}
	for _, sequence := range sequences {
		items = append(items, listWaiting(sequence, records[sequence]))
	}
	return items, len(open) == openReviews, nil
}

// decisionView is one decision as a person reads it.
type decisionView struct {
	commands.DecisionCase
	Who, Deed, Because string
	Amount             string
	Action             []Member             // of the normalized intent, by name
	Found              []commands.Explained // that did more than pass
	Passed             []commands.Explained
	Arguments          string            // of the tool, indented; empty: they were not kept
	People             map[string]string // e-mail addresses by member, as far as the reader may know them
	Similar            []ListedDecision
	Waits              bool // for a verdict
	MayDecide          bool // the reader may give it
	Checked            string
	Pasted             string
	Resolved           string // the decision that was resolved before this one
	Bundle             string // everything signed, as text
	Integrity          []Member
}

// Name is a member's address, as far as the reader may know it.
func (d decisionView) Name(member string) string { return named(d.People, member) }

func (s *Handler) decisionView(ctx context.Context, p commands.Principal, id string) (decisionView, error) {
	c, err := s.app.ShowDecision(ctx, p, id)
	if err != nil {
		return decisionView{}, err
	}
	d := decisionView{DecisionCase: c, Who: Who(c.Record.Subject), Deed: Deed(c.Protocol, c.Record.Normalized), Because: Because(c.Record.Findings),
		Waits: c.Record.Decision == assurance.NeedsReview && c.Approval == nil && c.Receipt == nil}
	if c.Protocol == assurance.X402 {
		d.Amount = Amount(c.Record.Normalized)
	}
	if d.Action, err = Action(c.Normalized); err != nil {
		return d, err
	}
	for _, rule := range c.Rules {
		if rule.Result == "passed" {
			d.Passed = append(d.Passed, rule)
		} else {
			d.Found = append(d.Found, rule)
		}
	}
	if c.Arguments != nil {
		d.Arguments = IndentJSON(c.Arguments)
	}
	d.MayDecide = p.May(commands.RightApprove) == nil && (!c.Own || p.MayActAlone())
	d.People = s.people(ctx, p)
	d.Similar, err = s.similar(ctx, p, c.Record)
	return d, err
}

// named is what a reader calls somebody: by name, or as who is not among the people they
// know.
func named(people map[string]string, who string) string {
	if strings.HasPrefix(who, "cus_") {
		return cmp.Or(people[who], people[""], who)
	}
	return cmp.Or(people[who], who)
}

// people are the members' addresses, for who may read them, and without an id what
// everybody else is called.
func (s *Handler) people(ctx context.Context, p commands.Principal) map[string]string {
	people := map[string]string{"operator": "the operator", "system": "the service"}
	members, err := s.app.Members(ctx, p)
	if err != nil {
		people[p.Member], people[""] = "you", "another member"
		return people
	}
	people[""] = "a former member"
	for _, m := range members {
		people[m.MemberID] = m.Email
	}
	return people
}

// similar are decisions about the same host or tool before this one.
func (s *Handler) similar(ctx context.Context, p commands.Principal, r assurance.DecisionRecord) ([]ListedDecision, error) {
	issued, err := time.Parse(time.RFC3339, r.IssuedAt)
	if err != nil {
		return nil, err
	}
	page, err := s.SearchDecisions(ctx, p, DecisionFilter{target: targetOf(r), from: issued.Add(-similarWithin), Protocol: r.Protocol}, similarShown+1, "")
	if err != nil {
		return nil, err
	}
	var before []ListedDecision
	for _, d := range page.Items {
		if d.DecisionID != r.DecisionID && len(before) < similarShown {
			before = append(before, d)
		}
	}
	return before, nil
}

func showReview(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.reader(v, commands.RightRead)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	d, err := s.decisionView(v.request.Context(), p, v.vars["id"])
	d.Resolved = v.request.URL.Query().Get("resolved")
	return view{template: "review.html", data: d}, err
}

// postReview records the verdict and leads to the next review.
func postReview(s *Handler, v *visit) (view, error) {
	p, redirect, err := s.actor(v)
	if err != nil || redirect != nil {
		return redirected(redirect), err
	}
	ctx, id := v.request.Context(), v.vars["id"]
	if v.form.Has("arguments") {
		return s.checkArguments(ctx, p, id, v.form.Get("arguments"))
	}
	body, err := json.Marshal(map[string]string{"verdict": v.form.Get("verdict"), "reason": v.form.Get("reason")})
	if err != nil {
		return view{}, policy.Refuse(codeInvalid, "", "the form could not be read")
	}
	in, err := assurance.ParseApproval(body)
	if err != nil {
		return view{}, err
	}
	said, err := s.app.Approve(ctx, p, id, in)
	if err != nil {
		return view{}, err
	}
	s.Approved(said)
	resolved := "?resolved=" + url.QueryEscape(id)
	waiting, err := s.projections.OpenReviews(ctx, p.OrgID, openReviews)
	if err != nil { // the verdict is recorded; the list says the rest
		return view{location: "/reviews" + resolved}, nil
	}
	for i := len(waiting) - 1; i >= 0; i-- { // who waits longest is next
		if waiting[i].DecisionID != id {
			return view{location: "/reviews/" + waiting[i].DecisionID + resolved}, nil
		}
	}
	return view{location: "/reviews" + resolved}, nil
}

// checkArguments compares pasted arguments with the hash that was signed. Nothing
// of them is recorded.
func (s *Handler) checkArguments(ctx context.Context, p commands.Principal, id, pasted string) (view, error) {
	d, err := s.decisionView(ctx, p, id)
	if err != nil {
		return view{}, err
	}
	d.Pasted = pasted
	canonical, err := canon.Canonical(jsontext.Value(strings.TrimSpace(pasted)))
	switch {
	case err != nil:
		d.Checked = "bad"
	case canon.Hash(canonical) == d.Record.Normalized.ToolArgumentsHash:
		d.Checked = "same"
	default:
		d.Checked = "other"
	}
	return view{template: "review.html", data: d}, nil
}
