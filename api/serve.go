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
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// handle is the path of a request through one operation.
func (s *Server) handle(o *op.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// An append once begun is finished whatever becomes of the client.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), o.Timeout(len(r.Header[x402.HeaderSignature]) > 0))
		defer cancel()
		c := &op.Call{Op: o, Request: r.WithContext(ctx), Vars: mux.Vars(r)}
		if o.AnyOrigin() {
			op.Expose(w.Header())
		}
		result, err := s.pass(w, c)
		if kept := s.sessions.Keep(w, c.Session); err == nil {
			err = kept
		}
		if err != nil {
			if challenge := credential.ChallengeOf(s.app.BaseURL, r, o.Access, err); challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			if o.OAuth != "" {
				err = &oauthRefusal{err, o.OAuth}
			}
			s.fail(w, r, o.BareErrors, err)
			return
		}
		s.reply(w, r, o, result)
	}
}

// tool takes an MCP tool call through the steps of its operation, the same as
// over HTTP. The request is the one that carried the message: its credential, its
// Idempotency-Key and its address count; its cookies, PAYMENT-SIGNATURE and
// If-None-Match, which name no tool, do not. What an error becomes, refused says.
func (s *Server) tool(r *http.Request, o *op.Operation, t op.ToolCall) (op.Reply, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), o.Timeout(t.Payment != nil))
	defer cancel()
	inner := r.Clone(ctx)
	inner.Method, inner.Body, inner.ContentLength = o.Method, http.NoBody, 0
	inner.URL = &url.URL{Path: o.Path, RawQuery: t.Query.Encode()}
	for _, name := range []string{"Cookie", x402.HeaderSignature, x402.HeaderV1, "If-None-Match", "Accept-Encoding"} {
		inner.Header.Del(name)
	}
	if t.Vars == nil {
		t.Vars = map[string]string{}
	}
	return s.pass(nil, &op.Call{Op: o, Request: inner, Tool: &t, Vars: t.Vars})
}

// pass takes a call through its steps; the first refusal is the answer.
func (s *Server) pass(w http.ResponseWriter, c *op.Call) (op.Reply, error) {
	end := s.step(c, "serve")
	err := s.serve(c)
	end()
	if limited := s.mayCall(c, 1); limited != nil {
		return op.Reply{}, limited
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
	if err == nil && c.Op.Access.Kind == credential.Client {
		err = s.serveClient(c)
	}
	var answer op.Reply
	if err == nil {
		end = s.step(c, "run")
		answer, err = c.Op.Run(c)
		end()
	}
	if err != nil {
		return op.Reply{}, s.asDemand(c, err)
	}
	return answer, nil
}

// serve finds out who is calling. Where something is sold, a payment comes before
// all other credentials.
func (s *Server) serve(c *op.Call) error {
	if c.Op.Tries != nil && !s.rates.Allow(*c.Op.Tries, s.network(c.Request)) {
		return policy.Refuse(op.CodeRateLimited, "", "too many tries from this network, try again in a minute")
	}
	if err := s.servePrice(c); err != nil {
		return err
	}
	if c.Op.Priced() {
		if paying, err := s.servePayment(c); paying || err != nil {
			return err
		}
	}
	var err error
	c.Caller, err = s.credentials.Read(c.Request, c.Op.Access)
	return err
}

// serveClient finds out which OAuth client is calling. It is the one credential that
// may stand in the body (RFC 6749, section 2.3.1), and so is read behind it.
func (s *Server) serveClient(c *op.Call) error {
	var body credential.ClientSecret
	err := json.Unmarshal(c.Body, &body)
	if err == nil {
		c.Client, err = s.credentials.ReadClient(c.Request, body)
	}
	return err
}

// servePrice finds out what is for sale.
func (s *Server) servePrice(c *op.Call) error {
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

// admit decides whether the caller may make the call and what pays for it.
func (s *Server) admit(c *op.Call) (err error) {
	switch {
	case c.Op.Access.Kind == credential.Member:
		c.Principal, err = s.app.Permit(c.Request.Context(), c.Principal, c.Op.Access.Right)
		return err
	case c.Op.Priced():
		return s.admitPaying(c)
	case c.Op.Access.Kind == credential.KeyHolder && c.Means != credential.ByKey && c.Means != credential.ByAgent:
		return policy.Refuse(ground.CodeUnauthorized, "", "an API key is required")
	}
	return nil
}

// admitPaying answers who has nothing to pay with, before the body is read.
func (s *Server) admitPaying(c *op.Call) error {
	able := c.Op.Service != nil
	switch c.Means {
	case credential.ByPayment:
		return nil
	case credential.ByKey:
	case credential.ByAgent:
		if able {
			var err error
			if able, err = s.app.CanPay(c.Request.Context(), c.Agent); err != nil {
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

// decode reads the body of an operation that takes one.
func (s *Server) decode(w http.ResponseWriter, c *op.Call) error {
	var err error
	if c.IdempotencyKey, err = idempotencyKey(c.Request.Header); err != nil {
		return err
	}
	if c.Op.Anew && c.IdempotencyKey != "" {
		return policy.Refuse(op.CodeInvalidBody, "", "Idempotency-Key is not taken here, since each call makes something new: send the call without it, and end what you did not mean to keep")
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
		if err := s.mayCall(c, large); err != nil {
			return err
		}
	}
	if c.Op.Parses {
		c.Text = text
		return nil
	}
	if err := s.check(c, text); err != nil {
		return err
	}
	return sameKey(c, c.Body)
}

// check is the strict parse and the schema.
func (s *Server) check(c *op.Call, text []byte) error {
	return s.app.Within(c.Request.Context(), len(text), func() (err error) {
		if c.Op.Service != nil {
			text = c.Op.Service.WithoutNUL(text)
		}
		if c.Body, err = canon.Canonical(text); err != nil {
			return err
		}
		if c.Tool != nil && c.Op.KeyBeside() {
			if text, err = takeKey(c, text); err != nil {
				return err
			}
		}
		return c.Op.Schema.Validate(text)
	})
}

// takeKey takes the idempotency key out of a tool's arguments. What is left is the
// body, and what it is hashed as, like over HTTP.
func takeKey(c *op.Call, text []byte) (rest []byte, err error) {
	const name = "idempotencyKey"
	if !bytes.Contains(c.Body, []byte(`"`+name+`"`)) {
		return text, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(c.Body, &members); err != nil || members[name] == nil {
		return text, nil // the schema says what is wrong, or it stands deeper
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

// bodyOf reads the body of a call as it was sent: of a tool call, its arguments.
func bodyOf(c *op.Call, w http.ResponseWriter) ([]byte, error) {
	if c.Tool == nil {
		return readBody(w, c.Request, c.Op.Limit, c.Op.Optional)
	}
	if c.Op.Optional && len(c.Tool.Arguments) == 0 {
		return []byte("{}"), nil
	}
	if int64(len(c.Tool.Arguments)) > c.Op.Limit {
		return nil, tooLarge(c.Op.Limit)
	}
	return c.Tool.Arguments, nil
}

func tooLarge(limit int64) error {
	return policy.Refuse(op.CodeTooLarge, "", "request body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
}

var errMedia = policy.Refuse(op.CodeInvalidBody, "", "content type must be application/json")

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
		return "", policy.Refuse(op.CodeInvalidBody, "", "Idempotency-Key must be given once, with 1 to 200 characters that show")
	}
	return values[0], nil
}

// sameKey makes the header Idempotency-Key and the member idempotencyKey of an object one.
func sameKey(c *op.Call, of []byte) error {
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
		return policy.Refuse("out_of_range", "/idempotencyKey", "idempotencyKey must not have white space at an end or invisible characters")
	}
	if c.IdempotencyKey != "" && c.IdempotencyKey != member.Key {
		return policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	c.IdempotencyKey = member.Key
	return nil
}

// reply writes every answer that is not an error.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, o *op.Operation, result op.Reply) {
	body := result.Body
	if body == nil {
		var err error
		if body, err = canon.Marshal(result.Value); err != nil {
			s.fail(w, r, o.BareErrors, err)
			return
		}
	}
	h := w.Header()
	for name, values := range result.Header {
		if name == "Vary" { // each part of the answer says what it depends on
			values = append(h[name], values...)
		}
		h[name] = values
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	media := result.Media
	if media == "" {
		media = "application/json"
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body))) // without it what is longer than 2 KB would be sent in chunks
	status := result.Status
	if status == 0 {
		status = o.Success
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
