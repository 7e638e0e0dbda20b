package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/countersign/countersign/commands/accounts"
)

// TestAgentDrawsOnThePassOfWhoClaimedIt checks that an agent that a subscriber claimed spends its
// own credit first. A call that exceeds the rest of this credit is charged to the pass.
func TestAgentDrawsOnThePassOfWhoClaimedIt(t *testing.T) {
	t.Parallel()
	u := newSubscriber(t)
	r, err := u.site.app.RegisterAgent(t.Context(), accounts.AgentOrder{Name: "buyer"})
	if err != nil {
		t.Fatal(err)
	}
	client, err := u.site.app.AuthenticateClient(t.Context(), r.ClientID, r.Secret)
	if err != nil {
		t.Fatal(err)
	}
	token, err := u.site.app.IssueAccessToken(client, "", "")
	if err != nil {
		t.Fatal(err)
	}
	agent := u.site.browser(t)
	status := func(says string) {
		t.Helper()
		u.want(agent.get("/api/keys/free/status", "Authorization", "Bearer "+token.Text), 200, says)
	}
	run := func(service string, want int) {
		t.Helper()
		u.want(agent.post("/api/agent-services/action-safety/"+service, `{"command":"ls"}`, "Authorization", "Bearer "+token.Text), want, "")
	}
	status(`"credits":null`)
	u.want(u.do(http.MethodPost, "/api/auth/claim", "", "", "Authorization", "Bearer "+token.Text), 200, "claimed")
	status(`"credits":{"periodEndsAt":null,"remainingCents":100,"totalCents":100,"usedCents":0}`)
	for range 3 {
		run("run", 200)
	}
	run("quick", 200)
	status(`"remainingCents":24,"totalCents":100,"usedCents":76`)
	run("run", 200) // 25 cents, charged to the pass
	u.status(`"usedCents":25`)
	for range 24 {
		run("quick", 200)
	}
	status(`"remainingCents":3475,"totalCents":3500,"usedCents":25`)
	run("quick", 200)
	u.status(`"usedCents":26`)
	u.site.clock.Add(7 * time.Minute)
	u.want(u.get("/account"), 200, `<span class="ago">7 minutes ago`)
	u.site.clock.Add(-7 * time.Minute)
	// When the credit and the pass are spent, a call that was already paid can be repeated, but
	// not a new call.
	once := func(key string, want int) {
		t.Helper()
		u.want(agent.post("/api/agent-services/action-safety/quick", `{"command":"ls"}`, "Authorization", "Bearer "+token.Text, "Idempotency-Key", key), want, "")
	}
	once("first", 200)
	for i := range u.site.app.Products {
		if u.site.app.Products[i].Slug == "monthly-pass" {
			u.site.app.Products[i].CreditCents = 27
		}
	}
	once("second", 503) // x402 is not configured here
	once("first", 200)
}
