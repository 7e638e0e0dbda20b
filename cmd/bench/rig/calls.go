package rig

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
)

// QuickBody is the request body of the calls that Quick makes.
const QuickBody = `{"command":"git push --force origin main","environment":"production"}`

// QuickGate returns the service that Quick calls.
func QuickGate() policy.Service {
	list := services.List()
	return list[slices.IndexFunc(list, func(s policy.Service) bool { return s.Name == "action-safety/quick" })]
}

// QuickKeys returns a list of keys for each caller. A key is valid for 250 calls; the lists are
// long enough for 10,000 calls per second.
func (b *Service) QuickKeys(ctx context.Context, callers int, during time.Duration) ([][]string, error) {
	run := time.Now().UnixNano()
	keys := make([][]string, callers)
	for caller := range keys {
		for n := range int(during.Seconds()+1)*10_000/callers/accounts.FreeCallsPerMonth + 1 {
			issued, err := b.App.IssueFreeKey(ctx, fmt.Sprintf("bench-%d-%d-%d@example.com", run, caller, n), "")
			if err != nil {
				return nil, err
			}
			keys[caller] = append(keys[caller], issued.APIKey)
		}
	}
	return keys, nil
}

// connected calls an operation from several concurrent callers, each with its own connection.
func (b *Service) connected(callers int, during time.Duration, operation func(c *Client, caller, n int) error) (Sample, error) {
	clients := make([]*Client, callers)
	for i := range clients {
		c, err := b.Client()
		if err != nil {
			return Sample{}, err
		}
		defer c.Close()
		clients[i] = c
	}
	return Load(callers, during, func(caller, n int) error { return operation(clients[caller], caller, n) })
}

// Quick calls the quick gate with one caller for each list of keys.
func (b *Service) Quick(keys [][]string, during time.Duration) (Sample, error) {
	return b.connected(len(keys), during, func(c *Client, caller, n int) error {
		return c.Quick(keys[caller][min(n/accounts.FreeCallsPerMonth, len(keys[caller])-1)])
	})
}

// Decide requests decisions from several concurrent callers. Each request has a new idempotency
// key.
func (b *Service) Decide(token string, callers, agents int, during time.Duration) (Sample, error) {
	run := time.Now().UnixNano()
	return b.connected(callers, during, func(c *Client, caller, n int) error {
		agent := ""
		if agents > 0 {
			agent = fmt.Sprintf("agent-%d", (caller*7919+n)%agents)
		}
		_, err := c.Decision(token, fmt.Sprintf("bench-%d-%d-%d", run, caller, n), agent)
		return err
	})
}

// Quick calls the quick gate once with this key.
func (c *Client) Quick(key string) error {
	status, answer, err := c.Post(gate+"quick", "X-API-Key: "+key+"\r\n", []byte(QuickBody))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("quick gate: %d %s %w", status, answer, err)
	}
	return nil
}

// Decision requests a decision with an idempotency key; agent may be empty. The answer is valid
// until the next call.
func (c *Client) Decision(token, key, agent string) ([]byte, error) {
	status, answer, err := c.Post(decisions, bearer(token), decisionBody(key, agent, "?city=Oslo"))
	if err != nil || status != http.StatusCreated {
		return nil, fmt.Errorf("decision: %d %s %w", status, answer, err)
	}
	return answer, nil
}

// GateCalls makes this number of calls of one of the gate's services, with free keys.
func (b *Service) GateCalls(ctx context.Context, name string, calls int) error {
	var key string
	return b.each(calls, func(c *Client, n int) (int, []byte, error) {
		if n%accounts.FreeCallsPerMonth == 0 {
			issued, err := b.App.IssueFreeKey(ctx, fmt.Sprintf("size-%s-%d@example.com", name, n), "")
			if err != nil {
				return 0, nil, err
			}
			key = issued.APIKey
		}
		return c.Post(gate+name, bearer(key)+fmt.Sprintf("Idempotency-Key: size-%d\r\n", n),
			fmt.Appendf(nil, `{"command":"git push --force origin feature-%d","environment":"production"}`, n))
	})
}

// Decisions requests this number of decisions for a new organization.
func (b *Service) Decisions(ctx context.Context, count int) error {
	token, err := b.Organization(ctx)
	if err != nil {
		return err
	}
	return b.each(count, func(c *Client, n int) (int, []byte, error) {
		return c.Post(decisions, bearer(token), decisionBody(fmt.Sprintf("size-%d", n), "", ""))
	})
}

// each makes this number of calls, one after the other. It returns an error if the status of an
// answer is not 2xx.
func (b *Service) each(calls int, call func(c *Client, n int) (status int, answer []byte, err error)) error {
	c, err := b.Client()
	if err != nil {
		return err
	}
	defer c.Close()
	for n := range calls {
		status, answer, err := call(c, n)
		if err != nil {
			return err
		}
		if status/100 != 2 {
			return fmt.Errorf("call %d: %d %s", n, status, answer)
		}
	}
	return nil
}

const (
	gate      = "/api/agent-services/action-safety/"
	decisions = "/api/assurance/decisions"
)

func bearer(credential string) string { return "Authorization: Bearer " + credential + "\r\n" }

// decisionBody returns the request body of a decision. If agent is empty the body has no agentId.
func decisionBody(key, agent, query string) []byte {
	if agent != "" {
		agent = fmt.Sprintf(`,"agentId":%q`, agent)
	}
	return fmt.Appendf(nil, `{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run"%s},"intent":{`+
		`"resourceUrl":"https://api.weather.example/v1/forecast%s","method":"GET","scheme":"exact","network":"base",`+
		`"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}}`,
		key, agent, query)
}
