package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/policy/assurance"
)

// verdict compares the evaluation of a policy for one payment. Policies and queries are prepared
// beforehand. Each contestant receives the request in its own parsed form.
type verdict struct {
	Runs   int           `help:"Number of rounds. The median of each measurement is printed." default:"3"`
	During time.Duration `help:"Length of each run." default:"1s"`
}

const ourPolicy = `{"policyId":"peers","version":1,"maxUsdPerTransaction":1,"allowedNetworks":["base"],"allowedHosts":["*.weather.example"],"requireHttps":true}`

const ourRequest = `{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"run"},"intent":{` +
	`"resourceUrl":"https://api.weather.example/v1/forecast","method":"GET","scheme":"exact","network":"base",` +
	`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`

const cedarPolicy = `permit (principal, action == Action::"pay", resource) when {
	context.scheme == "https" && context.host like "*.weather.example" &&
	["base"].contains(context.network) && context.usdMicros <= 1000000
};`

const regoPolicy = `package payment
import rego.v1
default allow := false
allow if {
	input.scheme == "https"
	endswith(input.host, ".weather.example")
	input.network in {"base"}
	input.usdMicros <= 1000000
}`

// Run prints one line for each contestant.
func (c *verdict) Run(ctx context.Context) error {
	ours, err := oursVerdict()
	if err != nil {
		return err
	}
	cedars, err := cedarVerdict()
	if err != nil {
		return err
	}
	opas, err := opaVerdict(ctx)
	if err != nil {
		return err
	}
	var list []contestant
	for _, p := range []struct {
		name string
		once func() error
	}{{"countersign: verdict with findings", ours}, {"cedar-go: decision", cedars}, {"OPA: decision, prepared query", opas}} {
		list = append(list, contestant{p.name, func(callers int, during time.Duration) (rig.Sample, error) {
			return rig.Load(callers, during, func(int, int) error { return p.once() })
		}})
	}
	printHeading()
	medians, err := rounds(&rig.Scratch{}, list, c.Runs, 1, c.During)
	if err != nil {
		return err
	}
	printLines(list, medians, 1)
	return nil
}

var errOther = errors.New("the verdict is not allow")

func oursVerdict() (func() error, error) {
	stored, err := assurance.ReadPolicy([]byte(ourPolicy))
	if err != nil {
		return nil, err
	}
	request, err := assurance.ParseDecision([]byte(ourRequest))
	if err != nil {
		return nil, err
	}
	return func() error {
		if e, ok := assurance.Evaluate(assurance.EngineVersion, request.Protocol, stored.Rules, nil, request.Normalized); !ok || e.Decision != assurance.Allow {
			return fmt.Errorf("%w: %s", errOther, e.Decision)
		}
		return nil
	}, nil
}

func cedarVerdict() (func() error, error) {
	policies, err := cedar.NewPolicySetFromBytes("payment.cedar", []byte(cedarPolicy))
	if err != nil {
		return nil, err
	}
	request := cedar.Request{Principal: cedar.NewEntityUID("Agent", "a"), Action: cedar.NewEntityUID("Action", "pay"), Resource: cedar.NewEntityUID("Payee", "p"),
		Context: cedar.NewRecord(cedar.RecordMap{"scheme": cedar.String("https"), "host": cedar.String("api.weather.example"),
			"network": cedar.String("base"), "usdMicros": cedar.Long(250000)})}
	return func() error {
		if decision, _ := policies.IsAuthorized(cedar.EntityMap{}, request); decision != cedar.Allow {
			return errOther
		}
		return nil
	}, nil
}

func opaVerdict(ctx context.Context) (func() error, error) {
	query, err := rego.New(rego.Query("data.payment.allow"), rego.Module("payment.rego", regoPolicy)).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	input := map[string]any{"scheme": "https", "host": "api.weather.example", "network": "base", "usdMicros": 250000}
	return func() error {
		results, err := query.Eval(ctx, rego.EvalInput(input))
		if err == nil && !results.Allowed() {
			err = errOther
		}
		return err
	}, nil
}
