package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
	"github.com/countersign/countersign/projections"
)

// reviewList is the data of the page that lists decisions waiting for a verdict, oldest first.
type reviewList struct {
	Items       []query.ListedDecision
	Filter      query.Filter
	Filtered    bool
	Chosen      []chosen
	Rules       []string // rules to filter by
	Next, First string   // addresses of the next page (empty on the last page) and of the first page (empty on the first page)
	Resolved    *resolved
	MayDecide   bool

	// Set only after a rejection of several decisions was refused:
	Problem string // why nothing was rejected
	Reason  string // reason as it was written
	Ticked  []string
}

// IsTicked reports whether the person had selected a decision.
func (l reviewList) IsTicked(decisionID string) bool { return slices.Contains(l.Ticked, decisionID) }

func (r *Room) listReviews(v *web.Visit) (web.View, error) {
	list, err := r.reviewList(v, v.Request.URL.Query())
	return web.View{Template: "reviews.html", Data: list}, err
}

// reviewList returns the page of the list that a query asks for.
func (r *Room) reviewList(v *web.Visit, asked url.Values) (reviewList, error) {
	ctx, p := v.Request.Context(), v.Principal
	f, err := query.ReadFilter(asked)
	if err != nil {
		return reviewList{}, err
	}
	f = query.Filter{Protocol: f.Protocol, Rule: f.Rule, Run: f.Run, Agent: f.Agent, Text: f.Text, Target: f.Target} // only the conditions that apply to a decision without a verdict
	var after int64
	if text := asked.Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 1 {
			return reviewList{}, policy.Refuse("invalid_format", "/after", "after must be the number in the link to the next page")
		}
	}
	list := reviewList{Filter: f, Filtered: len(f.Query()) > 0, Chosen: chosenBy(f, "/reviews"), Rules: assuranceRules(), MayDecide: p.May(organizations.RightApprove) == nil,
		Resolved: r.resolvedBefore(v)}
	var next int64
	if list.Items, next, err = r.queries().Reviews(ctx, p, f, after, shownReviews); err != nil {
		return reviewList{}, err
	}
	page := f.Query()
	if after > 0 {
		list.First = web.Address("/reviews", page)
	}
	if next > 0 {
		page.Set("after", strconv.FormatInt(next, 10))
		list.Next = web.Address("/reviews", page)
	}
	return list, nil
}

// resolved is the verdict that the person gave on the previous page. It is read from the record,
// not from the address, which could be forged.
type resolved struct {
	DecisionID, Verdict string
	Sentence            words.Phrase
}

func (r *Room) resolvedBefore(v *web.Visit) *resolved {
	id := v.Request.URL.Query().Get("resolved")
	if id == "" {
		return nil
	}
	c, err := r.Commands.ShowDecision(v.Request.Context(), v.Principal, id)
	if err != nil || c.Approval == nil || c.Approval.ApprovedBy != v.Principal.Member {
		return nil
	}
	sentence := append(words.Who(c.Record.Subject), words.Piece{Text: " wants to "})
	return &resolved{id, c.Approval.Verdict, append(sentence, words.Deed(c.Protocol, c.Record.Normalized)...)}
}

// decisionView is the data of the page of one decision.
type decisionView struct {
	decisions.DecisionCase
	Who, Deed      words.Phrase
	Title          string // title of the page, without text that agents wrote
	Target         string // payee or tool, in the agent's words
	Because        string
	Amount         string                // empty for a tool call
	Action         []words.Member        // fields of the normalized intent
	Found          []decisions.Explained // rules that did not pass
	Passed         []decisions.Explained
	Arguments      string // arguments of the tool, indented; empty if they were not stored
	People         web.People
	Similar        []query.ListedDecision
	Waits          bool // the decision waits for a verdict
	MayDecide      bool // the person may give the verdict
	Unused         bool // the approval has expired, and no receipt shows that it was used
	Checked        string
	Reason, Pasted string    // text of the form as it was sent
	Later          string    // address of the next review by age; empty if there is none
	Problem        string    // why the verdict was not recorded
	Resolved       *resolved // verdict that was given on the previous page
	Integrity      []words.Member
}

// Name returns the name by which the page shows a member.
func (d decisionView) Name(member string) string { return d.People.Name(member) }

func (r *Room) decisionView(ctx context.Context, p organizations.Principal, id string) (decisionView, error) {
	c, err := r.Commands.ShowDecision(ctx, p, id)
	if err != nil {
		return decisionView{}, err
	}
	d := decisionView{DecisionCase: c, Who: words.Who(c.Record.Subject), Deed: words.Deed(c.Protocol, c.Record.Normalized),
		Title: words.Title(c.Protocol, c.Record.Normalized), Target: words.Target(c.Protocol, c.Record.Normalized), Because: words.Because(c.Record.Findings),
		Waits: c.Record.Decision == assurance.NeedsReview && c.Approval == nil && c.Receipt == nil}
	if c.Protocol == assurance.X402 {
		d.Amount = words.Amount(c.Record.Normalized)
	}
	if d.Action, err = words.Action(c.Normalized); err != nil {
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
		d.Arguments = words.IndentJSON(c.Arguments)
	}
	if a := c.Approval; a != nil && a.Verdict == assurance.VerdictApproved && c.Receipt == nil {
		d.Unused = web.Instant(a.ValidUntil).Before(r.Commands.Clock())
	}
	d.MayDecide = p.May(organizations.RightApprove) == nil && (!c.Own || p.MayActAlone())
	d.People = web.PeopleOf(ctx, r.Commands.Organizations, p)
	d.Similar, err = r.similar(ctx, p, c)
	return d, err
}

// DeniedNow reports whether the active policy denies the action. Then nobody can approve it.
func (d decisionView) DeniedNow() bool { return d.Standing.ActiveDecision == assurance.Deny }

// Ended reports whether a later policy revoked the permission to act before a receipt reported the
// action.
func (d decisionView) Ended() bool { return d.Standing.Ended && d.Receipt == nil }

// Verdictable reports whether the person can give a verdict now.
func (d decisionView) Verdictable() bool { return d.Waits && d.MayDecide }

// Written returns the reason that the person wrote, if the page has no form to show it in.
func (d decisionView) Written() []web.Field {
	if d.Reason == "" || d.Verdictable() {
		return nil
	}
	return []web.Field{{Name: "Reason", Value: d.Reason}}
}

// similar returns earlier decisions about the same host or tool.
func (r *Room) similar(ctx context.Context, p organizations.Principal, c decisions.DecisionCase) ([]query.ListedDecision, error) {
	issued, err := time.Parse(time.RFC3339, c.Record.IssuedAt)
	if err != nil {
		return nil, err
	}
	page, err := r.queries().Search(ctx, p, query.Similar(c.Record, issued.Add(-similarWithin)),
		similarShown, projections.Cursor(c.Decided.Ledger.Sequence))
	return page.Items, err
}

func (r *Room) showReview(v *web.Visit) (web.View, error) {
	d, err := r.decisionView(v.Request.Context(), v.Principal, v.Vars["id"])
	d.Resolved = r.resolvedBefore(v)
	if err == nil && d.Verdictable() {
		d.Later = r.laterReview(v.Request.Context(), v.Principal, d.Decided.Ledger.Sequence)
	}
	return web.View{Template: "review.html", Data: d}, err
}

// postReview records the verdict of the pressed button and redirects to the next review. Only a
// button records a verdict. The reason is a text area, so the Enter key does not submit the form.
func (r *Room) postReview(v *web.Visit) (web.View, error) {
	ctx, p, id := v.Request.Context(), v.Principal, v.Vars["id"]
	if v.Form.Get("do") == "check" {
		return r.checkArguments(v)
	}
	if v.Form.Get("verdict") == "" && v.Form.Get("ready") != "" {
		return r.writeReason(v)
	}
	in, err := readVerdict(v.Form)
	if err != nil {
		return r.notRecorded(v, err)
	}
	said, err := r.Commands.Approve(ctx, p, id, in)
	if err != nil {
		return r.notRecorded(v, err)
	}
	r.Approved(said)
	return web.View{Location: r.nextReview(ctx, p, id) + "?resolved=" + url.QueryEscape(id)}, nil
}

// writeReason fills the form with the prepared reason of the pressed button. It records nothing.
func (r *Room) writeReason(v *web.Visit) (web.View, error) {
	d, err := r.decisionView(v.Request.Context(), v.Principal, v.Vars["id"])
	d.Reason, d.Pasted = v.Form.Get("ready"), v.Form.Get("arguments")
	return web.View{Template: "review.html", Data: d}, err
}

// readyReasons are prepared reasons, which a reviewer selects with one button, for example on a
// phone.
var readyReasons = []string{"It is expected work", "I checked it with the requester", "It is out of scope", "I do not know this agent"}

// Ready returns the prepared reasons of the form.
func (d decisionView) Ready() []string { return readyReasons }

// readVerdict parses the form by the rules of the API's body. It first removes the white space
// that phones add around the reason.
func readVerdict(form url.Values) (assurance.ApprovalInput, error) {
	if form.Get("verdict") == "" {
		return assurance.ApprovalInput{}, policy.Refuse("missing_field", "/verdict", "verdict is missing: press Approve or Reject")
	}
	reason := strings.TrimSpace(strings.ReplaceAll(form.Get("reason"), "\r\n", "\n"))
	if name := unseen(reason); name != "" {
		return assurance.ApprovalInput{}, policy.Refuse("out_of_range", "/reason", "reason has an invisible character ("+name+"): remove it")
	}
	body, err := json.Marshal(map[string]string{"verdict": form.Get("verdict"), "reason": reason})
	if err != nil {
		return assurance.ApprovalInput{}, policy.Refuse(web.CodeInvalid, "", "the form could not be read")
	}
	return assurance.ParseApproval(body)
}

// unseen describes the first invisible character of a text. Signed records do not allow invisible
// characters. It returns "" if there is none.
func unseen(text string) string {
	for _, r := range text {
		if !normal.Invisible(r) {
			continue
		}
		name := fmt.Sprintf("U+%04X", r)
		switch {
		case r == 0x200c:
			name += ", a zero-width non-joiner"
		case r == 0x200d:
			name += ", a zero-width joiner, as in emoji of several people"
		case r == 0x200b, r == 0x2060, r == 0xfeff:
			name += ", a space without width"
		case r == 0xad:
			name += ", a soft hyphen"
		case r == 0x200e, r == 0x200f, r == 0x61c, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
			name += ", which changes the direction of text"
		}
		return name
	}
	return ""
}

// notRecorded shows the current state of the review, the text that was written, and why no verdict
// was recorded.
func (r *Room) notRecorded(v *web.Visit, refused error) (web.View, error) {
	shows, problem := v.Explain(web.View{Template: "review.html"}, refused)
	d, err := r.decisionView(v.Request.Context(), v.Principal, v.Vars["id"])
	if err != nil || shows.Status >= http.StatusInternalServerError {
		return web.View{}, refused
	}
	d.Problem, d.Reason, d.Pasted = problem, v.Form.Get("reason"), v.Form.Get("arguments")
	shows.Data = d
	return shows, nil
}

// nextReview returns the address of the oldest review, other than id, that this person can
// resolve. It returns the address of the list if there is none.
func (r *Room) nextReview(ctx context.Context, p organizations.Principal, id string) string {
	for _, next := range r.waitingFor(ctx, p, 0, 2) {
		if next.DecisionID != id {
			return "/reviews/" + next.DecisionID
		}
	}
	return "/reviews"
}

// laterReview returns the address of the first review after a sequence number that this person can
// resolve. It returns "" if there is none.
func (r *Room) laterReview(ctx context.Context, p organizations.Principal, sequence int64) string {
	for _, next := range r.waitingFor(ctx, p, sequence, 1) {
		return "/reviews/" + next.DecisionID
	}
	return ""
}

// waitingFor lists reviews that this person can resolve. If they cannot be read, it returns none
// and no error, because the previous verdict is already recorded: the person then continues at the
// list of reviews.
func (r *Room) waitingFor(ctx context.Context, p organizations.Principal, after int64, most int) []projections.DecisionRow {
	f := projections.ReviewFilter{After: after}
	if !p.MayActAlone() {
		var err error
		if f.Except, err = r.Commands.OwnActors(ctx, p); err != nil {
			return nil
		}
	}
	waiting, err := r.Projections.OpenReviews(ctx, p.OrgID, f, most)
	if err != nil {
		return nil
	}
	return waiting
}

// rejectReviews rejects the selected decisions with one reason. Each verdict is signed and
// recorded separately, so a refused verdict does not stop the others. The next page shows the
// number of verdicts that were not recorded, and why the first one was refused.
func (r *Room) rejectReviews(v *web.Visit) (web.View, error) {
	chosen := v.Form["id"]
	v.Form.Set("verdict", assurance.VerdictRejected)
	in, err := readVerdict(v.Form)
	switch {
	case len(chosen) == 0:
		err = policy.Refuse("missing_field", "/id", "select at least one decision: tick its box in the list")
	case len(chosen) > shownReviews:
		err = policy.Refuse("out_of_range", "/id", "select at most "+strconv.Itoa(shownReviews)+" decisions")
	}
	if err != nil {
		return r.notRejected(v, err)
	}
	rejected, first := 0, ""
	for _, id := range chosen {
		said, err := r.Commands.Approve(v.Request.Context(), v.Principal, id, in)
		var refused *policy.Error
		switch {
		case err == nil:
			rejected++
			r.Approved(said)
		case errors.As(err, &refused):
			first = cmp.Or(first, refused.Message)
		case rejected == 0:
			return web.View{}, err
		default:
			first = cmp.Or(first, "the service could not record the verdict")
		}
	}
	done := fmt.Sprintf("%d of %d decisions rejected.", rejected, len(chosen))
	if first != "" {
		done += " Not recorded for the others: " + first + "."
	}
	return web.View{Location: "/reviews", Done: done}, nil
}

// notRejected returns the list of reviews with the reason why nothing was rejected. What the person
// selected and wrote stays in the form.
func (r *Room) notRejected(v *web.Visit, refused error) (web.View, error) {
	var asked url.Values
	if at, err := url.Parse(v.Form.Get(web.FormPlace)); err == nil {
		asked = at.Query()
	}
	list, err := r.reviewList(v, asked)
	if err != nil {
		return web.View{}, refused
	}
	shows, problem := v.Explain(web.View{Template: "reviews.html"}, refused)
	list.Problem, list.Reason, list.Ticked = problem, v.Form.Get("reason"), v.Form["id"]
	shows.Data = list
	return shows, nil
}

// checkArguments compares pasted arguments with the signed hash. It records nothing, and keeps the
// reason in the form.
func (r *Room) checkArguments(v *web.Visit) (web.View, error) {
	d, err := r.decisionView(v.Request.Context(), v.Principal, v.Vars["id"])
	if err != nil {
		return web.View{}, err
	}
	d.Reason, d.Pasted = v.Form.Get("reason"), v.Form.Get("arguments")
	canonical, err := canon.Canonical(jsontext.Value(strings.TrimSpace(d.Pasted)))
	switch {
	case err != nil:
		d.Checked = "bad"
	case canon.Hash(canonical) == d.Record.Normalized.ToolArgumentsHash:
		d.Checked = "same"
	default:
		d.Checked = "other"
	}
	return web.View{Template: "review.html", Data: d}, nil
}
