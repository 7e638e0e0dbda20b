package money

// Limits of the amounts and numbers with which the finance services compute.
const (
	// MaxCents is the largest amount that an answer can contain: 2^46 = 70368744177664.00. Up to
	// it the distance between two doubles is less than a cent, so a JSON reader gets the exact
	// amount.
	MaxCents Cents = 100 << 46
	// Overflow replaces every amount that is too large to compute with. It is far above all
	// amounts that a request can pay out, so payments never use it up.
	Overflow Cents = 1 << 61
	// MaxNumber is the largest computed number in an answer. Canonical JSON writes numbers from
	// 1e15 to 1e21 without an exponent, so they count as integers, and it refuses integers above
	// MaxNumber.
	MaxNumber = 1<<53 - 1

	minYear = 1900 // years before minYear and after maxYear are taken for typing errors
	maxYear = 2199
)
