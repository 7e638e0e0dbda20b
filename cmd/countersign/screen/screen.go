// Package screen formats results for a user at a terminal, or for a program that reads a pipe.
package screen

import (
	"os"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Table is a result with several rows. On a terminal it has headings, aligned columns and coloured
// states. In a pipe each row is a line with tabs between the columns, for cut and awk.
type Table struct {
	Heads []string
	Rows  [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Look has the properties of the output that the format depends on.
type Look struct {
	Terminal bool // the output is a terminal
	Width    int  // width of the terminal in columns
	Colour   bool
}

// Styles of a terminal, as ECMA-48 numbers them.
const (
	Bold      = "1"
	Faint     = "2"
	Underline = "4"
	Red       = "31"
	Green     = "32"
	Yellow    = "33"
)

// StateStyles has the colours of words for good, pending, and bad states. A table cell that
// consists of such a word gets its colour.
var StateStyles = map[string]string{
	"ok": Green, "active": Green, "allow": Green, "pass": Green, "proven": Green, "low": Green, "settled": Green, "sent": Green, "valid": Green, "within": Green,
	"warning": Yellow, "needs_review": Yellow, "ask": Yellow, "medium": Yellow, "high": Yellow, "due": Yellow, "open": Yellow, "claimed": Yellow,
	"unknown": Yellow, "lapsed": Yellow, "canary": Faint, "retired": Faint, "default": Faint,
	"bad": Red, "deny": Red, "critical": Red, "revoked": Red, "suspended": Red, "refused": Red, "dead": Red, "violation": Red, "unseen": Red, "expired": Red,
}

// Styled returns text in a style, or unchanged if the output has no colours.
func (o Look) Styled(style, text string) string {
	if !o.Colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Table formats rows for a terminal or a pipe.
func (o Look) Table(t Table) string {
	var b strings.Builder
	if !o.Terminal {
		for _, row := range t.Rows {
			for i, cell := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(Printable(cell))
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	if len(t.Rows) == 0 {
		return ""
	}
	widths := t.widths()
	if o.Width > 0 {
		t.fit(widths, o.Width)
	}
	heads := make([]string, len(t.Heads))
	for i, head := range t.Heads {
		heads[i] = strings.ToUpper(head)
	}
	o.line(&b, widths, heads, func(string) string { return Faint })
	for _, row := range t.Rows {
		o.line(&b, widths, row, func(cell string) string { return StateStyles[cell] })
	}
	return b.String()
}

// line writes a row. A cell that is wider than its column continues on the next line. The last
// cell with text is not padded.
func (o Look) line(b *strings.Builder, widths []int, cells []string, style func(string) string) {
	parts, height := make([][]string, len(cells)), 1
	for i, cell := range cells {
		parts[i] = WrapWords(Printable(cell), widths[i], "")
		height = max(height, len(parts[i]))
	}
	for n := range height {
		at, begins := 0, 0 // end of the line so far, and start of the next column
		for i, cell := range cells {
			if n < len(parts[i]) && parts[i][n] != "" {
				if at > 0 && at+2 > begins {
					b.WriteByte('\n') // the last word was wider than its column
					at = 0
				}
				b.WriteString(strings.Repeat(" ", begins-at) + o.Styled(style(Printable(cell)), parts[i][n]))
				at = begins + Columns(parts[i][n])
			}
			begins += widths[i] + 2
		}
		b.WriteByte('\n')
	}
}

// fit narrows the widest columns until a row fits into the terminal, or no column can be narrowed
// further. A column stays as wide as its longest word, unless that takes more than two fifths of
// the terminal.
func (t *Table) fit(widths []int, width int) {
	least := make([]int, len(widths))
	for _, row := range append([][]string{t.Heads}, t.Rows...) {
		for i, cell := range row {
			for word := range strings.FieldsSeq(Printable(cell)) {
				least[i] = max(least[i], min(Columns(word), width*2/5))
			}
		}
	}
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	for ; total > width; total-- {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Heads))
	for _, row := range append([][]string{t.Heads}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], Columns(Printable(cell)))
		}
	}
	return widths
}

// Columns returns the width of a text on a terminal, in columns.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		kind := width.LookupRune(r).Kind()
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Printable replaces control characters and characters that change the writing direction. So a
// text from outside can neither control the terminal nor look like another row.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Coloured reports whether the output has colours. The argument when is the value of --color. With
// "auto" the output has colours on a terminal, unless NO_COLOR is set (no-color.org).
func Coloured(when string, terminal bool) bool {
	switch when {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// WrapWords breaks a line at spaces. It does not break a word that is wider than the line, because
// users copy ids and addresses from the output.
func WrapWords(line string, width int, indent string) (lines []string) {
	for {
		cut, at := 0, 0
		start := len(line) - len(strings.TrimLeft(line, " "))
		for i, r := range line {
			if r == ' ' && i > start && line[i-1] != ' ' && (at <= width || cut == 0) && strings.TrimSpace(line[i:]) != "" && i > len(indent) {
				cut = i
			}
			at += Columns(string(r))
		}
		if at <= width || cut == 0 {
			return append(lines, line)
		}
		lines = append(lines, line[:cut])
		line = indent + strings.TrimLeft(line[cut:], " ")
	}
}

// FirstRunes shortens a text to n characters.
func FirstRunes(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return text
}

// UsualWidth is the width, in columns, of a terminal that does not report its width.
const UsualWidth = 80

// WidthOf returns the width of a terminal in columns: the value of COLUMNS, or the width that the
// terminal reports.
func WidthOf(terminal *os.File) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n := columnsOf(terminal); n > 0 {
		return n
	}
	return UsualWidth
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
