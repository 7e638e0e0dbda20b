// Package pattern compiles regular expressions at their first use. A guard starts at every tool
// call, and most calls need few of the expressions.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that returns the expression and compiles it at its first call.
func Lazy(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
