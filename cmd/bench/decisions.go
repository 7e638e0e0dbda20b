package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/countersign/countersign/commands"
)

// decisionsCmd compares whole signed decisions over loopback HTTP, one durable
// event each, with the bare append of the same run.
type decisionsCmd struct {
	Runs    int           `help:"Runs of each; the median counts." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,32"`
	Agents  int           `help:"Different agents whose ids are sealed." default:"100"`
}

// Run prints one line per number of callers: the ratio is decisions to appends.
func (c *decisionsCmd) Run(ctx context.Context) error {
	s, err := newScratch(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	service, err := startService(ctx, s)
	if err != nil {
		return err
	}
	defer service.close()
	token, err := service.organization(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-10s %12s %12s %8s %22s %22s\n", "in flight", "appends/s", "decisions/s", "ratio", "append p50/p99 ms", "decision p50/p99 ms")
	for _, callers := range c.Callers {
		var appends, decisions []sample
		for range c.Runs {
			a, err := appendLoad(ctx, s, 1, callers, c.During)
			if err != nil {
				return err
			}
			d, err := service.decide(ctx, token, callers, c.Agents, c.During)
			if err != nil {
				return err
			}
			appends, decisions = append(appends, a), append(decisions, d)
		}
		a, d := median(appends), median(decisions)
		fmt.Printf("%-10d %12.0f %12.0f %8.2f %22s %22s\n", callers, a.perSecond, d.perSecond, d.perSecond/a.perSecond,
			ms(a.quantile(.5))+" / "+ms(a.quantile(.99)), ms(d.quantile(.5))+" / "+ms(d.quantile(.99)))
	}
	return check(ctx, s)
}

// organization makes one with a policy in force and returns a token.
func (b *benchService) organization(ctx context.Context) (string, error) {
	o, err := b.app.CreateOrganization(ctx, "operator", "Bench", commands.PlanTeam, "bench@example.com")
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
	issued, err := b.app.IssueToken(ctx, operator, commands.TokenOrder{})
	return issued.Token, err
}

// decide asks for a new decision with every call.
func (b *benchService) decide(ctx context.Context, token string, callers, agents int, during time.Duration) (sample, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	defer client.CloseIdleConnections()
	run := time.Now().UnixNano()
	return load(callers, during, func(caller, n int) error {
		body := fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":"bench-%d-%d-%d","subject":{"runId":"run-%d","agentId":"agent-%d"},"intent":{`+
			`"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base",`+
			`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`,
			run, caller, n, caller, (caller*7919+n)%agents)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+"/api/assurance/decisions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("decision: %s %s %v", answer.Status, text, err)
		}
		return nil
	})
}
