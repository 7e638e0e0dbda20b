package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
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

// notConfigured are the codes that waiting does not change: whoever is told to come
// back in two seconds does so for ever.
var notConfigured = map[string]bool{ground.CodeNotConfigured: true, codeNoCheckout: true, op.CodeNoMail: true}

// quotas are the codes of what a month allows: clients that obey Retry-After would sleep
// for days. resetsAt says when the month is over.
var quotas = map[string]bool{ground.CodeQuota: true, ground.CodeTooManyKeys: true}

// fail writes every error of the service.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, bare bool, err error) {
	refused := s.refused(r, bare, err)
	h := w.Header()
	for name, values := range refused.Header {
		if _, said := h[name]; !said { // whoever knew better has spoken
			h[name] = values
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(refused.Body)))
	w.WriteHeader(refused.Status)
	_, _ = w.Write(refused.Body)
}

// refused is what an error becomes, over HTTP and over MCP. What has no code of
// ours is an internal error: the caller learns the request id, the log the rest.
func (s *Server) refused(r *http.Request, bare bool, err error) op.Reply {
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
		shown = op.BareProblem{Error: body.Error}
	}
	text, err := canon.Marshal(shown)
	if err != nil {
		text = []byte(`{"error":"internal error"}`)
	}
	h.Set("Content-Type", "application/json")
	return op.Reply{Status: status, Header: h, Body: text}
}

// sayWhen says when to come back after a refusal that passes.
func sayWhen(h http.Header, status int, code string) {
	switch {
	case h.Get("Retry-After") != "":
	case status == http.StatusServiceUnavailable && !notConfigured[code]:
		h.Set("Retry-After", op.RetrySoon)
	case status == http.StatusTooManyRequests && !quotas[code]:
		h.Set("Retry-After", op.RetryLimited)
	}
}

func (s *Server) problemOf(h http.Header, r *http.Request, err error) (int, op.Problem) {
	var quota *services.QuotaExhausted
	var keys *accounts.KeysExhausted
	var open *pending
	var unavailable *ground.Unavailable
	var refused *policy.Error
	var archived *archive.Error
	switch {
	case errors.Is(err, ledger.ErrTampered):
		s.log.Error("a request was refused, since the ledger is altered", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: ledger.SaysAltered, Code: ground.CodeUnavailable}
	case errors.As(err, &archived):
		s.log.Warn("an archived record could not be read", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: "the record is in object " + archived.Object + " of the archive, which cannot be read now; nothing is lost, repeat the request later",
			Code: ground.CodeUnavailable}
	case errors.As(err, &quota):
		upgrade := s.upgradeURL()
		h.Set("Link", "<"+upgrade+`>; rel="upgrade"`)
		return http.StatusTooManyRequests, op.Problem{Error: quota.Error(), Code: ground.CodeQuota,
			UpgradeURL: upgrade, ResetsAt: ground.Stamp(quota.ResetsAt), PayPerCall: s.takesPayments()}
	case errors.As(err, &keys):
		return http.StatusTooManyRequests, op.Problem{Error: keys.Error(), Code: ground.CodeTooManyKeys, ResetsAt: ground.Stamp(keys.ResetsAt)}
	case errors.As(err, &open):
		if open.cause != nil {
			s.log.Warn("the end of a payment could not be read", "requestId", requestID(r.Context()), "paymentId", open.paymentID, "error", open.cause)
		}
		h.Set(x402.HeaderResponse, open.response.Header())
		p := op.Problem{Error: open.Error(), Code: open.Error(), PaymentID: open.paymentID,
			Retry: "send the same PAYMENT-SIGNATURE again; do not sign a new payment"}
		if !open.until.IsZero() {
			p.ValidBefore = ground.Stamp(open.until)
		}
		return http.StatusServiceUnavailable, p
	case errors.Is(err, projections.ErrNotFound):
		return http.StatusNotFound, op.Problem{Error: "status not found or expired"}
	case errors.Is(err, projections.ErrBehind):
		s.log.Warn("read model behind", "requestId", requestID(r.Context()), "error", err)
		return http.StatusServiceUnavailable, op.Problem{Error: "status temporarily unavailable"}
	case errors.As(err, &refused):
		switch {
		case errors.As(err, &unavailable):
			s.log.Warn("unavailable", "requestId", requestID(r.Context()), "error", unavailable.Cause)
		case refused.Code == payments.CodeNoFacilitator:
			s.log.Warn("payment facilitator unavailable", "requestId", requestID(r.Context()), "error", err)
		}
		return statusOfCode(refused.Code), op.Problem{Error: refused.Message, Code: refused.Code, Path: refused.Path}
	}
	s.log.Error("internal error", "requestId", requestID(r.Context()), "error", err)
	return http.StatusInternalServerError, op.Problem{Error: "internal error", Code: codeInternal}
}
