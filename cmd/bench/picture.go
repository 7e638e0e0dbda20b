package main

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// pictureCmd runs countersign demo and draws its output in a terminal window. The README shows
// this picture.
type pictureCmd struct {
	rig.Built
	Out string `help:"File of the picture." default:"api/web/assets/demo.svg"`
}

// Run runs the demo and writes the picture.
func (c *pictureCmd) Run(ctx context.Context) error {
	return c.With(ctx, func(program string) error {
		demo := exec.CommandContext(ctx, program, "demo", "--color", "never")
		demo.Stderr = os.Stderr
		text, err := demo.Output()
		if err != nil {
			return fmt.Errorf("run the demo: %w", err)
		}
		return os.WriteFile(c.Out, terminal(string(bytes.TrimSpace(text))), 0o644)
	})
}

// Dimensions of the picture: width of a character, height of a line, margin, and characters per
// line.
const (
	charWidth, lineHeight, edge = 8, 18, 20
	columns                     = 112
)

// said matches the words that state a verdict. The picture shows them in color.
var said = regexp.MustCompile(`\b(low|medium|high|critical|go ahead|VALID|NOT VALID|pass|fail|0 faults)\b`)

var colourOf = map[string]string{"low": "#6fd08c", "go ahead": "#6fd08c", "VALID": "#6fd08c", "pass": "#6fd08c", "0 faults": "#6fd08c",
	"medium": "#e6c067", "high": "#f0965a", "critical": "#ff7b72", "NOT VALID": "#ff7b72", "fail": "#ff7b72"}

// terminal returns an SVG picture of lines of text in a terminal window. Its title describes the
// picture for screen readers.
func terminal(text string) []byte {
	lines := append([]string{"$ countersign demo", ""}, strings.Split(text, "\n")...)
	width, height := columns*charWidth+2*edge, len(lines)*lineHeight+2*edge
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">`+"\n", width, height)
	out.WriteString("<title>A terminal that shows countersign demo: verdicts on five commands, a signed receipt verified, a changed one refused</title>\n")
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="#11161d"/>`+"\n", width, height)
	for i, line := range lines {
		if runes := []rune(line); len(runes) > columns {
			line = string(runes[:columns-1]) + "…"
		}
		colour := "#c9d1d9"
		if line != "" && (line[0] == '$' || line[0] >= '1' && line[0] <= '9') {
			colour = "#ffffff"
		}
		shown := said.ReplaceAllStringFunc(html.EscapeString(line), func(word string) string {
			return `<tspan fill="` + colourOf[word] + `">` + word + "</tspan>"
		})
		fmt.Fprintf(&out, `<text x="%d" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n", edge, edge+(i+1)*lineHeight-5, colour, shown)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
