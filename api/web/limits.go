package web

import (
	"time"

	"github.com/countersign/countersign/commands/accounts"
)

// Codes of errors that forms return.
const (
	CodeInvalid     = "invalid_request"
	CodeRateLimited = "rate_limited"
	codeTooLarge    = "too_large"
)

// Limits of pages.
const (
	pageTimeout = 15 * time.Second // the database may use 5 s of it
	maxForm     = 16_384           // bytes

	// MostReviews is the largest number of reviews that is counted. For more, pages show "or
	// more".
	MostReviews = 100

	// NearLimit is the number of used free calls in a month from which pages show a warning.
	NearLimit = accounts.FreeCallsPerMonth * 8 / 10
)
