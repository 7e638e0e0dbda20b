package site

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// markdown makes HTML of Markdown. HTML in the text is left out: what a page says
// may come from a rule or an example. Code has no colours: a highlighter's tables
// would be read at every start of the program, that of the guard before each tool
// call among them.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

func render(text string) (string, error) {
	var out bytes.Buffer
	if err := markdown.Convert([]byte(text), &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

// indented is Markdown as it stands below a heading of another document: without
// its first heading, and with all others one deeper.
func indented(text string) string {
	var out strings.Builder
	code := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
		case !code && strings.HasPrefix(line, "#"):
			line = "#" + line
		}
		out.WriteString(line)
	}
	return out.String()
}
