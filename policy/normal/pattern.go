package normal

import (
	"regexp"
	"sync"
)

// Pattern tells whether a text matches a regular expression, which is compiled when a
// text is first held against it: a program that judges one command must not wait for
// the forms of everything else. The expression is ours; one that does not parse panics.
func Pattern(expression string) func(text string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
	return func(text string) bool { return compiled().MatchString(text) }
}
