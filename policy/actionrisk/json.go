package actionrisk

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/canon"
)

// jsonNode is one value of a JSON text with the place where it stands. The
// reader is lenient on purpose: a text that strict readers refuse may still be
// acted on by a careless one, so duplicate members are all kept.
type jsonNode struct {
	kind       byte   // { [ " 0 t f n
	text       string // content of a string, digits of a number
	start, end int
	verbatim   bool // a string without escapes: text stands at start+1
	keys       []string
	kids       []*jsonNode
}

// maxJSONNodes bounds what is kept of one text.
const maxJSONNodes = 4096

type jsonReader struct {
	text  string
	pos   int
	nodes int
	fault bool // something is not JSON
}

// parseJSON reads one value and reports whether strict readers accept the text.
// The root is nil if there is nothing that begins like a JSON value.
func parseJSON(text string) (*jsonNode, bool) {
	r := jsonReader{text: text}
	root := r.value(0)
	r.space()
	if root == nil {
		return nil, false
	}
	return root, !r.fault && r.pos == len(text) && canon.Check([]byte(text)) == nil
}

func (r *jsonReader) space() {
	for r.pos < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.pos]) >= 0 {
		r.pos++
	}
}

func (r *jsonReader) value(depth int) *jsonNode {
	r.space()
	if r.pos >= len(r.text) || depth > scan.MaxJSONDepth || r.nodes >= maxJSONNodes {
		r.fault = true
		return nil
	}
	r.nodes++
	n := &jsonNode{start: r.pos}
	switch c := r.text[r.pos]; {
	case c == '{' || c == '[':
		n.kind = c
		r.pos++
		r.members(n, depth)
	case c == '"' || c == '\'':
		n.kind = '"'
		n.text, n.verbatim = r.str(c)
		r.fault = r.fault || c == '\''
	default:
		from := r.pos
		for r.pos < len(r.text) && strings.IndexByte(" \t\r\n,:{}[]\"'", r.text[r.pos]) < 0 {
			r.pos++
		}
		if r.pos == from {
			r.fault = true
			r.pos++
			return nil
		}
		n.text = r.text[from:r.pos]
		n.kind = '0'
		switch n.text {
		case "true", "false", "null":
			n.kind = n.text[0]
		}
	}
	n.end = r.pos
	return n
}

// members reads the inside of an object or array up to its end.
func (r *jsonReader) members(n *jsonNode, depth int) {
	closing := byte('}')
	if n.kind == '[' {
		closing = ']'
	}
	for {
		r.space()
		if r.pos >= len(r.text) {
			r.fault = true
			return
		}
		switch r.text[r.pos] {
		case closing:
			r.pos++
			return
		case ',':
			r.pos++
			continue
		case '}', ']':
			r.fault = true
			r.pos++
			return
		}
		key := ""
		if n.kind == '{' {
			k := r.value(depth + 1)
			if r.space(); k == nil || r.pos >= len(r.text) || r.text[r.pos] != ':' {
				r.fault = true
				if r.nodes >= maxJSONNodes || depth >= scan.MaxJSONDepth {
					r.pos = len(r.text)
				}
				continue
			}
			r.pos++
			key = k.text
		}
		if v := r.value(depth + 1); v != nil {
			n.keys = append(n.keys, key)
			n.kids = append(n.kids, v)
		} else if r.nodes >= maxJSONNodes || depth >= scan.MaxJSONDepth {
			r.pos = len(r.text)
		}
	}
}

// str reads a string whose quote stands at pos.
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
		switch c := r.text[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b', 'f':
			b.WriteByte(' ')
		case 'u':
			if i+5 <= len(r.text) {
				if n, err := strconv.ParseUint(r.text[i+1:i+5], 16, 16); err == nil {
					var buf [4]byte
					b.Write(buf[:utf8.EncodeRune(buf[:], rune(n))])
					i += 4
				}
			}
		default:
			b.WriteByte(c)
		}
		i++
	}
	if i >= len(r.text) {
		r.fault = true
	}
	r.pos = min(i+1, len(r.text))
	return b.String()
}

// get is the last member of that name (as most readers take it), nil if none.
func (n *jsonNode) get(names ...string) *jsonNode {
	if n == nil || n.kind != '{' {
		return nil
	}
	for _, name := range names {
		for i := len(n.keys) - 1; i >= 0; i-- {
			if n.keys[i] == name {
				return n.kids[i]
			}
		}
	}
	return nil
}

// str is the text of a string or number member, "" if there is none.
func (n *jsonNode) str(names ...string) string {
	if v := n.get(names...); v != nil && (v.kind == '"' || v.kind == '0') {
		return v.text
	}
	return ""
}

// source is a string node as program text found in src.
func (n *jsonNode) source(src *source, via string) source {
	span, _ := src.where(n.start, n.end)
	out := source{text: n.text, at: -1, span: span, via: append(append([]string(nil), src.via...), via), depth: src.depth + 1, layers: src.layers, taint: src.taint}
	if n.verbatim && src.at >= 0 {
		out.at = src.at + n.start + 1
	}
	return out
}

// runJSON reads src as one JSON value. Text that only begins like JSON, such as
// a shell's { list; } or [ test ], is not taken.
func (e *engine) runJSON(src *source) bool {
	text := strings.TrimLeft(src.text, " \t\r\n\ufeff")
	if len(text) < 2 {
		return false
	}
	next := strings.TrimLeft(text[1:], " \t\r\n")
	if next == "" || strings.IndexByte("\"'{}[]", next[0]) < 0 && !(text[0] == '[' && next[0] >= '0' && next[0] <= '9') && !bareMember(text[0], next) {
		return false
	}
	if text[0] == '[' && next[0] == '[' && !strings.Contains(text, "]]]") && strings.HasPrefix(text, "[[ ") {
		return false // a shell's [[ test ]]
	}
	if !e.budget.spend(len(src.text) / 4) {
		return false
	}
	shift := len(src.text) - len(text)
	inner := *src
	inner.text = text
	if inner.at >= 0 {
		inner.at += shift
	}
	root, strict := parseJSON(text)
	if root == nil {
		return false
	}
	if !strict && root.end < len(text) && strings.TrimSpace(text[root.end:]) != "" && len(root.kids) == 0 {
		return false
	}
	e.ran = true
	if !strict {
		e.unparsed = true
		e.raise("parse.unparsed", &inner, 0, len(text), "")
	}
	if scan.Nesting(text) >= scan.MaxJSONDepth {
		e.tooDeep = true
	}
	w := jsonWalk{e: e, src: &inner}
	w.node(root, "")
	if !w.known {
		e.unproven = true
	}
	if rest := strings.TrimSpace(text[min(root.end, len(text)):]); rest != "" && rest[0] == '{' { // JSON lines
		more := inner
		more.text = text[root.end:]
		if more.at >= 0 {
			more.at += root.end
		}
		more.depth++
		if more.depth <= scan.MaxDepth {
			e.runJSON(&more)
		}
	}
	return true
}

// bareMember: {command: …}, as JavaScript and YAML write it. A shell writes a
// blank after the brace, and no colon behind the first word.
func bareMember(open byte, next string) bool {
	i := 0
	for i < len(next) && scan.IsNameByte(next[i]) {
		i++
	}
	return open == '{' && i > 0 && strings.HasPrefix(next[i:], ":") && !strings.HasPrefix(next[i:], "::") && i+1 < len(next)
}

// jsonWalk looks for the shapes of gate actions in a tree.
type jsonWalk struct {
	e     *engine
	src   *source
	known bool // some shape was recognised
}

func (w *jsonWalk) node(n *jsonNode, key string) {
	if n == nil || !w.e.budget.spend(1) {
		return
	}
	switch n.kind {
	case '[':
		if key == "" && len(n.kids) > 1 && allStrings(n) && w.e.acts(n.kids[0].text) { // ["rm", "-rf", "/"]
			w.known = w.runWords(n, strs(n)) || w.known
			return
		}
		for _, k := range n.kids {
			if key == "steps" && k.kind == '"' && w.e.actsText(k.text) {
				w.carry(n, k, "any", "json")
				continue
			}
			w.node(k, key)
		}
	case '{':
		if w.shape(n) {
			w.known = true
			return
		}
		for i, k := range n.kids {
			if !w.carrier(n, n.keys[i], k, "json") {
				w.node(k, n.keys[i])
			}
		}
	}
}

// shape recognises what an object is as a whole.
func (w *jsonWalk) shape(n *jsonNode) bool {
	method := n.str("method")
	params := n.get("params")
	switch {
	case method != "" && (params != nil || n.get("jsonrpc") != nil):
		if strings.HasPrefix(method, "tools/") || isMCPMethod(method) {
			return w.mcp(method, params)
		}
		return w.rpc(n, method, params)
	case n.get("function") != nil && n.get("function").kind == '{' && n.get("function").str("name") != "":
		f := n.get("function")
		return w.tool(f, f.str("name"), f.get("arguments", "parameters"))
	case n.get("types") != nil && n.get("message") != nil && n.get("primaryType") != nil:
		return w.typedData(n)
	case n.get("payTo") != nil && n.get("maxAmountRequired", "amount", "scheme", "asset") != nil, n.get("x402Version") != nil, n.get("accepts") != nil && n.get("accepts").kind == '[' && w.isRequirements(n.get("accepts")), isAuthorization(n):
		ids := x402Rules(n, w.src.text)
		return w.e.money(w.src, n.start, n.end, n.str("payTo"), ids...)
	case n.get("apiVersion") != nil && n.get("kind") != nil:
		return w.manifest(n)
	case n.get("HostConfig") != nil:
		w.e.front.nodes["container"](&shell{e: w.e, src: w.src}, w.src, n, &invocation{exe: "json", src: w.src})
		return true
	case n.get("Statement") != nil:
		return w.iamPolicy(n)
	case n.get("scripts") != nil && n.get("scripts").kind == '{' && w.installs(n):
		return true
	case n.get("collection", "index", "table", "bucket", "topic") != nil && n.str("operation", "op") != "" && toolNameOf(n) == "":
		return w.storeCall(n, n.str("operation", "op"))
	case n.get("mcpServers") != nil:
		return w.servers(n.get("mcpServers"))
	}
	if w.contractObject(n) {
		return true
	}
	if name := toolNameOf(n); name != "" {
		if args := n.get("arguments", "input", "args", "params", "parameters", "tool_input", "toolInput", "toolArguments"); args != nil {
			return w.tool(n, name, besides(n, args))
		}
		if n.str("type") == "tool_use" || n.str("type") == "function_call" {
			return w.tool(n, name, nil)
		}
	}
	if kind := n.str("type", "op", "kind"); kind != "" && n.get("path", "file_path", "filename", "file") != nil && toolClass(kind) == "destructive" {
		w.files(kind, "destructive", n) // one operation of a patch
		return true
	}
	if text := n.get("text", "keys"); text != nil && text.kind == '"' && (n.str("type") == "type" || n.str("action") == "type") && strings.HasSuffix(text.text, "\n") && w.e.actsText(text.text) {
		return w.carry(n, text, "any", "typed")
	}
	if n.get("address") != nil && n.get("yParity", "y_parity", "v") != nil && n.get("r") != nil && n.get("nonce") != nil { // EIP-7702, signed
		return w.e.money(w.src, n.start, n.end, n.str("address"), "wallet.ownership")
	}
	if w.commandInParts(n) {
		return true
	}
	if n.str("to") != "" && (n.get("data") != nil || n.get("value") != nil) && strings.HasPrefix(n.str("to"), "0x") {
		return w.transaction(n)
	}
	if url := requestTo(n); url != nil {
		return w.request(n, url, n.str(methodKeys...))
	}
	return false
}

// toolNameOf is the name of the tool that an object calls, whatever the member is
// called.
func toolNameOf(n *jsonNode) string {
	if name := n.str("name", "tool", "tool_name", "toolName", "function_name", "functionName", "recipient_name", "function", "tool_id"); name != "" {
		return name
	}
	if action := n.str("action"); n.get("parameters", "params", "arguments", "input") != nil {
		return action
	}
	return ""
}

// besides are a tool's arguments with what stands beside them in the call: files that
// go with it, and how often it is made.
func besides(n, args *jsonNode) *jsonNode {
	if args.kind != '{' {
		return args
	}
	out := args
	for i, key := range n.keys {
		plain := plainKey(key)
		if n.kids[i] == args || key == "target" || key == "source" || !pathKeys[plain] && !slices.Contains(timesKeys, plain) && !slices.Contains(scheduleKeys, plain) {
			continue
		}
		if out == args {
			of := *args
			of.keys, of.kids = slices.Clone(args.keys), slices.Clone(args.kids)
			out = &of
		}
		out.keys, out.kids = append(out.keys, key), append(out.kids, n.kids[i])
	}
	return out
}

func (w *jsonWalk) isRequirements(list *jsonNode) bool {
	return len(list.kids) > 0 && list.kids[0].get("payTo") != nil
}

// request is an HTTP request written as an object.
func (w *jsonWalk) request(n, url *jsonNode, method string) bool {
	line := strings.ToUpper(method) + " " + url.text
	if body := n.get("body", "data", "json", "payload", "form", "json_body", "content"); body != nil {
		text := body.text
		if body.kind == '{' || body.kind == '[' {
			text = w.src.text[body.start:body.end]
		}
		line += " " + text
	}
	span, _ := w.src.where(n.start, n.end)
	inner := source{text: line, at: -1, span: span, via: w.src.via, depth: w.src.depth + 1}
	if h := httpLine(line); h != nil && inner.depth <= scan.MaxDepth {
		w.e.runHTTPLine(&inner, h)
		return true
	}
	return false
}

// installs runs what a package's description runs when it is installed.
func (w *jsonWalk) installs(n *jsonNode) bool {
	scripts, found := n.get("scripts"), false
	for i, k := range scripts.kids {
		if k.kind == '"' && installHooks[scripts.keysAt(i)] {
			found = w.carry(scripts, k, "any", "package.json") || found
		}
	}
	return found
}

// storeCall is an operation on a data store written as an object.
func (w *jsonWalk) storeCall(n *jsonNode, operation string) bool {
	if w.documents(operation, n) {
		return true
	}
	words := toolWords(operation)
	if len(words) == 0 || !strongVerbs[words[0]] || strings.HasSuffix(operation, "One") || strings.HasSuffix(operation, "_one") {
		return false
	}
	return w.e.match(&item{kind: kindTool, name: "destructive", src: w.src, from: n.start, to: n.end, target: printable(operation), words: placeWords(n)})
}

// methodByName is the HTTP method that a tool's name says: http_post, put_request.
func methodByName(name string) string {
	words := toolWords(name)
	if !slices.ContainsFunc(words, func(w string) bool {
		return w == "http" || w == "request" || w == "rest" || w == "web" || w == "fetch" || w == "url"
	}) {
		return ""
	}
	for _, w := range words {
		switch w {
		case "post", "put", "patch", "delete":
			return w
		}
	}
	return ""
}

// methodKeys name the method of a request written as an object.
var methodKeys = []string{"method", "http_method", "verb"}

// requestTo is the address of a request written as an object, nil if it is none.
func requestTo(n *jsonNode) *jsonNode {
	if url := n.get("url", "uri", "endpoint"); url != nil && url.kind == '"' && n.str("method") != "" {
		return url
	}
	path := n.get("path", "route")
	if path == nil || path.kind != '"' || !strings.HasPrefix(path.text, "/") {
		return nil
	}
	switch strings.ToUpper(n.str(methodKeys...)) {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD":
		return path
	}
	return nil
}

// carrierKeys are members whose strings are program text.
var carrierKeys = map[string]string{
	"manifest": "manifest?", "manifests": "manifest?", "yaml": "manifest?", "resource": "manifest?", "definition": "manifest?", "patch": "manifest?", "overrides": "manifest?",
	"playbook": "playbook?", "compose": "compose?", "dockerfile": "dockerfile?",
	"command": "any", "cmd": "any", "commands": "any", "shell": "any", "bash": "any", "shell_command": "any", "commandline": "any", "command_line": "any", "cmdline": "any", "cmd_line": "any", "oneliner": "any", "before_script": "any", "after_script": "any",
	"script": "any", "argv": "argv", "run": "any", "exec": "any", "sql": "sql", "query": "sql?", "statement": "sql?", "statements": "sql?", "queries": "sql?",
	"code": "code", "cell": "code", "source_code": "code", "python": "code", "javascript": "code", "powershell": "powershell", "expression": "code", "calldata": "any",
}

// encodedKey: the member's name says that its text is encoded: command_base64, b64.
func encodedKey(key string) bool {
	plain := plainKey(key)
	return strings.Contains(plain, "base64") || strings.Contains(plain, "b64") || strings.HasPrefix(plain, "encoded")
}

// encoded runs what a member decodes to, if its name or the text itself says that it
// is run.
func (w *jsonWalk) encoded(n, v *jsonNode, key, via string) bool {
	text, ok := scan.Decode64(strings.TrimSpace(v.text))
	if !ok || len(text) > scan.MaxDecoded || w.e.decoded+len(text) > scan.MaxDecodedTotal || w.src.depth >= scan.MaxDepth {
		return false
	}
	runs := false
	for _, word := range [...]string{"command", "cmd", "script", "code", "exec", "shell", "payload"} {
		runs = runs || strings.Contains(plainKey(key), word)
	}
	if !runs && !w.e.actsText(text) {
		return false
	}
	w.e.decoded += len(text)
	inner := *v
	inner.text, inner.verbatim = text, false
	lang := "any"
	if strings.Contains(plainKey(key), "code") && !strings.HasPrefix(plainKey(key), "encoded") {
		lang = "code"
	}
	return w.carry(n, &inner, lang, via+" base64")
}

// textKeys are members that are program text beside one that names its language.
var textKeys = scan.SetOf("source src program cell snippet input")

// carrierOf is the language of a member's text: by its whole name, or by a word of
// it, such as cli_command and postCreateCommand.
func (w *jsonWalk) carrierOf(key string) string {
	if lang := carrierKeys[strings.ToLower(strings.ReplaceAll(key, "-", "_"))]; lang != "" || strings.IndexByte(key, ' ') >= 0 || len(key) > 40 {
		return lang
	}
	words := toolWords(key)
	if len(words) < 2 {
		return ""
	}
	switch words[len(words)-1] {
	case "command", "commands", "cmd", "commandline", "script", "shell", "exec":
		return "any"
	case "sql":
		return "sql"
	case "code":
		if words[0] != "error" && words[0] != "status" && words[0] != "exit" && words[0] != "country" && words[0] != "zip" && words[0] != "language" {
			return "code"
		}
	}
	return ""
}

// carrier runs a member's text if its name says that it is program text.
func (w *jsonWalk) carrier(n *jsonNode, key string, v *jsonNode, via string) bool {
	lang := w.carrierOf(key)
	if lang == "" && v.kind == '"' && textKeys[plainKey(key)] && n.str("runtime", "interpreter", "kernel", "kernel_name", "language", "lang") != "" && n.get("path", "title", "name", "file_path", "description", "filename") == nil {
		lang = "code"
	}
	if lang == "" && v.kind == '"' && encodedKey(key) {
		return w.encoded(n, v, key, via)
	}
	if lang == "" {
		return false
	}
	if lang == "manifest?" && v.kind != '"' { // an object, or a change of one
		w.e.front.nodes["manifest"](&shell{e: w.e, src: w.src}, w.src, v, &invocation{exe: "tool", src: w.src})
		return false
	}
	switch v.kind {
	case '"':
		if plainKey(key) == "shell" && shellName(v.text) {
			return false // the shell that the text beside it is for
		}
		return w.carry(n, v, lang, via)
	case '[':
		if args := n.get("args", "arguments"); args == nil && (lang == "any" || lang == "argv") && allStrings(v) {
			return w.words(v.kids, n, via)
		}
		done := false
		for _, k := range v.kids {
			if k.kind == '"' {
				done = w.carry(n, k, lang, via) || done
			}
		}
		return done
	}
	return false
}

func allStrings(n *jsonNode) bool {
	for _, k := range n.kids {
		if k.kind != '"' {
			return false
		}
	}
	return len(n.kids) > 0
}

// words runs ["rm", "-rf", "/"]: one command, not text for a shell. A list of
// whole commands is run one by one.
func (w *jsonWalk) words(kids []*jsonNode, n *jsonNode, via string) bool {
	if len(kids) > 1 && strings.Contains(strings.TrimSpace(kids[0].text), " ") {
		for _, k := range kids {
			w.carry(n, k, "any", via)
		}
		return true
	}
	if len(kids) == 1 {
		return w.carry(n, kids[0], "any", via)
	}
	parts := make([]string, len(kids))
	for i, k := range kids {
		parts[i] = scan.Quote(k.text)
	}
	whole := &jsonNode{kind: '"', text: strings.Join(parts, " "), start: kids[0].start, end: kids[len(kids)-1].end}
	return w.carry(n, whole, "any", via)
}

// carry runs one text in its language.
func (w *jsonWalk) carry(n, v *jsonNode, lang, via string) bool {
	if strings.TrimSpace(v.text) == "" || w.src.depth >= scan.MaxDepth {
		return false
	}
	src := v.source(w.src, via)
	if lang == "any" {
		lang = shellLanguage(n, v)
		if args := n.get("args", "arguments"); args != nil && args.kind == '[' && allStrings(args) { // {command: "rm", args: ["-rf", "/"]}
			for _, a := range args.kids {
				src.text += " " + scan.Quote(a.text)
			}
			src.at = -1
		}
		if input := n.get("stdin", "input"); lang == "any" && input != nil && input != v && input.kind == '"' && input.text != "" && len(input.text) < scan.MaxDecoded {
			src.text, src.at = src.text+" <<< "+scan.Quote(input.text), -1
		}
		if env := environment(n); env != "" && lang == "any" {
			src.text, src.at = env+src.text, -1
		}
	}
	switch lang {
	case "sql":
		w.e.read("sql", &src, nil)
	case "sql?":
		if !looksSQL(v.text) && !looksMongo(v.text) {
			done := w.mutation(v)
			w.known = w.known || done
			return done
		}
		w.e.read("sql", &src, nil)
	case "powershell", "cmd":
		w.e.ran = true
		w.e.read(lang, &src, nil)
	case "code":
		w.code(n, &src)
	case "manifest?", "playbook?", "compose?", "dockerfile?":
		return w.operations(&src, strings.TrimSuffix(lang, "?"))
	default:
		w.e.routed(&src)
	}
	w.known = true
	return true
}

// notebook runs the shell lines of a notebook's cell: "!rm x", "%%bash" at its head.
func (w *jsonWalk) notebook(src *source) bool {
	head, rest, _ := strings.Cut(src.text, "\n")
	switch first, _, _ := strings.Cut(head, " "); first {
	case "%%bash", "%%sh", "%%script", "%%shell", "%%system":
		inner := *src
		inner.text, inner.at = rest, -1
		w.e.routed(&inner)
		return true
	}
	w.e.eachLine(src.text, "\n", func(from, to int) {
		line := strings.TrimLeft(src.text[from:to], " \t")
		for _, mark := range [...]string{"!!", "!", "%sx ", "%system "} {
			if command, ok := strings.CutPrefix(line, mark); ok {
				w.e.carried(&shell{e: w.e, src: src}, src, from, to, command, "notebook")
				return
			}
		}
	})
	return false
}

// shellName: the text is the name of a shell, or says that one is wanted.
func shellName(text string) bool {
	switch strings.ToLower(scan.Base(text)) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "powershell", "pwsh", "cmd", "true", "false", "default":
		return true
	}
	return false
}

// shellLanguage is the language of a command by the shell that a neighbour names.
func shellLanguage(n, v *jsonNode) string {
	neighbour := n.get("shell", "interpreter", "shell_type", "executable")
	if neighbour == nil || neighbour == v {
		return "any"
	}
	switch strings.ToLower(scan.Base(neighbour.text)) {
	case "powershell", "pwsh":
		return "powershell"
	case "cmd":
		return "cmd"
	}
	return "any"
}

// code runs text of an interpreter; which one, its neighbours or its own words say.
func (w *jsonWalk) code(n *jsonNode, src *source) {
	e := w.e
	e.ran = true
	lang := strings.ToLower(n.str("language", "lang", "runtime", "interpreter", "kernel", "kernel_name"))
	text := src.text
	if w.notebook(src) {
		return
	}
	switch {
	case strings.HasPrefix(lang, "py"):
		lang = "python"
	case strings.HasPrefix(lang, "js"), strings.HasPrefix(lang, "javascript"), strings.HasPrefix(lang, "node"), strings.HasPrefix(lang, "ts"), strings.HasPrefix(lang, "typescript"):
		lang = "node"
	case lang == "bash" || lang == "sh" || lang == "shell" || lang == "zsh":
		e.routed(src)
		return
	case lang == "sql":
		e.read("sql", src, nil)
		return
	case lang == "powershell" || lang == "pwsh" || lang == "cmd":
		e.read(map[bool]string{true: "cmd", false: "powershell"}[lang == "cmd"], src, nil)
		return
	case lang == "ruby" || lang == "perl" || lang == "php":
	case strings.Contains(text, "require(") || strings.Contains(text, "const ") || strings.Contains(text, "=>") || strings.Contains(text, "await "):
		lang = "node"
	case strings.Contains(text, "import ") || strings.Contains(text, "print(") || strings.Contains(text, "os.") || strings.Contains(text, "subprocess") || strings.Contains(text, "__import__("):
		lang = "python"
	default:
		e.routed(src)
		return
	}
	e.read("only "+lang, src, nil)
	if strings.Contains(text, "(") {
		e.read("calls", src, nil)
	}
}
