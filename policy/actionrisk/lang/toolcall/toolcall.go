// Package toolcall is the front-end of JSON that asks for something: calls of tools,
// JSON-RPC, transactions, payments, requests and their bodies, patches.
package toolcall

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// JSON reads src as one JSON value. Text that only begins like JSON, such as
// a shell's { list; } or [ test ], is not taken.
func JSON(e *interp.Env, src *act.Source) bool {
	text := strings.TrimLeft(src.Text, " \t\r\n\ufeff")
	if !beginsJSON(text) || !e.Budget.Spend(len(src.Text)/4) {
		return false
	}
	root, strict := tree.JSON(text)
	if root == nil {
		return false
	}
	end := min(root.End, len(text))
	rest := strings.TrimSpace(text[end:])
	if !strict && rest != "" && len(root.Kids) == 0 {
		return false
	}
	inner := behind(src, len(src.Text)-len(text))
	e.Ran = true
	if !strict {
		e.Unparsed = true
		e.See(act.Unparsed, &inner, 0, len(text), "")
	}
	if scan.Nesting(text) >= scan.MaxJSONDepth {
		e.TooDeep = true
	}
	w := jsonWalk{e: e, src: &inner}
	w.node(root, "")
	if !w.known {
		e.Unproven = true
	}
	if strings.HasPrefix(rest, "{") && src.Depth < scan.MaxDepth { // JSON lines
		next := behind(&inner, end)
		next.Depth++
		JSON(e, &next)
	}
	return true
}

// behind is a source from its byte n on.
func behind(src *act.Source, n int) act.Source {
	out := *src
	out.Text = src.Text[n:]
	if out.At >= 0 {
		out.At += n
	}
	return out
}

// beginsJSON tells whether a text begins as a list or an object does, and not as a
// shell's { list; }, [ test ] or [[ test ]] do.
func beginsJSON(text string) bool {
	if len(text) < 2 || text[0] != '{' && text[0] != '[' {
		return false
	}
	next := strings.TrimLeft(text[1:], " \t\r\n")
	number := next != "" && text[0] == '[' && next[0] >= '0' && next[0] <= '9'
	switch {
	case next == "", strings.IndexByte("\"'{}[]", next[0]) < 0 && !number && !bareMember(text[0], next):
		return false
	case scan.HasAnyPrefix(text, `{ "`, "[ {"), strings.HasPrefix(text, `[ "`) && strings.HasSuffix(strings.TrimSpace(text), `"]`):
		return true
	case scan.HasAnyPrefix(text, "[ ", "[[ ", "{ "):
		return false
	}
	return text[0] == '[' || !isGroup(text[1:], next)
}

// isGroup: what is after "{", and from its first word on, is of a group of commands
// and not of an object: a text without a colon after it, or a word on the next line.
func isGroup(rest, next string) bool {
	if next[0] == '"' { // a key has a colon after it, a command has not
		_, after, ok := strings.Cut(next[1:], "\"")
		return ok && !strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), ":")
	}
	return next != rest && next[0] != '}'
}

// jsonWalk looks for the shapes of gate actions in a tree.
type jsonWalk struct {
	e     *interp.Env
	src   *act.Source
	known bool // some shape was recognised
}

func (w *jsonWalk) node(n *tree.Node, key string) {
	if n == nil || !w.e.Budget.Spend(1) {
		return
	}
	switch n.Kind {
	case '[':
		w.list(n, key)
	case '{':
		w.object(n)
	}
}

// list looks at the elements of a list: the words of one command, the steps of a job, or
// anything.
func (w *jsonWalk) list(n *tree.Node, key string) {
	if key == "" && len(n.Kids) > 1 && tree.AllStrings(n) && w.e.Acts(n.Kids[0].Text) { // ["rm", "-rf", "/"]
		w.known = w.runWords(n, strs(n)) || w.known
		return
	}
	for _, k := range n.Kids {
		if key == "steps" && k.Kind == '"' && w.e.ActsText(k.Text) {
			w.carry(n, k, "any", "json")
		} else {
			w.node(k, key)
		}
	}
}

func (w *jsonWalk) object(n *tree.Node) {
	if w.shape(n) {
		w.known = true
		return
	}
	for i, k := range n.Kids {
		if !w.carrier(n, n.Keys[i], k, "json") {
			w.node(k, n.Keys[i])
		}
	}
}

// shape recognises what an object is as a whole: of each kind of objects, whether it is
// one, and whether it is judged by that.
func (w *jsonWalk) shape(n *tree.Node) bool {
	for _, kind := range [...]func(*jsonWalk, *tree.Node) (judged, is bool){
		(*jsonWalk).protocolCall, (*jsonWalk).moneyTerms, (*jsonWalk).description, (*jsonWalk).namedCall, (*jsonWalk).plainAction,
	} {
		if judged, is := kind(w, n); is {
			return judged
		}
	}
	return false
}

// protocolCall is a call over JSON-RPC, or of a model's function.
func (w *jsonWalk) protocolCall(n *tree.Node) (judged, is bool) {
	method, params, f := n.Str("method"), n.Get("params"), n.Get("function")
	switch {
	case method != "" && (params != nil || n.Get("jsonrpc") != nil):
		if strings.HasPrefix(method, "tools/") || isMCPMethod(method) {
			return w.mcp(method, params), true
		}
		return w.rpc(n, method, params), true
	case f != nil && f.Kind == '{' && f.Str("name") != "":
		return w.tool(f, f.Str("name"), f.Get("arguments", "parameters")), true
	}
	return false, false
}

// moneyTerms is what a wallet signs, or what a server asks to be paid.
func (w *jsonWalk) moneyTerms(n *tree.Node) (judged, is bool) {
	if n.Get("types") != nil && n.Get("message") != nil && n.Get("primaryType") != nil {
		return w.typedData(n), true
	}
	accepts := n.Get("accepts")
	switch {
	case n.Get("payTo") != nil && n.Get("maxAmountRequired", "amount", "scheme", "asset") != nil:
	case n.Get("x402Version") != nil:
	case accepts != nil && accepts.Kind == '[' && w.isRequirements(accepts):
	case isAuthorization(n):
	default:
		return false, false
	}
	ids := amounts.X402Rules(n)
	return w.e.Money(w.src, n.Start, n.End, n.Str("payTo"), ids...), true
}

// description is a file of settings: of a cluster, a container, rights, a package,
// servers of tools; or an operation on a data store.
func (w *jsonWalk) description(n *tree.Node) (judged, is bool) {
	switch scripts := n.Get("scripts"); {
	case n.Get("apiVersion") != nil && n.Get("kind") != nil:
		return w.manifest(n), true
	case n.Get("HostConfig") != nil:
		w.e.Front.Nodes["container"](&interp.Process{Env: w.e, Src: w.src}, w.src, n, &act.Invocation{Exe: "json", Src: w.src})
		return true, true
	case n.Get("Statement") != nil:
		return w.iamPolicy(n), true
	case scripts != nil && scripts.Kind == '{' && w.installs(n):
		return true, true
	case n.Get("collection", "index", "table", "bucket", "topic") != nil && n.Str("operation", "op") != "" && toolNameOf(n) == "":
		return w.storeCall(n, n.Str("operation", "op")), true
	case n.Get("mcpServers") != nil:
		return w.servers(n.Get("mcpServers")), true
	}
	return false, false
}

// namedCall is a call of a contract or of a tool by its name.
func (w *jsonWalk) namedCall(n *tree.Node) (judged, is bool) {
	if w.contractObject(n) {
		return true, true
	}
	name := toolNameOf(n)
	if name == "" {
		return false, false
	}
	if args := n.Get("arguments", "input", "args", "params", "parameters", "tool_input", "toolInput", "toolArguments"); args != nil {
		return w.tool(n, name, besides(n, args)), true
	}
	if n.Str("type") == "tool_use" || n.Str("type") == "function_call" {
		return w.tool(n, name, nil), true
	}
	return false, false
}

// plainAction is an action that is told by its members: an operation of a patch, keys
// that are typed, a signed authorization (EIP-7702), a command in parts, a transaction,
// a request.
func (w *jsonWalk) plainAction(n *tree.Node) (judged, is bool) {
	kind, text := n.Str("type", "op", "kind"), n.Get("text", "keys")
	switch {
	case kind != "" && n.Get("path", "file_path", "filename", "file") != nil && facts.ToolClass(kind) == "destructive":
		w.files(kind, "destructive", n)
		return true, true
	case (n.Str("type") == "type" || n.Str("action") == "type") && w.typesLine(text):
		return w.carry(n, text, "any", "typed"), true
	case isDelegation(n):
		return w.e.Money(w.src, n.Start, n.End, n.Str("address"), act.ChangesOwner), true
	case w.commandInParts(n):
		return true, true
	case strings.HasPrefix(n.Str("to"), "0x") && n.Get("data", "value") != nil:
		return w.transaction(n), true
	}
	if url := requestTo(n); url != nil {
		return w.request(n, url, n.Str(methodKeys...)), true
	}
	return false, false
}

// isDelegation: an account lets a contract act for it.
func isDelegation(n *tree.Node) bool {
	return n.Get("address") != nil && n.Get("yParity", "y_parity", "v") != nil && n.Get("r") != nil && n.Get("nonce") != nil
}

// typesLine tells whether what is typed is a command, with the key that runs it.
func (w *jsonWalk) typesLine(text *tree.Node) bool {
	return isText(text) && strings.HasSuffix(text.Text, "\n") && w.e.ActsText(text.Text)
}

// toolNameOf is the name of the tool that an object calls, whatever the member is
// called.
func toolNameOf(n *tree.Node) string {
	if name := n.Str("name", "tool", "tool_name", "toolName", "function_name", "functionName", "recipient_name", "function", "tool_id"); name != "" {
		return name
	}
	if action := n.Str("action"); n.Get("parameters", "params", "arguments", "input") != nil {
		return action
	}
	return ""
}

// besides are a tool's arguments with what is next to them in the call: files that
// go with it, and how often it is made.
func besides(n, args *tree.Node) *tree.Node {
	if args.Kind != '{' {
		return args
	}
	out := args
	for i, key := range n.Keys {
		plain := tree.PlainKey(key)
		if n.Kids[i] == args || key == "target" || key == "source" || !pathKeys.Has(plain) && !slices.Contains(timesKeys, plain) && !slices.Contains(scheduleKeys, plain) {
			continue
		}
		if out == args {
			of := *args
			of.Keys, of.Kids = slices.Clone(args.Keys), slices.Clone(args.Kids)
			out = &of
		}
		out.Keys, out.Kids = append(out.Keys, key), append(out.Kids, n.Kids[i])
	}
	return out
}

func (w *jsonWalk) isRequirements(list *tree.Node) bool {
	return len(list.Kids) > 0 && list.Kids[0].Get("payTo") != nil
}

// request is an HTTP request written as an object.
func (w *jsonWalk) request(n, url *tree.Node, method string) bool {
	r := interp.Request{Method: strings.ToUpper(method), Address: url.Text}
	if body := n.Get("body", "data", "json", "payload", "form", "json_body", "content"); body != nil {
		r.Body = body.Text
		if body.Kind == '{' || body.Kind == '[' {
			r.Body = w.src.Text[body.Start:body.End]
		}
	}
	src := w.src.Inside(w.src.Word(n.Start, n.End), "")
	if !r.Made() || src.Depth > scan.MaxDepth {
		return false
	}
	w.e.RunRequest(&src, r)
	return true
}

// installs runs what a package's description runs when it is installed.
func (w *jsonWalk) installs(n *tree.Node) bool {
	scripts, found := n.Get("scripts"), false
	for i, k := range scripts.Kids {
		if k.Kind == '"' && installHooks.Has(scripts.KeysAt(i)) {
			found = w.carry(scripts, k, "any", "package.json") || found
		}
	}
	return found
}

// storeCall is an operation on a data store written as an object.
func (w *jsonWalk) storeCall(n *tree.Node, operation string) bool {
	if w.documents(operation, n) {
		return true
	}
	words := facts.ToolWords(operation)
	if len(words) == 0 || !facts.Says(words[:1], "strong") || strings.HasSuffix(operation, "One") || strings.HasSuffix(operation, "_one") {
		return false
	}
	return w.e.Match(&act.Item{Kind: act.KindTool, Name: "destructive", Src: w.src, From: n.Start, To: n.End, Target: act.Printable(operation), Words: placeWords(n)})
}

// methodByName is the HTTP method that a tool's name says: http_post, put_request.
func methodByName(name string) string {
	words := facts.ToolWords(name)
	if !facts.Says(words, "web") {
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
func requestTo(n *tree.Node) *tree.Node {
	if url := n.Get("url", "uri", "endpoint"); url != nil && url.Kind == '"' && n.Str("method") != "" {
		return url
	}
	path := n.Get("path", "route")
	if path == nil || path.Kind != '"' || !strings.HasPrefix(path.Text, "/") {
		return nil
	}
	switch strings.ToUpper(n.Str(methodKeys...)) {
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

// encoded runs what a member decodes to, if its name or the text itself says that it
// is run.
func (w *jsonWalk) encoded(n, v *tree.Node, key, via string) bool {
	text, ok := scan.Decode64(strings.TrimSpace(v.Text))
	if !ok || len(text) > scan.MaxDecoded || w.e.Decoded+len(text) > scan.MaxDecodedTotal || w.src.Depth >= scan.MaxDepth {
		return false
	}
	runs := false
	for _, word := range [...]string{"command", "cmd", "script", "code", "exec", "shell", "payload"} {
		runs = runs || strings.Contains(tree.PlainKey(key), word)
	}
	if !runs && !w.e.ActsText(text) {
		return false
	}
	w.e.Decoded += len(text)
	inner := *v
	inner.Text, inner.Verbatim = text, false
	lang := "any"
	if strings.Contains(tree.PlainKey(key), "code") && !strings.HasPrefix(tree.PlainKey(key), "encoded") {
		lang = "code"
	}
	return w.carry(n, &inner, lang, via+" base64")
}

// textKeys are members that are program text next to one that names its language.
var textKeys = scan.SetOf("source src program cell snippet input")

// carrierOf is the language of a member's text: by its whole name, or by a word of
// it, such as cli_command and postCreateCommand.
func (w *jsonWalk) carrierOf(key string) string {
	if lang := carrierKeys[strings.ToLower(strings.ReplaceAll(key, "-", "_"))]; lang != "" || strings.IndexByte(key, ' ') >= 0 || len(key) > 40 {
		return lang
	}
	words := facts.ToolWords(key)
	if len(words) < 2 {
		return ""
	}
	lang := carrierWords[words[len(words)-1]]
	if lang == "code" && numberedCodes.Has(words[0]) {
		return ""
	}
	return lang
}

// carrierWords are last words of members whose strings are program text, and numberedCodes
// are first words of those whose code is a number.
var (
	carrierWords  = map[string]string{"command": "any", "commands": "any", "cmd": "any", "commandline": "any", "script": "any", "shell": "any", "exec": "any", "sql": "sql", "code": "code", "snippet": "code"}
	numberedCodes = scan.SetOf("error status exit country zip language")
)

// carrier runs a member's text if its name says that it is program text.
func (w *jsonWalk) carrier(n *tree.Node, key string, v *tree.Node, via string) bool {
	lang := w.carrierOf(key)
	if lang == "" && v.Kind == '"' {
		switch {
		case textKeys.Has(tree.PlainKey(key)) && namesLanguage(n):
			lang = "code"
		case encodedKey(key):
			return w.encoded(n, v, key, via)
		}
	}
	switch {
	case lang == "":
	case lang == "manifest?" && v.Kind != '"': // an object, or a change of one
		w.e.Front.Nodes["manifest"](&interp.Process{Env: w.e, Src: w.src}, w.src, v, &act.Invocation{Exe: "tool", Src: w.src})
	case v.Kind == '[' && strings.HasSuffix(strings.ToLower(key), "commands") && w.each(n, v, lang, via): // perhaps the words of one, too
		w.carryList(n, v, lang, via)
		return true
	case v.Kind == '[':
		return w.carryList(n, v, lang, via)
	case v.Kind == '"' && (tree.PlainKey(key) != "shell" || !shellName(v.Text)): // but for the shell that the text next to it is for
		return w.carry(n, v, lang, via)
	}
	return false
}

// namesLanguage: an object says in which language its text is, and gives it no title.
func namesLanguage(n *tree.Node) bool {
	return n.Str("runtime", "interpreter", "kernel", "kernel_name", "language", "lang") != "" && n.Get("path", "title", "name", "file_path", "description", "filename") == nil
}

// carryList runs a list: the words of one command, or a text each.
func (w *jsonWalk) carryList(n, list *tree.Node, lang, via string) bool {
	if n.Get("args", "arguments") == nil && (lang == "any" || lang == "argv") && tree.AllStrings(list) {
		return w.words(list, n, via)
	}
	return w.each(n, list, lang, via)
}

// each runs every text of a list in its language.
func (w *jsonWalk) each(n, list *tree.Node, lang, via string) bool {
	done := false
	for _, k := range list.Kids {
		if k.Kind == '"' {
			done = w.carry(n, k, lang, via) || done
		}
	}
	return done
}

// words runs ["rm", "-rf", "/"]: one command, not text for a shell. A list of
// whole commands is run one by one.
func (w *jsonWalk) words(list, n *tree.Node, via string) bool {
	if len(list.Kids) == 1 || strings.Contains(strings.TrimSpace(list.Kids[0].Text), " ") {
		return w.each(n, list, "any", via)
	}
	w.known = true
	return w.start(list, via, strs(list), surroundings(n, list))
}

// carry runs one text in its language.
func (w *jsonWalk) carry(n, v *tree.Node, lang, via string) bool {
	if strings.TrimSpace(v.Text) == "" || w.src.Depth >= scan.MaxDepth {
		return false
	}
	if lang == "any" {
		lang = shellLanguage(n, v)
	}
	src := v.Source(w.src, via)
	switch lang {
	case "any":
		w.command(n, v, &src, via)
	case "sql?":
		if !stores.LooksSQL(v.Text) && !stores.LooksMongo(v.Text) {
			done := w.mutation(v)
			w.known = w.known || done
			return done
		}
		w.e.Read("sql", &src, nil)
	case "code":
		w.code(n, &src)
	case "manifest?", "playbook?", "compose?", "dockerfile?":
		return w.operations(&src, strings.TrimSuffix(lang, "?"))
	default:
		w.e.Ran = true
		w.e.Read(lang, &src, nil)
	}
	w.known = true
	return true
}

// command runs a text with the words, the input and the variables that are next to it.
func (w *jsonWalk) command(n, v *tree.Node, src *act.Source, via string) {
	args := n.Get("args", "arguments")
	if args != nil && (args.Kind != '[' || !tree.AllStrings(args)) {
		args = nil
	}
	with := surroundings(n, v)
	switch with.Stdin.Known = with.Stdin.Word.Text != ""; {
	case args == nil && with.Env == nil && !with.Stdin.Known:
		w.e.Route(src)
	case strings.ContainsAny(v.Text, "|&;<>()$`\\\n"): // for a shell, which has further words after it
		if args != nil {
			src.Text, src.At = v.Text+" "+strings.Join(strs(args), " "), -1
		}
		if with.Env != nil { // what they make any shell do
			w.start(v, via, []string{"sh", "-n"}, act.Invocation{Env: with.Env})
		}
		w.e.Front.Script(&interp.Process{Env: w.e}, src, with.Stdin)
	case args != nil:
		w.start(n, via, append(scan.OptionWords(v.Text), strs(args)...), with)
	default:
		w.start(v, via, scan.OptionWords(v.Text), with)
	}
}

// notebook runs the shell lines of a notebook's cell: "!rm x", "%%bash" at its head.
func (w *jsonWalk) notebook(src *act.Source) bool {
	head, rest, _ := strings.Cut(src.Text, "\n")
	switch first, _, _ := strings.Cut(head, " "); first {
	case "%%bash", "%%sh", "%%script", "%%shell", "%%system":
		inner := *src
		inner.Text, inner.At = rest, -1
		w.e.Route(&inner)
		return true
	}
	w.e.EachLine(src.Text, "\n", func(from, to int) {
		line := strings.TrimLeft(src.Text[from:to], " \t")
		for _, mark := range [...]string{"!!", "!", "%sx ", "%system "} {
			if command, ok := strings.CutPrefix(line, mark); ok {
				(&interp.Process{Env: w.e, Src: src}).Carried(from, to, command, "notebook")
				return
			}
		}
	})
	return false
}

// codeLanguages are the languages that a neighbour names, by the beginning of what it says.
var codeLanguages = []struct{ begins, lang string }{{"py", "python"}, {"js", "node"}, {"javascript", "node"}, {"node", "node"}, {"ts", "node"}, {"typescript", "node"}}

// codeWords are what texts of a language hold where it is not stated; the first counts.
var codeWords = []struct {
	lang  string
	words []string
}{{"node", []string{"require(", "const ", "=>", "await "}}, {"python", []string{"import ", "print(", "os.", "subprocess", "__import__("}}}

// codeLanguage is the language of a text by its neighbours or by its own words, "any" if
// neither says so.
func codeLanguage(n *tree.Node, text string) string {
	said := strings.ToLower(n.Str("language", "lang", "runtime", "interpreter", "kernel", "kernel_name"))
	for _, l := range codeLanguages {
		if strings.HasPrefix(said, l.begins) {
			return l.lang
		}
	}
	switch said {
	case "bash", "sh", "shell", "zsh":
		return "any"
	case "pwsh":
		return "powershell"
	case "sql", "powershell", "cmd", "ruby", "perl", "php":
		return said
	}
	for _, l := range codeWords {
		if scan.HasAny(text, l.words...) {
			return l.lang
		}
	}
	return "any"
}

// code runs text of an interpreter.
func (w *jsonWalk) code(n *tree.Node, src *act.Source) {
	w.e.Ran = true
	if w.notebook(src) {
		return
	}
	switch lang := codeLanguage(n, src.Text); lang {
	case "any", "sql", "powershell", "cmd":
		w.e.Read(lang, src, nil)
	default:
		w.e.Read("only "+lang, src, nil)
		if strings.Contains(src.Text, "(") {
			w.e.Read("calls", src, nil)
		}
	}
}

// operationMarks are what a text of such a language holds for sure; a member of a tool
// call that is only named like one holds something else.
var operationMarks = map[string][]string{"manifest": {"kind:", `"kind"`, "spec:", `"spec"`, "metadata:", `"metadata"`, `"op"`, "roleRef"}, "playbook": {"hosts:", "tasks:", "- name:"}, "compose": {"services:", `"services"`}, "dockerfile": {"FROM ", "from "}}

// bareMember: {command: …}, as JavaScript and YAML write it. A shell writes a
// blank after the brace, and no colon after the first word.
func bareMember(open byte, next string) bool {
	i := 0
	for i < len(next) && scan.IsNameByte(next[i]) {
		i++
	}
	return open == '{' && i > 0 && strings.HasPrefix(next[i:], ":") && !strings.HasPrefix(next[i:], "::") && i+1 < len(next)
}

// shellName: the text is the name of a shell, or says that one is wanted.
func shellName(text string) bool {
	switch strings.ToLower(scan.Base(text)) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "powershell", "pwsh", "cmd", "true", "false", "default":
		return true
	}
	return false
}

// encodedKey: the member's name says that its text is encoded: command_base64, b64.
func encodedKey(key string) bool {
	plain := tree.PlainKey(key)
	return strings.Contains(plain, "base64") || strings.Contains(plain, "b64") || strings.HasPrefix(plain, "encoded")
}

// shellLanguage is the language of a command by the shell that a neighbour names.
func shellLanguage(n, v *tree.Node) string {
	neighbour := n.Get("shell", "interpreter", "shell_type", "executable")
	if neighbour == nil || neighbour == v {
		return "any"
	}
	switch strings.ToLower(scan.Base(neighbour.Text)) {
	case "powershell", "pwsh":
		return "powershell"
	case "cmd":
		return "cmd"
	}
	return "any"
}
