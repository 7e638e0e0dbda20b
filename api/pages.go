package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/discovery"
	apievidence "github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/api/web/account"
	"github.com/countersign/countersign/api/web/org"
	"github.com/countersign/countersign/api/web/public"
	"github.com/countersign/countersign/api/web/review"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy"
)

// newPages connects the subpackages of the pages. They get functions of the server that the API
// uses, too, so that a page and an answer never differ.
func (s *Server) newPages(markdown *discovery.Pages, outbox *mail.Outbox) error {
	s.public = &public.Room{
		Ledger: s.app.Ledger, BaseURL: s.app.BaseURL, Site: markdown.Site,
		Services: public.Services{Groups: services.PricedGroups(), Form: s.formOf, Figures: s.figuresOf, Call: s.callForPage},
		Prices:   public.Prices{List: s.prices.Page, Buy: s.shop.BeginCheckout},
		Checks:   public.Checks{MayTry: s.mayTry, Examine: s.examineForPage},
	}
	account := &account.Room{
		Commands: s.app.Store, Projections: s.projections, Credentials: *s.path.Credentials, Outbox: outbox,
		SignIn: account.SignIn{SendLink: s.mail.SendLink, MayEnterCode: func() bool { return s.path.Callers.Rates.Allow(op.ToEnterCode, "") }},
		Purchases: account.Purchases{CardCheckout: s.shop.Provider != nil, Portal: s.shop.BillingPortal, Resync: s.shop.Resync,
			DownloadURL: func(l store.DownloadLink) string { return s.shop.DownloadLink(l).DownloadURL }},
	}
	org := &org.Room{Commands: s.app.Decisions, Webhooks: s.app.Webhooks, Projections: s.projections, Drafts: s.drafts,
		Evidence: org.Evidence{Commands: s.app.Evidence, Export: s.exportForPage, Pack: s.exports.Pack}}
	if outbox != nil {
		org.AddressOf = s.app.Address
	}
	s.public.Find = org.Find
	review := &review.Room{
		Commands: s.app.Decisions, Projections: s.projections,
		Approved: func(said decisions.Recorded) {
			_, _ = request.Recorded(s.path.Telemetry.Approvals, "verdict", said, nil)
		},
		Export: s.exportForPage,
	}
	answers := s.path.Answers
	var err error
	s.web, err = web.NewHandler(web.Config{
		Commands: s.app.Store, Projections: s.projections, Credentials: *s.path.Credentials, Log: answers.Log,
		Pages: slices.Concat(s.public.Pages(), account.Pages(), org.Pages(), review.Pages()),
		Host: web.Host{Site: markdown.Site, MaySend: s.maySend, Compress: op.Compress,
			Twin: func(w http.ResponseWriter, r *http.Request) bool { return s.content.Twin(w, r) },
			Problem: func(h http.Header, r *http.Request, err error) (int, string) {
				status, said := answers.Problem(h, r, err)
				return status, said.Error
			},
			Fail: func(w http.ResponseWriter, r *http.Request, err error) { answers.Fail(w, r, false, err) }},
	})
	return err
}

// exportForPage records an export and returns the path of its bundle.
func (s *Server) exportForPage(ctx context.Context, p organizations.Principal, e evidence.Export) (path string, err error) {
	manifest, err := s.exports.Export(ctx, p, e)
	return apievidence.ExportsPath + "/" + manifest.ExportID, err
}

// mayTry limits the verdicts on the home page, which are free and require no credential.
func (s *Server) mayTry(r *http.Request) error {
	if s.path.Callers.Allow(op.ToTry, r) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many commands were tried, try again in a minute")
}

// maySend counts a form like a call by the same customer or, without a session, by the same
// network.
func (s *Server) maySend(r *http.Request, session *credential.Session) error {
	if s.path.Callers.MayWork(r, credential.Caller{Session: session}, 1) {
		return nil
	}
	return policy.Refuse(op.CodeRateLimited, "", "too many forms were sent, try again in a minute")
}

// examineForPage verifies a record that a visitor pasted.
func (s *Server) examineForPage(r *http.Request, text []byte) (seal.Examination, error) {
	if err := s.path.Callers.MayAsk(op.ToVerify, &op.Call{Request: r, Text: text}); err != nil {
		return seal.Examination{}, err
	}
	ctx := r.Context()
	return s.verifier.Examine(ctx, text, func(e seal.Envelope) seal.Check { return audit.Locate(ctx, s.app.Ledger, e) })
}

// formOf returns the form that calls a service, or nil if there is no such service.
func (s *Server) formOf(operation string) *public.Form {
	o := s.table.Find(operation)
	if o == nil || o.Service == nil {
		return nil
	}
	return &public.Form{Operation: o.ID, Example: words.IndentJSON([]byte(o.Example)), PriceUSD: op.USD(o.Service.PriceCents)}
}

// figuresOf returns the charts of a service's page. They are drawn at the first request.
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
		s.path.Answers.Log.Warn("a page is shown without its figures, which could not be read", "operation", operation, "error", err)
	}
	s.figures.Store(operation, figures)
	return figures
}

// callForPage runs a call with the body and the key of a form, like any other call.
func (s *Server) callForPage(r *http.Request, operation, key, body string) public.Answer {
	o := s.table.Find(operation)
	call := r.Clone(r.Context())
	call.Header = http.Header{}
	if key != "" {
		call.Header.Set("X-Api-Key", key)
	}
	answer, err := s.path.Do(nil, call, o, &op.ToolCall{Arguments: []byte(body)})
	if err != nil {
		answer = s.path.Answers.Refused(call, o.BareErrors, err)
		return public.Answer{Body: answer.Body, Status: answer.Status, Header: answer.Header}
	}
	return public.Answer{Body: answer.Body, Status: http.StatusOK, Header: answer.Header}
}
