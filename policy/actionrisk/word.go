package actionrisk

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Word is one word of an invocation as it would be after expansion.
type Word struct {
	Text   string // its value; each unknown part is one hole byte
	Span   Span   // where it stands in the submitted command
	At     int    // offset in the submitted command where Text stands verbatim, else -1
	Glob   bool   // an unquoted * ? or [ is in it
	Quoted bool   // quotes or backslashes stood inside it
	Taint  taint  // where a part of it came from
	Var    string // the one variable its unknown part is, if it is one
	Lone   bool   // the whole word is one unknown expansion
}

// known tells whether the whole text is known.
func (w Word) known() bool { return strings.IndexByte(w.Text, scan.Hole) < 0 }

// tail is the word from byte i on.
func (w Word) tail(i int) Word {
	w.Text = w.Text[min(i, len(w.Text)):]
	if w.At >= 0 {
		w.At += i
	}
	return w
}

// printable shows a text on one line: holes as "$?", control characters as
// blanks, at most 80 characters, secrets masked.
func printable(text string) string {
	text = mask(text)
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > 80 {
			break
		}
		switch {
		case r == scan.Hole:
			b.WriteString("$?")
		case r == utf8.RuneError:
			b.WriteRune('?')
		case scan.Invisible(r) || r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
