package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The functions below return texts that state which values are allowed. The schema, the errors of
// the services and the documentation use the same texts, so that a caller learns what is allowed
// and not only that something is wrong.

// MustBeWithin states which numbers are allowed: "must be above 0 and at most 10", "must be an
// integer from 1 to 600". It omits an infinite bound.
func MustBeWithin(low, high float64, aboveLow, belowHigh, integer bool) string {
	what := "must be"
	if integer {
		what += " an integer"
	}
	lower, upper := "at least "+Plain(low), "at most "+Plain(high)
	if aboveLow {
		lower = "above " + Plain(low)
	}
	if belowHigh {
		upper = "below " + Plain(high)
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return what + " a number"
	case math.IsInf(high, 1):
		return what + " " + lower
	case math.IsInf(low, -1):
		return what + " " + upper
	case !aboveLow && !belowHigh:
		return what + " from " + Plain(low) + " to " + Plain(high)
	}
	return what + " " + lower + " and " + upper
}

// MustBeOneOf states the allowed values as a list.
func MustBeOneOf[T any](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = fmt.Sprint(v)
	}
	if len(names) == 1 {
		return "must be " + names[0]
	}
	return "must be one of " + strings.Join(names, ", ")
}

// MustMatch states which form a text must have: in words for the known patterns, otherwise as the
// pattern itself.
func MustMatch(pattern string) string {
	for _, known := range []struct{ pattern, words string }{
		{`^[a-f0-9]{64}$`, "must be 64 lower-case hexadecimal digits"},
		{`^[a-fA-F0-9]{64}$`, "must be 64 hexadecimal digits"},
		{`^(0|[1-9][0-9]{0,77})$`, "must be a whole number in decimal digits, at most 78 of them, without sign and leading zeros"},
		{`^(?:\S|\S[\s\S]*\S)$`, "must not start or end with white space"},
	} {
		if known.pattern == pattern {
			return known.words
		}
	}
	return "must match " + pattern
}

// Plain formats a number without an exponent.
func Plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
