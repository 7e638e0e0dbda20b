package screen

import (
	"fmt"
	"regexp"
	"strings"
)

// Wrapped formats a text. On a terminal it breaks lines at the terminal's width; in a pipe it does
// not.
func (o Look) Wrapped(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if o.Width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Columns(line) <= o.Width {
			continue
		}
		indent := strings.Repeat(" ", hangingIndent(line, o.Width))
		lines[i] = strings.Join(WrapWords(line, o.Width, indent), "\n")
	}
	return strings.Join(lines, "\n")
}

var gaps = regexp.MustCompile(`^ +|  +`)

// hangingIndent returns the indent for the continuation of a line: the start of the last text
// column that begins in the left half of the terminal.
func hangingIndent(line string, width int) int {
	indent := 0
	for _, gap := range gaps.FindAllStringIndex(line, -1) {
		if at := Columns(line[:gap[1]]); at <= width/2 {
			indent = at
		}
	}
	return indent
}
