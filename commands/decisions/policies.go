package decisions

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// policyStream is the stream of an organization's drafts and activations. Each decision has it as
// a precondition.
const policyStream = "policy"

// ActivePolicy is the policy that was activated last, as read at one version of the stream.
type ActivePolicy struct {
	PolicyID          string
	Version           int
	Canonical         []byte // canonical JSON, with policyId and version
	Hash              string // SHA-256 of Canonical, hex
	ActivatedSequence int64  // tenant sequence number of the event policy.activated
	Precondition      ledger.Precondition
}

// Draft is a policy that is stored and can be activated once. A draft is never changed.
type Draft struct {
	DraftID   string
	PolicyID  string
	Canonical []byte // canonical JSON, without version
	Hash      string
	Author    string
	Reason    string // why the author proposes it; may be empty
	Lint      []events.PolicyLint
	DraftedAt string
	Activated bool
	actor     string // member or token that sent the draft
}

// Activation is one version of an organization's policy.
type Activation struct {
	ActivePolicy
	DraftID, Author, Activator, Reason, ActivatedAt string
	SelfActivated                                   bool
	Changed                                         []string

	activated time.Time // the time in ActivatedAt
}

// policies is the state of the stream policyStream.
type policies struct {
	policyID    string
	drafts      []Draft
	activations []Activation
	history     ledger.History
}

// Apply returns the state after one more event of the stream.
func (s policies) Apply(e ledger.Event) (policies, error) {
	stored, err := e.Stored()
	switch fact := stored.(type) {
	case events.PolicyDrafted:
		if canon.Hash(fact.Policy) != fact.PolicyHash {
			return s, ledger.ErrTampered
		}
		if s.policyID == "" {
			s.policyID = fact.PolicyID
		}
		s.drafts = append(slices.Clip(s.drafts), Draft{DraftID: e.ID, PolicyID: fact.PolicyID, Canonical: fact.Policy, Hash: fact.PolicyHash,
			Author: fact.Author, Reason: fact.Reason, Lint: fact.Lint, DraftedAt: canon.Stamp(e.Occurred()), actor: e.Actor})
	case events.PolicyActivated:
		if canon.Hash(fact.Policy) != fact.PolicyHash || fact.Version != len(s.activations)+1 {
			return s, ledger.ErrTampered
		}
		s.drafts = slices.Clone(s.drafts)
		for i := range s.drafts {
			if s.drafts[i].DraftID == fact.DraftID {
				s.drafts[i].Activated = true
			}
		}
		s.activations = append(slices.Clip(s.activations), Activation{
			ActivePolicy: ActivePolicy{PolicyID: fact.PolicyID, Version: fact.Version, Canonical: fact.Policy, Hash: fact.PolicyHash, ActivatedSequence: e.Sequence},
			DraftID:      fact.DraftID, Author: fact.Author, Activator: fact.Activator, Reason: fact.Reason,
			ActivatedAt: canon.Stamp(e.Occurred()), SelfActivated: fact.SelfActivated, Changed: fact.Changed,
			activated: e.Occurred().Truncate(time.Millisecond),
		})
	}
	return s, err
}

func (s policies) draft(id string) (Draft, bool) {
	i := slices.IndexFunc(s.drafts, func(d Draft) bool { return d.DraftID == id })
	if i < 0 {
		return Draft{}, false
	}
	return s.drafts[i], true
}

func (a *Decisions) readPolicies(ctx context.Context, orgID string) (policies, error) {
	s, history, err := ground.Fold(ctx, a.Ground, orgID, policyStream, policies{})
	s.history = history
	return s, err
}

// ActivePolicy returns the active policy. It may be outdated, so an append that depends on it must
// have its Precondition. If no policy was ever activated, it returns the refusal no_active_policy.
func (a *Decisions) ActivePolicy(ctx context.Context, orgID string) (ActivePolicy, error) {
	if p, ok := a.policies.Get(orgID); ok {
		return p, nil
	}
	s, err := a.readPolicies(ctx, orgID)
	if err != nil {
		return ActivePolicy{}, ground.Refusal(err)
	}
	if len(s.activations) == 0 {
		return ActivePolicy{}, policy.Refuse(organizations.CodeNoActivePolicy, "", "organization has no active policy")
	}
	p := s.activations[len(s.activations)-1].ActivePolicy
	p.Precondition = s.history.Precondition()
	a.policies.Put(orgID, p)
	return p, nil
}

// PolicyVersion returns a version that is or was active, to evaluate an old decision again.
func (a *Decisions) PolicyVersion(ctx context.Context, orgID string, version int) (ActivePolicy, error) {
	s, err := a.readPolicies(ctx, orgID)
	if err != nil {
		return ActivePolicy{}, ground.Refusal(err)
	}
	if version < 1 || version > len(s.activations) {
		return ActivePolicy{}, policy.Refuse(ground.CodeNotFound, "", "policy version not found")
	}
	return s.activations[version-1].ActivePolicy, nil
}

// Policies returns all drafts and all activations, each the oldest first.
func (a *Decisions) Policies(ctx context.Context, p organizations.Principal) ([]Draft, []Activation, error) {
	p, err := a.Permit(ctx, p, organizations.RightPolicies)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.readPolicies(ctx, p.OrgID)
	return s.drafts, s.activations, ground.Refusal(err)
}

// DraftPolicy stores a policy as a draft. If text names a version, it must be the version that the
// next activation gives. The first draft sets the organization's policyId; later drafts must have
// the same one. The reason may be empty.
func (a *Decisions) DraftPolicy(ctx context.Context, p organizations.Principal, text []byte, reason string) (Draft, error) {
	p, err := a.Permit(ctx, p, organizations.RightDraft)
	if err != nil {
		return Draft{}, err
	}
	if reason != "" {
		if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
			return Draft{}, err
		}
	}
	frozen, err := a.freezeWithin(ctx, text)
	if err != nil {
		return Draft{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightDraft), func(ctx context.Context) (Draft, error) {
		s, err := a.readPolicies(ctx, p.OrgID)
		if err != nil {
			return Draft{}, err
		}
		drafted, err := s.draftOf(frozen, p)
		if err != nil {
			return Draft{}, err
		}
		drafted.Reason = reason
		appended, err := a.AppendAs(ctx, p, []ledger.Pending{{Stream: policyStream, Expect: s.history.At(), Type: events.TypePolicyDrafted}}, []any{drafted})
		if err != nil {
			return Draft{}, err
		}
		s, err = s.Apply(appended[0])
		if err != nil {
			return Draft{}, err
		}
		return s.drafts[len(s.drafts)-1], nil
	})
}

// frozenPolicy is a checked policy in canonical form, with the warnings of the check.
type frozenPolicy struct {
	policyID  string
	version   int64 // version that the text names; 0 if it names none
	canonical []byte
	lint      []events.PolicyLint
}

// draftOf returns the event for a draft. It refuses a policyId or version that does not fit the
// organization's policies.
func (s policies) draftOf(f frozenPolicy, p organizations.Principal) (events.PolicyDrafted, error) {
	if s.policyID != "" && s.policyID != f.policyID {
		return events.PolicyDrafted{}, policy.Refuse("inconsistent_input", "/policyId", "policyId must be the one of this organization's policy")
	}
	if next := s.nextVersion(); f.version != 0 && f.version != next {
		return events.PolicyDrafted{}, policy.Refuse("inconsistent_input", "/version",
			"version must be left out, or be the next version: "+strconv.FormatInt(next, 10))
	}
	return events.PolicyDrafted{PolicyID: f.policyID, Policy: f.canonical, PolicyHash: canon.Hash(f.canonical), Lint: f.lint, Author: p.Member}, nil
}

// ActivatePolicy activates a draft as the next version. It applies to all decisions after its
// event in the tenant's sequence. The author of a draft must not activate it, except the operator
// and the only admin on the plan team; the event records that exception.
func (a *Decisions) ActivatePolicy(ctx context.Context, p organizations.Principal, draftID, reason string) (Activation, error) {
	return a.changePolicy(ctx, p, reason, func(ctx context.Context, p organizations.Principal, s policies) (Activation, error) {
		d, known := s.draft(draftID)
		switch {
		case !known:
			return Activation{}, policy.Refuse(ground.CodeNotFound, "", "policy draft not found")
		case d.Activated:
			return Activation{}, policy.Refuse(organizations.CodeConflict, "", "policy draft was already activated")
		}
		// The member who issued a token has seen its secret, so the member counts as an author of
		// the token's drafts, too.
		own, err := a.IsOwn(ctx, p, d.actor)
		if err != nil {
			return Activation{}, err
		}
		if own && p.Role != organizations.RoleOperator && !p.MayActAlone() {
			return Activation{}, a.RefuseUnlessMoved(ctx, p, nil, errOwnDraft)
		}
		activated, err := s.activationOf(d, p, own, reason)
		if err != nil {
			return Activation{}, err
		}
		return a.activate(ctx, p, s, []ledger.Pending{{Expect: s.history.At(), Type: events.TypePolicyActivated}}, []any{activated})
	})
}

var errOwnDraft = organizations.Forbidden("another admin must activate your own draft")

// permitAlone returns the principal if it may activate an own draft, and refuses otherwise.
func (a *Decisions) permitAlone(ctx context.Context, p organizations.Principal) (organizations.Principal, error) {
	if p.Role == organizations.RoleOperator || p.MayActAlone() {
		return p, nil
	}
	p, err := a.Confirm(ctx, p)
	if err == nil && !p.MayActAlone() {
		err = errOwnDraft
	}
	return p, err
}

// DraftAndActivate drafts and activates a policy in one append, for the command line.
func (a *Decisions) DraftAndActivate(ctx context.Context, p organizations.Principal, text []byte, reason string) (Activation, error) {
	p, err := a.permitAlone(ctx, p)
	if err != nil {
		return Activation{}, err
	}
	frozen, err := a.freezeWithin(ctx, text)
	if err != nil {
		return Activation{}, err
	}
	return a.changePolicy(ctx, p, reason, func(ctx context.Context, p organizations.Principal, s policies) (Activation, error) {
		return a.draftAndActivate(ctx, p, s, frozen, reason)
	})
}

// changePolicy appends a new version of the policy. change makes it from the current policies;
// each try reads them again.
func (a *Decisions) changePolicy(ctx context.Context, p organizations.Principal, reason string,
	change func(context.Context, organizations.Principal, policies) (Activation, error)) (Activation, error) {
	p, err := a.Permit(ctx, p, organizations.RightActivate)
	if err != nil {
		return Activation{}, err
	}
	if err := ground.CheckText("reason", reason, ground.MaxReason); err != nil {
		return Activation{}, err
	}
	return ground.Retry(ctx, a.Ground, a.Again(&p, organizations.RightActivate), func(ctx context.Context) (Activation, error) {
		s, err := a.readPolicies(ctx, p.OrgID)
		if err != nil {
			return Activation{}, err
		}
		return change(ctx, p, s)
	})
}

func (a *Decisions) draftAndActivate(ctx context.Context, p organizations.Principal, s policies, frozen frozenPolicy, reason string) (Activation, error) {
	drafted, err := s.draftOf(frozen, p)
	if err != nil {
		return Activation{}, err
	}
	draftID := a.NewID("evt_")
	activated, err := s.activationOf(Draft{DraftID: draftID, PolicyID: drafted.PolicyID, Canonical: drafted.Policy, Author: p.Member}, p, true, reason)
	if err != nil {
		return Activation{}, err
	}
	return a.activate(ctx, p, s, []ledger.Pending{
		{ID: draftID, Expect: s.history.At(), Type: events.TypePolicyDrafted},
		{Expect: ledger.Any(s.history.Version() + 2), Type: events.TypePolicyActivated},
	}, []any{drafted, activated})
}

func (a *Decisions) activate(ctx context.Context, p organizations.Principal, s policies, pending []ledger.Pending, stored []any) (Activation, error) {
	for i := range pending {
		pending[i].Stream = policyStream
	}
	appended, err := a.AppendAs(ctx, p, pending, stored)
	if err != nil {
		return Activation{}, err
	}
	for _, e := range appended {
		if s, err = s.Apply(e); err != nil {
			return Activation{}, err
		}
	}
	return s.activations[len(s.activations)-1], nil
}

// nextVersion returns the version number that the next activation gets.
func (s policies) nextVersion() int64 { return int64(len(s.activations)) + 1 }

// activationOf returns the event for an activation: the draft with the next version number.
func (s policies) activationOf(d Draft, p organizations.Principal, own bool, reason string) (events.PolicyActivated, error) {
	members, err := membersOf(d.Canonical)
	if err != nil {
		return events.PolicyActivated{}, err
	}
	version := int(s.nextVersion())
	changed := []string{}
	before := map[string]jsontext.Value{}
	if version > 1 {
		if before, err = membersOf(s.activations[version-2].Canonical); err != nil {
			return events.PolicyActivated{}, err
		}
		delete(before, "version")
	}
	for name, value := range members {
		if string(before[name]) != string(value) {
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, kept := members[name]; !kept {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	full, hash, err := assurance.WithVersion(d.Canonical, int64(version))
	return events.PolicyActivated{PolicyID: d.PolicyID, Version: version, Policy: full, PolicyHash: hash,
		DraftID: d.DraftID, Author: d.Author, Activator: p.ActorID, SelfActivated: own, Reason: reason, Changed: changed}, err
}

func membersOf(object []byte) (map[string]jsontext.Value, error) {
	var members map[string]jsontext.Value
	err := json.Unmarshal(object, &members)
	return members, err
}

// freeze checks the text of a policy and returns it in canonical form.
func freeze(text []byte) (frozenPolicy, error) {
	draft, err := assurance.Lint(text)
	if err != nil {
		return frozenPolicy{}, err
	}
	frozen := frozenPolicy{policyID: draft.PolicyID, version: draft.Version, canonical: draft.Canonical, lint: []events.PolicyLint{}}
	for _, w := range draft.Warnings {
		frozen.lint = append(frozen.lint, events.PolicyLint{RuleID: w.ID, Severity: w.Severity, Field: w.Path, Message: w.Message, Evidence: w.Evidence})
	}
	return frozen, nil
}

// freezeWithin calls freeze while it holds a slot for computing. It is for policies that callers
// send; the emergency stop calls freeze and waits for no slot.
func (a *Decisions) freezeWithin(ctx context.Context, text []byte) (frozen frozenPolicy, err error) {
	err = a.Within(ctx, len(text), func() (err error) { frozen, err = freeze(text); return err })
	return frozen, err
}

// FreezePolicy is the emergency stop. It activates a copy of the active policy that allows no host
// and no MCP server. If the organization has no policy, it activates one with only these two
// rules.
func (a *Decisions) FreezePolicy(ctx context.Context, p organizations.Principal, reason string) (Activation, error) {
	return a.changePolicy(ctx, p, reason, func(ctx context.Context, p organizations.Principal, s policies) (Activation, error) {
		var err error
		members := map[string]jsontext.Value{"policyId": jsontext.Value(`"default"`)}
		if n := len(s.activations); n > 0 {
			if members, err = membersOf(s.activations[n-1].Canonical); err != nil {
				return Activation{}, err
			}
			delete(members, "version")
		} else if s.policyID != "" {
			if members["policyId"], err = canon.Marshal(s.policyID); err != nil {
				return Activation{}, err
			}
		}
		members["allowedHosts"], members["allowedMcpServers"] = jsontext.Value(`[]`), jsontext.Value(`[]`)
		text, err := canon.Marshal(members)
		if err != nil {
			return Activation{}, err
		}
		frozen, err := freeze(text)
		if err != nil {
			return Activation{}, err
		}
		return a.draftAndActivate(ctx, p, s, frozen, reason)
	})
}
