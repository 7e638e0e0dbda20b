package web

import (
	"time"

	"github.com/countersign/countersign/commands/accounts"
)

// Codes of refusals of forms.
const (
	CodeInvalid     = "invalid_request"
	CodeRateLimited = "rate_limited"
	codeTooLarge    = "too_large"
)

// Bounds of pages.
const (
	pageTimeout = 15 * time.Second // of which work in the database may take 5 s
	maxForm     = 16_384           // bytes of a form

	// MostReviews are counted; from there on a number says "or more".
	MostReviews = 100

	// NearLimit is the use of the free calls of a month from which on pages say so.
	NearLimit = accounts.FreeCallsPerMonth * 8 / 10
)
