package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/clients/conformance"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// redirected sends every request to the server that plays the cases.
type redirected struct {
	base  string
	inner http.RoundTripper
}

func (r redirected) RoundTrip(request *http.Request) (*http.Response, error) {
	to, err := url.Parse(r.base + strings.TrimPrefix(request.URL.String(), "https://"))
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.URL, request.Host = to, ""
	return r.inner.RoundTrip(request)
}

var (
	errOwn    = errors.New("the function's own error")
	errLocked = errors.New("the wallet is locked")
)

// run is one running conformance case.
type run struct {
	file    conformance.File
	c       conformance.Case
	client  *Client
	clock   time.Time
	mu      sync.Mutex // protects outcome
	outcome conformance.Outcome
}

// serve starts a server that plays the cases, and returns its address and the cases.
func serve(t *testing.T) (address string, file conformance.File) {
	t.Helper()
	played, err := conformance.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(played)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	if file, _, err = conformance.Load(); err != nil {
		t.Fatal(err)
	}
	return server.URL, file
}

// begin starts a case. It returns the base URL for this case, and a function that reports the
// outcome and fails the test if it differs from the expected outcome.
func begin(t *testing.T, address, name string) (base string, end func(conformance.Outcome)) {
	t.Helper()
	var started struct{ Session string }
	post(t, address+"/start", map[string]string{"case": name}, &started)
	return address + "/" + started.Session + "/", func(o conformance.Outcome) {
		t.Helper()
		var ended struct{ Problems []string }
		post(t, address+"/end/"+started.Session, o, &ended)
		for _, problem := range ended.Problems {
			t.Error(problem)
		}
		if len(ended.Problems) > 0 && os.Getenv("COUNTERSIGN_BAIL") != "" {
			os.Exit(1) // one problem is enough to detect a mutant
		}
	}
}

func TestConformance(t *testing.T) {
	address, file := serve(t)
	// Connections are not reused, because the transport itself retries on a reused connection.
	inner := &http.Transport{DisableKeepAlives: true}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			base, end := begin(t, address, c.Name)
			r := &run{file: file, c: c, outcome: conformance.Outcome{Unchanged: true, Waits: []int{}}}
			err := r.make(t, redirected{base, inner})
			if err == nil {
				err = r.do(t)
			}
			var ours *Error
			switch {
			case err == nil:
			case errors.As(err, &ours):
				r.outcome.Error, r.outcome.UpgradeURL, r.outcome.Status = string(ours.Code), ours.UpgradeURL, ours.Status
				r.outcome.Result = ours.Code == ReceiptMissing && !errors.Is(err, errOwn)
			case errors.Is(err, errOwn), errors.Is(err, errLocked):
				r.outcome.Error = "fn"
			default:
				r.outcome.Error = "another"
			}
			if err != nil {
				r.outcome.Message = err.Error()
			}
			end(r.outcome)
		})
	}
}

func post(t *testing.T, address string, value, into any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.Post(address, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

func (r *run) make(t *testing.T, transport http.RoundTripper) error {
	t.Helper()
	var err error
	if r.clock, err = time.Parse(time.RFC3339, cmp.Or(r.c.Now, r.file.Now)); err != nil {
		t.Fatal(err)
	}
	o := Options{URL: cmp.Or(r.c.URL, "https://countersign.example"), APIKey: "svck_test", Token: "svco_test", OrgID: cmp.Or(r.c.OrgID, r.file.OrgID), Keys: r.file.Keys,
		RunMedium: r.c.Medium == "run", Timeout: 20 * time.Second, HTTP: &http.Client{Transport: transport}}
	if r.c.Keys == "none" {
		o.Keys = nil
	}
	if r.c.Timeout > 0 {
		o.Timeout = time.Duration(r.c.Timeout) * time.Millisecond
	}
	if r.client, err = New(o); err != nil {
		return err
	}
	r.client.http.now = func() time.Time { return r.clock }
	r.client.http.sleep = func(_ context.Context, d time.Duration) error {
		r.outcome.Waits = append(r.outcome.Waits, int(d.Milliseconds()))
		r.clock = r.clock.Add(d)
		return nil
	}
	return nil
}

// ran counts a call of the guarded function, and compares its argument with the original intent.
func (r *run) ran(given any, original json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Ran++
	got, err := canon.Marshal(given)
	if err != nil {
		return err
	}
	want, err := canon.Canonical(original)
	if err != nil {
		return err
	}
	r.outcome.Unchanged = r.outcome.Unchanged && bytes.Equal(got, want)
	if r.c.Fn == "throws" {
		return errOwn
	}
	return nil
}

func (r *run) do(t *testing.T) error {
	t.Helper()
	ctx := t.Context()
	switch r.c.Do {
	case "gate", "require":
		return r.gate(ctx, t)
	case "pay":
		_, err := r.client.Pay(ctx, Payment{Method: http.MethodGet, URL: "https://api.weather.example/v1/forecast?city=Oslo", Subject: r.subject()}, r.sign)
		return err
	}
	d, original, err := r.decide(ctx, t)
	if err != nil {
		return err
	}
	fn := func(_ context.Context, intent Intent, _ *Evidence) error { return r.ran(intent, original) }
	if r.c.Again == "atOnce" {
		other := make(chan error)
		go func() { other <- d.Execute(ctx, fn) }()
		return errors.Join(d.Execute(ctx, fn), <-other)
	}
	if err := d.Execute(ctx, fn); err != nil {
		return err
	}
	switch r.c.Again {
	case "execute":
		return d.Execute(ctx, fn)
	case "decide":
		again, _, err := r.decide(ctx, t)
		if err != nil {
			return err
		}
		return again.Execute(ctx, fn)
	}
	return nil
}

func (r *run) gate(ctx context.Context, t *testing.T) error {
	t.Helper()
	original := r.file.Actions[cmp.Or(r.c.Action, "command")]
	var a Action
	if err := json.Unmarshal(original, &a); err != nil {
		t.Fatal(err)
	}
	v, err := r.client.Gate(ctx, a)
	if err != nil {
		return err
	}
	if r.c.Do == "gate" {
		return v.Run(func(a Action) error { return r.ran(a, original) })
	}
	if a, err = v.Require(); err != nil {
		return err
	}
	return r.ran(a, original)
}

func (r *run) subject() Subject {
	switch r.c.Key {
	case "":
		return Subject{RunID: "run-1", IdempotencyKey: "order-1"}
	case "none":
		return Subject{RunID: "run-1"}
	}
	return Subject{RunID: "run-1", IdempotencyKey: r.c.Key}
}

func (r *run) decide(ctx context.Context, t *testing.T) (*Decision, json.RawMessage, error) {
	t.Helper()
	name := cmp.Or(r.c.Intent, "tool")
	original := r.file.Intents[name]
	var arguments struct {
		ToolArguments jsontext.Value `json:"toolArguments"`
	}
	var intent Intent
	if json.Unmarshal(original, &intent) != nil || json.Unmarshal(original, &arguments) != nil {
		t.Fatal(name)
	}
	intent.ToolArguments = arguments.ToolArguments
	d, err := r.client.Decide(ctx, intent, r.subject())
	copy(arguments.ToolArguments, "null                                        ") // changes after the call must have no effect
	if err == nil && r.c.Do == "approved" {
		wait := 15 * time.Minute
		if r.c.Wait > 0 {
			wait = time.Duration(r.c.Wait) * time.Millisecond
		}
		err = d.Approved(ctx, wait)
	}
	return d, original, err
}

// sign is the signer of a case. It may be honest, or misbehave as the case requires.
func (r *run) sign(_ context.Context, required jsontext.Value) (jsontext.Value, error) {
	r.outcome.Ran++
	if r.c.Signer == "throws" {
		return nil, errLocked
	}
	var asked struct {
		Resource json.RawMessage
		Accepts  []map[string]any
	}
	if err := json.Unmarshal(required, &asked); err != nil {
		return nil, err
	}
	const elsewhere = "0x0000000000000000000000000000000000000001"
	accepted := asked.Accepts[0]
	authorization := map[string]any{"from": elsewhere, "to": accepted["payTo"], "value": accepted["amount"], "validAfter": "0", "validBefore": "1800000300", "nonce": "0x00"}
	payload := map[string]any{"signature": "0x00", "authorization": authorization}
	switch r.c.Signer {
	case "otherOffer":
		accepted["asset"] = elsewhere
	case "otherRecipient":
		authorization["to"] = elsewhere
	case "otherAmount":
		authorization["value"] = "2500000"
	case "unreadable":
		payload = map[string]any{"transaction": "AAAA"}
	}
	return json.Marshal(map[string]any{"x402Version": 2, "accepted": accepted, "resource": asked.Resource, "payload": payload})
}

// TestIntentIsThatOfTheContract checks that Intent has the members that the contract defines.
func TestIntentIsThatOfTheContract(t *testing.T) {
	members := func(of reflect.Type) (names []string) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
		return names
	}
	got, want := members(reflect.TypeFor[Intent]()), members(reflect.TypeFor[assurance.IntentInput]())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, the contract has %v", got, want)
	}
}

func TestWhatNobodyMadeRefuses(t *testing.T) {
	if err := (Verdict{}).Run(func(Action) error { t.Error("it ran"); return nil }); err == nil {
		t.Error("the zero Verdict runs")
	}
	for _, d := range []*Decision{nil, {}} {
		if err := d.Execute(t.Context(), func(context.Context, Intent, *Evidence) error { t.Error("it ran"); return nil }); err == nil {
			t.Error("a decision that nobody made is executed")
		}
	}
}

// TestPanicIsReported checks that a panic of the function propagates, and that its receipt reports
// a failure.
func TestPanicIsReported(t *testing.T) {
	address, file := serve(t)
	base, end := begin(t, address, "decide: the function throws, and the receipt says failed")
	r := &run{file: file, outcome: conformance.Outcome{Unchanged: true, Ran: 1, Error: "fn"}}
	if err := r.make(t, redirected{base, http.DefaultTransport}); err != nil {
		t.Fatal(err)
	}
	d, _, err := r.decide(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not go on")
			}
		}()
		_ = d.Execute(t.Context(), func(context.Context, Intent, *Evidence) error { panic("the function's own") })
	}()
	end(r.outcome)
}

func TestAddressMustBeSafe(t *testing.T) {
	for address, good := range map[string]bool{
		"https://countersign.example": true, "http://127.0.0.1:8080": true, "http://localhost:8080/": true, "http://[::1]:8080": true,
		"http://countersign.example": false, "ftp://127.0.0.1": false, "": false, "countersign.example": false, "http://127.0.0.1.example": false,
	} {
		if _, err := New(Options{URL: address}); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
