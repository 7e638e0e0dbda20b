package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
)

// decisionsCmd compares complete signed decisions over loopback HTTP, one durable event each,
// with the bare append of the same run.
type decisionsCmd struct {
	Runs    int           `help:"Runs of each; the median counts." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,32"`
	Agents  int           `help:"Number of agents, whose ids are encrypted; 0 for decisions without an agentId." default:"100"`
	Profile string        `help:"Write a CPU profile of all decisions to this file."`
}

// decisionSize is the approximate size of the payload of a decision's event, in bytes.
const decisionSize = 3050

// Run prints one line per number of callers. It compares decisions with bare appends of a
// payload of the same size and with the small appends of the other benchmarks.
func (c *decisionsCmd) Run(ctx context.Context) error {
	service, token, err := startOrganization(ctx)
	if err != nil {
		return err
	}
	defer service.close()
	if _, err := service.decide(token, 1, c.Agents, time.Millisecond); err != nil {
		return err
	}
	decision, err := service.last(ctx, events.TypeDecisionRecorded)
	if err != nil {
		return err
	}
	sized := fmt.Appendf(nil, `{"decision":%s}`, decision.Payload) // as a member, so that the append does not treat it as a signed record
	fmt.Printf("%-10s %10s %10s %12s %8s %9s %20s %20s   %s\n", "in flight", "small/s", "appends/s", "decisions/s", "ratio", "to small",
		"append p50/p99 ms", "decision p50/p99 ms", "us of CPU of each, program + database")
	for _, callers := range c.Callers {
		var appends, large, decisions []sample
		for range c.Runs {
			a, err := service.measured(ctx, func() (sample, error) { return appendLoad(ctx, service.scratch, 1, callers, c.During, payload) })
			if err != nil {
				return err
			}
			b, err := service.measured(ctx, func() (sample, error) {
				return appendLoad(ctx, service.scratch, 1, callers, c.During, sized)
			})
			if err != nil {
				return err
			}
			d, err := service.measured(ctx, func() (sample, error) {
				defer profiled(c.Profile)()
				return service.decide(token, callers, c.Agents, c.During)
			})
			if err != nil {
				return err
			}
			appends, large, decisions = append(appends, a), append(large, b), append(decisions, d)
		}
		a, b, d := median(appends), median(large), median(decisions)
		fmt.Printf("%-10d %10.0f %10.0f %12.0f %8.2f %9.2f %20s %20s   %s; %s; %s\n", callers, a.perSecond, b.perSecond, d.perSecond,
			d.perSecond/b.perSecond, d.perSecond/a.perSecond,
			ms(b.quantile(.5))+" / "+ms(b.quantile(.99)), ms(d.quantile(.5))+" / "+ms(d.quantile(.99)),
			a.used.per(len(a.latencies)), b.used.per(len(b.latencies)), d.used.per(len(d.latencies)))
	}
	return check(ctx, service.scratch)
}

// measured counts the processor time of a load until the read models have caught up with it, so
// that deferred work counts, too.
func (b *benchService) measured(ctx context.Context, load func() (sample, error)) (sample, error) {
	before := b.scratch.cpuNow()
	result, err := load()
	if err == nil {
		err = caughtUp(ctx, b.projections)
	}
	after := b.scratch.cpuNow()
	result.used = cpu{after.process - before.process, after.database - before.database}
	return result, err
}

// profiled starts a CPU profile and returns the function that ends it.
func profiled(file string) (end func()) {
	if file == "" {
		return func() {}
	}
	f, err := os.Create(file)
	if err != nil || pprof.StartCPUProfile(f) != nil {
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}
}

// startOrganization is startService with an organization and a token of it.
func startOrganization(ctx context.Context) (*benchService, string, error) {
	service, err := startService(ctx)
	if err != nil {
		return nil, "", err
	}
	token, err := service.organization(ctx)
	if err != nil {
		service.close()
		return nil, "", err
	}
	return service, token, nil
}

// organization creates an organization with an active policy and returns a token.
func (b *benchService) organization(ctx context.Context) (string, error) {
	o, err := b.app.CreateOrganization(ctx, "operator", "Bench", organizations.PlanTeam, "bench@example.com")
	if err != nil {
		return "", err
	}
	operator, err := b.app.Operator(ctx, o.OrgID)
	if err != nil {
		return "", err
	}
	policy := `{"policyId":"bench","maxUsdPerTransaction":1,"allowedNetworks":["base"],"allowedHosts":["*.weather.example"],"requireHttps":true}`
	if _, err := b.app.DraftAndActivate(ctx, operator, []byte(policy), "bench"); err != nil {
		return "", err
	}
	issued, err := b.app.IssueToken(ctx, operator, organizations.TokenOrder{})
	return issued.Token, err
}

// decide requests a new decision with every call.
func (b *benchService) decide(token string, callers, agents int, during time.Duration) (sample, error) {
	clients := make([]*client, callers)
	for i := range clients {
		c, err := newClient(strings.TrimPrefix(b.base, "http://"))
		if err != nil {
			return sample{}, err
		}
		defer c.close()
		clients[i] = c
	}
	run := time.Now().UnixNano()
	return load(callers, during, func(caller, n int) error {
		agent := ""
		if agents > 0 {
			agent = fmt.Sprintf("agent-%d", (caller*7919+n)%agents)
		}
		_, err := clients[caller].decision(token, fmt.Sprintf("bench-%d-%d-%d", run, caller, n), agent)
		return err
	})
}

// decision requests a new decision under an idempotency key, for an agent unless it is empty.
// The answer is valid until the next call.
func (c *client) decision(token, key, agent string) ([]byte, error) {
	if agent != "" {
		agent = fmt.Sprintf(`,"agentId":%q`, agent)
	}
	body := fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run"%s},"intent":{`+
		`"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base",`+
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`,
		key, agent)
	status, answer, err := c.post("/api/assurance/decisions", "Authorization: Bearer "+token+"\r\n", body)
	if err != nil || status != http.StatusCreated {
		return nil, fmt.Errorf("decision: %d %s %w", status, answer, err)
	}
	return answer, nil
}
