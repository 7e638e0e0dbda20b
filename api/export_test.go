package api

import (
	"context"
	"log/slog"
	"regexp"
	"strings"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/projections"
)

// Databases are databases with empty read models. Building these takes most of the time of a
// node's first start, and the tests of package projections cover it.
var Databases = ledgertest.Template{Make: func(ctx context.Context, db *ledgertest.DB) error {
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(ctx, db.URL, ledger.Options{Log: log})
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := projections.Start(ctx, l, log)
	if err == nil {
		p.Close()
	}
	return err
}}

var ofOneRequest = regexp.MustCompile(`,?"(requestId|docUrl)":"[^"]*"(,?)`)

// Plain returns the body of an error without the parts that differ between two requests: its id,
// and the address of the service.
func Plain(body string) string {
	return strings.NewReplacer(",,", ",", ",}", "}", "{,", "{").Replace(ofOneRequest.ReplaceAllString(body, ","))
}

// AssuranceRoutes lists method and path of every operation below /api/assurance/. The value is
// true if the operation requires only the session of a customer. faults describes the invalid
// declarations.
func AssuranceRoutes() (routes map[string]bool, faults []string) {
	routes = map[string]bool{}
	for _, o := range operations() {
		if !strings.HasPrefix(o.Path, "/api/assurance/") {
			continue
		}
		name := o.Method + " " + o.Path
		routes[name] = o.Access.Kind == credential.Person
		if (o.Access.Right == "") != (o.Access.Kind == credential.Person) {
			faults = append(faults, name+" is open to everybody")
		}
		if !o.BareErrors {
			faults = append(faults, name+" has errors that are not bare")
		}
	}
	return routes, faults
}

// ReviewMessages waits until the e-mails to reviewers are sent. If now is set, the next e-mail to
// each organization is sent first, without its pause.
func (s *Server) ReviewMessages(now bool) { s.reviews.Sent(now) }

// DraftMessages waits until the e-mails about drafts are sent. If now is set, the next e-mail about
// the drafts of each author is sent first, without its pause.
func (s *Server) DraftMessages(now bool) { s.drafts.Sent(now) }

// Pages returns the declared pages.
func (s *Server) Pages() []web.Route { return s.web.Routes() }
