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

// Databases begin with the empty read models: to make them is most of what a node
// does at its first start, and package projections tests that.
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

// Plain is the body of an error without what differs between two requests: its id,
// and the address of the service.
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

// ReviewLetters waits for the letters to reviewers that are on their way; with an
// organization, the time of its next letter has come first.
func (s *Server) ReviewLetters(orgID string) { s.reviews.Sent(orgID) }

// Pages are the pages as they are declared.
func (s *Server) Pages() []web.Route { return s.web.Routes() }
