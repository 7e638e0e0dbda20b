// Package review contains the pages about decisions: the reviews that wait for a person's verdict,
// and the list of all decisions with filters and exports.
package review

import (
	"context"
	"time"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/decisions"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/projections"
)

// Room contains the dependencies of the pages about decisions.
type Room struct {
	Commands    *decisions.Decisions
	Projections *projections.Projections
	Approved    func(decisions.Recorded)                                                                 // counts a verdict in the metrics
	Export      func(context.Context, organizations.Principal, evidence.Export) (path string, err error) // creates a signed bundle
}

// Pages returns the table of the pages about decisions.
func (r *Room) Pages() []web.Page {
	read, export := credential.WithRight(organizations.RightRead), credential.WithRight(organizations.RightExport)
	return []web.Page{
		web.Get("/reviews", read, r.listReviews),
		web.Post("/reviews/reject", credential.WithRight(organizations.RightApprove), r.rejectReviews),
		web.Get("/reviews/{id}", read, r.showReview),
		// This form requires only the right to read, because every reader may compare arguments
		// with their hash. The command Approve checks the right to give a verdict. If it refuses,
		// the page explains why and keeps the text that was written.
		web.Post("/reviews/{id}", read, r.postReview),
		web.Get("/decisions", read, r.showDecisions),
		web.Get("/decisions.csv", export, r.exportDecisions),
		web.Get("/decisions.jsonl", export, r.exportDecisions),
		web.Post("/decisions/bundle", export, r.bundleDecisions),
		web.Get("/decisions/{id:asd_[^/]+}", read, r.showDecision),
		web.Get("/decisions/{id}/download", read, r.downloadDecision),
	}
}

// queries returns the queries about decisions that pages share with the API.
func (r *Room) queries() query.Decisions {
	return query.Decisions{Commands: r.Commands, Projections: r.Projections}
}

// Limits of the pages.
const (
	exportedDecisions = 10_000              // largest number of rows in a file
	similarShown      = 5                   // number of similar decisions on a review
	similarWithin     = 90 * 24 * time.Hour // maximal age of a similar decision
	shownReviews      = 25                  // rows of a page of the list
)
