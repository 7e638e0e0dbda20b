package api

import (
	"context"
	"net/http"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/discovery"
	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
)

// forPages returns the functions that pages call. They are those that answer programs, so that
// a page and an answer never differ.
func (s *Server) forPages(pages *discovery.Pages) web.Service {
	return web.Service{
		Site: pages.Site, Groups: services.PricedGroups(), Prices: s.prices.Page,
		CardCheckout: s.shop.Provider != nil, BeginBuying: s.shop.BeginCheckout, BillingPortal: s.shop.BillingPortal, Resync: s.shop.Resync,
		DownloadURL: func(l store.DownloadLink) string { return s.shop.DownloadLink(l).DownloadURL },
		SendLink:    s.mail.SendLink, Examine: s.examineForPage, Form: s.formOf, Figures: s.figuresOf, Call: s.callForPage,
		Approved: func(said decisions.Recorded) {
			_, _ = request.Recorded(s.path.Telemetry.Approvals, "verdict", said, nil)
		},
		MayTry:       s.mayTry,
		MaySend:      s.maySend,
		MayEnterCode: func() bool { return s.path.Callers.Rates.Allow(op.ToEnterCode, "") },
		Twin:         func(w http.ResponseWriter, r *http.Request) bool { return s.content.Twin(w, r) },
		Export: func(ctx context.Context, p organizations.Principal, f bundle.Filters) (string, error) {
			manifest, err := s.exports.Export(ctx, p, f)
			return evidence.ExportsPath + "/" + manifest.ExportID, err
		},
		Problem: func(h http.Header, r *http.Request, err error) (int, string) {
			status, said := s.path.Answers.Problem(h, r, err)
			return status, said.Error
		},
		Fail:      func(w http.ResponseWriter, r *http.Request, err error) { s.path.Answers.Fail(w, r, false, err) },
		RequestID: request.RequestID,
	}
}

// mayTry limits the verdicts on the first page, which are free and need no credential.
func (s *Server) mayTry(r *http.Request) error {
	if s.path.Callers.Allow(op.ToTry, r) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many commands were tried, try again in a minute")
}

// maySend counts a form like a call of the customer who is signed in.
func (s *Server) maySend(r *http.Request, session *credential.Session) error {
	if s.path.Callers.MayWork(r, credential.Caller{Session: session}, 1) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many forms were sent, try again in a minute")
}

// examineForPage checks a record that a visitor pasted.
func (s *Server) examineForPage(r *http.Request, text []byte) (seal.Examination, error) {
	if err := s.path.Callers.MayAsk(op.ToVerify, &op.Call{Request: r, Text: text}); err != nil {
		return seal.Examination{}, err
	}
	ctx := r.Context()
	return s.verifier.Examine(ctx, text, func(e seal.Envelope) seal.Check { return audit.Locate(ctx, s.app.Ledger, e) })
}

// formOf returns the form that calls a service, and nil if there is no such service.
func (s *Server) formOf(operation string) *web.Form {
	o := s.table.Find(operation)
	if o == nil || o.Service == nil {
		return nil
	}
	return &web.Form{Operation: o.ID, Example: words.IndentJSON([]byte(o.Example)), PriceUSD: op.USD(o.Service.PriceCents)}
}

// figuresOf returns the figures of a service's page. They are drawn at the first request.
func (s *Server) figuresOf(operation string) []plot.Figure {
	o := s.table.Find(operation)
	if o == nil || o.Service == nil {
		return nil
	}
	if drawn, done := s.figures.Load(operation); done {
		return drawn.([]plot.Figure)
	}
	figures, err := plot.Figures(*o.Service)
	if err != nil {
		s.path.Answers.Log.Warn("a page without its figures", "operation", operation, "error", err)
	}
	s.figures.Store(operation, figures)
	return figures
}

// callForPage calls a service with the body of a form, on the path of every call. The key pays.
func (s *Server) callForPage(r *http.Request, operation, key, body string) web.Answer {
	o := s.table.Find(operation)
	call := r.Clone(r.Context())
	call.Header = http.Header{}
	if key != "" {
		call.Header.Set("X-Api-Key", key)
	}
	answer, err := s.path.Do(nil, call, o, &op.ToolCall{Arguments: []byte(body)})
	if err != nil {
		answer = s.path.Answers.Refused(call, o.BareErrors, err)
		return web.Answer{Body: answer.Body, Status: answer.Status, Header: answer.Header}
	}
	return web.Answer{Body: answer.Body, Status: http.StatusOK, Header: answer.Header}
}
