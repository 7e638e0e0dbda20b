package main

import "github.com/countersign/countersign/cmd/countersign/screen"

// table is a result of several rows, as package screen shows it.
type table struct {
	heads []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

const (
	bold   = screen.Bold
	faint  = screen.Faint
	red    = screen.Red
	green  = screen.Green
	yellow = screen.Yellow
)

func (o *output) look() screen.Look {
	return screen.Look{Terminal: o.terminal, Width: o.width, Colour: o.colour}
}

func (o *output) styled(style, text string) string { return o.look().Styled(style, text) }

func (o *output) table(t table) string {
	return o.look().Table(screen.Table{Heads: t.heads, Rows: t.rows})
}

func columns(text string) int { return screen.Columns(text) }

func printable(text string) string { return screen.Printable(text) }

func wrapWords(line string, width int, indent string) []string {
	return screen.WrapWords(line, width, indent)
}
