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
	pageTimeout = 15 * time.Second // longer than the 5 s that one database statement may take
	maxForm     = 16_384           // bytes

	// MostReviews is the number at which the count of reviews stops. From this number on, pages
	// show "or more".
	MostReviews = 100

	// NearLimit is the number of used free calls in a month from which pages show a warning.
	NearLimit = accounts.FreeCallsPerMonth * 8 / 10
)
