package money

// Limits of amounts and numbers that the finance services can represent exactly.
const (
	// MaxCents is the largest amount, 70368744177664.00. Below 2^46 the distance between
	// doubles is less than a cent, so that a JSON reader gets the amount back to the cent.
	MaxCents Cents = 100 << 46
	// Overflow represents every amount too large to compute with. It is far above anything a
	// request can pay out, so payments never exhaust it.
	Overflow Cents = 1 << 61
	// MaxNumber is the largest computed number: canonical JSON refuses larger integers, and a
	// number above 1e15 without an exponent is an integer there.
	MaxNumber = 1<<53 - 1

	minYear = 1900 // dates outside these years are typing errors
	maxYear = 2199
)
