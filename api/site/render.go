package site

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown makes HTML of Markdown. HTML in the text is left out: what a page says
// may come from a rule or an example. Code has no colours: a highlighter's tables
// would be read at every start of the program, that of the guard before each tool
// call among them.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(amounts{}, 500))),
)

// amounts gives the cells of a column that is aligned to the right the class that the
// style sheet aligns: a style within the page is what the pages' policy forbids.
type amounts struct{}

func (amounts) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if cell, is := n.(*tables.TableCell); is && entering && cell.Alignment == tables.AlignRight {
			cell.SetAttributeString("class", []byte("amount"))
		}
		return ast.WalkContinue, nil
	})
}

func render(markup string) (string, error) {
	var out bytes.Buffer
	if err := markdown.Convert([]byte(markup), &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

// indented is Markdown as it stands below a heading of another document: without
// its first heading, and with all others one deeper.
func indented(markup string) string {
	var out strings.Builder
	code := false
	for line := range strings.Lines(markup) {
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
