package act

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Word is one word of an invocation after expansion. Words are copied often, so the order of the
// members keeps a word within 64 bytes.
type Word struct {
	Text   string // its value; each unknown part is replaced by one byte, scan.Hole
	Var    string // the variable that is its unknown part, if it is a single one
	Span   Span   // range in the submitted command
	At     int    // offset of Text in the submitted command, or -1 if it is not there unchanged
	Taint  Taint  // origins of its parts
	Glob   bool   // has an unquoted *, ? or [
	Quoted bool   // a part of it was quoted
	Lone   bool   // the whole word is one unknown expansion
}

// Known reports whether the word has no unknown part.
func (w Word) Known() bool { return strings.IndexByte(w.Text, scan.Hole) < 0 }

// Tail returns the word without its first i bytes.
func (w Word) Tail(i int) Word {
	w.Text = w.Text[min(i, len(w.Text)):]
	if w.At >= 0 {
		w.At += i
	}
	return w
}

// Printable returns a text on one line: unknown parts as "$?", control characters as blanks, at
// most 80 characters, secrets masked.
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

// JoinWords joins words with blanks. The result keeps its offset if the submitted command has it
// unchanged.
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

// PartlyKnown reports whether a text has known and unknown parts, like the output of echo "rm -rf
// $x".
func PartlyKnown(w Word) bool {
	return strings.IndexByte(w.Text, scan.Hole) >= 0 && strings.Trim(w.Text, " \n\t"+string(scan.Hole)) != ""
}
