// Package client asks Countersign for permission before a program acts. It is designed so that a
// program with a mistake stops instead of acting without permission.
//
// It returns no boolean that a program could forget to check. Gate judges a command; the program
// runs the command through Verdict.Run or after Verdict.Require. Decide requests a signed decision
// on a payment (x402) or a tool call (MCP). Decision.Execute then calls a function, once, with the
// intent that was decided, and reports the outcome. Pay sends a request to a seller and pays by
// x402.
//
// Errors of the program's own function or signer are returned unchanged; every other error is an
// *Error. An *Error means that nothing ran, with two exceptions. ReceiptMissing: the function ran,
// but its receipt was not recorded. PaymentUnconfirmed: Pay sent the payment, and the seller did
// not answer, redirected the request, or answered with 402 again.
//
//	verdict, err := c.Gate(ctx, client.Action{Command: "git status"})
//	if err != nil {
//		return err
//	}
//	return verdict.Run(func(a client.Action) error { return shell(a.Command) })
//
// The zero Verdict and the nil Decision refuse. So a program that ignores the error of Gate or
// Decide still stops.
//
// The clients for TypeScript and Python (api/clients) behave the same. The specification of this
// behaviour for all three is api/clients/conformance.
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

// Action is a command with the facts about where it runs.
type Action = actionrisk.Action

// Options configures a client.
type Options struct {
	URL    string // base URL of the service: https, or http on this machine
	APIKey string // API key for Gate: svck_...

	// For Decide and Pay. Token is an API token (svco_...) with the scopes assurance:decide,
	// assurance:receipt and assurance:read. OrgID is the organization that must have made the
	// decision. Keys contains the public keys that the client trusts: a JSON Web Key Set, as saved
	// from /.well-known/jwks.json of the service.
	Token string
	OrgID string
	Keys  []byte

	RunMedium bool          // Gate also permits actions of medium risk
	Offline   bool          // Gate evaluates in this process; URL may be empty
	Timeout   time.Duration // limit for one attempt; 0 means 10 s

	// HTTP sends the requests; nil means a client of its own. The client ignores Timeout and
	// CheckRedirect of HTTP, and follows no redirect.
	HTTP *http.Client
}

// Client calls the service. Several goroutines may use it at once.
type Client struct {
	options Options
	http    transport
	keys    keySet
	runID   string

	mu   sync.Mutex // protects used
	used map[string]bool
}

// New returns a client, or an error if the options are invalid.
func New(o Options) (*Client, error) {
	o.URL = strings.TrimRight(o.URL, "/")
	base, err := url.Parse(o.URL)
	onThisMachine := err == nil && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, base.Hostname())
	if !(err == nil && base.Scheme == "https") && !(onThisMachine && base.Scheme == "http") && !(o.Offline && o.URL == "") { // check: https
		return nil, misused("URL must use https, or http on this machine")
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
// without this member can be refused.
type verdictAnswer struct {
	Service          string   `json:"service"`
	Status           string   `json:"status"`
	ActionHash       string   `json:"actionHash"`
	Risk             string   `json:"risk"`
	RequiresApproval *bool    `json:"requiresApproval"`
	MatchedRuleIDs   []string `json:"matchedRuleIds"`
}

// Gate evaluates an action and returns the verdict on it.
func (c *Client) Gate(ctx context.Context, a Action) (Verdict, error) {
	text, err := c.judge(ctx, a)
	if err != nil {
		return Verdict{}, err
	}
	var v verdictAnswer
	if err := json.Unmarshal(text, &v); err != nil || v.Service != "action-safety-quick-gate" || v.Status != "scored" { // check: verdict
		return Verdict{}, notVerified("the answer is not a verdict")
	}
	if v.ActionHash != actionrisk.Hash(a) { // check: action
		return Verdict{}, notVerified("it belongs to another action")
	}
	if !slices.Contains([]string{"low", "medium", "high", "critical"}, v.Risk) || v.RequiresApproval == nil { // check: risk-known
		return Verdict{}, notVerified("it has an unknown risk")
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

// judge returns the gate's answer on an action. With Offline, the engine in this process computes
// it; otherwise the service does.
func (c *Client) judge(ctx context.Context, a Action) ([]byte, error) {
	body, err := canon.Marshal(a)
	if err != nil {
		return nil, misused("the action cannot be encoded as JSON")
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

// stopped returns the error of a verdict that stops the action. Its message explains to a model
// why, and what the model can do instead. If the text of the rule cannot be read, the message is
// shorter.
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
		". Do not try to do the same in another way; ask a person if it is needed."}
}

// rule returns the text of a rule, or empty strings if it cannot be read.
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

// Subject identifies who acts and for what purpose.
type Subject struct {
	RunID   string // id of the agent's run; empty means one that the client generated
	AgentID string
	Purpose string

	// IdempotencyKey identifies one intended purchase or call, such as an order number. A program
	// that restarts and gives the same key and RunID gets the same decision. Empty means a new
	// key, which retries repeat.
	IdempotencyKey string
}

// Decide requests a signed decision on a payment or a tool call, exactly as it will be executed.
// It copies the intent, so later changes to the argument have no effect.
func (c *Client) Decide(ctx context.Context, intent Intent, subject Subject) (*Decision, error) {
	if c.keys == nil || c.options.Token == "" || c.options.OrgID == "" { // check: configured
		return nil, misused("decisions need Token, OrgID and Keys")
	}
	decided, err := canon.Marshal(intent)
	if err != nil {
		return nil, misused("the intent cannot be encoded as JSON")
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
		return nil, misused("the request cannot be encoded as JSON")
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
		return nil, notVerified("it belongs to another organization")
	}
	if d.record.IdempotencyKeyHash != assurance.KeyHash(asked.IdempotencyKey) { // check: idempotency-key
		return nil, notVerified("it belongs to another request")
	}
	if accepted, err := canon.Canonical(d.record.Intent); err != nil || string(accepted) != string(asked.Intent) { // check: intent
		return nil, notVerified("it belongs to another intent")
	}
	if d.record.AssuranceActionHash != asked.ActionHash { // check: action-hash
		return nil, notVerified("its action hash belongs to another action")
	}
	return d, nil
}

// verified decodes the record of an envelope into a variable, and returns its text and hash. It
// returns an error if the record has another type or no signature of a trusted key.
func (c *Client) verified(envelope []byte, payloadType string, into any) (record jsontext.Value, hash string, err error) {
	var e seal.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil || e.Integrity.PayloadType != payloadType { // check: record-type
		return nil, "", notVerified("it is not a signed record of this type")
	}
	if !seal.Good(e.Examine(c.keys)) { // check: signature
		return nil, "", notVerified("it has no valid signature of a trusted key")
	}
	if err := json.Unmarshal(e.Record, into); err != nil {
		return nil, "", notVerified("it cannot be decoded")
	}
	return e.Record, e.Integrity.RecordHash, nil
}

func (c *Client) bearer() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.options.Token}}
}

// use marks a decision as executed. It returns false if it was marked before.
func (c *Client) use(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[id] {
		return false
	}
	c.used[id] = true
	return true
}

// release removes the mark of use, because nothing ran.
func (c *Client) release(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.used, id)
}
