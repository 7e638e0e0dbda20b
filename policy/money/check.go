package money

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy"
)

// Check keeps the first refusal of a row of checks. The zero value is ready.
type Check struct{ err error }

// Err is the first refusal, a *policy.Error, or nil.
func (c *Check) Err() error { return c.err }

// Refuse notes a refusal unless there was one before.
func (c *Check) Refuse(code, path, message string) {
	if c.err == nil {
		c.err = policy.Refuse(code, path, message)
	}
}

// Between wants low <= x <= high.
func (c *Check) Between(path string, x, low, high float64) {
	if !(x >= low && x <= high) {
		c.Refuse("out_of_range", path, name(path)+" "+policy.MustBeWithin(low, high, false, false, false))
	}
}

// Above wants low < x <= high.
func (c *Check) Above(path string, x, low, high float64) {
	if !(x > low && x <= high) {
		c.Refuse("out_of_range", path, name(path)+" "+policy.MustBeWithin(low, high, true, false, false))
	}
}

// Amount wants an amount with at most two decimals and returns it.
func (c *Check) Amount(path string, x float64) Cents {
	amount, ok := FromNumber(x)
	if !ok {
		c.Refuse("out_of_range", path, name(path)+" must have at most two decimals, and be at most "+policy.Plain(MaxCents.Float()))
	}
	return amount
}

// Day wants a date and returns it.
func (c *Check) Day(path, text string) Day {
	day, ok := ParseDay(text)
	if !ok {
		c.Refuse("invalid_date", path, name(path)+" must be a date YYYY-MM-DD from 1900-01-01 to 2199-12-31")
	}
	return day
}

// Length wants a list of low to high items.
func (c *Check) Length(path string, n, low, high int) {
	if n < low {
		c.Refuse("out_of_range", path, fmt.Sprintf("%s must have at least %d items", name(path), low))
	}
	if n > high {
		c.Refuse("too_many_items", path, fmt.Sprintf("%s must have at most %d items", name(path), high))
	}
}

// OneOf wants one of the values.
func (c *Check) OneOf(path, value string, values ...string) {
	for _, v := range values {
		if v == value {
			return
		}
	}
	c.Refuse("invalid_enum", path, name(path)+" "+policy.MustBeOneOf(values))
}

// Missing notes that a member is required here.
func (c *Check) Missing(path string) { c.Refuse("missing_field", path, name(path)+" is required") }

// Exclusive notes that a member cannot stand beside another.
func (c *Check) Exclusive(path, other string) {
	c.Refuse("mutually_exclusive", path, name(path)+" and "+other+" exclude each other")
}

// name is a pointer as a message shows it. Paths are ours, never the caller's.
func name(path string) string { return strings.ReplaceAll(path[1:], "/", ".") }

// Or is the value of an optional member or its default.
func Or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
