package actionrisk

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// What an HTTP request carries: SQL in its body, its form or its address, a
// GraphQL mutation, a tool call, a deletion in a search engine's own language.
// Other text in a body is data, whatever it says.

// httpClients send requests.
var httpClients = scan.SetOf("curl http https xh xhs wget httpie curlie Invoke-RestMethod Invoke-WebRequest irm iwr hurl restish")

// queryKeys are members and parameters that services run as statements.
var queryKeys = scan.SetOf("sql query statement stmt statements queries ksql aql cypher db_query raw_query sqltext sql_query command_text gremlin n1ql")

// requestBodies judges what a client sends.
func requestBodies(sh *shell, v *invocation) bool {
	if v.exe == "gh" || v.exe == "glab" {
		sh.apiFields(v)
		return false
	}
	if !httpClients[v.exe] || v.dry {
		return false
	}
	if slices.ContainsFunc(v.operands, searchAddress) {
		return false // what is searched for is no statement
	}
	words := " " + v.host
	for _, w := range v.operands {
		if strings.Contains(w.Text, "?") {
			sh.parameters(w)
		}
		if scheme, host, _, ok := urlOf(w.Text); ok && scheme != "" {
			words += " " + host
		}
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.given && isBodyOption(o.name) {
			sh.optionBody(v, o, words)
		}
	}
	if v.exe == "http" || v.exe == "https" || v.exe == "xh" || v.exe == "xhs" || v.exe == "httpie" {
		sh.items(v, words)
	}
	return false
}

// curlConfig puts the options in curl's -K file, or in the ~/.curlrc that the
// command itself wrote, before its own. One stands on each line: name = "value".
func (sh *shell) curlConfig(v *invocation) {
	var more []Word
	read := func(name Word) {
		f := v.stdin
		if name.Text != "-" && name.Text != "/dev/stdin" {
			f = sh.e.readFile(sh, name)
		}
		if !f.known || !sh.e.budget.spend(1+len(f.word.Text)/8) {
			return
		}
		for line := range strings.Lines(f.word.Text) {
			more = append(more, configLine(line, f.word)...)
		}
	}
	for i := 1; i < len(v.argv); i++ {
		switch t := v.argv[i].Text; {
		case (t == "-K" || t == "--config") && i+1 < len(v.argv):
			i++
			read(v.argv[i])
		case strings.HasPrefix(t, "-K") && len(t) > 2:
			read(Word{Text: t[2:]})
		case strings.HasPrefix(t, "--config="):
			read(Word{Text: strings.TrimPrefix(t, "--config=")})
		}
	}
	if len(sh.e.files) > 0 && len(v.argv) > 1 && v.argv[1].Text != "-q" {
		read(Word{Text: "~/.curlrc"})
		for _, a := range v.env {
			if a.name == "CURL_HOME" || a.name == "XDG_CONFIG_HOME" {
				read(Word{Text: path.Join(a.value.Text, ".curlrc")})
			}
		}
	}
	if len(more) > 0 {
		v.argv = append(append([]Word{v.argv[0]}, more...), v.argv[1:]...)
	}
}

// configLine is one line of curl's configuration as words.
func configLine(line string, at Word) []Word {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil
	}
	end := strings.IndexAny(line, " \t=:")
	name, value := line, ""
	if end > 0 {
		name, value = line[:end], strings.TrimLeft(line[end:], " \t=:")
	}
	if name[0] != '-' {
		name = "--" + name
	}
	words := []Word{{Text: name, At: -1, Span: at.Span, Taint: at.Taint}}
	if name == "--url" {
		words = nil
	}
	if len(value) > 1 && value[0] == '"' {
		value = scan.Unescape(strings.TrimSuffix(value[1:], `"`))
	}
	if value != "" {
		words = append(words, Word{Text: value, At: -1, Span: at.Span, Taint: at.Taint})
	}
	return words
}

// searchAddress: the path names a search.
func searchAddress(w Word) bool {
	address, _, _ := strings.Cut(strings.ToLower(w.Text), "?")
	return strings.Contains(address, "/search") || strings.Contains(address, "/_search") || strings.Contains(address, "autocomplete") || strings.Contains(address, "suggest")
}

func isBodyOption(name string) bool {
	for _, o := range bodyOptions {
		if o == name {
			return true
		}
	}
	return name == "--raw" || name == "-Body"
}

// optionBody judges the value of one option: a text, the input, or a file.
func (sh *shell) optionBody(v *invocation, o *option, words string) {
	text := o.value
	file, ok := strings.CutPrefix(text.Text, "@")
	if o.name == "--post-file" || o.name == "--body-file" || o.name == "-T" || o.name == "--upload-file" {
		file, ok = text.Text, true
	}
	if o.name == "--data-raw" || o.name == "--json" && !ok {
		ok = false
	}
	switch {
	case ok && (file == "-" || file == "." || file == "/dev/stdin"):
		if !v.stdin.known {
			return
		}
		text = v.stdin.word
	case ok:
		f := sh.e.readFile(sh, Word{Text: file})
		if !f.known {
			return
		}
		text = f.word
	}
	src := sh.src.inside(text, v.exe+" body")
	sh.e.runBody(&src, words)
}

// apiFields are those of gh api: -f query=text, -F query=@file.
func (sh *shell) apiFields(v *invocation) {
	for i := range v.opts {
		o := &v.opts[i]
		key, value, ok := strings.Cut(o.value.Text, "=")
		if !o.given || !ok || !queryKeys[key] {
			continue
		}
		text := Word{Text: value, At: -1, Span: o.value.Span}
		if name, ok := strings.CutPrefix(value, "@"); ok {
			f := sh.e.readFile(sh, Word{Text: name})
			if text = f.word; !f.known {
				continue
			}
		}
		src := sh.src.inside(text, v.exe)
		sh.e.runStatement(&src)
	}
}

// items are httpie's: key=value is a member of the body, key:=value one of JSON.
func (sh *shell) items(v *invocation, words string) {
	for _, w := range v.operands {
		key, value, ok := strings.Cut(w.Text, "=")
		if key = strings.TrimSuffix(key, ":"); !ok || strings.Contains(key, "://") {
			continue
		}
		src := sh.src.inside(Word{Text: strings.Trim(strings.TrimPrefix(value, "="), `"`), At: -1, Span: w.Span}, v.exe)
		if queryKeys[strings.ToLower(key)] {
			sh.e.runStatement(&src)
		}
	}
	if v.stdin.known && v.stdin.word.Text != "" {
		src := sh.src.inside(v.stdin.word, v.exe+" body")
		sh.e.runBody(&src, words)
	}
}

// parameters judges the statements in an address: ?query=DROP%20TABLE%20x.
func (sh *shell) parameters(w Word) {
	address, query, _ := strings.Cut(w.Text, "?")
	if strings.HasSuffix(address, "/query") { // InfluxDB's name for it
		query = strings.ReplaceAll("&"+query, "&q=", "&query=")
	}
	sh.e.runForm(&source{text: query, at: -1, span: w.Span, via: sh.src.via, depth: sh.src.depth + 1})
}

// runForm judges key=value&key=value.
func (e *engine) runForm(src *source) {
	for pair := range strings.SplitSeq(src.text, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || !queryKeys[strings.ToLower(key)] || !e.budget.spend(1+len(pair)/16) {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		inner := *src
		inner.text, inner.at, inner.depth = value, -1, src.depth+1
		e.runStatement(&inner)
	}
}

// runStatement runs a text as a statement if it is one.
func (e *engine) runStatement(src *source) bool {
	text := strings.TrimSpace(src.text)
	switch {
	case src.depth > scan.MaxDepth || !e.budget.spend(1):
	case strings.HasPrefix(text, "mutation"):
		w := jsonWalk{e: e, src: src}
		return w.mutation(&jsonNode{kind: '"', text: text, end: len(src.text)})
	case looksSQL(text) || looksMongo(text) || looksRedis(text):
		e.read("sql", src, nil)
		return true
	}
	return false
}

// runBody judges the body of a request.
func (e *engine) runBody(src *source, words string) {
	text := strings.TrimSpace(src.text)
	if text == "" || src.depth > scan.MaxDepth || !e.budget.spend(1+len(text)/8) {
		return
	}
	if text == "null" && (strings.Contains(words, "firebaseio.com") || strings.Contains(words, "firebasedatabase.app")) {
		e.raise("nosql.delete-all", src, 0, len(src.text), "") // what was there is replaced by nothing
		return
	}
	if text[0] == '{' || text[0] == '[' {
		if root, _ := parseJSON(src.text); root != nil {
			w := bodyWalk{jsonWalk{e: e, src: src}, words}
			w.node(root, "")
		}
		return
	}
	if e.runStatement(src) {
		return
	}
	if strings.Contains(text, "=") {
		form := *src
		if strings.HasPrefix(text, "q=") { // of InfluxDB, which takes a form
			form.text, form.at = "query="+text[2:], -1
		}
		e.runForm(&form)
	}
}

// bodyWalk looks for what a service runs in a body of JSON.
type bodyWalk struct {
	jsonWalk
	words string
}

func (w *bodyWalk) node(n *jsonNode, key string) {
	if n == nil || !w.e.budget.spend(1) {
		return
	}
	switch n.kind {
	case '"':
		if queryKeys[strings.ToLower(key)] {
			src := n.source(w.src, "body")
			w.e.runStatement(&src)
		}
	case '[':
		if w.command(n) {
			return
		}
		for _, k := range n.kids {
			w.node(k, key)
		}
	case '{':
		if method := n.str("method"); strings.HasPrefix(method, "tools/") {
			w.mcp(method, n.get("params"))
			return
		}
		w.deletion(n)
		for i, k := range n.kids {
			w.node(k, n.keys[i])
		}
	}
}

// command: a list of words that Redis takes (["FLUSHALL"]), or a list of statements.
func (w *bodyWalk) command(n *jsonNode) bool {
	if len(n.kids) == 0 || n.kids[0].kind != '"' {
		return false
	}
	first := n.kids[0].text
	switch {
	case looksRedis(first):
		parts := make([]string, 0, len(n.kids))
		for _, k := range n.kids {
			parts = append(parts, k.text)
		}
		src := n.source(w.src, "body")
		src.text, src.at = strings.Join(parts, " "), -1
		w.e.redis(&src, src.text, w.words)
		return true
	case len(first) > 10 && looksSQL(first):
		for _, k := range n.kids {
			if k.kind == '"' {
				src := k.source(w.src, "body")
				w.e.runStatement(&src)
			}
		}
		return true
	}
	return false
}

// deletion: bodies by which stores are emptied.
func (w *bodyWalk) deletion(n *jsonNode) {
	all := func(names ...string) bool {
		v := n.get(names...)
		return v != nil && v.kind == 't'
	}
	removes := n.get("delete", "remove")
	if all("deleteAll", "delete_all", "drop_all", "dropAll") || removes.str("query") == "*:*" || n.str("drop_op") == "ALL" {
		w.e.raise("nosql.delete-all", w.src, n.start, n.end, "")
	}
	if n.get("remove_index") != nil {
		w.e.raise("nosql.index-delete", w.src, n.start, n.end, "")
	}
}

// readBody judges the body of a request whose client is known.
func readBody(sh *shell, src *source, _ string, client *invocation) flow {
	sh.e.runBody(src, clientWords(client, src.text))
	return flow{}
}
