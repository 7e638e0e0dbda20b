// Package client asks Countersign before a program acts, so that a program that is
// written carelessly stops instead of going on.
//
// There is no boolean to look at, and none to forget. Gate judges a command; the way to
// the command is Verdict.Run or Verdict.Require. Decide asks for a signed decision about
// a payment (x402) or a tool call (MCP); the way to it is Decision.Execute, which calls a
// function with the intent that was decided about, once, and reports the outcome.
// Pay asks a seller and pays by x402.
//
// An error of the program's own function or signer is passed on; every other error is an
// *Error. An *Error means that nothing ran, with two exceptions. ReceiptMissing: the
// function ran, and its receipt was not recorded. PaymentUnconfirmed: Pay sent the payment,
// and the seller did not answer it, redirected it or answered it with 402 again.
//
//	verdict, err := c.Gate(ctx, client.Action{Command: "git status"})
//	if err != nil {
//		return err
//	}
//	return verdict.Run(func(a client.Action) error { return shell(a.Command) })
//
// The zero Verdict and the nil Decision refuse, so a program that ignores the error of
// Gate or Decide still stops.
//
// The clients for TypeScript and Python (api/clients) do the same; api/clients/conformance
// says once for all of them what that is.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/actionrisk"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

// Action is a command, and what is known of its surroundings.
type Action = actionrisk.Action

// Options are the settings of a client.
type Options struct {
	URL    string // address of the service: https, or http on this machine
	APIKey string // for Gate: svck_...

	// For Decide and Pay: a token (svco_...) with the scopes assurance:decide,
	// assurance:receipt and assurance:read, the organization that must have decided, and
	// the keys that are trusted to sign its decisions: a JSON Web Key Set, as saved from
	// /.well-known/jwks.json of the service.
	Token string
	OrgID string
	Keys  []byte

	RunMedium bool          // actions of medium risk run, too
	Offline   bool          // Gate judges in this process; URL may be empty
	Timeout   time.Duration // of one attempt; default 10 s

	// HTTP sends the requests; default: one of its own. Its Timeout and CheckRedirect are
	// not used: redirects are not followed.
	HTTP *http.Client
}

// Client is safe for several goroutines.
type Client struct {
	options Options
	http    transport
	keys    keySet
	runID   string

	mu   sync.Mutex // guards used
	used map[string]bool
}

// New makes a client.
func New(o Options) (*Client, error) {
	o.URL = strings.TrimRight(o.URL, "/")
	base, err := url.Parse(o.URL)
	onThisMachine := err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, base.Hostname())
	if !(err == nil && base.Scheme == "https") && !(onThisMachine && base.Scheme == "http") && !(o.Offline && o.URL == "") { // check: https
		return nil, misused("URL must begin with https, or name this machine")
	}
	c := &Client{options: o, http: newTransport(o), runID: "run-" + rand.Text(), used: map[string]bool{}}
	if o.Keys != nil {
		if c.keys, err = readKeys(o.Keys); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// verdictAnswer is the answer of the gate. RequiresApproval is a pointer, so that an answer
// without it can be refused.
type verdictAnswer struct {
	Service          string   `json:"service"`
	Status           string   `json:"status"`
	ActionHash       string   `json:"actionHash"`
	Risk             string   `json:"risk"`
	RequiresApproval *bool    `json:"requiresApproval"`
	MatchedRuleIDs   []string `json:"matchedRuleIds"`
}

// Gate asks about an action.
func (c *Client) Gate(ctx context.Context, a Action) (Verdict, error) {
	text, err := c.judge(ctx, a)
	if err != nil {
		return Verdict{}, err
	}
	var v verdictAnswer
	if err := json.Unmarshal(text, &v); err != nil || v.Service != "action-safety-quick-gate" || v.Status != "scored" { // check: verdict
		return Verdict{}, notVerified("it is not a verdict")
	}
	if v.ActionHash != actionrisk.Hash(a) { // check: action
		return Verdict{}, notVerified("it is about another action")
	}
	if !slices.Contains([]string{"low", "medium", "high", "critical"}, v.Risk) || v.RequiresApproval == nil { // check: risk-known
		return Verdict{}, notVerified("it has no risk that is known")
	}
	stopped := false
	if v.Risk != "low" && !(v.Risk == "medium" && c.options.RunMedium) { // check: risk
		stopped = true
	}
	if *v.RequiresApproval { // check: requires-approval
		stopped = true
	}
	verdict := Verdict{Risk: v.Risk, RuleIDs: v.MatchedRuleIDs, action: a, judged: true}
	if stopped {
		verdict.stopped = c.stopped(ctx, v)
	}
	return verdict, nil
}

// judge gives the answer of the gate about an action. With Offline the engine in this
// process makes it, otherwise the service.
func (c *Client) judge(ctx context.Context, a Action) ([]byte, error) {
	body, err := canon.Marshal(a)
	if err != nil {
		return nil, misused("the action has no JSON form")
	}
	if c.options.Offline {
		answer, err := actionrisk.Quick.Evaluate(body)
		if err != nil {
			return nil, &Error{Code: Refused, Message: "the gate refused the action, and nothing was run: " + err.Error(), Err: err}
		}
		return answer.Body, nil
	}
	header := http.Header{"Idempotency-Key": {rand.Text()}}
	if c.options.APIKey != "" {
		header.Set("X-API-Key", c.options.APIKey)
	}
	_, text, err := c.send(ctx, http.MethodPost, "/api/agent-services/action-safety/quick", header, body, http.StatusOK)
	return text, err
}

// stopped makes the error of a verdict that stops. Its message tells a model why, and what
// it can do instead. If the text of the rule cannot be read, the message is shorter.
func (c *Client) stopped(ctx context.Context, v verdictAnswer) *Error {
	why := "its risk is " + v.Risk
	if len(v.MatchedRuleIDs) > 0 {
		why += " (" + shown(strings.Join(v.MatchedRuleIDs, ", ")) + ")"
		if title, reason, instead := c.rule(ctx, v.MatchedRuleIDs[0]); title != "" {
			why += ". " + shown(title) + ": " + shown(reason)
			if instead != "" {
				why += ". Instead: " + shown(instead)
			}
		}
	}
	return &Error{Code: Stopped, Message: "Countersign stopped this action and nothing was run: " + why +
		". Do not try to reach the same in another way; ask a person if it is needed."}
}

// rule reads the text of a rule. The results are empty if it cannot be read.
func (c *Client) rule(ctx context.Context, id string) (title, why, instead string) {
	if c.options.Offline {
		r, _ := actionrisk.RecordOf(id)
		return r.Title, r.Why, r.Instead
	}
	got, err := c.http.once(ctx, request{method: http.MethodGet, url: c.options.URL + "/api/rules/" + url.PathEscape(id)})
	var said struct{ Title, Why, Instead string }
	if err != nil || json.Unmarshal(got.body, &said, json.MatchCaseInsensitiveNames(true)) != nil {
		return "", "", ""
	}
	return said.Title, said.Why, said.Instead
}

// Subject says who acts, and why.
type Subject struct {
	RunID   string // of the agent's run; default: one for the client
	AgentID string
	Purpose string

	// IdempotencyKey names one intended purchase or call, such as the number of an order.
	// A program that gives the same key and the same RunID after a restart gets the same
	// decision. Default: a new key, which stays the same over retries.
	IdempotencyKey string
}

// Decide asks for a signed decision about a payment or a tool call, exactly as it is to be
// executed. The intent is copied: later changes of it change nothing.
func (c *Client) Decide(ctx context.Context, intent Intent, subject Subject) (*Decision, error) {
	if c.keys == nil || c.options.Token == "" || c.options.OrgID == "" { // check: configured
		return nil, misused("decisions need Token, OrgID and Keys")
	}
	decided, err := canon.Marshal(intent)
	if err != nil {
		return nil, misused("the intent has no JSON form")
	}
	protocol := assurance.MCP
	if intent.ResourceURL != "" {
		protocol = assurance.X402
	}
	body, err := canon.Marshal(map[string]any{
		"protocol": protocol, "idempotencyKey": cmp.Or(subject.IdempotencyKey, rand.Text()), "intent": jsontext.Value(decided),
		"subject": assurance.Subject{RunID: cmp.Or(subject.RunID, c.runID), AgentID: subject.AgentID, Purpose: subject.Purpose},
	})
	if err != nil {
		return nil, misused("the request has no JSON form")
	}
	asked, err := assurance.ParseDecision(body)
	if err != nil {
		return nil, &Error{Code: Misused, Message: err.Error(), Err: err}
	}
	_, text, err := c.send(ctx, http.MethodPost, "/api/assurance/decisions", c.bearer(), body, http.StatusOK, http.StatusCreated)
	if err != nil {
		return nil, err
	}
	d := &Decision{client: c, intent: decided}
	if d.signed, d.hash, err = c.verified(text, assurance.DecisionType, &d.record); err != nil {
		return nil, err
	}
	if d.record.OrgID != c.options.OrgID { // check: organization
		return nil, notVerified("it is of another organization")
	}
	if d.record.IdempotencyKeyHash != assurance.KeyHash(asked.IdempotencyKey) { // check: idempotency-key
		return nil, notVerified("it answers another request")
	}
	if accepted, err := canon.Canonical(d.record.Intent); err != nil || string(accepted) != string(asked.Intent) { // check: intent
		return nil, notVerified("it is about another intent")
	}
	if d.record.AssuranceActionHash != asked.ActionHash { // check: action-hash
		return nil, notVerified("its action hash is that of another action")
	}
	return d, nil
}

// verified reads the record of an envelope, and gives its text and its hash. A record of
// another type, or without the signature of a trusted key, is an error.
func (c *Client) verified(envelope []byte, payloadType string, into any) (record jsontext.Value, hash string, err error) {
	var e seal.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil || e.Integrity.PayloadType != payloadType { // check: record-type
		return nil, "", notVerified("it is not a signed record of this type")
	}
	if !seal.Good(e.Examine(c.keys)) { // check: signature
		return nil, "", notVerified("no trusted key has signed it, or it was changed afterwards")
	}
	if err := json.Unmarshal(e.Record, into); err != nil {
		return nil, "", notVerified("it cannot be read")
	}
	return e.Record, e.Integrity.RecordHash, nil
}

func (c *Client) bearer() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.options.Token}}
}

// use marks a decision as executed. It returns false if the decision was executed before.
func (c *Client) use(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[id] {
		return false
	}
	c.used[id] = true
	return true
}

// release takes the mark of use away again, because nothing ran.
func (c *Client) release(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, id)
}
