// Package review has the pages about decisions: those that wait for a person's verdict, and all of
// them with what came of them, to read, to filter and to export.
package review

import (
	"context"
	"time"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/projections"
)

// Room is what the pages about decisions work with.
type Room struct {
	Commands    *decisions.Decisions
	Projections *projections.Projections
	Approved    func(decisions.Recorded)                                                                // counts a person's verdict
	Export      func(context.Context, organizations.Principal, bundle.Filters) (path string, err error) // makes a signed bundle
}

// Pages is the table of pages.
func (r *Room) Pages() []web.Page {
	read, export := credential.WithRight(organizations.RightRead), credential.WithRight(organizations.RightExport)
	return []web.Page{
		web.Get("/reviews", read, r.listReviews),
		web.Post("/reviews/reject", credential.WithRight(organizations.RightApprove), r.rejectReviews),
		web.Get("/reviews/{id}", read, r.showReview),
		// Every reader may compare arguments with their hash. For a verdict the command asks for the
		// right to give it, and the page then says why it was not recorded, with what was written.
		web.Post("/reviews/{id}", read, r.postReview),
		web.Get("/decisions", read, r.showDecisions),
		web.Get("/decisions.csv", export, r.exportDecisions),
		web.Get("/decisions.jsonl", export, r.exportDecisions),
		web.Post("/decisions/bundle", export, r.bundleDecisions),
		web.Get("/decisions/{id:asd_[^/]+}", read, r.showDecision),
		web.Get("/decisions/{id}/download", read, r.downloadDecision),
	}
}

// queries are the queries about decisions that pages share with the API.
func (r *Room) queries() query.Decisions {
	return query.Decisions{Commands: r.Commands, Projections: r.Projections}
}

// Bounds of the pages.
const (
	exportedDecisions = 10_000              // rows of a file
	similarShown      = 5                   // decisions with a review
	similarWithin     = 90 * 24 * time.Hour // before it
	shownReviews      = 50                  // on a page of the list
)
