package x402test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/payments"
)

// Kinds of faults. With those that begin with SettleThen, the money moves before the fault.
const (
	Delay          = "delay"            // gives the correct answer only after Release
	Status         = "status"           // answers without a body, with Fault.Status
	HTML           = "html"             // answers with an error page and status 502
	Garbage        = "garbage"          // answers with 200 and half of a JSON text
	Drop           = "drop"             // closes the connection without an answer
	Hang           = "hang"             // never answers
	Refuse         = "refuse"           // refuses with Fault.Reason, and with Fault.Status or 200
	SettleThenDrop = "settle-then-drop" // the connection closes without an answer
	SettleThenHang = "settle-then-hang" // the answer never comes
	SettleThen500  = "settle-then-500"  // answers with status 500
	Pending        = "pending"          // moves the money, but answers that the outcome is unknown, with the transaction
	NotSupported   = "not-supported"    // for "supported": answers with a list without our kind
)

// Fault describes how one request goes wrong.
type Fault struct {
	Kind   string
	Status int
	Reason string
}

// Facilitator verifies payments and settles them on a Chain.
type Facilitator struct {
	URL string

	chain    *Chain
	clock    func() time.Time
	mu       sync.Mutex // protects the fields below
	arrived  *sync.Cond
	bearer   string
	next     map[string][]Fault
	always   map[string]Fault
	counts   map[string]int
	last     map[string]jsontext.Value
	released chan struct{}
	over     chan struct{} // closed when the facilitator stops
	t        testing.TB    // nil outside of tests
}

// NewFacilitator starts a facilitator that works like a real one: it checks signature, window,
// amount and nonce. It stops at the end of the test.
func NewFacilitator(t testing.TB, chain *Chain, clock func() time.Time) *Facilitator {
	f, end := StartFacilitator(chain, clock)
	f.t = t
	t.Cleanup(end)
	return f
}

// StartFacilitator starts a facilitator for a program that is not a test; end stops it. Await
// works only in tests.
func StartFacilitator(chain *Chain, clock func() time.Time) (f *Facilitator, end func()) {
	f = &Facilitator{
		chain: chain, clock: clock, next: map[string][]Fault{}, always: map[string]Fault{}, counts: map[string]int{},
		last: map[string]jsontext.Value{}, released: make(chan struct{}), over: make(chan struct{}),
	}
	f.arrived = sync.NewCond(&f.mu)
	server := httptest.NewServer(f)
	f.URL = server.URL
	return f, func() {
		close(f.over)
		server.Close()
	}
}

// Next makes the next requests to an endpoint ("verify", "settle" or "supported") go wrong, in
// this order. A Fault without a Kind is no fault.
func (f *Facilitator) Next(endpoint string, faults ...Fault) {
	f.do(func() { f.next[endpoint] = append(f.next[endpoint], faults...) })
}

// Always makes every request to an endpoint go wrong. Always(endpoint, Fault{}) ends that.
func (f *Facilitator) Always(endpoint string, fault Fault) {
	f.do(func() { f.always[endpoint] = fault })
}

// Require makes the facilitator answer 401 to requests without this bearer token.
func (f *Facilitator) Require(bearer string) { f.do(func() { f.bearer = bearer }) }

// Release lets all delayed requests continue.
func (f *Facilitator) Release() {
	f.do(func() {
		close(f.released)
		f.released = make(chan struct{})
	})
}

// Calls returns the number of requests that an endpoint has received.
func (f *Facilitator) Calls(endpoint string) int {
	var n int
	f.do(func() { n = f.counts[endpoint] })
	return n
}

// Await waits until an endpoint has received a number of requests. If they do not come within a
// minute, it fails the test. Only the test's own goroutine may call it.
func (f *Facilitator) Await(endpoint string, calls int) {
	f.t.Helper()
	late := false
	giveUp := time.AfterFunc(time.Minute, func() {
		f.do(func() { late = true })
		f.arrived.Broadcast()
	})
	defer giveUp.Stop()
	f.mu.Lock()
	for f.counts[endpoint] < calls && !late {
		f.arrived.Wait()
	}
	had := f.counts[endpoint]
	f.mu.Unlock()
	if had < calls {
		f.t.Fatalf("%s had %d requests within a minute, want %d", endpoint, had, calls)
	}
}

// Last returns the body of an endpoint's latest request.
func (f *Facilitator) Last(endpoint string) jsontext.Value {
	var text jsontext.Value
	f.do(func() { text = f.last[endpoint] })
	return text
}

func (f *Facilitator) do(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

// arrive returns the fault for a request, and records the request.
func (f *Facilitator) arrive(endpoint string, body []byte) (fault Fault, bearer string, released chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[endpoint] = body
	fault = f.always[endpoint]
	if queue := f.next[endpoint]; len(queue) > 0 {
		fault, f.next[endpoint] = queue[0], queue[1:]
	}
	return fault, f.bearer, f.released
}

func (f *Facilitator) count(endpoint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[endpoint]++
	f.arrived.Broadcast()
}

// ServeHTTP answers /verify, /settle and /supported.
func (f *Facilitator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	endpoint := strings.Trim(r.URL.Path, "/")
	fault, bearer, released := f.arrive(endpoint, body)
	authorized := bearer == "" || r.Header.Get("Authorization") == "Bearer "+bearer
	transaction := ""
	if authorized && (strings.HasPrefix(fault.Kind, "settle-then-") || fault.Kind == Pending) {
		if done, ok := f.settle(body).(x402.SettleResponse); ok {
			transaction = done.Transaction
		}
	}
	f.count(endpoint) // count the request only now: a test that waits for it must see that the money has moved
	if !authorized {
		write(w, http.StatusUnauthorized, map[string]any{"error": "unauthorized"})
		return
	}
	if fault.Kind == Delay {
		select {
		case <-released:
		case <-f.over:
		}
		fault = Fault{}
	}
	if f.faulty(w, r, endpoint, fault, transaction) {
		return
	}
	switch endpoint {
	case "supported":
		write(w, http.StatusOK, supported(f.network()))
	case "verify":
		write(w, http.StatusOK, f.verify(body))
	case "settle":
		write(w, http.StatusOK, f.settle(body))
	default:
		http.NotFound(w, r)
	}
}

func (f *Facilitator) network() string {
	f.chain.mu.Lock()
	defer f.chain.mu.Unlock()
	return "eip155:" + strconv.FormatInt(f.chain.chainID, 10)
}

func supported(network string) any {
	kind := map[string]any{"x402Version": 2, "scheme": "exact", "network": network}
	return map[string]any{"kinds": []any{map[string]any{"x402Version": 1, "scheme": "exact", "network": "base-sepolia"}, kind}, "extensions": []any{}, "signers": map[string]any{}}
}

// faulty writes the wrong answer if there is a fault, and reports whether it did.
func (f *Facilitator) faulty(w http.ResponseWriter, r *http.Request, endpoint string, fault Fault, transaction string) bool {
	switch fault.Kind {
	case "":
		return false
	case Status:
		w.WriteHeader(fault.Status)
	case SettleThen500:
		write(w, http.StatusInternalServerError, map[string]any{"error": "internal error"})
	case HTML:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html><h1>502 Bad Gateway</h1></html>"))
	case Garbage:
		_, _ = w.Write([]byte(`{"success":true,"isValid":tr`))
	case Drop, SettleThenDrop:
		panic(http.ErrAbortHandler)
	case Hang, SettleThenHang:
		select {
		case <-r.Context().Done():
		case <-f.over:
		}
	case Refuse:
		write(w, max(fault.Status, http.StatusOK), refusal(endpoint, fault.Reason))
	case Pending:
		write(w, http.StatusOK, x402.SettleResponse{ErrorReason: x402.ReasonPending, Transaction: transaction, Network: f.network()})
	case NotSupported:
		write(w, http.StatusOK, supported("eip155:1"))
	default:
		panic("x402test: no fault is called " + fault.Kind)
	}
	return true
}

func refusal(endpoint, reason string) any {
	if endpoint == "verify" {
		return map[string]any{"isValid": false, "invalidReason": reason}
	}
	return map[string]any{"success": false, "errorReason": reason, "transaction": "", "network": "eip155:84532"}
}

// judge parses and verifies a request like a facilitator.
func (f *Facilitator) judge(body []byte) (*x402.Payment, error) {
	var q struct {
		Payload      jsontext.Value    `json:"paymentPayload"`
		Requirements x402.Requirements `json:"paymentRequirements"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, &payments.PaymentRefused{Reason: x402.ReasonPayload}
	}
	p, err := x402.Read(q.Payload)
	if err != nil {
		return nil, err
	}
	owner, contract := f.chain.owner(p.Payer)
	if err = p.Verify(q.Requirements, p.Resource(), f.clock(), contract); err == nil && contract && !p.SignedBy(owner) {
		err = &payments.PaymentRefused{Reason: x402.ReasonSignature}
	}
	return p, err
}

func reasonOf(err error) string {
	var refused *payments.PaymentRefused
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return x402.ReasonVerifyError
}

func (f *Facilitator) verify(body []byte) any {
	p, err := f.judge(body)
	if err == nil && f.chain.isSpent(p) {
		err = &payments.PaymentRefused{Reason: "invalid_exact_evm_nonce_already_used"}
	}
	if err != nil {
		return refusal("verify", reasonOf(err))
	}
	return map[string]any{"isValid": true, "payer": p.Payer}
}

func (f *Facilitator) settle(body []byte) any {
	p, err := f.judge(body)
	if err != nil {
		return refusal("settle", reasonOf(err))
	}
	hash, err := f.chain.Settle(address(p.Asset), p.Authorization())
	if err != nil {
		return refusal("settle", "invalid_exact_evm_nonce_already_used")
	}
	return x402.SettleResponse{Success: true, Payer: p.Payer, Transaction: hash.String(), Network: p.Network}
}

func (c *Chain) isSpent(p *x402.Payment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent[spend(address(p.Asset), p.Authorization().From, p.Authorization().Nonce)]
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(must(json.Marshal(body)))
}
