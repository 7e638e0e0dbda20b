package site

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown converts Markdown to HTML. HTML in the text is dropped, because a text may come from a
// rule or an example. Code is not highlighted, because the tables of a highlighter would be loaded
// at every start, and the guard starts before each tool call.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(amounts{}, 500))),
)

// amounts gives right-aligned table cells a class instead of an inline style, because the content
// policy of pages forbids inline styles.
type amounts struct{}

// Transform implements parser.ASTTransformer.
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
	// An empty head of a column is no heading; a screen reader would announce it as one.
	return strings.ReplaceAll(out.String(), "<th></th>", "<td></td>"), nil
}

// indented returns Markdown to include in another document: without its first heading, and with
// all other headings one level deeper.
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

// Heading is a heading with its id on the page.
type Heading struct{ ID, Title string }

var (
	headingPattern = regexp.MustCompile(`<h2 id="([^"]+)">(.*?)</h2>`)
	tagPattern     = regexp.MustCompile(`<[^>]*>`)
)

// headingsOf returns the headings of the second level of a page.
func headingsOf(page string) (list []Heading) {
	for _, h := range headingPattern.FindAllStringSubmatch(page, -1) {
		list = append(list, Heading{h[1], html.UnescapeString(tagPattern.ReplaceAllString(h[2], ""))})
	}
	return list
}
