package act

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Word is one word of an invocation as it would be after expansion. Words are copied
// often: the order of the members keeps one within 64 bytes.
type Word struct {
	Text   string // its value; each unknown part is one hole byte
	Var    string // the one variable its unknown part is, if it is one
	Span   Span   // where it is in the submitted command
	At     int    // offset in the submitted command at which Text is verbatim, else -1
	Taint  Taint  // where a part of it came from
	Glob   bool   // an unquoted * ? or [ is in it
	Quoted bool   // a part of it was quoted
	Lone   bool   // the whole word is one unknown expansion
}

// Known tells whether the whole text is known.
func (w Word) Known() bool { return strings.IndexByte(w.Text, scan.Hole) < 0 }

// Tail is the word from byte i on.
func (w Word) Tail(i int) Word {
	w.Text = w.Text[min(i, len(w.Text)):]
	if w.At >= 0 {
		w.At += i
	}
	return w
}

// Printable shows a text on one line: holes as "$?", control characters as
// blanks, at most 80 characters, secrets masked.
func Printable(text string) string {
	const shown = 80
	text = Mask(text)
	if len(text) <= shown && scan.Plain(text) && !strings.ContainsAny(text, "\n\t\r") {
		return text
	}
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > shown {
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

// JoinWords is words as one text, verbatim if they are so in the command.
func JoinWords(words []Word, src *Source) Word {
	out := words[0]
	if len(words) == 1 {
		return out
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = w.Text
		out.Taint |= w.Taint
		out.Span.End = max(out.Span.End, w.Span.End)
	}
	out.Text, out.At, out.Lone = strings.Join(parts, " "), -1, false
	if i := slices.IndexFunc(words, func(w Word) bool { return w.Var != "" }); i >= 0 && strings.Count(out.Text, string(scan.Hole)) == 1 {
		out.Var = words[i].Var
	}
	if first := words[0].At; first >= 0 && src.At >= 0 && first >= src.At {
		if from := first - src.At; from+len(out.Text) <= len(src.Text) && src.Text[from:from+len(out.Text)] == out.Text {
			out.At = first
		}
	}
	return out
}

// PartlyKnown: text with holes, as echo "rm -rf $x" prints.
func PartlyKnown(w Word) bool {
	return strings.IndexByte(w.Text, scan.Hole) >= 0 && strings.Trim(w.Text, " \n\t"+string(scan.Hole)) != ""
}
