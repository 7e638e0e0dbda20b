// Package request handles every request in the same steps, over HTTP and from an MCP tool call:
//
//	enter   assign an id, take a seat among the requests in progress, recover from panics, write a log line
//	serve   identify the caller: package credential verifies the credential, and a payment is checked against the price
//	admit   check whether this caller may make this call, and determine what pays for it
//	decode  read the body: limit, content type, one strict parse, the schema
//	run     call the operation's own function; a command appends before it answers
//	answer  one function writes answers, and one function writes errors
//
// The limits of callers and bodies, metrics and traces are here because they apply to every
// request. Nothing here depends on a particular operation.
package request

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	apipayments "github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Path runs calls through the steps that all operations share.
type Path struct {
	Commands    *services.Services // admits calls and determines what pays for them
	Payments    *apipayments.Payments
	Credentials *credential.Reader
	Callers     *Callers
	Answers     *Answers
	Telemetry   *Telemetry
}

// Handle returns the HTTP handler of an operation.
func (p *Path) Handle(o *op.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if o.AnyOrigin() {
			op.Expose(w.Header())
		}
		if answer, err := p.Do(w, r, o, nil); err != nil {
			p.Answers.Fail(w, r, o.BareErrors, err)
		} else {
			p.Answers.Reply(w, r, o, answer)
		}
	}
}

// Do runs a call through the steps of its operation. The first error ends it. A call comes over
// HTTP or from an MCP tool call. In a tool call, r is the HTTP request that contained the message:
// its credential, Idempotency-Key and address are used. Its cookies, PAYMENT-SIGNATURE and
// If-None-Match are ignored, because they belong to no particular tool.
func (p *Path) Do(w http.ResponseWriter, r *http.Request, o *op.Operation, tool *op.ToolCall) (op.Reply, error) {
	paying := len(r.Header[x402.HeaderSignature]) > 0
	if tool != nil {
		paying = tool.Payment != nil
	}
	// Finish an append that has begun, even if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), o.Timeout(paying))
	defer cancel()
	c := &op.Call{Op: o, Tool: tool}
	if tool == nil {
		c.Request, c.Vars = r.WithContext(ctx), mux.Vars(r)
	} else {
		c.Request, c.Vars = carried(ctx, r, o, tool), tool.Vars
	}

	end := p.Telemetry.step(c, "serve")
	err := p.serve(c)
	end()
	if limited := p.Callers.mayCall(c, 1); limited != nil {
		return op.Reply{}, p.leave(w, c, limited)
	}
	if err == nil {
		end = p.Telemetry.step(c, "admit")
		err = p.admit(c)
		end()
	}
	if err == nil {
		end = p.Telemetry.step(c, "decode")
		err = p.decode(w, c)
		end()
	}
	if err == nil && o.Access.Kind == credential.Client {
		err = p.serveClient(c)
	}
	var answer op.Reply
	if err == nil {
		end = p.Telemetry.step(c, "run")
		answer, err = o.Run(c)
		end()
	}
	if err != nil {
		answer, err = op.Reply{}, p.Payments.Refuse(c, err)
	}
	return answer, p.leave(w, c, err)
}

// leave ends a call. Over HTTP it sets the session cookie and the WWW-Authenticate header of a
// 401, and converts the error of an OAuth endpoint into OAuth's form.
func (p *Path) leave(w http.ResponseWriter, c *op.Call, err error) error {
	if c.Tool != nil {
		return err
	}
	if kept := p.Credentials.Sessions.Keep(w, c.Session); err == nil {
		err = kept
	}
	if err == nil {
		return nil
	}
	if challenge := credential.ChallengeOf(p.Commands.BaseURL, c.Request, c.Op.Access, err); challenge != "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if c.Op.OAuth != "" {
		err = OAuthRefusal(err, c.Op.OAuth)
	}
	return err
}

// carried returns the request of a tool call: a copy of the HTTP request that contained the
// message, with the method and the path of the operation.
func carried(ctx context.Context, r *http.Request, o *op.Operation, tool *op.ToolCall) *http.Request {
	inner := r.Clone(ctx)
	inner.Method, inner.Body, inner.ContentLength = o.Method, http.NoBody, 0
	inner.URL = &url.URL{Path: o.Path, RawQuery: tool.Query.Encode()}
	for _, name := range []string{"Cookie", x402.HeaderSignature, x402.HeaderV1, "If-None-Match", "Accept-Encoding"} {
		inner.Header.Del(name)
	}
	return inner
}

// serve identifies the caller. For priced operations, a payment takes precedence over all other
// credentials.
func (p *Path) serve(c *op.Call) error {
	if c.Op.Tries != nil && !p.Callers.Allow(*c.Op.Tries, c.Request) {
		return policy.Refuse(op.CodeRateLimited, "", "too many tries from this network, try again in a minute")
	}
	if err := servePrice(c); err != nil {
		return err
	}
	if c.Op.Priced() {
		if paying, err := p.Payments.Read(c); paying || err != nil {
			return err
		}
	}
	var err error
	c.Caller, err = p.Credentials.Read(c.Request, c.Op.Access)
	return err
}

// serveClient identifies the OAuth client. It runs after the body is read, because the body may
// contain the credential (RFC 6749, section 2.3.1).
func (p *Path) serveClient(c *op.Call) error {
	var body credential.ClientSecret
	err := json.Unmarshal(c.Body, &body)
	if err == nil {
		c.Client, err = p.Credentials.ReadClient(c.Request, body)
	}
	return err
}

// servePrice sets what the call buys and the price.
func servePrice(c *op.Call) error {
	switch {
	case c.Op.Service != nil:
		c.Sale = op.Sale{Cents: c.Op.Service.PriceCents, Description: c.Op.Service.Summary}
	case c.Op.Sells != nil:
		var err error
		c.Sale, err = c.Op.Sells(c)
		return err
	}
	return nil
}

// admit checks whether the caller may make the call: the member has the right, the key holder has
// a key, or, for a priced operation, the caller can pay.
func (p *Path) admit(c *op.Call) (err error) {
	switch {
	case c.Op.Access.Kind == credential.Member:
		c.Principal, err = p.Commands.Organizations.Permit(c.Request.Context(), c.Principal, c.Op.Access.Right)
		return err
	case c.Op.Priced():
		return p.admitPaying(c)
	case c.Op.Access.Kind == credential.KeyHolder && c.Means != credential.ByKey && c.Means != credential.ByAgent:
		return policy.Refuse(ground.CodeUnauthorized, "", "an API key is required")
	}
	return nil
}

// admitPaying refuses a caller who cannot pay, before the body is read.
func (p *Path) admitPaying(c *op.Call) error {
	able := c.Op.Service != nil
	switch c.Means {
	case credential.ByPayment:
		return nil
	case credential.ByKey:
	case credential.ByAgent:
		if able {
			var err error
			if able, err = p.Commands.CanPay(c.Request.Context(), c.Agent); err != nil {
				return err
			}
		}
	default:
		able = false
	}
	if able {
		return nil
	}
	return &payments.PaymentRequired{}
}

// decode reads the idempotency key, and the body if the operation takes one.
func (p *Path) decode(w http.ResponseWriter, c *op.Call) error {
	var err error
	if c.IdempotencyKey, err = idempotencyKey(c.Request.Header); err != nil {
		return err
	}
	if c.Op.Creates && c.IdempotencyKey != "" {
		return policy.Refuse(op.CodeInvalidBody, "", "this operation does not support Idempotency-Key, because every call creates something new: send the call without the header, and revoke what you do not need")
	}
	if c.Op.Input == nil {
		return nil
	}
	if c.Op.OAuth != "" {
		if c.Body, err = readOAuth(w, c.Request, c.Op); err == nil {
			err = c.Op.Schema.Validate(c.Body)
		}
		return err
	}
	text, err := bodyOf(c, w)
	if err != nil {
		return err
	}
	if large := len(text) / op.BodyCountsAs; large > 0 {
		if err := p.Callers.mayCall(c, large); err != nil {
			return err
		}
	}
	if c.Op.Parses {
		c.Text = text
		return nil
	}
	if err := p.check(c, text); err != nil {
		return err
	}
	return sameKey(c, c.Body)
}

// check parses the body strictly and validates it against the schema.
func (p *Path) check(c *op.Call, text []byte) error {
	return p.Commands.Within(c.Request.Context(), len(text), func() (err error) {
		if c.Op.Service != nil {
			text = c.Op.Service.WithoutNUL(text)
		}
		if c.Body, err = canon.Canonical(text); err != nil {
			return err
		}
		if c.Tool != nil && c.Op.KeyOutsideBody() {
			if text, err = takeKey(c, text); err != nil {
				return err
			}
		}
		return c.Op.Schema.Validate(text)
	})
}

// takeKey removes the idempotency key from a tool's arguments. The rest is the body, and its hash
// equals that of the same body over HTTP.
func takeKey(c *op.Call, text []byte) (rest []byte, err error) {
	const name = "idempotencyKey"
	if !bytes.Contains(c.Body, []byte(`"`+name+`"`)) {
		return text, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(c.Body, &members); err != nil || members[name] == nil {
		return text, nil // the schema refuses the text, or the key is in an inner object
	}
	key, err := canon.Marshal(op.Object{name: members[name]})
	if err != nil {
		return nil, err
	}
	check, err := schema.New(reflect.TypeFor[op.KeyArgument]())
	if err != nil {
		return nil, err
	}
	if err := check.Validate(key); err != nil {
		return nil, err
	}
	if err := sameKey(c, key); err != nil {
		return nil, err
	}
	delete(members, name)
	c.Body, err = canon.Marshal(members)
	return c.Body, err
}

// bodyOf returns the body of a call as sent. The body of a tool call is its arguments.
func bodyOf(c *op.Call, w http.ResponseWriter) ([]byte, error) {
	if c.Tool == nil {
		return readBody(w, c.Request, c.Op.Limit, c.Op.Optional)
	}
	if c.Op.Optional && len(c.Tool.Arguments) == 0 {
		return []byte("{}"), nil
	}
	if int64(len(c.Tool.Arguments)) > c.Op.Limit {
		return nil, TooLarge(c.Op.Limit)
	}
	return c.Tool.Arguments, nil
}

// TooLarge returns the error for a body above the limit.
func TooLarge(limit int64) error {
	return policy.Refuse(op.CodeTooLarge, "", "request body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
}

var errMedia = policy.Refuse(op.CodeInvalidBody, "", "content type must be application/json")

// readBody reads a body. It checks the size before the content type, because the contract requires
// that order: a body above the limit is always refused as too large.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, optional bool) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, TooLarge(limit)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return nil, TooLarge(limit)
	case err != nil:
		return nil, UnreadBecause(err)
	case optional && len(text) == 0:
		return []byte("{}"), nil
	}
	media, params, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ","))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, errMedia
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return nil, policy.Refuse(op.CodeInvalidBody, "", "content encoding is not supported")
	}
	return text, nil
}

func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if n := utf8.RuneCountInString(values[0]); len(values) > 1 || n < 1 || n > op.MaxIdempotencyKey || normal.Text(values[0], false) != nil {
		return "", policy.Refuse(op.CodeInvalidBody, "", "Idempotency-Key must be given once, with 1 to 200 visible characters")
	}
	return values[0], nil
}

// sameKey uses the member idempotencyKey of a body as the call's key. It refuses a value that
// differs from the header Idempotency-Key.
func sameKey(c *op.Call, of []byte) error {
	if !bytes.Contains(of, []byte(`"idempotencyKey"`)) {
		return nil
	}
	var member struct {
		Key string `json:"idempotencyKey"`
	}
	if err := json.Unmarshal(of, &member); err != nil || member.Key == "" {
		return nil // the schema was checked before, so the key is null or in an inner object
	}
	if normal.Text(member.Key, false) != nil {
		return policy.Refuse("out_of_range", "/idempotencyKey", "idempotencyKey must not have white space at an end or invisible characters")
	}
	if c.IdempotencyKey != "" && c.IdempotencyKey != member.Key {
		return policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	c.IdempotencyKey = member.Key
	return nil
}
