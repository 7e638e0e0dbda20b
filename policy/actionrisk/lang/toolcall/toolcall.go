// Package toolcall is the front-end for actions in JSON: calls of tools, JSON-RPC, transactions,
// payments, HTTP requests and their bodies. It also judges patches, and settings files that
// commands write.
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

// JSON judges src as one or several JSON values. It returns false for text that only begins like
// JSON, such as { list; } or [ test ] of a shell.
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
	if strings.HasPrefix(rest, "{") && src.Depth < scan.MaxDepth { // another JSON value on the next line
		next := behind(&inner, end)
		next.Depth++
		JSON(e, &next)
	}
	return true
}

// behind returns a source without its first n bytes.
func behind(src *act.Source, n int) act.Source {
	out := *src
	out.Text = src.Text[n:]
	if out.At >= 0 {
		out.At += n
	}
	return out
}

// beginsJSON reports whether a text begins like a list or an object of JSON, and not like { list;
// }, [ test ] or [[ test ]] of a shell.
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

// isGroup reports whether a text after "{" is a group of shell commands and not an object: it
// begins with a string that no colon follows, or with a word after white space. rest is the text
// after "{", and next is the same without leading white space.
func isGroup(rest, next string) bool {
	if next[0] == '"' { // a colon follows a key, but not a command
		_, after, ok := strings.Cut(next[1:], "\"")
		return ok && !strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), ":")
	}
	return next != rest && next[0] != '}'
}

// jsonWalk finds objects in a tree that describe an action.
type jsonWalk struct {
	e     *interp.Env
	src   *act.Source
	known bool // at least one such object was found
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

// list judges a list: the words of one command, the steps of a job, or other elements.
func (w *jsonWalk) list(n *tree.Node, key string) {
	if key == "" && len(n.Kids) > 1 && tree.AllStrings(n) && w.e.Acts(n.Kids[0].Text) { // for example ["rm", "-rf", "/"]
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

// shape judges an object that, as a whole, describes a known kind of action. It returns false for
// other objects. Each function that it calls reports whether the object was judged, and whether it
// is of the function's kind.
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

// protocolCall judges a JSON-RPC call, or a function call of a language model.
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

// moneyTerms judges data that a wallet signs, or a payment that a server requires.
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

// description judges a description of a cluster object, a container, access rights, a package or
// MCP servers, and an operation on a data store.
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

// namedCall judges a call of a contract function, or of a tool by its name.
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

// plainAction judges an action that only its members show: an operation of a patch, typed keys, a
// signed authorization (EIP-7702), a command in parts, a transaction, a request.
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

// isDelegation reports whether the object lets a contract act for an account (EIP-7702).
func isDelegation(n *tree.Node) bool {
	return n.Get("address") != nil && n.Get("yParity", "y_parity", "v") != nil && n.Get("r") != nil && n.Get("nonce") != nil
}

// typesLine reports whether the typed text is a command and ends with a line feed, which runs it.
func (w *jsonWalk) typesLine(text *tree.Node) bool {
	return isText(text) && strings.HasSuffix(text.Text, "\n") && w.e.ActsText(text.Text)
}

// toolNameOf returns the name of the tool that an object calls, or "". It accepts the usual names
// of the member.
func toolNameOf(n *tree.Node) string {
	if name := n.Str("name", "tool", "tool_name", "toolName", "function_name", "functionName", "recipient_name", "function", "tool_id"); name != "" {
		return name
	}
	if action := n.Str("action"); n.Get("parameters", "params", "arguments", "input") != nil {
		return action
	}
	return ""
}

// besides returns the arguments of a tool together with two kinds of members next to them in the
// call: file names, and how many times or how often the call is repeated.
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

// request judges an HTTP request that is written as an object. It returns false if the object has no
// usual method or no address.
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

// installs judges the scripts of a package.json that run when the package is installed, and
// reports whether there are any.
func (w *jsonWalk) installs(n *tree.Node) bool {
	scripts, found := n.Get("scripts"), false
	for i, k := range scripts.Kids {
		if k.Kind == '"' && installHooks.Has(scripts.KeysAt(i)) {
			found = w.carry(scripts, k, "any", "package.json") || found
		}
	}
	return found
}

// storeCall judges an operation on a data store that is written as an object.
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

// methodByName returns the HTTP method in the name of a tool, such as http_post or put_request, or
// "".
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

// methodKeys lists members with the method of a request.
var methodKeys = []string{"method", "http_method", "verb"}

// requestTo returns the address of a request that is written as an object, or nil if the object is
// not a request.
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

// carrierKeys maps members whose strings are program texts to their language.
var carrierKeys = map[string]string{
	"manifest": "manifest?", "manifests": "manifest?", "yaml": "manifest?", "resource": "manifest?", "definition": "manifest?", "patch": "manifest?", "overrides": "manifest?",
	"playbook": "playbook?", "compose": "compose?", "dockerfile": "dockerfile?",
	"command": "any", "cmd": "any", "commands": "any", "shell": "any", "bash": "any", "shell_command": "any", "commandline": "any", "command_line": "any", "cmdline": "any", "cmd_line": "any", "oneliner": "any", "before_script": "any", "after_script": "any",
	"script": "any", "argv": "argv", "run": "any", "exec": "any", "sql": "sql", "query": "sql?", "statement": "sql?", "statements": "sql?", "queries": "sql?",
	"code": "code", "cell": "code", "source_code": "code", "python": "code", "javascript": "code", "powershell": "powershell", "expression": "code", "calldata": "any",
}

// encoded judges the decoded text of a member, if the name of the member or the text itself shows
// that it runs.
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

// textKeys lists members that contain a program text if another member names its language.
var textKeys = scan.SetOf("source src program cell snippet input")

// carrierOf returns the language of a member's text, by its whole name or by its last word, as in
// cli_command and postCreateCommand. It returns "" for other members.
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

// carrierWords maps last words of members whose strings are program texts to their language.
// numberedCodes lists first words of members whose "code" is a number.
var (
	carrierWords  = map[string]string{"command": "any", "commands": "any", "cmd": "any", "commandline": "any", "script": "any", "shell": "any", "exec": "any", "sql": "sql", "code": "code", "snippet": "code"}
	numberedCodes = scan.SetOf("error status exit country zip language")
)

// carrier judges the text of a member, if the name of the member shows that it is a program text.
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
	case lang == "manifest?" && v.Kind != '"': // the value is an object, or a change to one
		w.e.Front.Nodes["manifest"](&interp.Process{Env: w.e, Src: w.src}, w.src, v, &act.Invocation{Exe: "tool", Src: w.src})
	case v.Kind == '[' && strings.HasSuffix(strings.ToLower(key), "commands") && w.each(n, v, lang, via): // may also be the words of one command
		w.carryList(n, v, lang, via)
		return true
	case v.Kind == '[':
		return w.carryList(n, v, lang, via)
	case v.Kind == '"' && (tree.PlainKey(key) != "shell" || !shellName(v.Text)): // "shell" may only name the shell for another member
		return w.carry(n, v, lang, via)
	}
	return false
}

// namesLanguage reports whether an object names the language of its text, and has no title or file
// name.
func namesLanguage(n *tree.Node) bool {
	return n.Str("runtime", "interpreter", "kernel", "kernel_name", "language", "lang") != "" && n.Get("path", "title", "name", "file_path", "description", "filename") == nil
}

// carryList judges a list: the words of one command, or several texts.
func (w *jsonWalk) carryList(n, list *tree.Node, lang, via string) bool {
	if n.Get("args", "arguments") == nil && (lang == "any" || lang == "argv") && tree.AllStrings(list) {
		return w.words(list, n, via)
	}
	return w.each(n, list, lang, via)
}

// each judges every string of a list as a text in the language lang.
func (w *jsonWalk) each(n, list *tree.Node, lang, via string) bool {
	done := false
	for _, k := range list.Kids {
		if k.Kind == '"' {
			done = w.carry(n, k, lang, via) || done
		}
	}
	return done
}

// words judges a list such as ["rm", "-rf", "/"] as the words of one command. If the first element
// is a whole command, it judges each element separately.
func (w *jsonWalk) words(list, n *tree.Node, via string) bool {
	if len(list.Kids) == 1 || strings.Contains(strings.TrimSpace(list.Kids[0].Text), " ") {
		return w.each(n, list, "any", via)
	}
	w.known = true
	return w.start(list, via, strs(list), surroundings(n, list))
}

// carry judges the string v as a text in the language lang. n is the object that contains it.
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

// command judges a command text with the arguments, the input and the variables in the same
// object.
func (w *jsonWalk) command(n, v *tree.Node, src *act.Source, via string) {
	args := n.Get("args", "arguments")
	if args != nil && (args.Kind != '[' || !tree.AllStrings(args)) {
		args = nil
	}
	with := surroundings(n, v)
	switch with.Stdin.Known = with.Stdin.Word.Text != ""; {
	case args == nil && with.Env == nil && !with.Stdin.Known:
		w.e.Route(src)
	case strings.ContainsAny(v.Text, "|&;<>()$`\\\n"): // a text for a shell, to which the arguments are appended
		if args != nil {
			src.Text, src.At = v.Text+" "+strings.Join(strs(args), " "), -1
		}
		if with.Env != nil { // judge the effect of the variables on any shell
			w.start(v, via, []string{"sh", "-n"}, act.Invocation{Env: with.Env})
		}
		w.e.Front.Script(&interp.Process{Env: w.e}, src, with.Stdin)
	case args != nil:
		w.start(n, via, append(scan.OptionWords(v.Text), strs(args)...), with)
	default:
		w.start(v, via, scan.OptionWords(v.Text), with)
	}
}

// notebook judges the shell lines of a notebook cell: "!rm x", or all lines after "%%bash". It
// reports whether the whole cell is a shell text.
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

// codeLanguages maps beginnings of language names to languages.
var codeLanguages = []struct{ begins, lang string }{{"py", "python"}, {"js", "node"}, {"javascript", "node"}, {"node", "node"}, {"ts", "node"}, {"typescript", "node"}}

// codeWords lists words from which the language of a text is recognized if no member names it. The
// first match counts.
var codeWords = []struct {
	lang  string
	words []string
}{{"node", []string{"require(", "const ", "=>", "await "}}, {"python", []string{"import ", "print(", "os.", "subprocess", "__import__("}}}

// codeLanguage returns the language of a text that another member names, or that the words of the
// text show, and otherwise "any".
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

// code judges source code for an interpreter.
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

// operationMarks lists texts for some languages. A text in the language contains at least one of
// them. If it contains none, only the name of its member suggested the language.
var operationMarks = map[string][]string{"manifest": {"kind:", `"kind"`, "spec:", `"spec"`, "metadata:", `"metadata"`, `"op"`, "roleRef"}, "playbook": {"hosts:", "tasks:", "- name:"}, "compose": {"services:", `"services"`}, "dockerfile": {"FROM ", "from "}}

// bareMember reports whether a text continues like {command: …} of JavaScript or YAML. In a
// shell, a space follows the brace and no colon follows the first word.
func bareMember(open byte, next string) bool {
	i := 0
	for i < len(next) && scan.IsNameByte(next[i]) {
		i++
	}
	return open == '{' && i > 0 && strings.HasPrefix(next[i:], ":") && !strings.HasPrefix(next[i:], "::") && i+1 < len(next)
}

// shellName reports whether the text cannot be a command, because it only names a shell or says
// whether one is used: sh, true, false, default.
func shellName(text string) bool {
	switch strings.ToLower(scan.Base(text)) {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "powershell", "pwsh", "cmd", "true", "false", "default":
		return true
	}
	return false
}

// encodedKey reports whether the name of a member shows that its text is encoded: command_base64,
// b64.
func encodedKey(key string) bool {
	plain := tree.PlainKey(key)
	return strings.Contains(plain, "base64") || strings.Contains(plain, "b64") || strings.HasPrefix(plain, "encoded")
}

// shellLanguage returns the language of a command, by the shell that another member names.
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
