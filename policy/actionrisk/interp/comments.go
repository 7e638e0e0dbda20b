package interp

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxEndedComments is the largest number of times that EndComments parses a text.
const maxEndedComments = 16

// EndComments replaces a backslash at the end of a comment with a space. The parser joins such a
// comment with the next line, while shells end every comment with its line and run the next one.
// No offset changes. sure is false if it could not be decided which of several lines end with a
// comment.
func EndComments(p *syntax.Parser, text string) (ended string, sure bool) {
	lines := slashed(text)
	if len(lines) == 0 {
		return text, true
	}
	one := []byte(text)
	for i := 0; i < maxEndedComments && len(lines) > 0; i++ {
		// Ending a comment changes how the following lines are parsed, so each round parses again
		// and ends the first comment that is left.
		f, err := p.Parse(strings.NewReader(string(one)), "")
		if err != nil { // a wrongly joined comment may hide a line that completes the text
			break
		}
		n := slices.IndexFunc(lines, func(l slashLine) bool { return one[l.end] != ' ' && l.comment(f) })
		if n < 0 {
			return string(one), true
		}
		one[lines[n].end] = ' '
		// If the next line in the list follows directly and begins with #, it is a comment, too.
		for n+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(text[lines[n].end+1:], "\r\n\t "), "#") {
			n++
			one[lines[n].end] = ' '
		}
	}
	// The parser rejects the text, or the limit is reached: remove the backslash of every line in
	// the list. The result is certain only if the list has one line.
	for _, l := range lines {
		one[l.end] = ' '
	}
	return string(one), len(lines) < 2
}

// slashLine is a line that ends with a backslash. end is the offset of the backslash, hashes are
// those of each # that may begin a comment.
type slashLine struct {
	end    int
	hashes []int
}

// slashed returns the lines of a text that end with a backslash and may have a comment.
func slashed(text string) []slashLine {
	var out []slashLine
	at := 0
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		if strings.HasSuffix(bare, "\\") && len(bare) < len(line) {
			l := slashLine{end: at + len(bare) - 1}
			for i := range len(bare) {
				if bare[i] == '#' && (i == 0 || strings.IndexByte(" \t\r;&|()<>`", bare[i-1]) >= 0) {
					l.hashes = append(l.hashes, at+i)
				}
			}
			if l.hashes != nil {
				out = append(out, l)
			}
		}
		at += len(line)
	}
	return out
}

// comment reports whether one of the hashes is outside of every word of the parsed text, so that
// it begins a comment.
func (l *slashLine) comment(f *syntax.File) bool {
	in := 0
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			for _, h := range l.hashes {
				if int(n.Pos().Offset()) <= h && h < int(n.End().Offset()) {
					in++
				}
			}
		}
		return true
	})
	return in < len(l.hashes)
}

// SplitFunctions corrects the body of functions. The parser takes all of f() { a; } && b as the
// body of f, while a shell defines f as { a; } and then runs b.
func SplitFunctions(f *syntax.File, text string) {
	if !strings.ContainsAny(text, "|&") {
		return // there is no list that the parser could have made part of a body
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		s, _ := n.(*syntax.Stmt)
		if s == nil {
			return true
		}
		if c, ok := s.Cmd.(*syntax.FuncDecl); ok && c.Body != nil {
			if b, ok := c.Body.Cmd.(*syntax.BinaryCmd); ok {
				// The leftmost command is the body. The statement becomes the list, with the
				// definition as its first element.
				s.Cmd = b
				for inner, ok := b.X.Cmd.(*syntax.BinaryCmd); ok; inner, ok = b.X.Cmd.(*syntax.BinaryCmd) {
					b = inner
				}
				c.Body = b.X
				b.X = &syntax.Stmt{Position: c.Position, Cmd: c}
			}
		}
		return true
	})
}
