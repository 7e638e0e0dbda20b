package tree

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// This file parses the YAML of operations tools: manifests, compose files, playbooks, client
// settings. The parser is lenient: it skips what it does not support (tags, directives). An alias
// is replaced with the node of its anchor, so that this node occurs more than once in the tree.

// yamlLine is a line that is neither empty nor a comment. text[from:to] is its content after the
// indentation.
type yamlLine struct{ indent, from, to int }

type yamlReader struct {
	text  string
	lines []yamlLine
	at    int // index of the next line to parse
	nodes int
	b     *act.Budget
	// anchors maps the name of an anchor to its node and the number of nodes below it.
	anchors map[string]anchored
}

type anchored struct {
	node *Node
	size int
}

// YAML parses a text, which may be JSON, and returns one node for each document in it.
func YAML(text string, b *act.Budget) []*Node {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "{{") || strings.HasPrefix(trimmed, "[") {
		r := yamlReader{text: text, b: b}
		if n, _ := r.flow(len(text)-len(trimmed), 0); n != nil {
			return []*Node{n}
		}
		return nil
	}
	var out []*Node
	for from := 0; from <= len(text); {
		end, next := documentEnd(text, from)
		r := yamlReader{text: text, b: b}
		if !r.split(from, end) {
			break
		}
		if n := r.block(-1, 0); n != nil {
			out = append(out, n)
		}
		from = next
	}
	return out
}

// documentEnd returns the end of the document that begins at from, which is at a line "---" or
// "...", and the start of the next document.
func documentEnd(text string, from int) (end, next int) {
	for at := from; at < len(text); {
		line := text[at:]
		if i := strings.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		if strings.HasPrefix(line, "---") && strings.TrimSpace(line[3:]) == "" || strings.TrimRight(line, " \r") == "..." {
			return at, at + len(line) + 1
		}
		at += len(line) + 1
	}
	return len(text), len(text) + 1
}

// split collects the lines of text[from:end]. It returns false if the budget is spent.
func (r *yamlReader) split(from, end int) bool {
	for from < end {
		to := end
		if i := strings.IndexByte(r.text[from:end], '\n'); i >= 0 {
			to = from + i
		}
		if !r.b.Spend(1) {
			return false
		}
		start := from
		for start < to && (r.text[start] == ' ' || r.text[start] == '\t') {
			start++
		}
		if start < to && r.text[start] != '#' && r.text[start] != '\r' {
			r.lines = append(r.lines, yamlLine{start - from, start, to})
		}
		from = to + 1
	}
	return true
}

// block parses the value whose lines are indented by more than outer.
func (r *yamlReader) block(outer, depth int) *Node {
	if r.at >= len(r.lines) || depth > scan.MaxJSONDepth || r.nodes >= maxJSONNodes || !r.b.Spend(1) {
		return nil
	}
	l := r.lines[r.at]
	if l.indent <= outer {
		return nil
	}
	content := r.text[l.from:l.to]
	if content[0] == '&' || content[0] == '!' {
		return r.named(&r.lines[r.at], outer, depth)
	}
	if isItem(content) {
		return r.sequence(l.indent, depth)
	}
	if _, rest := r.key(l); rest >= 0 {
		return r.mapping(l.indent, depth)
	}
	r.at++
	return r.scalar(l.from, l.to, outer, depth)
}

// named parses a value whose first line begins with an anchor or a tag.
func (r *yamlReader) named(l *yamlLine, outer, depth int) *Node {
	anchor, from := r.properties(l.from, l.to)
	before := r.nodes
	if l.indent, l.from = l.indent+from-l.from, from; from >= l.to {
		r.at++
	}
	n := r.block(outer, depth+1)
	r.anchor(anchor, n, before)
	return n
}

// properties skips the anchors and tags at from. It returns the last anchor and the offset after
// them.
func (r *yamlReader) properties(from, to int) (anchor string, at int) {
	for from < to && (r.text[from] == '&' || r.text[from] == '!') {
		word := r.text[from:to]
		if i := strings.IndexAny(word, " \t\r"); i >= 0 {
			word = word[:i]
		}
		if word[0] == '&' {
			anchor = word[1:]
		}
		for from += len(word); from < to && strings.IndexByte(" \t\r", r.text[from]) >= 0; from++ {
		}
	}
	return anchor, from
}

// anchor stores the node n under the name of an anchor. before is the value of r.nodes before n
// was parsed.
func (r *yamlReader) anchor(name string, n *Node, before int) {
	if name == "" || n == nil {
		return
	}
	if r.anchors == nil {
		r.anchors = map[string]anchored{}
	}
	r.anchors[name] = anchored{n, r.nodes - before}
}

// aliased returns the node that a plain text "*name" refers to, and n if it refers to none. The
// copied nodes count against the limit, so that nested aliases cannot grow exponentially.
func (r *yamlReader) aliased(n *Node) *Node {
	name, alias := strings.CutPrefix(n.Text, "*")
	a := r.anchors[name]
	if !alias || n.Kind != '"' || n.Verbatim || a.node == nil {
		return n
	}
	if r.nodes += a.size; r.nodes >= maxJSONNodes || !r.b.Spend(a.size) {
		r.b.Spend(r.b.Left + 1)
		return n
	}
	return a.node
}

// aliases replaces the aliases inside a flow value with the nodes of their anchors.
func (r *yamlReader) aliases(n *Node) {
	for i, kid := range n.Kids {
		r.aliases(kid)
		n.Kids[i] = r.aliased(kid)
	}
	n.merge()
}

// merge adds the members of the objects under the key "<<", except those that n has itself.
func (n *Node) merge() {
	from := n.Get("<<")
	if from == nil {
		return
	}
	at := slices.Index(n.Keys, "<<")
	n.Keys, n.Kids = slices.Delete(n.Keys, at, at+1), slices.Delete(n.Kids, at, at+1)
	if from.Kind == '{' {
		from = &Node{Kids: []*Node{from}}
	}
	for _, m := range from.Kids {
		for i, key := range m.Keys {
			if m.Kind == '{' && !slices.Contains(n.Keys, key) {
				n.Keys, n.Kids = append(n.Keys, key), append(n.Kids, m.Kids[i])
			}
		}
	}
}

func isItem(content string) bool {
	content = strings.TrimRight(content, "\r")
	return content == "-" || strings.HasPrefix(content, "- ") || strings.HasPrefix(content, "-\t")
}

// key returns the key at the start of a line and the offset after its colon, or -1 if the line
// begins with no key.
func (r *yamlReader) key(l yamlLine) (string, int) {
	content := strings.TrimRight(r.text[l.from:l.to], "\r")
	switch c := content[0]; c {
	case '{', '[':
		return "", -1
	case '"', '\'':
		key, rest, _ := strings.Cut(content[1:], string(c))
		if !strings.HasPrefix(rest, ":") {
			return "", -1
		}
		return key, l.from + len(key) + 3
	}
	content, _, _ = strings.Cut(content, " #")
	for i := 0; i < len(content); i++ {
		if content[i] == ':' && (i+1 == len(content) || content[i+1] == ' ' || content[i+1] == '\t') {
			return strings.TrimSpace(content[:i]), l.from + i + 1
		}
	}
	return "", -1
}

func (r *yamlReader) mapping(indent, depth int) *Node {
	n := r.node('{', r.lines[r.at].from)
	for r.at < len(r.lines) && r.lines[r.at].indent == indent {
		l := r.lines[r.at]
		key, rest := r.key(l)
		if rest < 0 {
			r.at++
			continue
		}
		r.at++
		v := r.value(rest, l.to, indent, depth+1)
		if v == nil { // no value, or a list that is indented no more than its key
			if r.at < len(r.lines) && r.lines[r.at].indent == indent && isItem(r.text[r.lines[r.at].from:r.lines[r.at].to]) {
				v = r.sequence(indent, depth+1)
			} else {
				v = r.node('n', rest)
			}
		}
		n.Keys, n.Kids, n.End = append(n.Keys, key), append(n.Kids, v), max(v.End, l.to)
		for r.at < len(r.lines) && r.lines[r.at].indent > indent { // skip lines that could not be parsed
			r.at++
		}
		if r.nodes >= maxJSONNodes {
			break
		}
	}
	n.merge()
	return n
}

func (r *yamlReader) sequence(indent, depth int) *Node {
	n := r.node('[', r.lines[r.at].from)
	for r.at < len(r.lines) && r.lines[r.at].indent == indent && depth <= scan.MaxJSONDepth && r.nodes < maxJSONNodes && r.b.Spend(1) {
		l := &r.lines[r.at]
		content := r.text[l.from:l.to]
		if !isItem(content) {
			break
		}
		rest := strings.TrimLeft(content[1:], " \t\r")
		var v *Node
		if rest == "" {
			r.at++
			v = r.block(indent, depth+1)
		} else { // the item begins on this line: parse the rest as a line with deeper indentation
			skip := len(content) - len(rest)
			l.indent, l.from = l.indent+skip, l.from+skip
			v = r.block(indent, depth+1)
		}
		if v == nil {
			v = r.node('n', l.from)
		}
		n.Keys, n.Kids, n.End = append(n.Keys, ""), append(n.Kids, v), max(n.End, v.End)
		for r.at < len(r.lines) && r.lines[r.at].indent > indent {
			r.at++
		}
	}
	return n
}

func (r *yamlReader) node(kind byte, start int) *Node {
	r.nodes++
	return &Node{Kind: kind, Start: start, End: start}
}

// value parses the value after a key. It returns nil if there is none.
func (r *yamlReader) value(from, to, indent, depth int) *Node {
	for from < to && strings.IndexByte(" \t\r", r.text[from]) >= 0 {
		from++
	}
	before := r.nodes
	anchor, from := r.properties(from, to)
	var n *Node
	if from >= to || r.text[from] == '#' {
		n = r.block(indent, depth)
	} else {
		n = r.scalar(from, to, indent, depth)
	}
	r.anchor(anchor, n, before)
	return n
}

// scalar parses the plain text, flow value or block scalar that begins at from.
func (r *yamlReader) scalar(from, to, indent, depth int) *Node {
	switch c := r.text[from]; {
	case c == '|' || c == '>':
		return r.literal(from, to, indent, c == '>')
	case (c == '{' || c == '[') && !strings.HasPrefix(r.text[from:], "{{"), c == '"', c == '\'':
		n, end := r.flow(from, depth)
		for r.at < len(r.lines) && r.lines[r.at].from < end { // skip the further lines that the value covers
			r.at++
		}
		return n
	}
	n := r.node('"', from)
	n.Text = unquoted(r.text[from:to])
	for r.at < len(r.lines) && r.lines[r.at].indent > indent && indent >= 0 && len(n.Text) < scan.MaxValue {
		l := r.lines[r.at]
		n.Text += " " + unquoted(r.text[l.from:l.to])
		to = l.to
		r.at++
	}
	n.End = to
	n.classify()
	return r.aliased(n)
}

// unquoted returns a plain text without the comment after it.
func unquoted(text string) string {
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSpace(text)
}

// classify sets the kind of a plain text that is a number, a boolean or null.
func (n *Node) classify() {
	switch strings.ToLower(n.Text) {
	case "true", "yes", "on":
		n.Kind = 't'
	case "false", "no", "off":
		n.Kind = 'f'
	case "null", "~", "":
		n.Kind = 'n'
	default:
		if strings.Trim(n.Text, "0123456789.-") == "" {
			n.Kind = '0'
		}
	}
}

// literal parses a block scalar: the indented lines after "|", or after ">", which folds them into
// one line.
func (r *yamlReader) literal(from, to, indent int, folded bool) *Node {
	n := r.node('"', from)
	var lines []string
	first, end := -1, to
	for r.at < len(r.lines) && r.lines[r.at].indent > indent && r.b.Spend(1) {
		l := r.lines[r.at]
		if first < 0 {
			first = l.indent
		}
		lines = append(lines, strings.Repeat(" ", max(l.indent-first, 0))+strings.TrimRight(r.text[l.from:l.to], "\r"))
		end = l.to
		r.at++
	}
	sep := "\n"
	if folded {
		sep = " "
	}
	n.Text, n.End = strings.Join(lines, sep), end
	return n
}

// flow parses a value in flow style: {a: b, c: [d]} or "text". It returns the offset of its end.
func (r *yamlReader) flow(at, depth int) (*Node, int) {
	j := jsonReader{text: r.text, pos: at, nodes: r.nodes, yaml: r.b}
	n := j.value(depth, false)
	if r.nodes = j.nodes; n == nil {
		return nil, len(r.text)
	}
	r.aliases(n)
	return n, j.pos
}

// yamlEnd returns the end of a plain text inside a flow value. A colon ends the text only before a
// blank or a bracket; but a key may end at any colon, because jq writes {spec:{replicas:0}}.
func (r *jsonReader) yamlEnd(key bool) int {
	text, end := r.text, r.pos
	for end < len(text) && strings.IndexByte(",]}\n", text[end]) < 0 && !(text[end] == ':' && (end+1 >= len(text) || strings.IndexByte(" ,]}\n{[\"", text[end+1]) >= 0)) {
		end++
	}
	if colon := strings.IndexByte(text[r.pos:end], ':'); key && colon > 0 && act.SyntaxName(text[r.pos:r.pos+colon]) {
		return r.pos + colon
	}
	return end
}

// Truth reports whether a value is true, yes or on, quoted or not.
func (n *Node) Truth() bool {
	if n == nil {
		return false
	}
	switch strings.ToLower(n.Text) {
	case "true", "yes", "on":
		return true
	}
	return n.Kind == 't'
}
