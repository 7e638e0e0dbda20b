package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/payments"
	"github.com/countersign/countersign/commands/services"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/projections"
)

// Codes that only the border knows.
const (
	codeTooLarge    = "too_large"
	codeMethod      = "method_not_allowed"
	codeNotFound    = ground.CodeNotFound
	codeInvalidBody = "invalid_request"
	codeRateLimited = "rate_limited"
	codeNoMail      = "mail_not_configured"
)

// notConfigured are the codes that waiting does not change: whoever is told to come
// back in two seconds does so for ever.
var notConfigured = map[string]bool{ground.CodeNotConfigured: true, codeNoCheckout: true, codeNoMail: true}

// quotas are the codes of what a month allows: clients that obey Retry-After would sleep
// for days. resetsAt says when the month is over.
var quotas = map[string]bool{ground.CodeQuota: true, ground.CodeTooManyKeys: true}

// problem is the body of every error. On operations with bare errors only the
// first member is there.
type problem struct {
	Error       string `json:"error" jsonschema_description:"One clause for people that names the field and never the value."`
	Code        string `json:"code,omitempty" jsonschema_description:"Snake case, for branching."`
	Path        string `json:"path,omitempty" jsonschema_description:"JSON pointer of the offending value."`
	UpgradeURL  string `json:"upgradeUrl,omitempty" jsonschema:"format=uri"`
	ResetsAt    string `json:"resetsAt,omitempty" jsonschema:"format=date-time"`
	PayPerCall  bool   `json:"payPerCall,omitzero" jsonschema_description:"The same call can be paid over x402."`
	PaymentID   string `json:"paymentId,omitempty" jsonschema:"pattern=^pay_[0-9a-f]{32}$"`
	Retry       string `json:"retry,omitempty" jsonschema_description:"What to do about a payment whose end is not known yet."`
	ValidBefore string `json:"validBefore,omitempty" jsonschema:"format=date-time" jsonschema_description:"Until when that payment can settle: it is called expired only afterwards."`
	RequestID   string `json:"requestId,omitempty" jsonschema:"pattern=^req_[0-9A-Z]{26}$" jsonschema_description:"As in X-Request-Id: finds the line in the operator's log."`
	DocURL      string `json:"docUrl,omitempty" jsonschema:"format=uri" jsonschema_description:"The page of the code: cause, charged or not, retry or not, what to send."`
}

// bareProblem is the body of an error where the interface promises exactly this.
type bareProblem struct {
	Error string `json:"error" jsonschema_description:"One clause for people that names the field and never the value."`
}

// fail writes every error of the service.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, bare bool, err error) {
	refused := s.refused(r, bare, err)
	h := w.Header()
	for name, values := range refused.header {
		if _, said := h[name]; !said { // whoever knew better has spoken
			h[name] = values
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(refused.body)))
	w.WriteHeader(refused.status)
	_, _ = w.Write(refused.body)
}

// refused is what an error becomes, over HTTP and over MCP. What has no code of
// ours is an internal error: the caller learns the request id, the log the rest.
func (s *Server) refused(r *http.Request, bare bool, err error) reply {
	h := http.Header{}
	var d *demand
	if errors.As(err, &d) {
		return d.reply()
	}
	status, body := s.problemOf(h, r, err)
	sayWhen(h, status, body.Code)
	h.Set("Cache-Control", "no-store")
	switch {
	case status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", credential.Challenge(s.app.BaseURL, "", credential.Problem(r, err), ""))
		h.Set("Connection", "close") // whatever body was sent is not read
	case status == http.StatusRequestEntityTooLarge:
		h.Set("Connection", "close")
	}
	body.RequestID = requestID(r.Context())
	if statusOf()[body.Code] != 0 {
		body.DocURL = s.app.BaseURL + "/errors/" + body.Code
	}
	var shown any = body
	var oauth *oauthRefusal
	switch {
	case errors.As(err, &oauth):
		shown = oauth.in(status, body)
	case bare:
		shown = bareProblem{body.Error}
	}
	text, err := canon.Marshal(shown)
	if err != nil {
		text = []byte(`{"error":"internal error"}`)
	}
	h.Set("Content-Type", "application/json")
	return reply{status: status, header: h, body: text}
}

// sayWhen says when to come back after a refusal that passes.
func sayWhen(h http.Header, status int, code string) {
	switch {
	case h.Get("Retry-After") != "":
	case status == http.StatusServiceUnavailable && !notConfigured[code]:
		h.Set("Retry-After", retrySoon)
	case status == http.StatusTooManyRequests && !quotas[code]:
		h.Set("Retry-After", retryLimited)
	}
}

func (s *Server) problemOf(h http.Header, r *http.Request, err error) (int, problem) {
	var quota *services.QuotaExhausted
	var keys *accounts.KeysExhausted
	var open *pending
	var unavailable *ground.Unavailable
	var refused *policy.Error
	var archived *archive.Error
	switch {
	case errors.Is(err, ledger.ErrTampered):
		s.log.Error("a request was refused, since the ledger is altered", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, problem{Error: ledger.SaysAltered, Code: ground.CodeUnavailable}
	case errors.As(err, &archived):
		s.log.Warn("an archived record could not be read", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, problem{Error: "the record is in object " + archived.Object + " of the archive, which cannot be read now; nothing is lost, repeat the request later",
			Code: ground.CodeUnavailable}
	case errors.As(err, &quota):
		upgrade := s.upgradeURL()
		h.Set("Link", "<"+upgrade+`>; rel="upgrade"`)
		return http.StatusTooManyRequests, problem{Error: quota.Error(), Code: ground.CodeQuota,
			UpgradeURL: upgrade, ResetsAt: ground.Stamp(quota.ResetsAt), PayPerCall: s.takesPayments()}
	case errors.As(err, &keys):
		return http.StatusTooManyRequests, problem{Error: keys.Error(), Code: ground.CodeTooManyKeys, ResetsAt: ground.Stamp(keys.ResetsAt)}
	case errors.As(err, &open):
		if open.cause != nil {
			s.log.Warn("the end of a payment could not be read", "requestId", requestID(r.Context()), "paymentId", open.paymentID, "error", open.cause)
		}
		h.Set(x402.HeaderResponse, open.response.Header())
		p := problem{Error: open.Error(), Code: open.Error(), PaymentID: open.paymentID,
			Retry: "send the same PAYMENT-SIGNATURE again; do not sign a new payment"}
		if !open.until.IsZero() {
			p.ValidBefore = ground.Stamp(open.until)
		}
		return http.StatusServiceUnavailable, p
	case errors.Is(err, projections.ErrNotFound):
		return http.StatusNotFound, problem{Error: "status not found or expired"}
	case errors.Is(err, projections.ErrBehind):
		s.log.Warn("read model behind", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, problem{Error: "status temporarily unavailable"}
	case errors.As(err, &refused):
		switch {
		case errors.As(err, &unavailable):
			s.log.Warn("unavailable", "requestId", requestID(r.Context()), "error", unavailable.Cause)
		case refused.Code == payments.CodeNoFacilitator:
			s.log.Warn("payment facilitator unavailable", "requestId", requestID(r.Context()), "error", err)
		}
		return statusOfCode(refused.Code), problem{Error: refused.Message, Code: refused.Code, Path: refused.Path}
	}
	s.log.Error("internal error", "requestId", requestID(r.Context()), "error", err)
	return http.StatusInternalServerError, problem{Error: "internal error", Code: codeInternal}
}
