package evidence

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// A recall is an export with the file pack/recall.json: the list of the actions in it that were
// allowed and that another policy, or another rule set of the gate, would have stopped. The export
// and RecallAgain evaluate the same events with the same code, so a receiver can check the list.

// RecallFile is the name of the list in the bundle.
const RecallFile = packFolder + recallName

const (
	recallName   = "recall.json"
	recallSchema = "svc-recall-v1"
)

// Recalled is the content of RecallFile.
type Recalled struct {
	Schema         string        `json:"schema"`
	PolicyHash     string        `json:"policyHash,omitempty"`     // of the policy in policies/, or
	RulesetVersion string        `json:"rulesetVersion,omitempty"` // version and hash of the rule set in rules/
	RulesetHash    string        `json:"rulesetHash,omitempty"`
	Evaluated      int           `json:"evaluated"` // number of allowed actions that were evaluated again
	Stopped        []Stopped     `json:"stopped"`   // those among them that would not be allowed, in the order of the ledger
	NotReplayed    []NotReplayed `json:"notReplayed"`
}

// Stopped is an action that was allowed and would not be allowed now.
type Stopped struct {
	Position int64    `json:"position"`
	ID       string   `json:"id"` // decisionId, or the id of the event of a gate verdict
	At       string   `json:"at"`
	Subject  string   `json:"subject"` // protocol of the decision, or service that gave the verdict
	Now      string   `json:"now"`     // "deny" or "needs_review"
	RuleIDs  []string `json:"ruleIds"`
}

// Denied returns how many of the stopped actions would be denied. The others would be sent to
// approval.
func (r Recalled) Denied() (n int) {
	for _, s := range r.Stopped {
		if s.Now == assurance.Deny {
			n++
		}
	}
	return n
}

// Says returns the result as one line of text.
func (r Recalled) Says() string {
	unknown := 0
	for _, reason := range r.NotReplayed {
		unknown += reason.Count
	}
	return fmt.Sprintf("%d of %d allowed actions would have been stopped (%d denied, %d sent to approval); %d not replayed",
		len(r.Stopped), r.Evaluated, r.Denied(), len(r.Stopped)-r.Denied(), unknown)
}

// Recall evaluates the events of an export again, under one policy or one rule set.
type Recall struct {
	Found Recalled

	policy  *assurance.Draft
	edition *actionrisk.Edition
	text    []byte // of the policy or rule set
	reasons map[string]int
}

func newRecall() *Recall {
	return &Recall{Found: Recalled{Schema: recallSchema, Stopped: []Stopped{}, NotReplayed: []NotReplayed{}}, reasons: map[string]int{}}
}

// RecallWith returns a Recall for the decisions of an organization under another policy.
func RecallWith(text []byte) (*Recall, error) {
	draft, err := assurance.Lint(text)
	if err != nil {
		return nil, err
	}
	r := newRecall()
	r.policy, r.text, r.Found.PolicyHash = &draft, draft.Canonical, draft.Hash
	return r, nil
}

// RecallUnder returns a Recall for the gate's verdicts under a rule set that this program has.
func RecallUnder(version string) (*Recall, error) {
	edition, err := actionrisk.At(version)
	if err != nil {
		present, _ := actionrisk.Ruleset()
		return nil, policy.Refuse("invalid_value", "/rules", "rules must be the version of a rule set that this program has, such as "+present)
	}
	text, err := actionrisk.RulesetText(version)
	if err != nil {
		return nil, err
	}
	r := newRecall()
	r.edition, r.text, r.Found.RulesetVersion, r.Found.RulesetHash = edition, text, version, canon.Hash(text)
	return r, nil
}

// Recall exports the events of a period with the list of r. With a policy, these are the allowed
// decisions of an organization; their numbers prove that none is missing. With a rule set, these are
// all events of a service tenant in the period, because gate verdicts are not numbered.
func (a *Evidence) Recall(ctx context.Context, e Export, r *Recall) (Exported, error) {
	switch service := ledger.IsService(e.Tenant); {
	case r.policy != nil && service:
		return Exported{}, policy.Refuse("invalid_value", "/policy", "policy needs an organization, whose decisions are evaluated again; use rules for the tenant service")
	case r.edition != nil && !service:
		return Exported{}, policy.Refuse("invalid_value", "/rules", "rules needs the tenant service, in which the gate's verdicts are recorded; use policy for an organization")
	case r.policy != nil:
		e.Filters.Decision = assurance.Allow
	}
	more := e.Pack
	e.Recall = r
	e.Pack = func(ctx context.Context, m bundle.Manifest, found Found, put func(string, []byte) error) error {
		text, err := canon.Marshal(r.result())
		if err == nil {
			err = put(recallName, text)
		}
		if err == nil && more != nil {
			err = more(ctx, m, found, put)
		}
		return err
	}
	return a.ExportHistory(ctx, e)
}

// result completes and returns the list.
func (r *Recall) result() Recalled {
	r.Found.NotReplayed = []NotReplayed{}
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		r.Found.NotReplayed = append(r.Found.NotReplayed, NotReplayed{reason, r.reasons[reason]})
	}
	return r.Found
}

// add evaluates an event again, if it is an allowed action.
func (r *Recall) add(e bundle.Shows) error {
	switch {
	case r.policy != nil && e.Type == events.TypeDecisionRecorded:
		return r.decision(e)
	case r.edition != nil && e.Type == events.TypeCallCompleted:
		return r.verdict(e)
	}
	return nil
}

func (r *Recall) decision(e bundle.Shows) error {
	j, err := decisions.JudgedOf(e.Event)
	if err != nil || j.Decision != assurance.Allow {
		return err
	}
	now, ok := j.Under(r.policy.Rules)
	if !ok {
		r.reasons["engine version "+j.EngineVersion]++
		return nil
	}
	if r.Found.Evaluated++; now.Decision != assurance.Allow {
		r.stop(e, j.DecisionID, j.Protocol, now.Decision, decisions.RuleIDs(now.Findings))
	}
	return nil
}

// verdict evaluates a gate verdict again. Its command and answer are personal data, so it needs
// their openings.
func (r *Recall) verdict(e bundle.Shows) error {
	stored, err := events.As[events.CallCompleted](e.Event)
	if err != nil || stored.RulesetHash == "" {
		return err
	}
	request, answer := e.Opened("/request"), e.Opened("/answer")
	if request == nil || answer == nil {
		r.reasons["verdict (erased, or left out of this file)"]++
		return nil
	}
	var was verdict
	var action actionrisk.Action
	if json.Unmarshal(answer, &was) != nil || json.Unmarshal(request, &action) != nil {
		r.reasons["verdict of service version "+stored.Version]++
		return nil
	}
	if was.stops() {
		return nil
	}
	r.Found.Evaluated++
	if now := r.edition.Assess(action); now.RequiresApproval {
		r.stop(e, e.ID, stored.Service, assurance.NeedsReview, now.RuleIDs())
	}
	return nil
}

// stops reports whether the recorded verdict requires an approval. If the answer of a service does
// not say that, the stated risk decides: high and critical risk require one.
func (v verdict) stops() bool {
	if v.RequiresApproval != nil {
		return *v.RequiresApproval
	}
	return v.Risk == actionrisk.High.String() || v.Risk == actionrisk.Critical.String()
}

func (r *Recall) stop(e bundle.Shows, id, subject, now string, rules []string) {
	r.Found.Stopped = append(r.Found.Stopped, Stopped{e.Position, id, canon.Stamp(e.Occurred()), subject, now, append([]string{}, rules...)})
}

// Rechecked is the result of RecallAgain.
type Rechecked struct {
	Found Recalled // computed from the events
	Fault string   // how the list in the bundle differs; empty if it does not
	Gap   string   // why nothing could be computed; empty if it could
}

// RecallAgain evaluates the events of a bundle with a RecallFile again and compares the list. The
// caller must have verified the bundle.
func RecallAgain(ctx context.Context, b *bundle.Bundle) (Rechecked, error) {
	text, err := b.Text(RecallFile)
	if err != nil {
		return Rechecked{}, err
	}
	var said Recalled
	if err := canon.Decode(text, &said); err != nil || said.Schema != recallSchema {
		return Rechecked{Fault: "is malformed"}, nil
	}
	// Take the policy from the bundle, and the rule set from this program.
	var r *Recall
	if said.PolicyHash != "" {
		stated, err := b.Text("policies/" + said.PolicyHash + ".json")
		if err != nil {
			return Rechecked{}, err
		}
		if r, err = RecallWith(stated); err != nil || r.Found.PolicyHash != said.PolicyHash {
			return Rechecked{Fault: "names a policy that is not in policies/"}, nil
		}
	} else if r, err = RecallUnder(said.RulesetVersion); err != nil || r.Found.RulesetHash != said.RulesetHash {
		return Rechecked{Gap: "this program does not have the rule set"}, nil
	}
	for e, err := range b.Events(ctx) {
		if err != nil {
			return Rechecked{}, err
		}
		if err := r.add(e); err != nil {
			return Rechecked{}, err
		}
	}
	found := Rechecked{Found: r.result()}
	again, err := canon.Marshal(found.Found)
	if err == nil && !bytes.Equal(again, text) {
		found.Fault = "is not what the events say: " + found.Found.Says()
	}
	return found, err
}
