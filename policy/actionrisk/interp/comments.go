package interp

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxComments is how many comments that end in a backslash are told from words.
const maxComments = 16

// EndComments makes every comment end at its line, as shells do: the parser reads on behind
// a backslash at the end of it. It puts a space for the backslash, so that nothing moves.
// The second result is false where it is not sure.
func EndComments(p *syntax.Parser, text string) (string, bool) {
	lines := slashed(text)
	if len(lines) == 0 {
		return text, true
	}
	one := []byte(text)
	for range maxComments {
		f, err := p.Parse(strings.NewReader(string(one)), "")
		if err != nil { // a comment may have taken what the text needs
			break
		}
		n := 0
		for n < len(lines) && (one[lines[n].end] == ' ' || !lines[n].comment(f)) {
			n++
		}
		if n == len(lines) {
			return string(one), true
		}
		one[lines[n].end] = ' '
		for n+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(text[lines[n].end+1:], "\r\n\t "), "#") {
			n++
			one[lines[n].end] = ' '
		}
	}
	for _, l := range lines {
		one[l.end] = ' '
	}
	f, err := p.Parse(strings.NewReader(string(one)), "")
	if err != nil {
		return text, false
	}
	for _, l := range lines {
		if !l.comment(f) {
			one[l.end] = '\\'
		}
	}
	return string(one), len(lines) <= maxComments
}

// slashLine is a line that ends in a backslash, with the places where a comment may begin.
type slashLine struct {
	end    int
	hashes []int
}

// slashed lists the lines that end in a backslash and may have a comment.
func slashed(text string) []slashLine {
	var out []slashLine
	if !strings.Contains(text, "#") {
		return nil
	}
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

// comment: one of the places is in no word of the program.
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

// SplitFunctions takes out of the body of a function what the parser adds to it: in
// f() { a; } && b, the body is { a; } and b runs.
func SplitFunctions(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		if c, ok := s.Cmd.(*syntax.FuncDecl); ok && c.Body != nil {
			if b, ok := c.Body.Cmd.(*syntax.BinaryCmd); ok {
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
