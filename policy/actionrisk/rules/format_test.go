package rules

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var update = flag.Bool("update", false, "rewrite the tables in the standard layout")

//go:generate go test -run ^TestTablesAreFormatted$ . -update

// TestTablesAreFormatted checks that each table has the standard layout, so that people can read
// it, and a change of a table has a small diff.
func TestTablesAreFormatted(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := formatted(t, file, text)
		if bytes.Equal(text, want) {
			continue
		}
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("%s does not have the standard layout: run go generate ./policy/actionrisk/rules", file)
	}
}

// formatted returns a table in the standard layout: a value that fits is on one line, with a blank
// after each colon and comma. In a longer value each member or element has its own line, but the
// short words of a list share lines.
func formatted(t *testing.T, file string, text []byte) []byte {
	value := jsontext.Value(text)
	if !value.IsValid() {
		t.Fatalf("%s is not JSON", file)
	}
	w := layout{}
	w.value(read(jsontext.NewDecoder(bytes.NewReader(text))), 0, 0)
	return append(w.out.Bytes(), '\n')
}

// The widths of the layout in characters. A tab counts as tabWidth.
const (
	lineWidth  = 140
	tabWidth   = 4
	shortWidth = 40 // longest word that may share a line
)

// node is a value of a table: a literal, a list or an object.
type node struct {
	text string // a literal as written, or the opening bracket
	keys []string
	kids []node
}

func read(d *jsontext.Decoder) node {
	token, err := d.ReadToken()
	if err != nil {
		panic(err)
	}
	n := node{text: raw(token)}
	switch token.Kind() {
	case '{', '[':
		for d.PeekKind() != '}' && d.PeekKind() != ']' {
			if token.Kind() == '{' {
				n.keys = append(n.keys, read(d).text)
			}
			n.kids = append(n.kids, read(d))
		}
		_, err = d.ReadToken()
	}
	if err != nil {
		panic(err)
	}
	return n
}

// raw returns a token as JSON with only the necessary escapes.
func raw(token jsontext.Token) string {
	switch token.Kind() {
	case '{', '[':
		return token.Kind().String()
	case '"':
		text, err := jsontext.AppendQuote(nil, token.String())
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	return token.String()
}

type layout struct{ out bytes.Buffer }

// line returns a value on one line.
func (n node) line() string {
	if n.text != "{" && n.text != "[" {
		return n.text
	}
	parts := make([]string, len(n.kids))
	for i, kid := range n.kids {
		if parts[i] = kid.line(); n.keys != nil {
			parts[i] = n.keys[i] + ": " + parts[i]
		}
	}
	return n.text + strings.Join(parts, ", ") + n.closing()
}

func (n node) closing() string {
	if n.text == "{" {
		return "}"
	}
	return "]"
}

// words reports whether a node is a list of short words only.
func (n node) words() bool {
	for _, kid := range n.kids {
		if kid.kids != nil || utf8.RuneCountInString(kid.text) > shortWidth {
			return false
		}
	}
	return n.text == "["
}

// tabs returns the indentation at a depth. The rows of a table, which is a list in an object, are
// not indented.
func tabs(depth int) string { return strings.Repeat("\t", max(0, depth-2)) }

// value writes a value at a depth in the table. behind is the number of characters before the
// value on its line.
func (w *layout) value(n node, depth, behind int) {
	if line := n.line(); depth > 0 && behind+utf8.RuneCountInString(line)+1 <= lineWidth || n.kids == nil {
		w.out.WriteString(line)
		return
	}
	w.out.WriteString(n.text)
	column := lineWidth // so that the first word begins a new line
	words := n.words()
	margin := tabs(depth + 1)
	if words && margin == "" {
		margin = "\t"
	}
	for i, kid := range n.kids {
		key := ""
		if n.keys != nil {
			key = n.keys[i] + ": "
		}
		width := utf8.RuneCountInString(key + kid.line())
		if words && column+1+width+1 <= lineWidth {
			w.out.WriteString(" " + kid.text)
			column += 1 + width
		} else {
			w.out.WriteString("\n" + margin + key)
			column = len(margin)*tabWidth + utf8.RuneCountInString(key)
			w.value(kid, depth+1, column)
			column += width
		}
		if i+1 < len(n.kids) {
			w.out.WriteString(",")
			column++
		}
	}
	w.out.WriteString("\n" + tabs(depth) + n.closing())
}
