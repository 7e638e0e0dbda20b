// Package pattern has regular expressions that are compiled at their first use. A guard starts
// at every tool call, and most calls need few of its expressions.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles the expression at its first call, and returns it.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
