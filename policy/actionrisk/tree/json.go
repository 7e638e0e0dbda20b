// Package tree reads JSON and YAML into one kind of node that knows where it is in
// its text. Both readers are lenient: what an agent sent is judged as far as it can be
// read, and templates in it are text.
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

// Node is one value of a JSON text with the place where it stands. The
// reader is lenient on purpose: a text that strict readers refuse may still be
// acted on by a careless one, so duplicate members are all kept.
type Node struct {
	Kind       byte   // { [ " 0 t f n
	Text       string // content of a string, digits of a number
	Start, End int
	Verbatim   bool // a string without escapes: text is at start+1
	Keys       []string
	Kids       []*Node
}

// maxJSONNodes bounds what is kept of one text.
const maxJSONNodes = 4096

type jsonReader struct {
	text  string
	pos   int
	nodes int
	fault bool        // something is not JSON
	yaml  *act.Budget // of a value of YAML written in one line, whose texts need no quotes; nil of JSON
}

// JSON reads one value and reports whether strict readers accept the text.
// The root is nil if there is nothing that begins like a JSON value.
func JSON(text string) (*Node, bool) {
	r := jsonReader{text: text}
	root := r.value(0, false)
	r.space()
	if root == nil {
		return nil, false
	}
	return root, !r.fault && r.pos == len(text) && canon.Check([]byte(text)) == nil
}

// spend takes a step of the budget, where there is one.
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

// quoted reads a text in quotes.
func (r *jsonReader) quoted(n *Node, quote byte) {
	n.Kind = '"'
	n.Text, n.Verbatim = r.str(quote)
	r.fault = r.fault || quote == '\''
	for r.yaml != nil && quote == '\'' && r.pos < len(r.text) && r.text[r.pos] == '\'' { // a doubled quote is one
		more, _ := r.str(quote)
		n.Text, n.Verbatim = n.Text+"'"+more, false
	}
}

// plain reads a text without quotes that ends there.
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

// plainEnd is where a text without quotes ends that begins at pos.
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

// members reads the inside of an object or array up to its end.
func (r *jsonReader) members(n *Node, depth int) {
	for {
		r.space()
		if r.pos >= len(r.text) || !r.spend() {
			r.fault = true
			return
		}
		switch c := r.text[r.pos]; c {
		case '}', ']':
			r.fault = r.fault || c != n.Kind+2 // as the letters are in ASCII
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

// key reads the key of a member up to its colon.
func (r *jsonReader) key(n *Node, depth int) (string, bool) {
	k := r.value(depth+1, true)
	if r.space(); k != nil && r.pos < len(r.text) && r.text[r.pos] == ':' {
		r.pos++
		return k.Text, true
	}
	r.fault = true
	if r.yaml != nil && k != nil { // a member without a value
		n.Keys, n.Kids = append(n.Keys, ""), append(n.Kids, k)
	}
	return "", false
}

// str reads a string whose quote is at pos.
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

// escapes are those of one letter that do not stand for the letter itself.
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

// Get is the last member of that name (as most readers take it), nil if none.
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

// Str is the text of a string or number member, "" if there is none.
func (n *Node) Str(names ...string) string {
	if v := n.Get(names...); v != nil && (v.Kind == '"' || v.Kind == '0') {
		return v.Text
	}
	return ""
}

// Source is a string node as program text found in src.
func (n *Node) Source(src *act.Source, via string) act.Source {
	span, _ := src.Where(n.Start, n.End)
	out := act.Source{Text: n.Text, At: -1, Span: span, Via: append(append([]string(nil), src.Via...), via), Depth: src.Depth + 1, Layers: src.Layers, Taint: src.Taint}
	if n.Verbatim && src.At >= 0 {
		out.At = src.At + n.Start + 1
	}
	return out
}

// AllStrings tells whether every element of a list is a text.
func AllStrings(n *Node) bool {
	return len(n.Kids) > 0 && !slices.ContainsFunc(n.Kids, func(k *Node) bool { return k.Kind != '"' })
}

// KidsOrNone are the elements, none of a node that is not there.
func (n *Node) KidsOrNone() []*Node {
	if n == nil {
		return nil
	}
	return n.Kids
}

// KeysAt is the key of element i, "" in a list.
func (n *Node) KeysAt(i int) string {
	if n.Kind == '{' && i < len(n.Keys) {
		return n.Keys[i]
	}
	return ""
}

// PlainKey is a member's name without case and signs: filePath and file_path alike.
func PlainKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}
