// Package tree parses JSON and YAML into nodes of one type. A node contains its offsets in the
// text. Both parsers are lenient: they return as much as they can parse, because an agent may send
// invalid text, and they read a template as ordinary text.
package tree

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/canon"
)

// Node is one value of a JSON or YAML text with its offsets. The parser keeps all members that
// have the same name: a strict parser refuses such a text, but a lenient one may act on any of
// them.
type Node struct {
	Kind       byte   // '{' object, '[' list, '"' string, '0' number or unquoted text, 't' true, 'f' false, 'n' null
	Text       string // content of a string, or a literal as written; empty for objects and lists
	Start, End int
	Verbatim   bool // a string without escapes: its text begins at Start+1
	Keys       []string
	Kids       []*Node
}

// maxJSONNodes is the largest number of nodes that are parsed from one text.
const maxJSONNodes = 4096

type jsonReader struct {
	text  string
	pos   int
	nodes int
	fault bool        // the text is not valid JSON
	yaml  *act.Budget // budget of a YAML flow value, in which strings need no quotes; nil for JSON
}

// JSON parses one value and reports whether strict parsers accept the text. It returns nil if the
// text begins with nothing that can be a JSON value.
func JSON(text string) (*Node, bool) {
	r := jsonReader{text: text}
	root := r.value(0, false)
	r.space()
	if root == nil {
		return nil, false
	}
	return root, !r.fault && r.pos == len(text) && canon.Check([]byte(text)) == nil
}

// spend takes one step from the budget and reports whether it had one. JSON has no budget.
func (r *jsonReader) spend() bool { return r.yaml == nil || r.yaml.Spend(1) }

func (r *jsonReader) space() {
	for r.pos < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.pos]) >= 0 {
		r.pos++
	}
}

func (r *jsonReader) value(depth int, key bool) *Node {
	r.space()
	if r.pos >= len(r.text) || depth > scan.MaxJSONDepth || r.nodes >= maxJSONNodes || !r.spend() {
		r.fault = true
		return nil
	}
	r.nodes++
	n := &Node{Start: r.pos}
	switch c := r.text[r.pos]; c {
	case '{', '[':
		n.Kind = c
		r.pos++
		r.members(n, depth)
	case '"', '\'':
		r.quoted(n, c)
	default:
		end := r.plainEnd(key)
		if end == r.pos {
			r.fault = true
			r.pos++
			return nil
		}
		r.plain(n, end)
	}
	n.End = r.pos
	return n
}

// quoted parses a string in quotes into n.
func (r *jsonReader) quoted(n *Node, quote byte) {
	n.Kind = '"'
	n.Text, n.Verbatim = r.str(quote)
	r.fault = r.fault || quote == '\''
	for r.yaml != nil && quote == '\'' && r.pos < len(r.text) && r.text[r.pos] == '\'' { // YAML writes a single quote as two
		more, _ := r.str(quote)
		n.Text, n.Verbatim = n.Text+"'"+more, false
	}
}

// plain parses the text without quotes up to end into n.
func (r *jsonReader) plain(n *Node, end int) {
	n.Text, n.Kind = r.text[r.pos:end], '0'
	r.pos = end
	switch {
	case r.yaml != nil:
		n.Text, n.Kind = unquoted(n.Text), '"'
		n.classify()
	case n.Text == "true" || n.Text == "false" || n.Text == "null":
		n.Kind = n.Text[0]
	}
}

// plainEnd returns the end of the text without quotes that begins at pos.
func (r *jsonReader) plainEnd(key bool) int {
	if r.yaml != nil && strings.IndexByte(":,]}", r.text[r.pos]) < 0 {
		return r.yamlEnd(key)
	}
	end := r.pos
	for end < len(r.text) && strings.IndexByte(" \t\r\n,:{}[]\"'", r.text[end]) < 0 {
		end++
	}
	return end
}

// members parses the elements of an object or list, up to and including the closing bracket.
func (r *jsonReader) members(n *Node, depth int) {
	for {
		r.space()
		if r.pos >= len(r.text) || !r.spend() {
			r.fault = true
			return
		}
		switch c := r.text[r.pos]; c {
		case '}', ']':
			r.fault = r.fault || c != n.Kind+2 // in ASCII, the code of a closing bracket is that of the opening one plus 2
			r.pos++
			return
		case ',':
			r.pos++
			continue
		}
		key, ok := "", true
		if n.Kind == '{' {
			key, ok = r.key(n, depth)
		}
		if ok {
			if v := r.value(depth+1, false); v != nil {
				n.Keys, n.Kids = append(n.Keys, key), append(n.Kids, v)
				continue
			}
		}
		if r.nodes >= maxJSONNodes || depth >= scan.MaxJSONDepth {
			r.pos = len(r.text)
		}
	}
}

// key parses the key of a member, up to and including the colon.
func (r *jsonReader) key(n *Node, depth int) (string, bool) {
	k := r.value(depth+1, true)
	if r.space(); k != nil && r.pos < len(r.text) && r.text[r.pos] == ':' {
		r.pos++
		return k.Text, true
	}
	r.fault = true
	if r.yaml != nil && k != nil { // YAML allows a key without a value
		n.Keys, n.Kids = append(n.Keys, ""), append(n.Kids, k)
	}
	return "", false
}

// str parses the string whose opening quote is at pos. verbatim means that it has no escapes.
func (r *jsonReader) str(quote byte) (text string, verbatim bool) {
	r.pos++
	from := r.pos
	for i := from; i < len(r.text); i++ {
		switch r.text[i] {
		case quote:
			r.pos = i + 1
			return r.text[from:i], true
		case '\\':
			return r.escaped(from, quote), false
		}
	}
	r.fault, r.pos = true, len(r.text)
	return r.text[from:], true
}

// escapes maps the letter of an escape to its character, for escapes of one letter. All other
// escaped characters are kept as they are.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': ' ', 'f': ' '}

func (r *jsonReader) escaped(from int, quote byte) string {
	var b strings.Builder
	i := from
	for i < len(r.text) && r.text[i] != quote {
		if r.text[i] != '\\' || i+1 >= len(r.text) {
			b.WriteByte(r.text[i])
			i++
			continue
		}
		i++
		if c := r.text[i]; c != 'u' {
			b.WriteByte(cmp.Or(escapes[c], c))
		} else if i+5 <= len(r.text) {
			if n, err := strconv.ParseUint(r.text[i+1:i+5], 16, 16); err == nil {
				b.WriteRune(rune(n))
				i += 4
			}
		}
		i++
	}
	if i >= len(r.text) {
		r.fault = true
	}
	r.pos = min(i+1, len(r.text))
	return b.String()
}

// Get returns the value of the first of the names that the object has. If a name occurs several
// times, the last one counts, as in most parsers. It returns nil if there is none.
func (n *Node) Get(names ...string) *Node {
	if n == nil || n.Kind != '{' {
		return nil
	}
	for _, name := range names {
		for i := len(n.Keys) - 1; i >= 0; i-- {
			if n.Keys[i] == name {
				return n.Kids[i]
			}
		}
	}
	return nil
}

// Str returns the text of the member that Get finds, if it is a string or a number, otherwise "".
func (n *Node) Str(names ...string) string {
	if v := n.Get(names...); v != nil && (v.Kind == '"' || v.Kind == '0') {
		return v.Text
	}
	return ""
}

// Source returns the text of a string node as a program text that was found in src.
func (n *Node) Source(src *act.Source, via string) act.Source {
	span, _ := src.Where(n.Start, n.End)
	out := act.Source{Text: n.Text, At: -1, Span: span, Via: append(append([]string(nil), src.Via...), via), Depth: src.Depth + 1, Layers: src.Layers, Taint: src.Taint}
	if n.Verbatim && src.At >= 0 {
		out.At = src.At + n.Start + 1
	}
	return out
}

// AllStrings reports whether a list has elements and all of them are strings.
func AllStrings(n *Node) bool {
	return len(n.Kids) > 0 && !slices.ContainsFunc(n.Kids, func(k *Node) bool { return k.Kind != '"' })
}

// KidsOrNone returns the children of a node, or none if the node is nil.
func (n *Node) KidsOrNone() []*Node {
	if n == nil {
		return nil
	}
	return n.Kids
}

// KeysAt returns the key of child i of an object, and "" for a list.
func (n *Node) KeysAt(i int) string {
	if n.Kind == '{' && i < len(n.Keys) {
		return n.Keys[i]
	}
	return ""
}

// PlainKey returns a member's name in lower case without "_" and "-", so that filePath and
// file_path are equal.
func PlainKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}
