// Package services serves the priced services: it declares the list of services with one operation
// for each, the status of a workflow, the rules of the gate, and the prices. The computation of a
// service is in its folder in policy. commands/services determines what pays for a call.
package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/store"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/actionsafety"
	"github.com/countersign/countersign/policy/attest"
	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/dealanalyzer"
	"github.com/countersign/countersign/policy/emailcheck"
	"github.com/countersign/countersign/policy/evidence"
	"github.com/countersign/countersign/policy/investmentevidence"
	"github.com/countersign/countersign/policy/mcprisk"
	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/paymentpolicy"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/reviewtriage"
	"github.com/countersign/countersign/policy/spendassurance"
	"github.com/countersign/countersign/policy/walletscreen"
	"github.com/countersign/countersign/policy/waterfall"
	"github.com/countersign/countersign/policy/x402provenance"
	"github.com/countersign/countersign/projections"
)

// Declared lists every priced service. To add a service, add a folder in policy and a line here.
// The rest is derived from the declaration.
var Declared = []policy.Service{
	actionrisk.Quick,
	actionsafety.Run,
	actionrisk.Score,
	reviewtriage.Service,
	paymentpolicy.Service,
	spendassurance.Service,
	attest.Service,
	evidence.Service,
	x402provenance.Service,
	mcprisk.Service,
	walletscreen.Service,
	emailcheck.Service,
	portfoliorisk.Service,
	cashflow.Service,
	waterfall.Service,
	bond.Service,
	options.Service,
	dealanalyzer.Service,
	investmentevidence.Service,
}

// List returns every priced service.
func List() []policy.Service { return slices.Clone(Declared) }

// Services runs the priced services and serves their workflows.
type Services struct {
	Commands    *services.Services
	Shop        *store.Shop // reads from the payment provider whether a pass was renewed
	Telemetry   *request.Telemetry
	Projections *projections.Projections
}

// Operations returns one operation for each service.
func (s *Services) Operations() []*op.Operation {
	var table []*op.Operation
	for _, of := range List() {
		o := &op.Operation{
			ID: of.Operation, Method: http.MethodPost, Path: op.ServicePath(of), Summary: of.Summary,
			Service: &of, Access: credential.Access{Kind: credential.Payer}, Input: of.Input(), Output: of.Output(), Example: of.Example,
			Limit: of.BodyLimit, Errors: []int{400, 401, 402, 409, 413, 429, 503}, Refuses: of.Reasons,
			Run: s.runService,
		}
		if of.Conditions != nil {
			o.Conditions = of.Conditions()
		}
		table = append(table, o)
	}
	return table
}

func (s *Services) runService(c *op.Call) (op.Reply, error) {
	order := services.Call{Service: *c.Op.Service, Caller: c.Key, Body: c.Body, IdempotencyKey: c.IdempotencyKey}
	if c.Means == credential.ByAgent {
		order.Agent = &c.Agent
	}
	ctx := c.Request.Context()
	var answer services.Reply
	var err error
	if c.Means == credential.ByPayment {
		answer, err = s.Commands.RunPaidService(ctx, order, c.Payment)
	} else if answer, err = s.Commands.RunService(ctx, order); s.passRenewed(ctx, order, err) {
		answer, err = s.Commands.RunService(ctx, order)
	}
	if err != nil {
		return op.Reply{}, err
	}
	if !answer.Replayed {
		s.Telemetry.Answered(c.Op.Service.Name, answer.Body)
	}
	r := op.Reply{Body: answer.Body, Header: op.Private()}
	switch c.Means {
	case credential.ByPayment:
		r.Header = payments.Paid(*answer.Payment)
	case credential.ByKey:
		r.Header.Set("RateLimit", fmt.Sprintf(`"month";r=%d;t=%d`, answer.Remaining, s.secondsUntil(answer.ResetsAt)))
	}
	if c.Op.Service.Ruleset != nil {
		version, _ := c.Op.Service.Ruleset()
		r.Header.Set("Ruleset-Version", version)
	}
	if answer.Replayed {
		r.Header.Set("Idempotent-Replayed", "true")
	}
	return r, nil
}

// passRenewed reports whether a call was refused although its pass was renewed: the provider's
// notice of the renewal had not arrived yet. It reads the renewal from the provider.
func (s *Services) passRenewed(ctx context.Context, order services.Call, err error) bool {
	var quota *services.QuotaExhausted
	return errors.As(err, &quota) && s.Shop.Resync(ctx, order.Caller.CustomerID)
}

func (s *Services) secondsUntil(t time.Time) int64 {
	return max(int64(t.Sub(s.Commands.Clock())/time.Second), 0)
}
