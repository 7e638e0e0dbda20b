package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/canon"
)

// VerdictReplay counts the gate verdicts that were evaluated again with the rule set that they
// name.
type VerdictReplay struct {
	Verdicts int `json:"verdicts"`
	Equal    int `json:"equal"`
	// VerdictAlone counts those verdicts among Equal of which only risk, score and rules are
	// equal. The rest of the answer differs, because an earlier program wrote it with other
	// members or another rule set.
	VerdictAlone int `json:"verdictAlone"`
}

// verdict has the members of a gate answer that state a verdict. All versions of the services use
// these names, but a service may leave out some of them.
type verdict struct {
	Risk             string   `json:"risk"`
	RiskScore        *int     `json:"riskScore"`
	RequiresApproval *bool    `json:"requiresApproval"`
	MatchedRuleIDs   []string `json:"matchedRuleIds"`
	CommandScore     *verdict `json:"commandScore"` // set in the answer of a workflow, which lists its rules here
}

// holds compares a recorded verdict with an assessment. It returns the name and both values of the
// first member that differs, or empty texts if all are equal.
func (v verdict) holds(a actionrisk.Assessment) (what, recorded, replayed string) {
	if v.CommandScore != nil {
		if what, recorded, replayed := v.CommandScore.holds(a); what != "" {
			return what, recorded, replayed
		}
		v.MatchedRuleIDs = v.CommandScore.MatchedRuleIDs
	}
	switch ids := a.RuleIDs(); {
	case v.Risk != a.Risk.String():
		return "risk", v.Risk, a.Risk.String()
	case v.RiskScore != nil && *v.RiskScore != a.Score:
		return "riskScore", fmt.Sprint(*v.RiskScore), fmt.Sprint(a.Score)
	case v.RequiresApproval != nil && *v.RequiresApproval != a.RequiresApproval:
		return "requiresApproval", fmt.Sprint(*v.RequiresApproval), fmt.Sprint(a.RequiresApproval)
	case !slices.Equal(v.MatchedRuleIDs, ids):
		return "matchedRuleIds", fmt.Sprint(v.MatchedRuleIDs), fmt.Sprint(ids)
	}
	return "", "", ""
}

// edition returns the rule set with this version and hash, or nil if this program does not have
// it.
func (r *replayer) edition(version, hash string) *actionrisk.Edition {
	name := version + " " + hash
	if edition, known := r.editions[name]; known {
		return edition
	}
	var edition *actionrisk.Edition
	if text, err := actionrisk.RulesetText(version); err == nil && canon.Hash(text) == hash {
		if edition, err = actionrisk.At(version); err != nil {
			edition = nil
		}
	}
	r.editions[name] = edition
	return edition
}

// verdict evaluates a gate verdict again with the rule set that it names and compares the answers.
func (r *replayer) verdict(ctx context.Context, e ledger.Event) error {
	if r.request.Policy != nil {
		return nil
	}
	stored, err := events.As[events.CallCompleted](e)
	if err != nil || stored.RulesetHash == "" || r.request.Tenant != "" && r.request.Tenant != e.Tenant {
		return err
	}
	at := slices.IndexFunc(r.request.Services, func(s policy.Service) bool { return s.Name == stored.Service && s.Ruleset != nil })
	if at < 0 {
		return nil
	}
	r.report.Verdicts.Verdicts++
	edition := r.edition(stored.RulesetVersion, stored.RulesetHash)
	switch {
	case edition == nil:
		r.reasons["rule set "+stored.RulesetVersion+" "+stored.RulesetHash[:min(12, len(stored.RulesetHash))]]++
		return nil
	case r.app.Vault == nil:
		r.reasons["verdict (DATA_KEK is not given)"]++
		return nil
	}
	var opened events.CallCompleted
	err = r.app.Vault.Open(ctx, e, &opened)
	if errors.Is(err, vault.ErrErased) {
		r.reasons["verdict (erased)"]++
		return nil
	}
	if err != nil {
		return err
	}
	request, err := canon.Marshal(opened.Request)
	if err != nil {
		return err
	}
	service := r.request.Services[at]
	if _, hash := service.Ruleset(); hash == stored.RulesetHash {
		if answer, err := service.EvaluateCanonical(request); err == nil && answer.OutputHash == stored.OutputHash {
			r.report.Verdicts.Equal++
			return nil
		}
	}
	return r.verdictAlone(e, edition, request, opened.Answer)
}

// verdictAlone compares only the verdict in an answer, because the answer as a whole differs.
func (r *replayer) verdictAlone(e ledger.Event, edition *actionrisk.Edition, request []byte, answer any) error {
	text, err := canon.Marshal(answer)
	if err != nil {
		return err
	}
	var was verdict
	var action actionrisk.Action
	if err := errors.Join(json.Unmarshal(text, &was), json.Unmarshal(request, &action)); err != nil {
		return fmt.Errorf("read the verdict at position %d: %w", e.Position, err)
	}
	if what, recorded, replayed := was.holds(edition.Assess(action)); what != "" {
		r.different(e, decisions.Judged{DecisionID: e.ID}, what, recorded, replayed, nil)
		return nil
	}
	r.report.Verdicts.Equal++
	r.report.Verdicts.VerdictAlone++
	return nil
}
