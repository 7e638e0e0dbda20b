package normal

import (
	"regexp"
	"sync"
)

// Pattern returns a function that reports whether a text matches a regular expression. It compiles
// the expression at the first call, because the coding-agent guard judges one command per start
// and must not compile every expression of the program. An invalid expression panics.
func Pattern(expression string) func(text string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	return func(text string) bool { return compiled().MatchString(text) }
}
