package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/canon"
)

// Call is one request to a service, decoded and admitted. An agent pays if there
// is one, else the caller.
type Call struct {
	Service        policy.Service
	Caller         Caller
	Agent          *Agent
	Body           []byte // canonical JSON that passed the service's schema
	IdempotencyKey string // empty: every call is its own

	payment *Payment // what pays for it otherwise
	payer   party    // of the payment
}

// party is whom a call is answered to: it is recorded under this name and sealed
// under this data key.
type party struct {
	actor   string
	dataKey string
	subject string // of a data key of the party's own, where that one was erased
	guards  []ledger.Guard
}

func (c Call) party() party {
	switch {
	case c.payment != nil:
		return c.payer
	case c.Agent != nil:
		return c.Agent.party()
	}
	return c.Caller.party()
}

// Reply is the answer of a service, read from what was stored.
type Reply struct {
	Body      []byte // canonical JSON
	Replayed  bool
	Charge    string // what paid for it: "free", "pass", "credit" or "x402"
	Remaining int64  // free calls left this month
	ResetsAt  time.Time
	Payment   *Receipt // with "x402"
}

// Kinds of charges.
const (
	chargedFree   = "free"
	chargedPass   = "pass"
	chargedCredit = "credit"
	chargedX402   = "x402"
)

// prepared is an answer that nobody has seen yet, with everything that is to be
// appended for it. What pays for the call decides when it becomes true.
type prepared struct {
	answer policy.Answer
	record seal.Envelope  // the signed receipt, if the service gives one
	extra  []extra        // events beside call.completed
	guards []ledger.Guard // what the signature rests on
	call   events.CallCompleted
}

type extra struct {
	stream, eventType string
	stored            any
	signed            bool // holds the record, in call.completed's place
}

// RunService answers a call of a service. It is paid for by the caller's free
// calls; a refused call is not counted. Refusals: those of the service, its
// quota (*QuotaExhausted), idempotency_key_reused, signing_unavailable.
func (a *App) RunService(ctx context.Context, call Call) (Reply, error) {
	if a.Vault == nil {
		return Reply{}, policy.Refuse(CodeNoSigner, "", signingUnavailable)
	}
	first := true
	return attempt(ctx, a, func(ctx context.Context) (Reply, error) {
		if !first {
			var err error
			if call, err = a.currentCall(ctx, call); err != nil {
				return Reply{}, err
			}
		}
		first = false
		return a.runService(ctx, call)
	})
}

// currentCall is the call with its caller or agent as it is now.
func (a *App) currentCall(ctx context.Context, call Call) (Call, error) {
	if call.Agent == nil {
		var err error
		call.Caller, err = a.current(ctx, call.Caller)
		return call, err
	}
	agent, err := a.currentAgent(ctx, *call.Agent)
	call.Agent = &agent
	return call, err
}

func (a *App) runService(ctx context.Context, call Call) (Reply, error) {
	key, content := call.identity()
	if key != (ledger.Hash{}) {
		if stored, err := a.Ledger.ByKey(ctx, ledger.ServiceTenant, key, content); err != nil || stored != nil {
			return a.replay(ctx, stored, err)
		}
	}
	p, err := a.prepare(ctx, call)
	if err != nil {
		return Reply{}, err
	}
	return a.charge(ctx, call, key, content, p)
}

// identity is the call's key in the ledger and the hash of what it asks for. The
// key's operation names the caller, so that nobody can probe another's keys.
func (c Call) identity() (key, content ledger.Hash) {
	body := c.Body
	if c.IdempotencyKey != "" {
		key = ledger.IdemKey("call:"+c.Service.Operation+":"+c.party().actor, c.IdempotencyKey)
		body = withoutKey(body)
	}
	return key, RequestHash(c.Service.Operation, body)
}

// withoutKey takes the member idempotencyKey out: key and content are apart.
func withoutKey(body []byte) []byte {
	members, err := canon.Members(body)
	if err != nil {
		return body
	}
	delete(members, "idempotencyKey")
	return canon.Object(members)
}

// prepare computes the answer and signs what must be signed. Nothing is visible
// yet.
func (a *App) prepare(ctx context.Context, call Call) (prepared, error) {
	answer, err := call.Service.EvaluateCanonical(call.Body)
	if err != nil {
		return prepared{}, err
	}
	p := prepared{answer: answer, call: events.CallCompleted{
		Service: call.Service.Name, Version: policy.Version, PriceCents: call.Service.PriceCents,
		InputHash: answer.InputHash, OutputHash: answer.OutputHash, Request: jsontext.Value(call.Body),
	}}
	if call.Service.Ruleset != nil {
		p.call.RulesetVersion, p.call.RulesetHash = call.Service.Ruleset()
	}
	if call.Service.Signed {
		if err := a.sign(ctx, call, &p); err != nil {
			return prepared{}, err
		}
	}
	p.call.Answer = jsontext.Value(p.answer.Body)
	return p, nil
}

// receiptRecord is what the receipt of a service states. No raw input is in it.
type receiptRecord struct {
	ReceiptID      string           `json:"receiptId"`
	ReceiptVersion string           `json:"receiptVersion"`
	Service        string           `json:"service"`
	ServiceVersion string           `json:"serviceVersion"`
	InputHash      string           `json:"inputHash"`
	OutputHash     string           `json:"outputHash"`
	Decision       *string          `json:"decision"`
	IssuedAt       string           `json:"issuedAt"`
	PaymentID      string           `json:"paymentId,omitempty"`  // pay_…, of an x402 call
	Settlement     string           `json:"settlement,omitempty"` // "dev": no money moved
	Workflow       *events.Workflow `json:"workflow,omitempty"`
}

// sign makes the receipt and puts it into the answer, with what else a service
// says only when it is recorded: a workflow, an attestation.
func (a *App) sign(ctx context.Context, call Call, p *prepared) error {
	signer, guard, err := a.signer(ctx)
	if err != nil {
		return err
	}
	now := a.now()
	record := receiptRecord{
		ReceiptID: a.NewID("asr_"), ReceiptVersion: "svc-receipt-v1",
		Service: call.Service.Label(), ServiceVersion: policy.Version,
		InputHash: p.answer.InputHash, OutputHash: p.answer.OutputHash, IssuedAt: Stamp(now),
	}
	if p.answer.Decision != "" {
		record.Decision = &p.answer.Decision
	}
	if call.payment != nil {
		record.PaymentID = call.payment.ID
		if a.Settler.Mode() == ModeDev {
			record.Settlement = ModeDev
		}
	}
	members := map[string]any{}
	switch call.Service.Operation {
	case actionsafety.Run.Operation:
		if record.Workflow, err = newWorkflow(p.answer.Body, now); err == nil {
			members = workflowMembers(*record.Workflow, a.BaseURL)
		}
	case attest.Service.Operation:
		members, err = a.attestation(signer, call.Body, now)
	}
	if err != nil {
		return err
	}
	if p.record, err = signer.Sign(seal.TypeReceipt, record); err != nil {
		return err
	}
	p.guards = append(p.guards, guard)
	p.record.Verify = &seal.VerifyAt{URL: a.BaseURL + "/api/verify", Method: "POST"}
	members["receipt"] = p.record
	if p.answer.Body, err = withMembers(p.answer.Body, members); err != nil {
		return err
	}
	if record.Workflow != nil {
		p.extra = append(p.extra, extra{"workflow/" + record.Workflow.WorkflowID, events.TypeWorkflowCompleted,
			events.WorkflowCompleted{Workflow: *record.Workflow, Record: p.record.Record,
				Integrity: &p.record.Integrity, VerifyURL: p.record.Verify.URL}, true})
		return nil
	}
	p.call.Record, p.call.Integrity = p.record.Record, &p.record.Integrity
	return nil
}

// withMembers adds members to a canonical object.
func withMembers(body []byte, more map[string]any) ([]byte, error) {
	members, err := canon.Members(body)
	if err != nil {
		return nil, err
	}
	for name, value := range more {
		if members[name], err = canon.Marshal(value); err != nil {
			return nil, err
		}
	}
	return canon.Object(members), nil
}

// RunPaidService is RunService for a call that an x402 payment pays for. Errors
// beside those: what Pay returns.
func (a *App) RunPaidService(ctx context.Context, call Call, p Payment) (Reply, error) {
	if a.Vault == nil {
		return Reply{}, policy.Refuse(CodeNoSigner, "", signingUnavailable)
	}
	_, content := call.identity()
	call.payment = &p
	receipt, err := a.Pay(ctx, p, Paid{Operation: call.Service.Operation, RequestHash: content, PriceCents: call.Service.PriceCents,
		Prepare: func(ctx context.Context) (Promise, error) { return a.promise(ctx, call) }})
	if err != nil {
		return Reply{}, err
	}
	r, err := a.replay(ctx, receipt.Events, nil)
	r.Replayed, r.Payment = receipt.Replayed, &receipt
	return r, pendingOf(p, refusal(err))
}

// promise is the prepared answer as the payment's claim keeps it.
func (a *App) promise(ctx context.Context, call Call) (Promise, error) {
	p, err := a.prepare(ctx, call)
	switch {
	case err != nil:
		return Promise{}, err
	case len(p.answer.Body) > maxPaidAnswer:
		return Promise{}, errTooLarge
	}
	subject := "payer:" + call.payment.Network + ":" + strings.ToLower(call.payment.Payer)
	call.payer = party{actor: call.payment.Payer, subject: subject}
	if call.payer.dataKey, err = a.Vault.Subject(ctx, ledger.ServiceTenant, subject, a.NewID("sub_")); err != nil {
		return Promise{}, err
	}
	p.call.PaymentID = call.payment.ID
	drafts, err := a.drafts(ctx, call, p, fund{charge: chargedX402, stream: paymentStream(call.payment.ID)})
	if err != nil {
		return Promise{}, err
	}
	promise := Promise{Guards: p.guards, OutputHash: p.answer.OutputHash, EngineVersion: policy.Version}
	for i, d := range drafts {
		promise.Events = append(promise.Events, events.PreparedEvent{Stream: d.Stream, Joins: i == 0, ID: d.ID, Type: d.Type,
			SchemaVersion: d.SchemaVersion, Actor: d.Actor, KeyID: d.KeyID, Payload: d.Payload})
	}
	return promise, nil
}

// QuotaExhausted is a key that has used its month and has no pass to draw on.
type QuotaExhausted struct{ ResetsAt time.Time }

// Error says so.
func (q *QuotaExhausted) Error() string { return "monthly quota is used up" }

// fund is what a call can be paid from: the stream that its call.completed counts
// in, and what must still hold when it lands there.
type fund struct {
	charge string // "free", "pass" or "credit"
	stream string
	expect ledger.Expect
	used   int // cents of the pass or credit that are used, with this call
	guards []ledger.Guard
}

// charge makes the prepared answer true: call.completed in the stream of what
// pays for the call, and everything else in the same append. A key pays with the
// free calls of its month, then with the pass of its account; an agent with its
// credit, then with the pass of who claimed it.
func (a *App) charge(ctx context.Context, call Call, key, content ledger.Hash, p prepared) (Reply, error) {
	if call.Agent != nil {
		done, err := a.turns.take(ctx, call.Agent.payer())
		if err != nil {
			return Reply{}, err
		}
		defer done()
		f, ok, err := a.agentFund(ctx, *call.Agent, call.Service.PriceCents)
		switch {
		case err != nil:
			return Reply{}, err
		case !ok:
			return a.unpaid(ctx, key, content, &PaymentRequired{})
		}
		return a.chargeFund(ctx, call, key, content, p, f)
	}
	now := a.now()
	free := fund{charge: chargedFree, stream: usageStream(call.Caller, now), expect: ledger.Any(FreeCallsPerMonth)}
	r, err := a.chargeFund(ctx, call, key, content, p, free)
	if !errors.Is(err, ledger.ErrLimit) {
		return r, err
	}
	if call.Caller.CustomerID == "" {
		return Reply{}, &QuotaExhausted{ResetsAt: nextMonth(now)}
	}
	done, err := a.turns.take(ctx, call.Caller.CustomerID)
	if err != nil {
		return Reply{}, err
	}
	defer done()
	f, ok, err := a.chargePass(ctx, call.Caller.CustomerID, call.Service.PriceCents)
	switch {
	case err != nil:
		return Reply{}, err
	case !ok:
		return a.unpaid(ctx, key, content, &QuotaExhausted{ResetsAt: nextMonth(now)})
	}
	return a.chargeFund(ctx, call, key, content, p, f)
}

// unpaid refuses a call that nothing is left for, unless its equal was paid for
// while it waited for its turn.
func (a *App) unpaid(ctx context.Context, key, content ledger.Hash, refused error) (Reply, error) {
	if key == (ledger.Hash{}) {
		return Reply{}, refused
	}
	stored, err := a.Ledger.ByKey(ctx, ledger.ServiceTenant, key, content)
	if err == nil && stored == nil {
		err = refused
	}
	return a.replay(ctx, stored, err)
}

// agentFund is what an agent can pay from; false if it cannot.
func (a *App) agentFund(ctx context.Context, agent Agent, priceCents int) (fund, bool, error) {
	f, ok, err := a.chargeCredit(ctx, agent, priceCents)
	if ok || err != nil || agent.CustomerID == "" {
		return f, ok, err
	}
	return a.chargePass(ctx, agent.CustomerID, priceCents)
}

// CanPay says whether an agent has anything to pay with: credit, or the pass of
// who claimed it. How much is left is asked later, since a call it has paid for is
// answered again, whatever is left.
func (a *App) CanPay(ctx context.Context, agent Agent) (bool, error) {
	if agent.agent.credit > 0 || agent.CustomerID == "" {
		return agent.agent.credit > 0, nil
	}
	live, _, err := a.passesOf(ctx, agent.CustomerID)
	if err != nil {
		return false, refusal(err)
	}
	return len(live) > 0, nil
}

func (a *App) chargeFund(ctx context.Context, call Call, key, content ledger.Hash, p prepared, f fund) (Reply, error) {
	drafts, err := a.drafts(ctx, call, p, f)
	if err != nil {
		return Reply{}, err
	}
	result, err := a.Ledger.Append(ctx, ledger.Append{
		Tenant: ledger.ServiceTenant, IdemKey: key, ContentHash: content,
		Drafts: drafts, Guards: slices.Concat(p.guards, call.party().guards, f.guards),
	})
	switch {
	case err != nil:
		return Reply{}, err
	case result.Replayed:
		return a.replay(ctx, result.Events, nil)
	}
	return reply(result.Events, f.charge, p.answer.Body)
}

func (a *App) drafts(ctx context.Context, call Call, p prepared, f fund) ([]ledger.Draft, error) {
	id, by := a.NewID("evt_"), call.party()
	p.call.Charge, p.call.UsedCents = f.charge, f.used
	payload, err := a.sealCall(ctx, id, by, p.call)
	if err != nil {
		return nil, err
	}
	drafts := []ledger.Draft{{
		Stream: f.stream, Expect: f.expect,
		ID: id, Type: events.TypeCallCompleted, SchemaVersion: 1, Actor: by.actor, Payload: payload,
	}}
	if p.call.Integrity != nil {
		drafts[0].KeyID = p.record.Integrity.KeyID
	}
	for _, e := range p.extra {
		payload, err := canon.Marshal(e.stored)
		if err != nil {
			return nil, fmt.Errorf("payload of %s: %w", e.eventType, err)
		}
		d := ledger.Draft{Stream: e.stream, Expect: ledger.New(), ID: a.NewID("evt_"), Type: e.eventType,
			SchemaVersion: 1, Actor: by.actor, Payload: payload}
		if e.signed {
			d.KeyID = p.record.Integrity.KeyID
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// sealCall seals request and answer under the data key of the party. If the
// person behind it was erased, the party goes on, sealed for itself alone.
func (a *App) sealCall(ctx context.Context, eventID string, by party, completed events.CallCompleted) ([]byte, error) {
	payload, err := a.Vault.Seal(ctx, ledger.ServiceTenant, eventID, by.dataKey, completed)
	if !errors.Is(err, ledger.ErrErased) {
		return payload, err
	}
	dataKey, err := a.Vault.Subject(ctx, ledger.ServiceTenant, by.subject, a.NewID("sub_"))
	if err != nil {
		return nil, err
	}
	return a.Vault.Seal(ctx, ledger.ServiceTenant, eventID, dataKey, completed)
}

// replay answers from stored events alone, whatever has changed since.
func (a *App) replay(ctx context.Context, stored []ledger.Event, err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	var call events.CallCompleted
	if err := a.Vault.Open(ctx, stored[0], &call); err != nil {
		if errors.Is(err, ledger.ErrErased) {
			return Reply{}, policy.Refuse(CodeKeyReused, "", "the answer under this idempotency key was erased")
		}
		return Reply{}, err
	}
	body, err := canon.Marshal(call.Answer)
	if err != nil {
		return Reply{}, err
	}
	r, err := reply(stored, call.Charge, body)
	r.Replayed = true
	return r, err
}

// reply is the stored answer with the one member that only the committed events
// can give: where in the ledger the receipt's record stands.
func reply(stored []ledger.Event, charge string, body []byte) (Reply, error) {
	r := Reply{Body: body, Charge: charge, ResetsAt: nextMonth(stored[0].Occurred())}
	if charge == chargedFree {
		r.Remaining = FreeCallsPerMonth - stored[0].Version
	}
	for _, e := range stored {
		if e.KeyID == "" {
			continue
		}
		var answer struct {
			Receipt seal.Envelope `json:"receipt"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return Reply{}, fmt.Errorf("read a stored answer: %w", err)
		}
		answer.Receipt.Ledger = placeOf(e)
		var err error
		r.Body, err = withMembers(body, map[string]any{"receipt": answer.Receipt})
		return r, err
	}
	return r, nil
}

func placeOf(e ledger.Event) *seal.Place {
	return &seal.Place{Position: e.Position, Tenant: e.Tenant, Sequence: e.Sequence, EventHash: e.Hash.String()}
}
