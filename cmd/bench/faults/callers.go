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

// Kinds of calls that the clients make.
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

// callers starts clients that call until ctx ends. It returns a channel that is closed when the
// last client has finished.
func (w *world) callers(ctx context.Context) <-chan struct{} {
	var all sync.WaitGroup
	clients := []struct {
		name  string // two clients with the same name make the same calls at the same time
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

// runs counts the calls of callers, so that the clients of a later call have other names.
var runs atomic.Int64

// caller is one client. It waits for each answer before it makes the next call.
type caller struct {
	*world
	name string
	next int // number of the node that gets the next call
	n    int // number of calls made
	key  string
}

// impatient is the time limit of a call. A client repeats a call that has not been answered in
// this time.
const impatient = 30 * time.Second

// httpClient closes an idle connection after a second, because the node may be killed between two
// calls.
var httpClient = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Timeout:       impatient,
}

// send makes the call of an acknowledgement at the node with this base URL.
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

// ask sends a call to the nodes in turn until it gets a complete answer with a status other than
// 503. It returns false if the clients must stop.
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

// misdated reports whether a node refused a payment or a session because its clock is wrong. The
// node has stored nothing then, and the client asks another node.
func (c *caller) misdated(a acknowledgement, status int) bool {
	return c.wrongClock.Load() &&
		(a.Kind == kindPayment && status == http.StatusPaymentRequired || a.Kind == kindSignIn && status == http.StatusUnauthorized)
}

// acknowledged sends a call and records the answer, whose status must be 200 or 201. If the quota
// is used up it returns status 429; if the client must stop it returns 0.
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

// issueKey gets a free key. The service shows a key only once, so the client asks for a key of
// another e-mail address after a lost answer.
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
			c.fail(fmt.Errorf("the request for a free key was answered %d %s", status, answer))
			return false
		}
		c.key = issued.Key
		// The answer to a request for a key cannot be repeated. The later check only calls the
		// gate with the key.
		if err := c.journal.note(acknowledgement{Kind: kindKey, ID: id, Method: http.MethodPost, Path: quickPath,
			Headers: map[string]string{"X-API-Key": c.key}, Body: `{"command":"ls"}`, Answer: answer}); err != nil {
			c.fail(err)
			return false
		}
		return true
	}
	return false
}

// callsOfAKey is the number of calls made with one key. It is small, so that clients request keys
// during the whole round.
const callsOfAKey = 20

// metered makes calls of one service until ctx ends, with a new key after every callsOfAKey calls.
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

// decide requests decisions about purchases until ctx ends, and binds a receipt to each.
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

// pay buys gate calls until ctx ends, each with its own payment. It repeats a call with the same
// payment until the call is answered.
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

// challenge calls the gate without a credential and returns the payment requirements of the
// answer.
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

// links matches the address and the token of a sign-in link in the text of the sent e-mail.
var links = regexp.MustCompile(`To: ([^\n]+)\n(?:[^\n]+\n)*\n(?:[^\n]*\n)*?[^\n]*token=([A-Za-z0-9_-]+)`)

// signIn signs customers in until ctx ends, with the links in their e-mail.
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
		if err != nil || cookie == "" { // the node was killed before it wrote the e-mail or before it set the cookie; a person would request another link
			c.refused.Add(1)
			continue
		}
		if _, status := c.acknowledged(ctx, acknowledgement{Kind: kindSignIn, ID: id, Method: http.MethodGet, Path: sessionPath,
			Headers: map[string]string{"Cookie": cookie}}); status == 0 {
			return
		}
	}
}

// confirm opens the newest sign-in link of an address and returns the cookie of the session.
func (c *caller) confirm(ctx context.Context, address string) (cookie string, err error) {
	var token string
	for range 50 { // the service writes the e-mail after it has answered
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
