package web

import (
	"time"

	"github.com/countersign/countersign/commands/ground"
)

// Codes of what a form may be refused for.
const (
	codeInvalid     = "invalid_request"
	codeTooLarge    = "too_large"
	codeRateLimited = "rate_limited"
	codeNotFound    = ground.CodeNotFound
)

// Bounds of pages, lists and letters.
const (
	pageTimeout = 15 * time.Second // database work has 5 s of it

	// Octets of a form. Each may be written as three.
	maxForm   = 16_384
	maxRecord = 524_288     // a document to be verified
	maxPolicy = 3 * 262_144 // a policy of 1000 entries in each list: as text, as the text before, as fields

	exportedDecisions = 10_000 // rows of one file
	similarShown      = 5      // decisions beside a review
	similarWithin     = 90 * 24 * time.Hour
	openReviews       = 100 // are counted; from there on a number says "or more"
	shownReviews      = 50  // on a page of the list
)
