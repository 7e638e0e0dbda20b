package request

import (
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/countersign/countersign/api/contract"
	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	apipayments "github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// notConfigured lists error codes that retrying cannot resolve. Their answers have no Retry-After
// header, because a client would retry forever.
var notConfigured = map[string]bool{ground.CodeNotConfigured: true, op.CodeNoCheckout: true, op.CodeNoMail: true}

// quotas lists the error codes of monthly limits. Their answers have no Retry-After header,
// because a client would sleep for days. Their member resetsAt states when the month ends.
var quotas = map[string]bool{ground.CodeQuota: true, ground.CodeTooManyKeys: true}

// Answers writes every answer and every error of the service.
type Answers struct {
	Log      *slog.Logger
	Commands *services.Services                                      // gives the base URL and the pass that sells more calls
	Page     func(w http.ResponseWriter, r *http.Request, err error) // writes an error as a page
}

// Reply writes an answer that is not an error.
func (s *Answers) Reply(w http.ResponseWriter, r *http.Request, o *op.Operation, result op.Reply) {
	body := result.Body
	if body == nil {
		var err error
		if body, err = canon.Marshal(result.Value); err != nil {
			s.Fail(w, r, o.BareErrors, err)
			return
		}
	}
	h := w.Header()
	for name, values := range result.Header {
		if name == "Vary" { // keep the values that earlier code has set
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
	h.Set("Content-Length", strconv.Itoa(len(body))) // otherwise net/http would send more than 2 KB in chunks
	status := result.Status
	if status == 0 {
		status = o.Success
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// Fail writes an error as JSON. If bare is set, the body has only the member "error".
func (s *Answers) Fail(w http.ResponseWriter, r *http.Request, bare bool, err error) {
	refused := s.Refused(r, bare, err)
	h := w.Header()
	for name, values := range refused.Header {
		if _, said := h[name]; !said { // a header that was set before is more specific
			h[name] = values
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(refused.Body)))
	w.WriteHeader(refused.Status)
	_, _ = w.Write(refused.Body)
}

// Refused converts an error into an answer, for HTTP and MCP. An error without a code is internal:
// the caller gets only the request id, and the log contains the error.
func (s *Answers) Refused(r *http.Request, bare bool, err error) op.Reply {
	h := http.Header{}
	var d *apipayments.Demand
	if errors.As(err, &d) {
		return d.Reply()
	}
	status, body := s.Problem(h, r, err)
	h.Set("Cache-Control", "no-store")
	switch {
	case status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", credential.Challenge(s.Commands.BaseURL, "", credential.Problem(r, err), ""))
		h.Set("Connection", "close") // the body will not be read
	case status == http.StatusRequestEntityTooLarge:
		h.Set("Connection", "close")
	}
	body.RequestID = RequestID(r.Context())
	if contract.HasPage(body.Code) {
		body.DocURL = s.Commands.BaseURL + "/errors/" + body.Code
	}
	var shown any = body
	var oauth *oauthRefusal
	switch {
	case errors.As(err, &oauth):
		shown = oauth.in(status, body)
	case bare:
		shown = op.BareProblem{Error: body.Error}
	}
	text, err := canon.Marshal(shown)
	if err != nil {
		text = []byte(`{"error":"internal error"}`)
	}
	h.Set("Content-Type", "application/json")
	return op.Reply{Status: status, Header: h, Body: text}
}

// sayWhen sets Retry-After on an error that a retry may resolve.
func sayWhen(h http.Header, status int, code string) {
	switch {
	case h.Get("Retry-After") != "":
	case status == http.StatusServiceUnavailable && !notConfigured[code]:
		h.Set("Retry-After", op.RetrySoon)
	case status == http.StatusTooManyRequests && !quotas[code]:
		h.Set("Retry-After", op.RetryLimited)
	}
}

// Problem returns the status and the body of an error, and sets the headers of the error.
func (s *Answers) Problem(h http.Header, r *http.Request, err error) (int, op.Problem) {
	status, body := s.problem(h, r, err)
	sayWhen(h, status, body.Code)
	return status, body
}

func (s *Answers) problem(h http.Header, r *http.Request, err error) (int, op.Problem) {
	var quota *services.QuotaExhausted
	var keys *accounts.KeysExhausted
	var open *apipayments.Pending
	var unavailable *ground.Unavailable
	var refused *policy.Error
	var archived *archive.Error
	switch {
	case errors.Is(err, ledger.ErrTampered):
		s.Log.Error("a request was refused because the ledger was altered", "requestId", RequestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: ledger.SaysAltered, Code: ground.CodeUnavailable}
	case errors.As(err, &archived):
		s.Log.Warn("an archived record could not be read", "requestId", RequestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: "the record is in object " + archived.Object + " of the archive, which cannot be read now. Nothing is lost: repeat the request later",
			Code: ground.CodeUnavailable}
	case errors.As(err, &quota):
		upgrade := UpgradeURL(s.Commands)
		h.Set("Link", "<"+upgrade+`>; rel="upgrade"`)
		return http.StatusTooManyRequests, op.Problem{Error: quota.Error(), Code: ground.CodeQuota,
			UpgradeURL: upgrade, ResetsAt: ground.Stamp(quota.ResetsAt), PayPerCall: apipayments.Taken(s.Commands.Settler)}
	case errors.As(err, &keys):
		return http.StatusTooManyRequests, op.Problem{Error: keys.Error(), Code: ground.CodeTooManyKeys, ResetsAt: ground.Stamp(keys.ResetsAt)}
	case errors.As(err, &open):
		if open.Cause != nil {
			s.Log.Warn("the result of a payment could not be read", "requestId", RequestID(r.Context()), "paymentId", open.PaymentID, "error", open.Cause)
		}
		h.Set(x402.HeaderResponse, open.Response.Header())
		p := op.Problem{Error: open.Error(), Code: open.Error(), PaymentID: open.PaymentID,
			Retry: "send the same PAYMENT-SIGNATURE again; do not sign a new payment"}
		if !open.Until.IsZero() {
			p.ValidBefore = ground.Stamp(open.Until)
		}
		return http.StatusServiceUnavailable, p
	case errors.Is(err, projections.ErrNotFound):
		return http.StatusNotFound, op.Problem{Error: "status not found or expired"}
	case errors.Is(err, projections.ErrBehind):
		s.Log.Warn("a read model is behind, so a request was refused", "requestId", RequestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: "status temporarily unavailable"}
	case errors.As(err, &refused):
		// The answer does not name an internal cause, so the log does.
		switch {
		case errors.As(err, &unavailable):
			s.Log.Warn("unavailable", "requestId", RequestID(r.Context()), "error", unavailable.Cause)
		case refused.Code == payments.CodeNoFacilitator:
			s.Log.Warn("payment facilitator unavailable", "requestId", RequestID(r.Context()), "error", err)
		}
		return contract.StatusOf(refused.Code), op.Problem{Error: refused.Message, Code: refused.Code, Path: refused.Path}
	}
	s.Log.Error("internal error", "requestId", RequestID(r.Context()), "error", err)
	return http.StatusInternalServerError, op.Problem{Error: "internal error", Code: op.CodeInternal}
}

// UpgradeURL returns the address of the page that sells more calls.
func UpgradeURL(s *services.Services) string {
	if pass, sold := s.PassProduct(); sold {
		return s.BaseURL + "/pricing#" + pass.Slug
	}
	return s.BaseURL + "/pricing"
}

// NotFound answers a request for a path that does not exist.
func (s *Answers) NotFound(w http.ResponseWriter, r *http.Request) {
	s.Missed(w, r, ground.ErrNotFound)
}

// Missed answers a request that matched no operation. It answers a browser that requests a page
// with a page, and other requests with JSON, because a scanner would take a page for the document.
func (s *Answers) Missed(w http.ResponseWriter, r *http.Request, err error) {
	if forPeople(r) {
		s.Page(w, r, err)
		return
	}
	s.Fail(w, r, bareErrors(r), err)
}

// forPeople reports whether an unmatched request is a browser's request for a page.
func forPeople(r *http.Request) bool {
	at := r.URL.Path
	return !strings.HasPrefix(at, "/api") && !strings.HasPrefix(at, "/.well-known") && path.Ext(at) == "" && plainPath(r.URL.EscapedPath()) &&
		op.Weight(strings.Join(r.Header.Values("Accept"), ","), "text/html") != 0
}

// bareErrors reports whether a request that matched no operation has a path below which
// error bodies have the member "error" and no other.
func bareErrors(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/assurance/") || strings.HasPrefix(r.URL.Path, "/api/agent-workflows/action-safety/status")
}
