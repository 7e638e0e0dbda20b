package interp

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxEndedComments bounds how often EndComments parses a text.
const maxEndedComments = 16

// EndComments replaces a backslash at the end of a comment by a space. The parser joins
// such a comment with the next line, while shells end every comment at its line and run
// the next one. Positions stay the same. sure is false if it remains unknown which of
// several lines end in a comment.
func EndComments(p *syntax.Parser, text string) (ended string, sure bool) {
	lines := slashed(text)
	if len(lines) == 0 {
		return text, true
	}
	one := []byte(text)
	for i := 0; i < maxEndedComments && len(lines) > 0; i++ {
		// A comment that is ended changes what the lines after it are, so each round
		// parses again and ends the first one that is left.
		f, err := p.Parse(strings.NewReader(string(one)), "")
		if err != nil { // a joined comment may hide what completes the text
			break
		}
		n := slices.IndexFunc(lines, func(l slashLine) bool { return one[l.end] != ' ' && l.comment(f) })
		if n < 0 {
			return string(one), true
		}
		one[lines[n].end] = ' '
		// A line that begins with # after it is a comment, too.
		for n+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(text[lines[n].end+1:], "\r\n\t "), "#") {
			n++
			one[lines[n].end] = ' '
		}
	}
	// No parse decided: end all of them, which is certain for a single one only.
	for _, l := range lines {
		one[l.end] = ' '
	}
	return string(one), len(lines) < 2
}

// slashLine is a line that ends in a backslash, with the places where a comment may begin.
type slashLine struct {
	end    int
	hashes []int
}

// slashed lists the lines of a text that end in a backslash and may hold a comment.
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

// comment says whether one of the places where a comment may begin is outside of every
// word of the parsed text.
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

// SplitFunctions ends the body of a function where its compound command ends. The parser
// takes all of f() { a; } && b for the body, while a shell defines f and then runs b.
func SplitFunctions(f *syntax.File, text string) {
	if !strings.ContainsAny(text, "|&") {
		return // no list, so none that a body could take in
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		s, _ := n.(*syntax.Stmt)
		if s == nil {
			return true
		}
		if c, ok := s.Cmd.(*syntax.FuncDecl); ok && c.Body != nil {
			if b, ok := c.Body.Cmd.(*syntax.BinaryCmd); ok {
				// The leftmost command is the body; the statement becomes the list
				// whose first element is the definition.
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
