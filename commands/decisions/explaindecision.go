package decisions

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Explanation lists the result of each rule for one decision.
type Explanation struct {
	DecisionID    string         `json:"decisionId"`
	Decision      string         `json:"decision"`
	IssuedAt      string         `json:"issuedAt"`
	Protocol      string         `json:"protocol"`
	EngineVersion string         `json:"engineVersion"`
	Normalized    jsontext.Value `json:"normalized"` // the intent in normal form, as the rules saw it
	PolicyVersion int64          `json:"policyVersion"`
	PolicyHash    string         `json:"policyHash"`
	Policy        jsontext.Value `json:"policy"` // the policy version that applied
	Asserted      jsontext.Value `json:"asserted,omitempty"`
	Rules         []Explained    `json:"rules"`
	// Reproduced reports whether evaluating the request again gives the same decision and
	// findings.
	Reproduced bool `json:"reproduced"`
}

// Explained is the result of one rule: a finding, or that the rule passed.
type Explained struct {
	RuleID    string `json:"ruleId"`
	Result    string `json:"result"` // "passed", "info", "needs_review" or "deny"
	Condition string `json:"condition"`
	Field     string `json:"field,omitempty"`
	Expected  string `json:"expected,omitempty"`
	Actual    string `json:"actual,omitempty"`
	Source    string `json:"source,omitempty"`
	Message   string `json:"message,omitempty"`
}

// ExplainDecision returns the intent, the policy and the result of each rule for a decision. It
// also evaluates the decision again with the stored bytes of the policy that applied.
func (a *Decisions) ExplainDecision(ctx context.Context, p organizations.Principal, decisionID string) (Explanation, error) {
	p, history, err := a.readDecision(ctx, p, decisionID)
	if err != nil {
		return Explanation{}, err
	}
	return a.explain(ctx, p, history.Events[0])
}

// readDecision reads a decision's stream. It returns the refusal not_found if the decision does
// not exist, belongs to another organization, or the principal may see only own decisions and this
// is not one. It returns the principal as Permit has confirmed it.
func (a *Decisions) readDecision(ctx context.Context, p organizations.Principal, decisionID string) (organizations.Principal, ledger.History, error) {
	p, err := a.Permit(ctx, p, organizations.RightRead)
	if err != nil {
		return p, ledger.History{}, err
	}
	if !strings.HasPrefix(decisionID, "asd_") {
		return p, ledger.History{}, ground.ErrNotFound
	}
	history, err := a.Ledger.Read(ctx, p.OrgID, decisionStream(decisionID))
	if err != nil {
		return p, history, ground.Refusal(err)
	}
	if len(history.Events) == 0 || history.Events[0].Type != events.TypeDecisionRecorded {
		return p, history, ground.ErrNotFound
	}
	if p.OwnOnly() {
		if own, err := a.IsOwn(ctx, p, history.Events[0].Actor); err != nil || !own {
			return p, history, errors.Join(err, ground.ErrNotFound)
		}
	}
	return p, history, nil
}

func (a *Decisions) explain(ctx context.Context, p organizations.Principal, decided ledger.Event) (Explanation, error) {
	j, err := JudgedOf(decided)
	if err != nil {
		return Explanation{}, err
	}
	version, err := a.PolicyVersion(ctx, p.OrgID, int(j.Policy.Version))
	if err != nil {
		return Explanation{}, err
	}
	return j.explain(version)
}

func (j Judged) explain(version ActivePolicy) (Explanation, error) {
	x := Explanation{DecisionID: j.DecisionID, Decision: j.Decision, IssuedAt: j.IssuedAt, Protocol: j.Protocol,
		EngineVersion: j.EngineVersion, PolicyVersion: j.Policy.Version, PolicyHash: j.Policy.PolicyHash, Policy: version.Canonical}
	var err error
	if x.Normalized, err = canon.Marshal(j.Normalized); err != nil {
		return x, err
	}
	if j.asserted != nil {
		if x.Asserted, err = canon.Marshal(j.asserted); err != nil {
			return x, err
		}
	}
	catalogue, _ := assurance.Catalogue()
	for _, rule := range catalogue {
		x.Rules = append(x.Rules, j.explained(rule)...)
	}
	stored, err := assurance.ReadPolicy(version.Canonical)
	if err != nil {
		return x, err
	}
	again, ok := j.Under(stored.Rules)
	if x.Reproduced = ok && again.Decision == j.Decision && version.Hash == j.Policy.PolicyHash; x.Reproduced {
		x.Reproduced, err = SameFindings(again.Findings, j.Findings)
	}
	return x, err
}

// explained returns the findings of a rule, or that it passed. If the rule does not apply to the
// decision's protocol, it returns nothing.
func (j Judged) explained(rule assurance.Rule) []Explained {
	var found []Explained
	for _, f := range j.Findings {
		if f.RuleID == rule.ID {
			found = append(found, Explained{rule.ID, f.Effect, rule.Condition, f.Field, f.Expected, f.Actual, f.Source, f.Message})
		}
	}
	for _, protocol := range rule.Protocols {
		if protocol == j.Protocol && found == nil {
			found = append(found, Explained{RuleID: rule.ID, Result: "passed", Condition: rule.Condition})
		}
	}
	return found
}

// SameFindings reports whether two lists of findings have equal canonical bytes. It ignores the
// recorded finding about an adjusted clock, which an evaluation does not repeat.
func SameFindings(again, recorded []assurance.Finding) (bool, error) {
	own := []assurance.Finding{}
	for _, f := range recorded {
		if f.RuleID != assurance.ClockAdjusted {
			own = append(own, f)
		}
	}
	x, err := canon.Marshal(append([]assurance.Finding{}, again...))
	if err != nil {
		return false, err
	}
	y, err := canon.Marshal(own)
	return bytes.Equal(x, y), err
}
