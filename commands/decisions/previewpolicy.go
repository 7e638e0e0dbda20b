package decisions

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Judged is the part of a stored decision that can be evaluated again. It contains no personal
// data.
type Judged struct {
	DecisionID    string                 `json:"decisionId"`
	IssuedAt      string                 `json:"issuedAt"`
	Protocol      string                 `json:"protocol"`
	Normalized    assurance.Intent       `json:"normalized"`
	Policy        assurance.RecordPolicy `json:"policy"`
	EngineVersion string                 `json:"engineVersion"`
	Decision      string                 `json:"decision"`
	Findings      []assurance.Finding    `json:"findings"`

	asserted *assurance.Rules
}

// JudgedOf returns the part of an event decision.recorded that can be evaluated again.
func JudgedOf(e ledger.Event) (Judged, error) {
	var j Judged
	stored, err := events.As[events.DecisionRecorded](e) // not decrypted: personal data stays a commitment (salted hash)
	if err != nil {
		return j, err
	}
	if stored.Asserted != nil {
		if err := json.Unmarshal(stored.Asserted, &j.asserted); err != nil {
			return j, err
		}
	}
	err = json.Unmarshal(stored.Record, &j)
	return j, err
}

// Under evaluates the decision's intent and assertion under other rules. ok is false if this
// program does not have the engine version of the decision.
func (j Judged) Under(rules assurance.Rules) (e assurance.Evaluation, ok bool) {
	return assurance.Evaluate(j.EngineVersion, j.Protocol, rules, j.asserted, j.Normalized)
}

// Flip is a decision whose result under a draft differs from that under the active policy.
type Flip struct {
	DecisionID string   `json:"decisionId"`
	IssuedAt   string   `json:"issuedAt" jsonschema:"format=date-time"`
	Protocol   string   `json:"protocol"`
	Before     string   `json:"before" jsonschema_description:"Decision under the active policy, which may differ from the policy that applied at the time."`
	After      string   `json:"after" jsonschema_description:"Decision under the draft."`
	Hidden     bool     `json:"-"` // the principal may see only own records (Principal.OwnOnly) and this is not one
	RuleIDs    []string `json:"ruleIds" jsonschema_description:"Rules that caused the decision under the draft; if it is allow, the rules that no longer match."`
}

// Preview is the effect that activating a draft would have on the decisions of the last 30 days.
// Each decision is evaluated under the draft and under the active policy, so the effects of
// earlier activations are not counted.
type Preview struct {
	Since        string `json:"since" jsonschema:"format=date-time"`
	Active       int    `json:"activeVersion" jsonschema_description:"Version of the active policy that the draft is compared with."`
	Decisions    int    `json:"decisions"`    // all decisions of the period
	NotEvaluated int    `json:"notEvaluated"` // decisions whose engine version this program does not have
	Flips        []Flip `json:"flips"`
	More         int    `json:"more"` // number of flips that Flips does not list
}

// PreviewDraft compares a stored draft with the active policy.
func (a *Decisions) PreviewDraft(ctx context.Context, p organizations.Principal, draftID string) (Preview, error) {
	p, err := a.Permit(ctx, p, organizations.RightDraft)
	if err != nil {
		return Preview{}, err
	}
	s, err := a.readPolicies(ctx, p.OrgID)
	if err != nil {
		return Preview{}, ground.Refusal(err)
	}
	d, known := s.draft(draftID)
	if !known {
		return Preview{}, policy.Refuse(ground.CodeNotFound, "", "policy draft not found")
	}
	return a.PreviewPolicy(ctx, p, d.Canonical)
}

// PreviewPolicy compares the text of a policy with the active policy.
func (a *Decisions) PreviewPolicy(ctx context.Context, p organizations.Principal, text []byte) (Preview, error) {
	p, err := a.Permit(ctx, p, organizations.RightDraft)
	if err != nil {
		return Preview{}, err
	}
	var draft assurance.Draft
	err = a.Within(ctx, len(text), func() (err error) { draft, err = assurance.Lint(text); return err })
	if err != nil {
		return Preview{}, err
	}
	s, err := a.readPolicies(ctx, p.OrgID)
	if err != nil {
		return Preview{}, ground.Refusal(err)
	}
	since := a.Now().Add(-previewWindow)
	var own []string
	if p.OwnOnly() {
		if own, err = a.OwnActors(ctx, p); err != nil {
			return Preview{}, err
		}
	}
	hidden := func(actor string) bool { return p.OwnOnly() && !slices.Contains(own, actor) }
	preview := Preview{Since: canon.Stamp(since), Active: len(s.activations), Flips: []Flip{}}
	if len(s.activations) == 0 {
		return preview, nil // without a policy no decision was made
	}
	active, err := assurance.ReadPolicy(s.activations[len(s.activations)-1].Canonical)
	if err != nil {
		return Preview{}, err
	}
	from, err := a.sequenceAt(ctx, p.OrgID, since)
	if err != nil {
		return Preview{}, ground.Refusal(err)
	}
	for {
		page, err := a.Ledger.Tenant(ctx, p.OrgID, from, previewPage)
		if err != nil {
			return Preview{}, ground.Refusal(err)
		}
		// Each page is computed in the slot of a heavy request, and the slot is freed before the
		// next page is read.
		err = a.Within(ctx, ground.HeavyBody, func() error { return preview.addAll(page, active.Rules, draft.Rules, hidden) })
		if err != nil {
			return Preview{}, err
		}
		if len(page) > 0 {
			from = page[len(page)-1].Sequence + 1
		}
		if len(page) < previewPage {
			return preview, nil
		}
	}
}

func (p *Preview) addAll(page []ledger.Event, active, draft assurance.Rules, hidden func(actor string) bool) error {
	for _, e := range page {
		if e.Type != events.TypeDecisionRecorded {
			continue
		}
		if err := p.add(e, active, draft, hidden(e.Actor)); err != nil {
			return err
		}
	}
	return nil
}

func (p *Preview) add(e ledger.Event, active, draft assurance.Rules, hidden bool) error {
	j, err := JudgedOf(e)
	if err != nil {
		return err
	}
	p.Decisions++
	before, ok := j.Under(active)
	after, _ := j.Under(draft)
	switch {
	case !ok:
		p.NotEvaluated++
	case after.Decision == before.Decision:
	case len(p.Flips) == MaxFlips:
		p.More++
	default:
		findings := after.Findings
		if after.Decision == assurance.Allow {
			findings = before.Findings
		}
		p.Flips = append(p.Flips, Flip{DecisionID: j.DecisionID, IssuedAt: j.IssuedAt, Protocol: j.Protocol,
			Before: before.Decision, After: after.Decision, Hidden: hidden, RuleIDs: RuleIDs(findings)})
	}
	return nil
}

// RuleIDs returns the ids of the rules whose findings have an effect other than "info", without
// duplicates.
func RuleIDs(findings []assurance.Finding) []string {
	ids := []string{}
	for _, f := range findings {
		if f.Effect != "info" && !slices.Contains(ids, f.RuleID) {
			ids = append(ids, f.RuleID)
		}
	}
	return ids
}

// sequenceAt returns the sequence number of a tenant's first event at or after a time. It uses
// binary search, since times do not decrease within a tenant.
func (a *Decisions) sequenceAt(ctx context.Context, tenant string, t time.Time) (int64, error) {
	last, err := a.Ledger.LastSequence(ctx, tenant)
	if err != nil {
		return 0, err
	}
	var failed error
	n := sort.Search(int(last), func(i int) bool {
		page, err := a.Ledger.Tenant(ctx, tenant, int64(i)+1, 1)
		if err != nil || len(page) == 0 {
			failed = err
			return true
		}
		return !page[0].Occurred().Before(t)
	})
	return int64(n) + 1, failed
}
