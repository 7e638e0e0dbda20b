package money

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy"
)

// Check keeps the first error of a sequence of checks. The zero value has no error.
type Check struct{ err error }

// Err returns the first error, a *policy.Error, or nil.
func (c *Check) Err() error { return c.err }

// Refuse stores an error, unless an earlier one is stored.
func (c *Check) Refuse(code, path, message string) {
	if c.err == nil {
		c.err = policy.Refuse(code, path, message)
	}
}

// Between requires low <= x <= high.
func (c *Check) Between(path string, x, low, high float64) {
	if !(x >= low && x <= high) {
		c.Refuse("out_of_range", path, name(path)+" "+policy.MustBeWithin(low, high, false, false, false))
	}
}

// Above requires low < x <= high.
func (c *Check) Above(path string, x, low, high float64) {
	if !(x > low && x <= high) {
		c.Refuse("out_of_range", path, name(path)+" "+policy.MustBeWithin(low, high, true, false, false))
	}
}

// Amount requires an amount with at most two decimals, at most MaxCents, and returns it.
func (c *Check) Amount(path string, x float64) Cents {
	amount, ok := FromNumber(x)
	if !ok {
		c.Refuse("out_of_range", path, name(path)+" must have at most two decimals, and be at most "+policy.Plain(MaxCents.Float()))
	}
	return amount
}

// Day requires a date from 1900 to 2199 and returns it.
func (c *Check) Day(path, text string) Day {
	day, ok := ParseDay(text)
	if !ok {
		c.Refuse("invalid_date", path, name(path)+" must be a date YYYY-MM-DD from 1900-01-01 to 2199-12-31")
	}
	return day
}

// Length requires that a list has low to high items. n is its length.
func (c *Check) Length(path string, n, low, high int) {
	if n < low {
		c.Refuse("out_of_range", path, fmt.Sprintf("%s must have at least %d items", name(path), low))
	}
	if n > high {
		c.Refuse("too_many_items", path, fmt.Sprintf("%s must have at most %d items", name(path), high))
	}
}

// OneOf requires that value is one of values.
func (c *Check) OneOf(path, value string, values ...string) {
	for _, v := range values {
		if v == value {
			return
		}
	}
	c.Refuse("invalid_enum", path, name(path)+" "+policy.MustBeOneOf(values))
}

// Missing refuses the request, because the required member at path is missing.
func (c *Check) Missing(path string) { c.Refuse("missing_field", path, name(path)+" is required") }

// Exclusive refuses the request, because it has two members that exclude each other.
func (c *Check) Exclusive(path, other string) {
	c.Refuse("mutually_exclusive", path, name(path)+" and "+other+" exclude each other")
}

// name returns a pointer in the form of error texts: "/a/b" becomes "a.b". Paths are written by
// the services, never by the caller.
func name(path string) string { return strings.ReplaceAll(path[1:], "/", ".") }

// Or returns the value of an optional member. If the member is absent, it returns the parameter
// otherwise.
func Or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
