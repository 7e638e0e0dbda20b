package money

// What the finance services can say exactly.
const (
	// MaxCents is the largest amount, 70368744177664.00: below 2^46 doubles are
	// closer together than cents, so that a JSON reader gets it back to the cent.
	MaxCents Cents = 100 << 46
	// Overflow stands for every amount too large to compute with. It is far above
	// what any request can pay out, so paying against it never exhausts it.
	Overflow Cents = 1 << 61
	// MaxNumber bounds computed numbers: canonical JSON refuses larger integers,
	// and a number above 1e15 without an exponent is an integer there.
	MaxNumber = 1<<53 - 1

	minYear = 1900 // dates outside are typing errors
	maxYear = 2199
)
