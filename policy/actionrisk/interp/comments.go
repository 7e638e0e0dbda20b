package interp

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// EndComments puts a space for a backslash that ends a comment: the parser reads on behind
// it, shells do not. The second result is false where it is not sure.
func EndComments(p *syntax.Parser, text string) (string, bool) {
	lines := slashed(text)
	one := []byte(text)
	for i := 0; i < 16 && len(lines) > 0; i++ {
		f, err := p.Parse(strings.NewReader(string(one)), "")
		if err != nil { // a comment may have taken what the text needs
			break
		}
		n := slices.IndexFunc(lines, func(l slashLine) bool { return one[l.end] != ' ' && l.comment(f) })
		if n < 0 {
			return string(one), true
		}
		one[lines[n].end] = ' '
		for n+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(text[lines[n].end+1:], "\r\n\t "), "#") {
			n++
			one[lines[n].end] = ' '
		}
	}
	for _, l := range lines { // the nearest to it, of which nothing is sure
		one[l.end] = ' '
	}
	return string(one), len(lines) < 2
}

// slashLine is a line that ends in a backslash, with the places where a comment may begin.
type slashLine struct {
	end    int
	hashes []int
}

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

// SplitFunctions cuts a function's body where it ends: in f() { a; } && b, b runs.
func SplitFunctions(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		s, _ := n.(*syntax.Stmt)
		if s == nil {
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
