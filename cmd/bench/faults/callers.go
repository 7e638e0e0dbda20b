//go:build unix

package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/api/x402/x402test"
)

// The kinds of calls.
const (
	kindKey      = "key"
	kindGate     = "gate"
	kindRun      = "run"
	kindDecision = "decision"
	kindReceipt  = "receipt"
	kindPayment  = "payment"
	kindSignIn   = "sign-in"
)

const (
	keysPath      = "/api/keys/free"
	quickPath     = "/api/agent-services/action-safety/quick"
	runPath       = "/api/agent-services/action-safety/run"
	decisionsPath = "/api/assurance/decisions"
	receiptsPath  = "/api/assurance/receipts"
	signInPath    = "/api/auth/sign-in"
	confirmPath   = "/sign-in/confirm"
	sessionPath   = "/api/auth/session"
)

func (w *world) kinds() []string {
	kinds := []string{kindKey, kindGate, kindRun, kindDecision, kindReceipt, kindPayment}
	if w.private() {
		kinds = append(kinds, kindSignIn)
	}
	return kinds
}

// callers makes clients call until ctx ends. The channel is closed when the last client has
// finished.
func (w *world) callers(ctx context.Context) <-chan struct{} {
	var all sync.WaitGroup
	clients := []struct {
		name  string // clients with the same name make the same calls at the same time
		calls func(*caller, context.Context)
	}{
		{"gate", (*caller).gate}, {"other-gate", (*caller).gate}, {"run", (*caller).run}, {"other-run", (*caller).run},
		{"decide", (*caller).decide}, {"decide", (*caller).decide}, {"pay", (*caller).pay}, {"sign-in", (*caller).signIn},
	}
	run := runs.Add(1)
	for i, client := range clients {
		if client.name == "sign-in" && !w.private() {
			continue
		}
		all.Go(func() {
			client.calls(&caller{world: w, name: fmt.Sprintf("%s-%d", client.name, run), next: i}, ctx)
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
}

// runs makes the names of clients differ in a second run of a round.
var runs atomic.Int64

// caller is one client. It waits for each answer before its next call.
type caller struct {
	*world
	name string
	next int // the node of the next call
	n    int // number of its calls so far
	key  string
}

// impatient ends a call whose answer was lost. The client then repeats the call.
const impatient = 30 * time.Second

// httpClient keeps no connection open, because the node may be killed between two calls.
var httpClient = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       impatient,
}

// send repeats the call of an acknowledgement at a node.
func (w *world) send(ctx context.Context, base string, a acknowledgement) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, a.Method, base+a.Path, strings.NewReader(a.Body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range a.Headers {
		r.Header.Set(name, value)
	}
	response, err := httpClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// ask sends a call to one node after the other until the answer is neither cut off nor 503. It
// returns false when the clients must stop.
func (c *caller) ask(ctx context.Context, a acknowledgement) (status int, answer string, alive bool) {
	for ctx.Err() == nil {
		c.next++
		status, answer, err := c.send(ctx, c.nodes[c.next%len(c.nodes)].base(), a)
		if err == nil && status != http.StatusServiceUnavailable && !c.misdated(a, status) {
			return status, answer, true
		}
		c.refused.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return 0, "", false
}

// misdated reports whether a node with a wrong clock refused a payment or session because of
// its validity time. The client then asks another node. Nothing has been claimed.
func (c *caller) misdated(a acknowledgement, status int) bool {
	return c.wrongClock.Load() &&
		(a.Kind == kindPayment && status == http.StatusPaymentRequired || a.Kind == kindSignIn && status == http.StatusUnauthorized)
}

// acknowledged sends a call and records the answer, which must be 200 or 201. If the quota is
// used up it returns that status.
func (c *caller) acknowledged(ctx context.Context, a acknowledgement) (answer string, status int) {
	status, answer, alive := c.ask(ctx, a)
	switch {
	case !alive:
		return "", 0
	case status == http.StatusTooManyRequests:
		return "", status
	case status != http.StatusOK && status != http.StatusCreated:
		c.fail(fmt.Errorf("%s %s was answered %d %s", a.Kind, a.ID, status, answer))
		return "", 0
	}
	a.Answer = answer
	if err := c.journal.note(a); err != nil {
		c.fail(err)
		return "", 0
	}
	return answer, status
}

func (c *caller) id() string {
	c.n++
	return fmt.Sprintf("%s-%d", c.name, c.n)
}

// issueKey gets a free key. A key is shown once, so after a lost answer it uses another
// address.
func (c *caller) issueKey(ctx context.Context) bool {
	for ctx.Err() == nil {
		id := c.id()
		c.next++
		status, answer, err := c.send(ctx, c.nodes[c.next%len(c.nodes)].base(), acknowledgement{Method: http.MethodPost, Path: keysPath,
			Body: fmt.Sprintf(`{"email":"fault-%s@example.com"}`, id)})
		var issued struct {
			Key string `json:"apiKey"`
		}
		switch {
		case err != nil || status == http.StatusServiceUnavailable:
			c.refused.Add(1)
			time.Sleep(20 * time.Millisecond)
			continue
		case status != http.StatusCreated || json.Unmarshal([]byte(answer), &issued) != nil:
			c.fail(fmt.Errorf("a free key: %d %s", status, answer))
			return false
		}
		c.key = issued.Key
		// Only that the key is still known is checked later.
		if err := c.journal.note(acknowledgement{Kind: kindKey, ID: id, Method: http.MethodPost, Path: quickPath,
			Headers: map[string]string{"X-API-Key": c.key}, Body: `{"command":"ls"}`, Answer: answer}); err != nil {
			c.fail(err)
			return false
		}
		return true
	}
	return false
}

// callsOfAKey is the number of calls per key, so that keys are issued all the time.
const callsOfAKey = 20

// metered makes calls with keys, again and again.
func (c *caller) metered(ctx context.Context, kind, path string) {
	for n := 0; ; n++ {
		if n%callsOfAKey == 0 && !c.issueKey(ctx) {
			return
		}
		id := c.id()
		if _, status := c.acknowledged(ctx, acknowledgement{Kind: kind, ID: id, Method: http.MethodPost, Path: path,
			Headers: map[string]string{"X-API-Key": c.key, "Idempotency-Key": id}, Body: fmt.Sprintf(`{"command":"rm -rf /srv/%s"}`, id)}); status == 0 {
			return
		}
	}
}

func (c *caller) gate(ctx context.Context) { c.metered(ctx, kindGate, quickPath) }

func (c *caller) run(ctx context.Context) { c.metered(ctx, kindRun, runPath) }

// decide requests decisions about purchases, each with a receipt.
func (c *caller) decide(ctx context.Context) {
	headers := map[string]string{"Authorization": "Bearer " + c.token}
	for {
		id := c.id()
		answer, status := c.acknowledged(ctx, acknowledgement{Kind: kindDecision, ID: id, Method: http.MethodPost, Path: decisionsPath, Headers: headers,
			Body: fmt.Sprintf(`{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":"run","agentId":"agent"},"intent":{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}}`, id)})
		if status == 0 {
			return
		}
		var d struct {
			Record    struct{ DecisionID, BindingHash string }
			Integrity struct{ RecordHash string }
		}
		if err := json.Unmarshal([]byte(answer), &d, json.MatchCaseInsensitiveNames(true)); err != nil {
			c.fail(err)
			return
		}
		if _, status = c.acknowledged(ctx, acknowledgement{Kind: kindReceipt, ID: id, Method: http.MethodPost, Path: receiptsPath, Headers: headers,
			Body: fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled"}`,
				d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)}); status == 0 {
			return
		}
	}
}

// pay buys gate calls, each with its own payment, which is sent again until it is answered.
func (c *caller) pay(ctx context.Context) {
	wallet := x402test.NewWallet("payer " + c.name)
	for {
		id := c.id()
		body := fmt.Sprintf(`{"command":"rm -rf /srv/paid/%s"}`, id)
		challenge, ok := c.challenge(ctx, body)
		if !ok {
			return
		}
		payment := wallet.Order(challenge, fmt.Sprintf("%s %d", id, time.Now().UnixNano()), time.Now()).Header()
		if _, status := c.acknowledged(ctx, acknowledgement{Kind: kindPayment, ID: id, Method: http.MethodPost, Path: quickPath,
			Headers: map[string]string{"PAYMENT-SIGNATURE": payment}, Body: body}); status == 0 {
			return
		}
	}
}

// challenge calls without a credential and returns what to pay.
func (c *caller) challenge(ctx context.Context, body string) (challenge x402.PaymentRequired, ok bool) {
	status, answer, alive := c.ask(ctx, acknowledgement{Method: http.MethodPost, Path: quickPath, Body: body})
	if !alive {
		return challenge, false
	}
	if status != http.StatusPaymentRequired {
		c.fail(fmt.Errorf("a call without credential was answered %d %s", status, answer))
		return challenge, false
	}
	if err := json.Unmarshal([]byte(answer), &challenge); err != nil || len(challenge.Accepts) == 0 {
		c.fail(fmt.Errorf("the payment requirements cannot be paid: %v: %s", err, answer))
		return challenge, false
	}
	return challenge, true
}

// links matches the sign-in links in e-mail.
var links = regexp.MustCompile(`To: ([^\n]+)\n(?:[^\n]+\n)*\n(?:[^\n]*\n)*?[^\n]*token=([A-Za-z0-9_-]+)`)

// signIn signs customers in with the links in their e-mail.
func (c *caller) signIn(ctx context.Context) {
	for ctx.Err() == nil {
		id := c.id()
		address := "signin-" + id + "@example.com"
		status, answer, alive := c.ask(ctx, acknowledgement{Method: http.MethodPost, Path: signInPath, Body: fmt.Sprintf(`{"email":%q}`, address)})
		if !alive {
			return
		}
		if status != http.StatusOK && status != http.StatusAccepted {
			c.fail(fmt.Errorf("a sign-in was answered %d %s", status, answer))
			return
		}
		cookie, err := c.confirm(ctx, address)
		if err != nil || cookie == "" { // killed between answer and e-mail, or between link and cookie: a person would request another link
			c.refused.Add(1)
			continue
		}
		if _, status := c.acknowledged(ctx, acknowledgement{Kind: kindSignIn, ID: id, Method: http.MethodGet, Path: sessionPath,
			Headers: map[string]string{"Cookie": cookie}}); status == 0 {
			return
		}
	}
}

// confirm follows the newest link of an address and returns the session's cookie.
func (c *caller) confirm(ctx context.Context, address string) (cookie string, err error) {
	var token string
	for range 50 { // the e-mail is written after the answer
		text, err := os.ReadFile(filepath.Join(c.data, "letters.txt"))
		if err != nil {
			return "", err
		}
		for _, m := range links.FindAllStringSubmatch(string(text), -1) {
			if m[1] == address {
				token = m[2]
			}
		}
		if token != "" || ctx.Err() != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if token == "" {
		return "", nil
	}
	base := c.nodes[c.next%len(c.nodes)].base()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+confirmPath, strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", base)
	answer, err := httpClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	for _, made := range answer.Cookies() {
		return made.Name + "=" + made.Value, nil
	}
	return "", nil
}
