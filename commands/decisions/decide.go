// Package decisions implements the commands for policies and the decisions under them: decide,
// approve, bind a receipt, explain and preview. Package policy/assurance evaluates the rules.
package decisions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/commands/cache"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Decisions implements the commands for policies, decisions, approvals and receipts.
type Decisions struct {
	*ground.Ground
	*organizations.Organizations

	policies cache.Cache[ActivePolicy] // active policies, by organization
	rules    ruleCache
}

// ForgetPolicy removes the active policy of an organization from the cache.
func (a *Decisions) ForgetPolicy(orgID string) { a.policies.Remove(orgID) }

// Recorded is a signed record with its position in the ledger.
type Recorded struct {
	Envelope seal.Envelope
	Replayed bool   // true if an equal request was answered before and this is its record
	Decision string // allow, deny or needs_review of a new decision; empty for all other records
}

// Decide evaluates an intended purchase or tool call under the organization's active policy and
// records the signed decision. If a request with the same idempotencyKey and content was answered
// before, it returns that record, even if the policy has changed since. Refusals:
// idempotency_key_reused, no_active_policy, those of assurance.Assertion.Compare,
// signing_unavailable, temporarily_unavailable, and those of Permit.
func (a *Decisions) Decide(ctx context.Context, p organizations.Principal, r assurance.DecisionRequest) (Recorded, error) {
	p, err := a.Permit(ctx, p, organizations.RightDecide)
	if err != nil {
		return Recorded{}, err
	}
	members, err := canon.Members(r.Canonical)
	if err != nil {
		return Recorded{}, err
	}
	delete(members, "idempotencyKey") // the content is compared without its key
	content := ledger.Hash(sha256.Sum256(canon.Object(members)))
	t := attempt{principal: &p, key: ledger.IdemKey("decision", r.IdempotencyKey), content: content}
	ctx, again := a.Again(&p, organizations.RightDecide).Begin(ctx, a.Ground)
	for first := true; ; first = false {
		d, known, err := a.judge(ctx, t, r, first)
		if err == nil && known.Envelope.Record == nil {
			known, err = a.appendRecord(ctx, t, d)
		}
		if !again(&err) {
			return known, inWords(err, "idempotencyKey was already used with different content")
		}
	}
}

// judge returns either a new signed decision to append, or the record of an equal earlier request.
//
// Most requests are new. So the first try makes the decision without asking the database; the
// append then detects whether the key was used before. If that decision cannot be made, judge
// looks for a stored record before it refuses.
func (a *Decisions) judge(ctx context.Context, t attempt, r assurance.DecisionRequest, first bool) (signedRecord, Recorded, error) {
	p := *t.principal
	if first && a.sealable(p.OrgID, r.Subject) {
		if d, _, err := a.prepareDecision(ctx, p, r, time.Time{}); err == nil {
			return d, Recorded{}, nil
		}
	}
	stored, last, err := a.Ledger.Lookup(ctx, p.OrgID, t.key, t.content)
	if err != nil || stored != nil {
		known, err := a.stored(ctx, p, stored, err)
		return signedRecord{}, known, err
	}
	d, preconditions, err := a.prepareDecision(ctx, p, r, last)
	if err != nil {
		err = a.RefuseUnlessMoved(ctx, p, preconditions, err)
	}
	return d, Recorded{}, err
}

// inWords replaces the texts of two refusals by those that the contract of /api/assurance
// prescribes. reused is the text for a reused idempotency key.
func inWords(err error, reused string) error {
	var refused *policy.Error
	switch {
	case !errors.As(err, &refused):
	case refused.Code == ground.CodeKeyReused:
		return policy.Refuse(ground.CodeKeyReused, "", reused)
	case refused.Code == ground.CodeNoSigner:
		return policy.Refuse(ground.CodeNoSigner, "", "signing is unavailable")
	}
	return err
}

// rule evaluates a request under the active policy. The policy may come from the cache and be
// outdated, so its stream is a precondition of the append.
func (a *Decisions) rule(ctx context.Context, p organizations.Principal, r assurance.DecisionRequest) (assurance.Ruling, []ledger.Precondition, error) {
	active, err := a.ActivePolicy(ctx, p.OrgID)
	if err != nil {
		return assurance.Ruling{}, nil, err
	}
	preconditions := []ledger.Precondition{active.Precondition}
	stored, err := a.rules.of(active)
	if err != nil {
		return assurance.Ruling{}, preconditions, err
	}
	ruling := assurance.Ruling{OrgID: p.OrgID, Environment: a.environment(), Request: r, Policy: stored, ActivatedSequence: active.ActivatedSequence}
	var asserted *assurance.Rules
	if r.Assertion != nil {
		if ruling.Stricter, err = r.Assertion.Compare(stored); err != nil {
			return assurance.Ruling{}, preconditions, err
		}
		asserted = &r.Assertion.Rules
	}
	ruling.Evaluation, _ = assurance.Evaluate(assurance.EngineVersion, r.Protocol, stored.Rules, asserted, r.Normalized)
	return ruling, preconditions, nil
}

// attempt identifies the request of a command that appends a signed record. If an append with the
// same key and content exists, its record is the answer.
type attempt struct {
	principal    *organizations.Principal
	key, content ledger.Hash
}

// signedRecord is a signed record with the event to append.
type signedRecord struct {
	envelope      seal.Envelope
	pending       ledger.Pending
	preconditions []ledger.Precondition // streams that the record depends on, without those of the principal
	issued        time.Time
	decision      string // allow, deny or needs_review; empty if the record is not a decision
}

// prepareDecision evaluates a request and signs the decision. last is the time of the
// organization's last event, or zero if it was not read; if the issue time is before that event,
// the append fails with ErrMoved. The returned preconditions are the streams that an error depends
// on.
func (a *Decisions) prepareDecision(ctx context.Context, p organizations.Principal, r assurance.DecisionRequest, last time.Time) (signedRecord, []ledger.Precondition, error) {
	ruling, preconditions, err := a.rule(ctx, p, r)
	if err != nil {
		return signedRecord{}, preconditions, err
	}
	ruling.IssuedAt, ruling.ClockAdjusted = a.issueTime(last)
	d, err := a.signDecision(ctx, p, ruling)
	d.preconditions = append(d.preconditions, preconditions...)
	return d, nil, err
}

func (a *Decisions) signDecision(ctx context.Context, p organizations.Principal, ruling assurance.Ruling) (signedRecord, error) {
	signer, precondition, err := a.ActiveSigner(ctx, p.OrgID)
	if err != nil {
		return signedRecord{}, err
	}
	ruling.DecisionID = a.NewID("asd_")
	record, err := ruling.Record()
	if err != nil {
		return signedRecord{}, err
	}
	envelope, err := signer.Sign(assurance.DecisionType, record)
	if err != nil {
		return signedRecord{}, err
	}
	stored := events.DecisionRecorded{Integrity: envelope.Integrity, VerifyURL: a.VerifyURL(), Member: p.Member}
	if ruling.Request.Assertion != nil {
		if stored.Asserted, err = canon.Marshal(ruling.Request.Assertion.Rules); err != nil {
			return signedRecord{}, err
		}
	}
	if p.KeepsArguments(ruling.Evaluation.Decision) && len(ruling.Request.Arguments) <= maxKeptArguments {
		stored.ToolArguments = ruling.Request.Arguments
	}
	d := ledger.Pending{Stream: decisionStream(ruling.DecisionID), Expect: ledger.New(), ID: a.NewID("evt_"),
		Type: events.TypeDecisionRecorded, SchemaVersion: 1, Actor: p.ActorID, KeyID: signer.KeyID()}
	if d.Payload, d.NewAgent, err = a.sealDecision(ctx, p.OrgID, d.ID, signer, record.Subject, envelope.Record, stored); err != nil {
		return signedRecord{}, err
	}
	return signedRecord{envelope, d, []ledger.Precondition{precondition}, ruling.IssuedAt, ruling.Evaluation.Decision}, nil
}

func decisionStream(id string) string { return "decision/" + id }

// VerifyURL returns the URL that envelopes name for verification.
func (a *Decisions) VerifyURL() string { return a.BaseURL + "/api/verify" }

func (a *Decisions) environment() string {
	if a.Environment == "" {
		return "dev"
	}
	return a.Environment
}

// issueTime returns the time of a new record: the current time, or last if that is later, because
// another node's clock may be ahead. adjusted is true if it returns last.
func (a *Decisions) issueTime(last time.Time) (issued time.Time, adjusted bool) {
	now, last := a.Now(), last.Truncate(time.Millisecond)
	if now.Before(last) {
		return last, true
	}
	return now, false
}

// appendRecord appends a signed record and returns it. If an equal request has appended one
// before, it returns that one.
func (a *Decisions) appendRecord(ctx context.Context, t attempt, r signedRecord) (Recorded, error) {
	p := *t.principal
	result, err := a.Ledger.Append(ctx, ledger.Append{Tenant: p.OrgID, IdemKey: t.key, ContentHash: t.content,
		Events: []ledger.Pending{r.pending}, Preconditions: append(r.preconditions, p.Preconditions...), Issued: r.issued})
	switch {
	case errors.Is(err, ledger.ErrKeyReused):
		return Recorded{}, a.RefuseUnlessMoved(ctx, p, nil, err)
	case err != nil:
		return Recorded{}, err
	case result.Replayed:
		return a.stored(ctx, p, result.Events, nil)
	}
	r.envelope.Ledger, r.envelope.Verify = ground.PositionOf(result.Events[0]), &seal.VerifyAt{URL: a.VerifyURL(), Method: "POST"}
	return Recorded{Envelope: r.envelope, Decision: r.decision}, nil
}

// sealDecision returns the payload of a decision's event, with personal data encrypted. record
// must be canonical. newKey reports whether a data key was made for this subject. A decision
// without personal data needs no vault.
func (a *Decisions) sealDecision(ctx context.Context, orgID, eventID string, signer *seal.Signer, s assurance.Subject, record jsontext.Value, stored events.DecisionRecorded) (payload []byte, newKey bool, err error) {
	stored.Record = jsontext.Value("{}")
	rest, err := canon.Marshal(stored)
	if err != nil {
		return nil, false, err
	}
	members, err := canon.Members(rest)
	if err != nil {
		return nil, false, err
	}
	members["record"] = record
	subject := subjectName(s)
	if subject == "" {
		if stored.ToolArguments == nil {
			return canon.Object(members), false, nil
		}
		subject = runName(s)
	}
	return a.SealRecord(ctx, orgID, eventID, subject, signer, members, events.PersonalInRecord(events.TypeDecisionRecorded)...)
}

// SealRecord returns a payload with a signed record. The members at the JSON pointers are personal
// data and are encrypted with the subject's data key. newKey reports whether the key was made for
// this record.
func (a *Decisions) SealRecord(ctx context.Context, tenant, eventID, subject string, signer *seal.Signer, members map[string]jsontext.Value, pointers ...string) (payload []byte, newKey bool, err error) {
	if a.Vault == nil {
		return nil, false, a.NoVault()
	}
	dataKey, newKey, err := a.DataKeyOf(ctx, tenant, subject)
	if err != nil {
		return nil, false, err
	}
	payload, err = a.Vault.SealRecord(ctx, tenant, eventID, dataKey, signer, members, pointers...)
	if errors.Is(err, vault.ErrErased) {
		a.ForgetDataKey(dataKey) // the next try makes a new data key
		err = fmt.Errorf("%w: %w", ledger.ErrMoved, err)
	}
	return payload, newKey, err
}

// stored returns the record of an earlier event as the answer. Nothing is appended then, so no
// precondition checks the principal, and stored checks the principal's state itself.
func (a *Decisions) stored(ctx context.Context, p organizations.Principal, found []ledger.Event, err error) (Recorded, error) {
	if err != nil {
		if errors.Is(err, ledger.ErrKeyReused) {
			err = a.RefuseUnlessMoved(ctx, p, nil, err)
		}
		return Recorded{}, err
	}
	if err := a.RefuseUnlessMoved(ctx, p, nil, nil); err != nil {
		return Recorded{}, err
	}
	envelope, err := a.envelope(ctx, found[0])
	if errors.Is(err, vault.ErrErased) {
		return Recorded{}, policy.Refuse(ground.CodeErased, "", "the record under this idempotencyKey was erased")
	}
	return Recorded{Envelope: envelope, Replayed: true}, err
}

// Open decrypts the payload of an event decision.recorded.
func (a *Decisions) Open(ctx context.Context, e ledger.Event) (d events.DecisionRecorded, err error) {
	return d, a.OpenInto(ctx, e, &d)
}

// OpenInto reads an event's payload into stored and decrypts personal data. An event without
// personal data needs no vault, so it stays readable if the vault's key is lost.
func (a *Decisions) OpenInto(ctx context.Context, e ledger.Event, stored any) error {
	switch {
	case !vault.Sealed(e):
		return e.Read(stored)
	case a.Vault == nil:
		return a.NoVault()
	}
	return a.Vault.Open(ctx, e, stored)
}

// envelope returns the signed record of an event as answers contain it.
func (a *Decisions) envelope(ctx context.Context, e ledger.Event) (seal.Envelope, error) {
	if e.Type == events.TypeDecisionRecorded {
		d, err := a.Open(ctx, e)
		return envelopeOf(e, events.Signed{Record: d.Record, Integrity: d.Integrity, VerifyURL: d.VerifyURL}), err
	}
	s, _, err := e.Signed()
	return envelopeOf(e, s), err
}

func envelopeOf(e ledger.Event, s events.Signed) seal.Envelope {
	return seal.Envelope{Record: s.Record, Integrity: s.Integrity, Ledger: ground.PositionOf(e), Verify: &seal.VerifyAt{URL: s.VerifyURL, Method: "POST"}}
}

// ruleCache keeps parsed policies by the hash of their canonical bytes.
type ruleCache struct {
	mu     sync.Mutex // guards byHash
	byHash map[string]assurance.StoredPolicy
}

func (c *ruleCache) of(active ActivePolicy) (assurance.StoredPolicy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.byHash[active.Hash]; ok {
		return p, nil
	}
	p, err := assurance.ReadPolicy(active.Canonical)
	if err != nil {
		return p, err
	}
	if c.byHash == nil || len(c.byHash) >= cachedPolicies {
		c.byHash = map[string]assurance.StoredPolicy{}
	}
	c.byHash[active.Hash] = p
	return p, nil
}

// subjectName returns the name of the data key that encrypts the personal data of a subject: the
// agent's key or, if the subject has a purpose and no agent, the key of the run. It is empty if the
// subject has no personal data.
func subjectName(s assurance.Subject) string {
	switch {
	case s.AgentID != "":
		return "agent:" + s.AgentID
	case s.Purpose != "":
		return runName(s)
	}
	return ""
}

func runName(s assurance.Subject) string { return "run:" + s.RunID }

// sealable reports whether the personal data of a decision can be encrypted without asking the
// database: the subject's data key is in the cache, or the subject needs none.
func (a *Decisions) sealable(orgID string, s assurance.Subject) bool {
	name := subjectName(s)
	_, known := a.Subjects.Get(orgID + "\x00" + name)
	return name == "" || known
}
