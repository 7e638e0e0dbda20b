package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// LedgerSeed is the seed of the key that signs the ledger of MakeLedger. LedgerKEK is the key that
// encrypts its data keys.
var LedgerSeed, LedgerKEK = bytes.Repeat([]byte{0xab}, 32), bytes.Repeat([]byte{0xcd}, 32)

// MakeLedger appends events until the ledger has this number. Half of the events are signed
// decisions, half are workflows.
func MakeLedger(ctx context.Context, s *Scratch, size int64) error {
	if err := migrations.Up(ctx, s.Owner, ""); err != nil {
		return err
	}
	l, err := OpenLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	head, err := l.Total(ctx)
	if err != nil || head >= size {
		return err
	}
	began := time.Now()
	f, err := NewFiller(ctx, l, LedgerSeed, LedgerKEK)
	if err != nil {
		return err
	}
	if head, err = l.Total(ctx); err != nil {
		return err
	}
	if err := f.Fill(ctx, size-head); err != nil {
		return err
	}
	fmt.Printf("made a ledger of %d events in %s\n", size, time.Since(began).Round(time.Second))
	return nil
}

// Filler appends copies of two decisions and of a workflow. Each copy has its own id, and each
// decision its own signature.
type Filler struct {
	App       *commands.App
	Org       string
	DenyEvery int64 // one in this number of decisions has the verdict deny; 0 means none

	actor           string
	allowed, denied decisionRecord
	appends         atomic.Int64
	decisions       atomic.Int64
}

// decisionRecord is the signed record of a decision, and the decision id that it contains.
type decisionRecord struct {
	record []byte
	id     string
}

// NewFiller creates an organization and two decisions, one allowed and one denied. seed is the
// signing key and kek encrypts the data keys.
func NewFiller(ctx context.Context, l *ledger.Ledger, seed, kek []byte) (*Filler, error) {
	signer, err := seal.NewSigner(seed)
	if err != nil {
		return nil, err
	}
	a := commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: time.Now, BaseURL: "http://localhost", Environment: "dev"})
	if err := l.Activate(ctx, signer, a.NewID("evt_")); err != nil {
		return nil, err
	}
	if a.Vault, err = vault.Open(ctx, l, kek); err != nil {
		return nil, err
	}
	token, err := (&Service{App: a}).Organization(ctx)
	if err != nil {
		return nil, err
	}
	p, err := a.AuthenticateOrganization(ctx, token)
	if err != nil {
		return nil, err
	}
	f := &Filler{App: a, Org: p.OrgID, actor: p.ActorID}
	for host, record := range map[string]*decisionRecord{"api.weather.example": &f.allowed, "api.elsewhere.example": &f.denied} {
		request, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run"},"intent":{`+
			`"resourceUrl":"https://%s/v1/forecast","method":"GET","scheme":"exact","network":"base",`+
			`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`, host, host))
		if err != nil {
			return nil, err
		}
		decided, err := a.Decide(ctx, p, request)
		if err != nil {
			return nil, err
		}
		d, err := assurance.ReadDecision(decided.Envelope.Record)
		if err != nil {
			return nil, err
		}
		*record = decisionRecord{decided.Envelope.Record, d.DecisionID}
	}
	return f, nil
}

// Fill appends this number of events.
func (f *Filler) Fill(ctx context.Context, events int64) (err error) {
	const callers, together = 16, 64 // concurrent callers, and events per append
	var left atomic.Int64
	left.Store(events)
	failed := make(chan error, callers)
	for range callers {
		go func() {
			for {
				rest := min(left.Add(-together)+together, together)
				if rest <= 0 {
					failed <- nil
					return
				}
				if err := f.Append(ctx, int(rest)); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	for range callers {
		err = errors.Join(err, <-failed)
	}
	return err
}

// Append appends n events in one call. The calls append decisions and workflows alternately.
func (f *Filler) Append(ctx context.Context, n int) error {
	tenant, next := f.Org, f.decision
	if f.appends.Add(1)%2 == 0 {
		tenant, next = ledger.ServiceTenant, f.Workflow
	}
	pending := make([]ledger.Pending, n)
	for i := range pending {
		var err error
		if pending[i], err = next(); err != nil {
			return err
		}
	}
	for {
		_, err := f.App.Ledger.Append(ctx, ledger.Append{Tenant: tenant, Events: pending})
		if !errors.Is(err, ledger.ErrBusy) {
			return err
		}
	}
}

func (f *Filler) decision() (ledger.Pending, error) {
	of, id := f.allowed, f.App.NewID("asd_")
	if n := f.decisions.Add(1); f.DenyEvery > 0 && n%f.DenyEvery == 0 {
		of = f.denied
	}
	envelope, err := f.App.Signer.SignCanonical(assurance.DecisionType, bytes.ReplaceAll(of.record, []byte(of.id), []byte(id)))
	if err != nil {
		return ledger.Pending{}, err
	}
	payload, err := canon.Marshal(events.DecisionRecorded{Record: envelope.Record, Integrity: envelope.Integrity, VerifyURL: f.App.BaseURL + "/api/verify"})
	return ledger.Pending{Stream: "decision/" + id, Expect: ledger.New(), ID: f.App.NewID("evt_"), Type: events.TypeDecisionRecorded,
		SchemaVersion: 1, Actor: f.actor, KeyID: f.App.Signer.KeyID(), Payload: payload}, err
}

// Workflow returns the event of a new workflow.
func (f *Filler) Workflow() (ledger.Pending, error) {
	id := "asw_" + uuid.NewString()
	now := time.Now().UTC()
	const layout = "2006-01-02T15:04:05.000Z"
	payload, err := canon.Marshal(events.WorkflowCompleted{Workflow: events.Workflow{WorkflowID: id, Status: "completed", Risk: "critical",
		RiskScore: 95, Decision: "needs_review", RequiresHumanReview: true, MatchedRuleIDs: []string{"git.push.force-protected"},
		CreatedAt: now.Format(layout), ExpiresAt: now.AddDate(0, 0, 30).Format(layout)}})
	return ledger.Pending{Stream: "workflow/" + id, Expect: ledger.New(), ID: f.App.NewID("evt_"), Type: events.TypeWorkflowCompleted,
		Actor: "system", Payload: payload}, err
}
