package main

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// table is a result of several rows. On a terminal it has heads, aligned columns and
// coloured states; in a pipe each row is a line with tabs between its columns and
// nothing else, as cut and awk read it.
type table struct {
	heads []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// styles of a terminal, as the numbers of ECMA-48.
const (
	bold      = "1"
	faint     = "2"
	underline = "4"
	red       = "31"
	green     = "32"
	yellow    = "33"
)

// stateStyles are the words of the program that mean something good, something that
// waits, or something refused or broken. A cell that is such a word has its colour.
var stateStyles = map[string]string{
	"ok": green, "active": green, "allow": green, "pass": green, "proven": green, "low": green, "settled": green, "sent": green, "valid": green, "within": green,
	"warning": yellow, "needs_review": yellow, "ask": yellow, "medium": yellow, "high": yellow, "due": yellow, "open": yellow, "claimed": yellow,
	"unknown": yellow, "lapsed": yellow, "canary": faint, "retired": faint, "default": faint,
	"bad": red, "deny": red, "critical": red, "revoked": red, "suspended": red, "refused": red, "dead": red, "violation": red, "unseen": red, "expired": red,
}

// styled is text in a style, where this output has styles.
func (o *output) styled(style, text string) string {
	if !o.colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// table renders rows for who reads them.
func (o *output) table(t table) string {
	var b strings.Builder
	if !o.terminal {
		for _, row := range t.rows {
			for i, cell := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(printable(cell))
			}
			b.WriteByte('\n')
		}
		return b.String()
	}
	if len(t.rows) == 0 {
		return ""
	}
	widths := t.widths()
	if o.width > 0 {
		t.fit(widths, o.width)
	}
	heads := make([]string, len(t.heads))
	for i, head := range t.heads {
		heads[i] = strings.ToUpper(head)
	}
	o.line(&b, widths, heads, func(string) string { return faint })
	for _, row := range t.rows {
		o.line(&b, widths, row, func(cell string) string { return stateStyles[cell] })
	}
	return b.String()
}

// line writes one row, whose cells go on below themselves where they are wider than
// their column. Nothing is padded behind the last cell that has text.
func (o *output) line(b *strings.Builder, widths []int, cells []string, style func(string) string) {
	parts, height := make([][]string, len(cells)), 1
	for i, cell := range cells {
		parts[i] = wrapWords(printable(cell), widths[i], "")
		height = max(height, len(parts[i]))
	}
	for n := range height {
		at, begins := 0, 0 // columns
		for i, cell := range cells {
			if n < len(parts[i]) && parts[i][n] != "" {
				if at > 0 && at+2 > begins {
					b.WriteByte('\n') // a word that is wider than its column
					at = 0
				}
				b.WriteString(strings.Repeat(" ", begins-at) + o.styled(style(printable(cell)), parts[i][n]))
				at = begins + columns(parts[i][n])
			}
			begins += widths[i] + 2
		}
		b.WriteByte('\n')
	}
}

// fit makes the widest columns narrower until a row is as wide as the terminal, or
// nothing can be broken any more: a word is not, unless it would push the others away.
func (t *table) fit(widths []int, width int) {
	least := make([]int, len(widths))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			for word := range strings.FieldsSeq(printable(cell)) {
				least[i] = max(least[i], min(columns(word), width*2/5))
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

func (t *table) widths() []int {
	widths := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(printable(cell)))
		}
	}
	return widths
}

// columns is how many columns of a terminal a text takes.
func columns(text string) int {
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

// printable keeps what somebody else has written from steering a terminal or from
// pretending to be another row: control and direction characters become marks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// coloured says whether results are coloured: as --color says, else on a terminal
// that has colours, unless NO_COLOR is set (no-color.org).
func coloured(when string, terminal bool) bool {
	switch when {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
