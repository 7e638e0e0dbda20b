package evidence

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Replay selects the decisions and gate verdicts to evaluate again.
type Replay struct {
	Tenant   string  // empty means all organizations
	From, To []int64 // first and last position, by partition; nil means all
	Policy   []byte  // text of a policy to evaluate instead; nil means the policy that applied

	Services []policy.Service // the gate's services; their verdicts are evaluated again, too
}

// Replayed is the result of evaluating decisions again. Only recorded data is used: the intent in
// normal form, the policy's bytes, the assertion and the engine version.
type Replayed struct {
	Decisions     int           `json:"decisions"` // number of decisions read
	Equal         int           `json:"equal"`     // number whose decision, findings and bindingHash are equal byte for byte
	Different     []NotTheSame  `json:"different"`
	More          int           `json:"more"` // number of differences beyond those in Different
	NotReplayable []NotReplayed `json:"notReplayable"`
	Verdicts      VerdictReplay `json:"verdicts"`
}

// NotTheSame is a difference between a record and its evaluation.
type NotTheSame struct {
	Position   int64    `json:"position"`
	Tenant     string   `json:"tenant"`
	DecisionID string   `json:"decisionId"`
	What       string   `json:"what"` // the member that differs, for example "decision", "findings", "bindingHash", "assuranceActionHash" or "policyHash"
	Recorded   string   `json:"recorded"`
	Replayed   string   `json:"replayed"`
	RuleIDs    []string `json:"ruleIds,omitempty"`
}

// NotReplayed is a reason why part of a record cannot be computed again, with the number of
// records.
type NotReplayed struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// replayer is the state of one replay.
type replayer struct {
	app      *Evidence
	request  Replay
	rules    assurance.Rules // rules of request.Policy, if set
	policies map[string]assurance.StoredPolicy
	report   Replayed
	reasons  map[string]int
	editions map[string]*actionrisk.Edition // by version and hash of the rule set; nil if this program does not have it
}

// ReplayDecisions evaluates recorded decisions and gate verdicts again and compares the results.
// It writes nothing.
func (a *Evidence) ReplayDecisions(ctx context.Context, request Replay) (Replayed, error) {
	r := &replayer{app: a, request: request, policies: map[string]assurance.StoredPolicy{}, reasons: map[string]int{},
		editions: map[string]*actionrisk.Edition{},
		report:   Replayed{Different: []NotTheSame{}, NotReplayable: []NotReplayed{}}}
	if request.Policy != nil {
		draft, err := assurance.Lint(request.Policy)
		if err != nil {
			return r.report, err
		}
		r.rules = draft.Rules
	}
	for _, p := range a.Ledger.Partitions() {
		if request.Tenant != "" && p != a.Ledger.Home(request.Tenant) {
			continue
		}
		if err := r.partition(ctx, p); err != nil {
			return r.report, ground.Refusal(err)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		r.report.NotReplayable = append(r.report.NotReplayable, NotReplayed{reason, r.reasons[reason]})
	}
	return r.report, nil
}

// of returns the bound for a partition, or 0 if there is none.
func of(bounds []int64, p *ledger.Partition) int64 {
	if int(p.Number()) < len(bounds) {
		return bounds[p.Number()]
	}
	return 0
}

// partition replays the events of one partition.
func (r *replayer) partition(ctx context.Context, p *ledger.Partition) error {
	for position := max(of(r.request.From, p)-1, 0); ; {
		page, err := p.After(ctx, position, exportPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			position = e.Position
			if to := of(r.request.To, p); to > 0 && position > to {
				return nil
			}
			if r.request.Tenant != "" && e.Tenant != r.request.Tenant {
				continue
			}
			if err := r.event(ctx, e); err != nil {
				return err
			}
		}
		if len(page) < exportPage {
			return nil
		}
	}
}

func (r *replayer) event(ctx context.Context, e ledger.Event) error {
	switch e.Type {
	case events.TypePolicyActivated:
		stored, err := events.As[events.PolicyActivated](e)
		if err != nil {
			return err
		}
		return r.learn(e.Tenant, stored)
	case events.TypeDecisionRecorded:
		return r.decision(ctx, e)
	case events.TypeCallCompleted:
		return r.verdict(ctx, e)
	}
	return nil
}

func (r *replayer) learn(tenant string, stored events.PolicyActivated) error {
	p, err := assurance.ReadPolicy(stored.Policy)
	if err != nil {
		return err
	}
	r.policies[tenant+" "+canon.Hash(stored.Policy)] = p
	return nil
}

// policyOf returns the policy that a decision names. If it was activated before the range, it is
// read from the organization's stream. The bool reports whether it exists.
func (r *replayer) policyOf(ctx context.Context, tenant, hash string) (assurance.StoredPolicy, bool, error) {
	if p, known := r.policies[tenant+" "+hash]; known {
		return p, true, nil
	}
	history, err := r.app.Ledger.Read(ctx, tenant, "policy")
	if err != nil {
		return assurance.StoredPolicy{}, false, err
	}
	for _, e := range history.Events {
		if e.Type != events.TypePolicyActivated {
			continue
		}
		stored, err := events.As[events.PolicyActivated](e)
		if err != nil {
			return assurance.StoredPolicy{}, false, err
		}
		if err := r.learn(tenant, stored); err != nil {
			return assurance.StoredPolicy{}, false, err
		}
	}
	p, known := r.policies[tenant+" "+hash]
	return p, known, nil
}

// decision evaluates one decision again and adds the result to the report.
func (r *replayer) decision(ctx context.Context, e ledger.Event) error {
	r.report.Decisions++
	j, err := decisions.JudgedOf(e)
	if err != nil {
		return err
	}
	if r.request.Policy != nil {
		again, ok := j.Under(r.rules)
		return r.compare(e, j, again, ok, nil)
	}
	p, known, err := r.policyOf(ctx, e.Tenant, j.Policy.PolicyHash)
	if err != nil {
		return err
	}
	if !known {
		r.different(e, j, "policyHash", j.Policy.PolicyHash, "no such policy was active", nil)
		return nil
	}
	again, ok := j.Under(p.Rules)
	return r.compare(e, j, again, ok, func() error { return r.hashes(ctx, e, j, again) })
}

// compare compares an evaluation's decision with the recorded one. If more is not nil, it also
// compares the findings, and then calls more, which compares the hashes.
func (r *replayer) compare(e ledger.Event, j decisions.Judged, again assurance.Evaluation, ok bool, more func() error) error {
	switch {
	case !ok:
		r.reasons["engine version "+j.EngineVersion]++
		return nil
	case again.Decision != j.Decision:
		r.different(e, j, "decision", j.Decision, again.Decision, decisions.RuleIDs(again.Findings))
		return nil
	}
	if more == nil {
		r.report.Equal++
		return nil
	}
	same, err := decisions.SameFindings(again.Findings, j.Findings)
	if err != nil {
		return err
	}
	if !same {
		r.different(e, j, "findings", "as recorded", "others", decisions.RuleIDs(again.Findings))
		return nil
	}
	return more()
}

// hashes computes assuranceActionHash and bindingHash again and compares them. The arguments of a
// tool are stored as a hash only, so their normalization cannot be repeated and the hash is used.
// For an erased agent bindingHash cannot be computed, because the subject is gone.
func (r *replayer) hashes(ctx context.Context, e ledger.Event, j decisions.Judged, again assurance.Evaluation) error {
	s, err := r.app.Open(ctx, e)
	if errors.Is(err, vault.ErrErased) {
		r.reasons["bindingHash (erased)"]++
		r.report.Equal++
		return nil
	}
	if err != nil {
		return err
	}
	var record assurance.DecisionRecord
	if err := json.Unmarshal(s.Record, &record); err != nil {
		return err
	}
	if got := assurance.ActionHash(j.Protocol, j.Normalized); got != record.AssuranceActionHash {
		r.different(e, j, "assuranceActionHash", record.AssuranceActionHash, got, nil)
		return nil
	}
	members, err := canon.Members(s.Record)
	if err != nil {
		return err
	}
	subject, err := canon.Canonical(members["subject"])
	if err != nil {
		return err
	}
	binding, err := assurance.Binding{OrgID: e.Tenant, DecisionID: j.DecisionID, Decision: again.Decision,
		AssuranceActionHash: record.AssuranceActionHash, SubjectHash: canon.Hash(subject),
		PolicyHash: j.Policy.PolicyHash, PolicyID: j.Policy.PolicyID, Version: j.Policy.Version}.Hash()
	if err != nil {
		return err
	}
	if binding != record.BindingHash {
		r.different(e, j, "bindingHash", record.BindingHash, binding, nil)
		return nil
	}
	if j.Protocol == "mcp" {
		r.reasons["normalisation of tool arguments (stored as a hash)"]++
	}
	r.report.Equal++
	return nil
}

func (r *replayer) different(e ledger.Event, j decisions.Judged, what, recorded, replayed string, rules []string) {
	if len(r.report.Different) == decisions.MaxFlips {
		r.report.More++
		return
	}
	r.report.Different = append(r.report.Different, NotTheSame{e.Position, e.Tenant, j.DecisionID, what, recorded, replayed, rules})
}
