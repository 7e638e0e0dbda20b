package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// handle is the path of a request through one operation.
func (s *Server) handle(op *operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// An append once begun is finished whatever becomes of the client.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), handlerTimeout)
		defer cancel()
		c := &call{op: op, request: r.WithContext(ctx), vars: mux.Vars(r)}
		result, err := s.pass(w, c)
		if kept := s.sessions.keep(w, c.session); err == nil {
			err = kept
		}
		if err != nil {
			s.challengeFor(w.Header(), r, op, err)
			s.fail(w, r, op.bareErrors, err)
			return
		}
		s.reply(w, r, op, result)
	}
}

// pass takes a call through its steps; the first refusal is the answer.
func (s *Server) pass(w http.ResponseWriter, c *call) (reply, error) {
	if err := s.serve(c); err != nil {
		return reply{}, err
	}
	if err := s.admit(c); err != nil {
		return reply{}, err
	}
	if err := s.decode(w, c); err != nil {
		return reply{}, err
	}
	result, err := c.op.run(s, c)
	if err != nil {
		return reply{}, err
	}
	return s.settle(c, result)
}

// credential is what a request shows for itself.
type credential struct {
	present bool
	caller  commands.Caller
}

// serve finds out who is calling. The first of X-API-Key and Authorization
// counts, one of them twice is refused, and nothing in the query does.
func (s *Server) serve(c *call) error {
	switch {
	case c.op.right != "" || c.op.signedIn:
		return s.serveOrganization(c)
	case c.op.scope != "":
		return s.serveCustomer(c)
	case c.op.service == nil && !c.op.key:
		return nil
	}
	key, present, err := apiKey(c.request.Header)
	if err != nil || !present {
		return err
	}
	caller, err := s.app.Authenticate(c.request.Context(), key)
	if c.op.service != nil && isRefusal(err, commands.CodeUnauthorized) {
		// An organization's token is good and cannot pay: its bearer may pay otherwise.
		if _, err := s.app.AuthenticateOrganization(c.request.Context(), key); !isRefusal(err, commands.CodeUnauthorized) {
			return err
		}
	}
	c.credential = credential{true, caller}
	return err
}

func isRefusal(err error, code string) bool {
	var refused *policy.Error
	return errors.As(err, &refused) && refused.Code == code
}

func apiKey(h http.Header) (key string, present bool, err error) {
	bad := policy.Refuse(commands.CodeUnauthorized, "", "API key is not valid")
	for _, name := range []string{"X-Api-Key", "Authorization"} {
		values := h[name]
		switch {
		case len(values) == 0:
			continue
		case len(values) > 1:
			return "", true, bad
		case name == "X-Api-Key":
			return values[0], true, nil
		}
		scheme, token, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", true, bad
		}
		return token, true, nil
	}
	return "", false, nil
}

// admit decides whether the caller may make the call and what pays for it. A
// priced call without a credential is for x402, which is not configured yet.
func (s *Server) admit(c *call) error {
	switch {
	case c.credential.present:
		return nil
	case c.op.right != "":
		return c.principal.May(c.op.right)
	case c.op.service != nil:
		return policy.Refuse(commands.CodeNotConfigured, "", "x402 not configured")
	case c.op.key:
		return policy.Refuse(commands.CodeUnauthorized, "", "an API key is required")
	}
	return nil
}

// decode reads the body of an operation that takes one.
func (s *Server) decode(w http.ResponseWriter, c *call) error {
	var err error
	if c.idempotencyKey, err = idempotencyKey(c.request.Header); err != nil {
		return err
	}
	if c.op.input == nil {
		return nil
	}
	text, err := readBody(w, c.request, c.op.limit)
	if err != nil {
		return err
	}
	if c.op.parses {
		c.text = text
		return nil
	}
	if c.body, err = canon.Canonical(text); err != nil {
		return err
	}
	if err := c.op.schema.validate(text); err != nil {
		return err
	}
	return c.sameKey()
}

// readBody checks size before form, as the contract orders them: what is too large
// is refused whatever it claims to be.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	tooLarge := policy.Refuse(codeTooLarge, "", "request body is larger than "+strconv.FormatInt(limit, 10)+" bytes")
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return nil, tooLarge
	case err != nil:
		return nil, policy.Refuse(codeInvalidBody, "", "the body could not be read")
	}
	media, params, err := mime.ParseMediaType(strings.Join(r.Header.Values("Content-Type"), ","))
	if charset := params["charset"]; err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, policy.Refuse(codeInvalidBody, "", "content type must be application/json")
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
	if n := utf8.RuneCountInString(values[0]); len(values) > 1 || n < 1 || n > maxIdempotencyKey || !utf8.ValidString(values[0]) {
		return "", policy.Refuse(codeInvalidBody, "", "Idempotency-Key must be given once, with 1 to 200 characters")
	}
	return values[0], nil
}

// sameKey makes the header Idempotency-Key and the member idempotencyKey one.
func (c *call) sameKey() error {
	if !bytes.Contains(c.body, []byte(`"idempotencyKey"`)) {
		return nil
	}
	var member struct {
		Key string `json:"idempotencyKey"`
	}
	if err := json.Unmarshal(c.body, &member); err != nil || member.Key == "" {
		return nil // the schema has spoken; it stands deeper, or is null
	}
	if c.idempotencyKey != "" && c.idempotencyKey != member.Key {
		return policy.Refuse("inconsistent_input", "/idempotencyKey", "idempotencyKey and the Idempotency-Key header differ")
	}
	c.idempotencyKey = member.Key
	return nil
}

// settle is where a payment that was claimed before the answer was computed is
// settled before it is shown. What a key pays for is final once it is appended.
func (s *Server) settle(_ *call, result reply) (reply, error) { return result, nil }

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
	status := result.status
	if status == 0 {
		status = op.success
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
