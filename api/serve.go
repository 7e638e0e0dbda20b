package api

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
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/api/schema"

	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// handle is the path of a request through one operation.
func (s *Server) handle(op *operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// An append once begun is finished whatever becomes of the client.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), op.timeout(len(r.Header[x402.HeaderSignature]) > 0))
		defer cancel()
		c := &call{op: op, request: r.WithContext(ctx), vars: mux.Vars(r)}
		if op.anyOrigin() {
			expose(w.Header())
		}
		result, err := s.pass(w, c)
		if kept := s.sessions.Keep(w, c.Session); err == nil {
			err = kept
		}
		if err != nil {
			if challenge := credential.ChallengeOf(s.app.BaseURL, r, op.access, err); challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			if op.oauth != "" {
				err = &oauthRefusal{err, op.oauth}
			}
			s.fail(w, r, op.bareErrors, err)
			return
		}
		s.reply(w, r, op, result)
	}
}

// toolCall is what an MCP tool call brings instead of a path and a body.
type toolCall struct {
	vars      map[string]string // of the operation's path
	query     url.Values
	arguments []byte         // as sent, for an operation that takes a body
	payment   jsontext.Value // of _meta["x402/payment"]; nil for none
}

// tool takes an MCP tool call through the steps of its operation, the same as
// over HTTP. The request is the one that carried the message: its credential, its
// Idempotency-Key and its address count; its cookies, PAYMENT-SIGNATURE and
// If-None-Match, which name no tool, do not. What an error becomes, refused says.
func (s *Server) tool(r *http.Request, op *operation, t toolCall) (reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), op.timeout(t.payment != nil))
	defer cancel()
	inner := r.Clone(ctx)
	inner.Method, inner.Body, inner.ContentLength = op.method, http.NoBody, 0
	inner.URL = &url.URL{Path: op.path, RawQuery: t.query.Encode()}
	for _, name := range []string{"Cookie", x402.HeaderSignature, x402.HeaderV1, "If-None-Match", "Accept-Encoding"} {
		inner.Header.Del(name)
	}
	if t.vars == nil {
		t.vars = map[string]string{}
	}
	return s.pass(nil, &call{op: op, request: inner, tool: &t, vars: t.vars})
}

// pass takes a call through its steps; the first refusal is the answer.
func (s *Server) pass(w http.ResponseWriter, c *call) (reply, error) {
	end := s.step(c, "serve")
	err := s.serve(c)
	end()
	if limited := s.mayCall(c, 1); limited != nil {
		return reply{}, limited
	}
	if err == nil {
		end = s.step(c, "admit")
		err = s.admit(c)
		end()
	}
	if err == nil {
		end = s.step(c, "decode")
		err = s.decode(w, c)
		end()
	}
	if err == nil && c.op.access.Kind == credential.Client {
		err = s.serveClient(c)
	}
	var answer reply
	if err == nil {
		end = s.step(c, "run")
		answer, err = c.op.run(c)
		end()
	}
	if err != nil {
		return reply{}, s.asDemand(c, err)
	}
	return answer, nil
}

// serve finds out who is calling. Where something is sold, a payment comes before
// all other credentials.
func (s *Server) serve(c *call) error {
	if c.op.tries != nil && !s.rates.allow(*c.op.tries, s.network(c.request)) {
		return policy.Refuse(codeRateLimited, "", "too many tries from this network, try again in a minute")
	}
	if err := s.servePrice(c); err != nil {
		return err
	}
	if c.op.priced() {
		if paying, err := s.servePayment(c); paying || err != nil {
			return err
		}
	}
	var err error
	c.Caller, err = s.credentials.Read(c.request, c.op.access)
	return err
}

// serveClient finds out which OAuth client is calling. It is the one credential that
// may stand in the body (RFC 6749, section 2.3.1), and so is read behind it.
func (s *Server) serveClient(c *call) error {
	var body credential.ClientSecret
	err := json.Unmarshal(c.body, &body)
	if err == nil {
		c.Client, err = s.credentials.ReadClient(c.request, body)
	}
	return err
}

// servePrice finds out what is for sale.
func (s *Server) servePrice(c *call) error {
	switch {
	case c.op.service != nil:
		c.sale = sale{c.op.service.PriceCents, c.op.service.Summary}
	case c.op.sells != nil:
		var err error
		c.sale, err = c.op.sells(c)
		return err
	}
	return nil
}

// admit decides whether the caller may make the call and what pays for it.
func (s *Server) admit(c *call) (err error) {
	switch {
	case c.op.access.Kind == credential.Member:
		c.Principal, err = s.app.Permit(c.request.Context(), c.Principal, c.op.access.Right)
		return err
	case c.op.priced():
		return s.admitPaying(c)
	case c.op.access.Kind == credential.KeyHolder && c.Means != credential.ByKey && c.Means != credential.ByAgent:
		return policy.Refuse(ground.CodeUnauthorized, "", "an API key is required")
	}
	return nil
}

// admitPaying answers who has nothing to pay with, before the body is read.
func (s *Server) admitPaying(c *call) error {
	able := c.op.service != nil
	switch c.Means {
	case credential.ByPayment:
		return nil
	case credential.ByKey:
	case credential.ByAgent:
		if able {
			var err error
			if able, err = s.app.CanPay(c.request.Context(), c.Agent); err != nil {
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

// priced says whether a call costs anything.
func (op *operation) priced() bool { return op.service != nil || op.sells != nil }

// timeout of a call: one that may have to wait for a settlement has longer.
func (op *operation) timeout(paying bool) time.Duration {
	if op.priced() && paying {
		return paidTimeout
	}
	return handlerTimeout
}

// decode reads the body of an operation that takes one.
func (s *Server) decode(w http.ResponseWriter, c *call) error {
	var err error
	if c.idempotencyKey, err = idempotencyKey(c.request.Header); err != nil {
		return err
	}
	if c.op.anew && c.idempotencyKey != "" {
		return policy.Refuse(codeInvalidBody, "", "Idempotency-Key is not taken here, since each call makes something new: send the call without it, and end what you did not mean to keep")
	}
	if c.op.input == nil {
		return nil
	}
	if c.op.oauth != "" {
		if c.body, err = readOAuth(w, c.request, c.op); err == nil {
			err = c.op.schema.Validate(c.body)
		}
		return err
	}
	text, err := c.readBody(w)
	if err != nil {
		return err
	}
	if large := len(text) / bodyCountsAs; large > 0 {
		if err := s.mayCall(c, large); err != nil {
			return err
		}
	}
	if c.op.parses {
		c.text = text
		return nil
	}
	if err := s.check(c, text); err != nil {
		return err
	}
	return c.sameKey(c.body)
}

// check is the strict parse and the schema.
func (s *Server) check(c *call, text []byte) error {
	return s.app.Within(c.request.Context(), len(text), func() (err error) {
		if c.op.service != nil {
			text = c.op.service.WithoutNUL(text)
		}
		if c.body, err = canon.Canonical(text); err != nil {
			return err
		}
		if c.tool != nil && c.op.keyBeside() {
			if text, err = c.takeKey(text); err != nil {
				return err
			}
		}
		return c.op.schema.Validate(text)
	})
}

// keyBeside says whether an operation takes its idempotency key beside the body: in a
// header over HTTP, and among its arguments over MCP, where a model sets no header.
func (op *operation) keyBeside() bool {
	if op.service == nil {
		return false
	}
	properties, _ := op.schema.Document["properties"].(object)
	return properties["idempotencyKey"] == nil
}

// keyArgument is the idempotency key of a tool call whose operation takes it in a header.
type keyArgument struct {
	IdempotencyKey string `json:"idempotencyKey,omitempty" jsonschema:"minLength=1,maxLength=200"`
}

// takeKey takes the idempotency key out of a tool's arguments. What is left is the
// body, and what it is hashed as, like over HTTP.
func (c *call) takeKey(text []byte) (rest []byte, err error) {
	const name = "idempotencyKey"
	if !bytes.Contains(c.body, []byte(`"`+name+`"`)) {
		return text, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(c.body, &members); err != nil || members[name] == nil {
		return text, nil // the schema says what is wrong, or it stands deeper
	}
	key, err := canon.Marshal(object{name: members[name]})
	if err != nil {
		return nil, err
	}
	check, err := schema.New(reflect.TypeFor[keyArgument]())
	if err != nil {
		return nil, err
	}
	if err := check.Validate(key); err != nil {
		return nil, err
	}
	if err := c.sameKey(key); err != nil {
		return nil, err
	}
	delete(members, name)
	c.body, err = canon.Marshal(members)
	return c.body, err
}

// readBody is the body as it was sent: of a tool call, its arguments.
func (c *call) readBody(w http.ResponseWriter) ([]byte, error) {
	if c.tool == nil {
		return readBody(w, c.request, c.op.limit, c.op.optional)
	}
	if c.op.optional && len(c.tool.arguments) == 0 {
		return []byte("{}"), nil
	}
	if int64(len(c.tool.arguments)) > c.op.limit {
		return nil, tooLarge(c.op.limit)
	}
	return c.tool.arguments, nil
}

func tooLarge(limit int64) error {
	return policy.Refuse(codeTooLarge, "", "request body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
}

var errMedia = policy.Refuse(codeInvalidBody, "", "content type must be application/json")

// readBody checks size before form, as the contract orders them: what is too large
// is refused whatever it claims to be.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, optional bool) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return nil, tooLarge(limit)
	case err != nil:
		return nil, unreadBecause(err)
	case optional && len(text) == 0:
		return []byte("{}"), nil
	}
	media, params, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ","))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, errMedia
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return nil, policy.Refuse(codeInvalidBody, "", "content encoding is not supported")
	}
	return text, nil
}

func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if n := utf8.RuneCountInString(values[0]); len(values) > 1 || n < 1 || n > maxIdempotencyKey || normal.Text(values[0], false) != nil {
		return "", policy.Refuse(codeInvalidBody, "", "Idempotency-Key must be given once, with 1 to 200 characters that show")
	}
	return values[0], nil
}

// sameKey makes the header Idempotency-Key and the member idempotencyKey of an object one.
func (c *call) sameKey(of []byte) error {
	if !bytes.Contains(of, []byte(`"idempotencyKey"`)) {
		return nil
	}
	var member struct {
		Key string `json:"idempotencyKey"`
	}
	if err := json.Unmarshal(of, &member); err != nil || member.Key == "" {
		return nil // the schema has spoken; it stands deeper, or is null
	}
	if normal.Text(member.Key, false) != nil {
		return policy.Refuse("out_of_range", "/idempotencyKey", "idempotencyKey must not have white space at an edge or characters that do not show")
	}
	if c.idempotencyKey != "" && c.idempotencyKey != member.Key {
		return policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	c.idempotencyKey = member.Key
	return nil
}

// reply writes every answer that is not an error.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, op *operation, result reply) {
	body := result.body
	if body == nil {
		var err error
		if body, err = canon.Marshal(result.value); err != nil {
			s.fail(w, r, op.bareErrors, err)
			return
		}
	}
	h := w.Header()
	for name, values := range result.header {
		if name == "Vary" { // each part of the answer says what it depends on
			values = append(h[name], values...)
		}
		h[name] = values
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	media := result.media
	if media == "" {
		media = "application/json"
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body))) // without it what is longer than 2 KB would be sent in chunks
	status := result.status
	if status == 0 {
		status = op.success
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
