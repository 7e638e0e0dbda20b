package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/services"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/credential"
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
)

// Services is every priced service. A new one is a folder in policy and a line
// here; all else follows from its declaration.
func Services() []policy.Service {
	return []policy.Service{
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
}

// exampleAnswer is what an operation of a service answers to its example, before
// anything is signed.
func (op *operation) exampleAnswer() (jsontext.Value, error) {
	answer, err := op.service.Evaluate([]byte(op.example))
	if err != nil {
		return nil, fmt.Errorf("example of %s: %w", op.id, err)
	}
	return jsontext.Value(answer.Body), nil
}

// servicePath is where a service is called.
func servicePath(s policy.Service) string { return "/api/agent-services/" + s.Name }

func (s *Server) serviceOperations() []*operation {
	var table []*operation
	for _, of := range Services() {
		table = append(table, &operation{
			id: of.Operation, method: http.MethodPost, path: servicePath(of), summary: of.Summary,
			service: &of, access: credential.Access{Kind: credential.Payer}, input: of.Input(), output: of.Output(), example: of.Example,
			limit: serviceLimit(of), errors: []int{400, 401, 402, 409, 413, 429, 503},
			run: s.runService,
		})
	}
	return table
}

func serviceLimit(s policy.Service) int64 {
	family, _, _ := strings.Cut(s.Name, "/")
	switch family {
	case "action-safety", "command-risk", "review-triage":
		return limitActionSafety
	}
	return limitComponent
}

func (s *Server) runService(c *call) (reply, error) {
	order := services.Call{Service: *c.op.service, Caller: c.Key, Body: c.body, IdempotencyKey: c.idempotencyKey}
	if c.Means == credential.ByAgent {
		order.Agent = &c.Agent
	}
	ctx := c.request.Context()
	var answer services.Reply
	var err error
	if c.Means == credential.ByPayment {
		answer, err = s.app.RunPaidService(ctx, order, c.Payment)
	} else if answer, err = s.app.RunService(ctx, order); s.passRenewed(ctx, order, err) {
		answer, err = s.app.RunService(ctx, order)
	}
	if err != nil {
		return reply{}, err
	}
	if !answer.Replayed {
		s.metrics.answered(c.op.service.Name, answer.Body)
	}
	r := reply{body: answer.Body, header: http.Header{"Cache-Control": {"private, no-store"}}}
	switch c.Means {
	case credential.ByPayment:
		r.header = paid(*answer.Payment)
	case credential.ByKey:
		r.header.Set("RateLimit", fmt.Sprintf(`"month";r=%d;t=%d`, answer.Remaining, s.secondsUntil(answer.ResetsAt)))
	}
	if c.op.service.Ruleset != nil {
		version, _ := c.op.service.Ruleset()
		r.header.Set("Ruleset-Version", version)
	}
	if answer.Replayed {
		r.header.Set("Idempotent-Replayed", "true")
	}
	return r, nil
}

// passRenewed says whether a call was refused for a pass that was paid for again
// meanwhile, and nobody had told.
func (s *Server) passRenewed(ctx context.Context, order services.Call, err error) bool {
	var quota *services.QuotaExhausted
	return errors.As(err, &quota) && s.resync(ctx, order.Caller.CustomerID)
}

func (s *Server) secondsUntil(t time.Time) int64 {
	return max(int64(t.Sub(s.app.Clock())/time.Second), 0)
}
