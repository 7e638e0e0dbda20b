package main

import "github.com/countersign/countersign/cmd/countersign/screen"

// look is how package screen shows a result here.
func (o *output) look() screen.Look {
	return screen.Look{Terminal: o.terminal, Width: o.width, Colour: o.colour}
}

func (o *output) styled(style, text string) string { return o.look().Styled(style, text) }

func (o *output) table(t screen.Table) string { return o.look().Table(t) }
