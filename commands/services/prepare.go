package services

import (
	"context"
	"maps"
	"time"

	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// prepared is a computed answer, signed if the service signs its answers, with the data of its
// event call.completed. The event is appended when the call is paid.
type prepared struct {
	answer        policy.Answer
	home          string                // id in whose partition it will be recorded: that of the fund or the payment
	preconditions []ledger.Precondition // streams that the signature depends on
	issued        time.Time             // issue time in the signed record; zero if nothing is signed
	call          events.CallCompleted
}

// prepare signs an answer if the service declares so. home is the id in whose partition the answer
// will be recorded. prepare appends nothing.
func (a *Services) prepare(ctx context.Context, call Call, home string, answer policy.Answer) (prepared, error) {
	p := prepared{answer: answer, home: home, call: events.CallCompleted{
		Service: call.Service.Name, Version: policy.Version, PriceCents: call.Service.PriceCents,
		InputHash: answer.InputHash, OutputHash: answer.OutputHash, Request: canon.Value(call.Body),
	}}
	if call.Service.Ruleset != nil {
		p.call.RulesetVersion, p.call.RulesetHash = call.Service.Ruleset()
	}
	if call.Service.Signed {
		if err := a.sign(ctx, call, &p); err != nil {
			return prepared{}, err
		}
	}
	p.call.Answer = canon.Value(p.answer.Body)
	return p, nil
}

// receiptRecord is the signed content of a service's receipt. It contains hashes and not the
// input.
type receiptRecord struct {
	ReceiptID      string           `json:"receiptId"`
	ReceiptVersion string           `json:"receiptVersion"`
	Service        string           `json:"service"`
	ServiceVersion string           `json:"serviceVersion"`
	InputHash      string           `json:"inputHash"`
	OutputHash     string           `json:"outputHash"`
	Decision       *string          `json:"decision"`
	IssuedAt       string           `json:"issuedAt"`
	PaymentID      string           `json:"paymentId,omitempty"`  // id (pay_…) of the x402 payment; empty otherwise
	Settlement     string           `json:"settlement,omitempty"` // "dev" if no money was moved; empty otherwise
	Workflow       *events.Workflow `json:"workflow,omitempty"`
}

// sign makes the receipt of an answer. If the service declares a workflow or a statement, it also
// adds their members to the answer. The receipt is stored in the event only once; reply adds it to
// the answer.
func (a *Services) sign(ctx context.Context, call Call, p *prepared) error {
	signer, precondition, err := a.ActiveSigner(ctx, a.ServiceOf(p.home))
	if err != nil {
		return err
	}
	now := a.Now()
	record := receiptRecord{
		ReceiptID: a.NewID("asr_"), ReceiptVersion: "svc-receipt-v1",
		Service: call.Service.Label(), ServiceVersion: policy.Version,
		InputHash: p.answer.InputHash, OutputHash: p.answer.OutputHash, IssuedAt: canon.Stamp(now),
	}
	if p.answer.Decision != "" {
		record.Decision = &p.answer.Decision
	}
	if call.payment != nil {
		record.PaymentID = call.payment.ID
		if a.Settler.Mode() == payments.ModeDev {
			record.Settlement = payments.ModeDev
		}
	}
	members := map[string]any{}
	if call.Service.Workflow {
		if record.Workflow, err = newWorkflow(a.newWorkflowID(p.home), p.answer.Body, now); err != nil {
			return err
		}
		maps.Copy(members, workflowMembers(*record.Workflow, a.BaseURL))
	}
	if call.Service.Statement != nil {
		stated, err := a.statement(signer, *call.Service.Statement, p.answer, now)
		if err != nil {
			return err
		}
		maps.Copy(members, stated)
	}
	receipt, err := signer.Sign(seal.TypeReceipt, record)
	if err != nil {
		return err
	}
	p.preconditions, p.issued = append(p.preconditions, precondition), now
	if p.answer.Body, err = withMembers(p.answer.Body, members); err != nil {
		return err
	}
	p.call.Record, p.call.Integrity, p.call.VerifyURL = receipt.Record, &receipt.Integrity, a.BaseURL+"/api/verify"
	return nil
}

// withMembers returns a canonical object with more members.
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
