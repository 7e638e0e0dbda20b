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

	smtpTimeout       = 10 * time.Second
	outboxCode        = 10     // letters and digits of the outbox's code: 50 bits
	maxOutbox         = 50     // letters the local outbox keeps
	searchBatch       = 200    // decisions whose records are opened at once
	searchedDecisions = 4000   // by one page of a list, at most
	exportedDecisions = 10_000 // rows of one file
	similarShown      = 5      // decisions beside a review
	similarWithin     = 90 * 24 * time.Hour
	shownDeliveries   = 100              // messages to a webhook, the newest
	openReviews       = 100              // are counted; from there on a number says "or more"
	shownReviews      = 50               // on a page of the list
	reviewMailEvery   = 10 * time.Minute // letters about waiting decisions, to each organization
	reviewMailTimeout = 30 * time.Second // of one round of letters
	countedReviews    = 1000             // by a letter; from there on it says "at least"
	keptNotes         = 100              // newest decisions of which the next letter chooses one that waits
)
