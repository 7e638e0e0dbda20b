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

// Databases begin with empty read models. Making them takes most of the time of a node's first
// start, and the tests of package projections cover that.
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

// Plain returns the body of an error without what differs between two requests: its id, and the
// address of the service.
func Plain(body string) string {
	return strings.NewReplacer(",,", ",", ",}", "}", "{,", "{").Replace(ofOneRequest.ReplaceAllString(body, ","))
}

// AssuranceRoutes lists method and path of every operation below /api/assurance/. Those that need
// only a session, of any customer, are marked. It also lists what is wrong with the others.
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

// ReviewMessages waits for the e-mails to reviewers that are being sent. If it is given an
// organization, the organization's next e-mail is sent first, without its pause.
func (s *Server) ReviewMessages(orgID string) { s.reviews.Sent(orgID) }

// Pages returns the declared pages.
func (s *Server) Pages() []web.Route { return s.web.Routes() }
