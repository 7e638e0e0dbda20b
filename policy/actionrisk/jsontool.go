package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// kindTool items are tool calls; their name is what the tool does by its name:
// destructive, money, write, read, shell, sql or unknown.
const kindTool = "tool"

// isMCPMethod: methods of the protocol that call no tool.
func isMCPMethod(method string) bool {
	for _, p := range [...]string{"resources/", "prompts/", "roots/", "sampling/", "logging/", "completion/", "notifications/", "elicitation/"} {
		if strings.HasPrefix(method, p) {
			return true
		}
	}
	return method == "initialize" || method == "ping"
}

func (w *jsonWalk) mcp(method string, params *jsonNode) bool {
	if method == "tools/call" && params != nil {
		return w.tool(params, params.str("name"), params.get("arguments", "args", "input"))
	}
	if params != nil && method == "resources/read" {
		w.files(method, "read", params)
	}
	w.e.match(&item{kind: kindTool, name: "read", src: w.src, from: 0, to: len(w.src.text), target: printable(method)})
	return true
}

// tool judges one tool call: what its name says, and what its arguments carry.
func (w *jsonWalk) tool(n *jsonNode, name string, args *jsonNode) bool {
	e := w.e
	via := "mcp:" + printable(name)
	inner := *w.src
	inner.via = append(append([]string(nil), w.src.via...), via)
	if args != nil && args.kind == '"' { // arguments as a string of JSON
		if root, _ := parseJSON(args.text); root != nil && root.kind == '{' {
			span, _ := w.src.where(args.start, args.end)
			text := source{text: args.text, at: -1, span: span, via: inner.via, depth: w.src.depth + 1}
			if args.verbatim && w.src.at >= 0 {
				text.at = w.src.at + args.start + 1
			}
			sub := jsonWalk{e: e, src: &text}
			return sub.judge(n, name, root, w.src)
		}
	}
	sub := jsonWalk{e: e, src: &inner}
	return sub.judge(n, name, args, w.src)
}

// judge matches the tool's class, after its arguments.
func (w *jsonWalk) judge(n *jsonNode, name string, args *jsonNode, outer *source) bool {
	e := w.e
	class := callClass(name, args)
	w.walletKeys(name, args)
	if w.contract(name, class, args) {
		return true
	}
	w.saysByName(n, name, class, args, outer)
	before := len(e.findings)
	if w.addsServer(name, args) {
		return true
	}
	carried := w.arguments(name, class, args)
	w.posted(name, class, args)
	if class == "write" || class == "unknown" || class == "money" {
		w.changesSettings(name, args)
	}
	if w.judgedBetter(name, class, args, carried, before) {
		return true
	}
	e.match(&item{kind: kindTool, name: class, src: outer, from: n.start, to: n.end, target: printable(name), words: name + " " + placeWords(args)})
	return true
}

// callClass is the class of a call by the tool's name and by the members that tell
// more about it.
func callClass(name string, args *jsonNode) string {
	class := toolClass(bareToolName(name))
	if class == "write" || class == "unknown" {
		class = actionClass(name, class, args)
	}
	switch {
	case class == "read" && offersForSale(name, args):
		return "money"
	case class == "money" && (preparedOnly(name) && !sendsTo(name, args) && !confirmed(args) || !saysSum(name, args)):
		return "write"
	case (class == "write" || class == "unknown") && sendsTo(name, args):
		return "money"
	case (class == "write" || class == "unknown") && paysFor(name, args):
		return "money"
	}
	return class
}

// saysByName raises what a tool's name says beside its class.
func (w *jsonWalk) saysByName(n *jsonNode, name, class string, args *jsonNode, outer *source) {
	for _, s := range [...]struct {
		holds bool
		rule  string
	}{
		{makesKeyByName(name), "cloud.aws.credential-create"},
		{showsSecretByName(name), "secret.read-store"},
		{showsKeyByName(name), "wallet.key-export"},
		{opensPolicy(name, class, args), "x402.policy-off"},
	} {
		if s.holds {
			w.e.raise(s.rule, outer, n.start, n.end, printable(name))
		}
	}
}

// judgedBetter tells whether the arguments, or the program that the tool is named
// after, say what the call does better than its class.
func (w *jsonWalk) judgedBetter(name, class string, args *jsonNode, carried bool, before int) bool {
	found := func() bool { return len(w.e.findings) > before }
	switch class {
	case "shell", "sql":
		program := w.program(name, args)
		return carried || program && found()
	case "money":
		return w.payment(name, args)
	case "write", "unknown":
		return args.get("spender") != nil && w.payment("approve", args) ||
			(w.documents(name, args) || w.program(name, args) || carried) && found()
	case "read":
		if hasWord(toolWords(name), paidWords) && w.payment(name, args) {
			return true
		}
		if !w.documents(name, args) && (injectsOption(args) || w.readsSecrets(name)) {
			w.program(name, args)
		}
	case "destructive":
		if w.onlyFile(name, args, before) {
			return true
		}
		if args != nil {
			w.listProgram(name, args)
		}
	}
	return false
}

// paidWords: a tool that fetches and pays for it.
var paidWords = scan.SetOf("x402 paid pay l402")

// paysFor: what is booked or ordered is paid at once.
func paysFor(name string, args *jsonNode) bool {
	return args.get("payment", "payment_source", "paymentMethodId", "payment_method_id", "card_id") != nil &&
		hasWord(toolWords(name), map[string]bool{"book": true, "reserve": true, "order": true, "confirm": true, "place": true, "submit": true, "create": true, "complete": true, "renew": true, "subscribe": true})
}

// sendsTo: whatever the tool is called, its arguments are those of a transfer: an
// address of a chain and an amount of something.
func sendsTo(name string, args *jsonNode) bool {
	if args == nil || args.kind != '{' || hasWord(toolWords(name), asksFor) {
		return false
	}
	flat := map[string]string{}
	flatten(args, flat, 1)
	to := firstOf(flat, "to", "recipient", "destination", "payee", "receiver", "to_address", "toaddress", "recipient_address", "recipientaddress", "dest", "beneficiary", "payto", "pay_to")
	return isAddress(to) && firstOf(flat, "amount", "value", "lamports", "wei", "sats", "quantity", "amount_usd", "amountusd", "amount_wei", "amountwei") != "" && len(to) > 12
}

// confirmed: the arguments say that what was prepared is carried out at once.
func confirmed(args *jsonNode) bool {
	c := args.get("confirm", "confirmed", "placeOrder", "place_order", "submit", "execute", "autoConfirm", "auto_confirm", "capture")
	return c != nil && c.kind == 't'
}

// offersForSale: to list a token with a price is to offer it to everybody.
func offersForSale(name string, args *jsonNode) bool {
	return args.get("price", "listPrice", "list_price", "startPrice", "listingPrice") != nil && args.get("tokenId", "token_id", "mint", "nftId", "nft_id", "assetId") != nil && slices.Contains(toolWords(name), "list")
}

// asksFor are words of tools that only prepare, ask for or watch a transfer.
var asksFor = scan.SetOf("invoice request link quote estimate simulate watch alert track label note record import draft template preview address contact whitelist rule budget forecast report csv log expense example faucet receive qr uri")

// onlyFile: the tool deletes one file, which is what its path says it is.
func (w *jsonWalk) onlyFile(name string, args *jsonNode, before int) bool {
	file := args.get("path", "file_path", "filePath", "file", "filename")
	if file == nil || file.kind != '"' || strings.ContainsAny(file.text, "*?") || len(w.e.findings) == before || !slices.Contains(toolWords(name), "file") {
		return false
	}
	for _, f := range w.e.findings[before:] {
		if f.Level > Low {
			return false
		}
	}
	return true
}

// actionClass: a tool of many uses is told by a member what it shall do.
func actionClass(name, class string, args *jsonNode) string {
	if args == nil || args.kind != '{' || hasWord(toolWords(name), verbs().small) {
		return class
	}
	for _, key := range [...]string{"action", "operation", "operation_name", "op", "method", "mode", "verb", "command"} {
		text := args.str(key)
		if text == "" || len(text) > 40 || strings.ContainsAny(text, " /") {
			continue
		}
		words := toolWords(text)
		if len(words) > 0 && strongVerbs[words[0]] && !hasWord(words, verbs().small) {
			return "destructive"
		}
		if c := toolClass(text); c == "money" && key != "method" {
			return c
		}
	}
	return class
}

// strongVerbs destroy whatever they are said of.
var strongVerbs = scan.SetOf("delete remove destroy drop purge terminate wipe truncate revoke uninstall flush erase decommission teardown nuke flushall flushdb")

// readsSecrets: the program behind the tool can show credentials, so what it reads
// matters.
func (w *jsonWalk) readsSecrets(name string) bool {
	exe, _ := w.e.programOf(name)
	return exe != "" && secretReaders[exe]
}

var secretReaders = scan.SetOf("kubectl oc vault op bw pass gopass doppler infisical sops gpg aws gcloud az gh heroku flyctl")

// injectsOption: an argument that shall be a name is an option of the program
// behind the tool.
func injectsOption(args *jsonNode) bool {
	if args == nil {
		return false
	}
	for _, k := range args.kids {
		if k.kind == '"' && strings.HasPrefix(k.text, "-") || k.kind == '[' && injectsOption(k) {
			return true
		}
	}
	return false
}

// addsServer: a tool that adds an MCP server, whose program then runs.
func (w *jsonWalk) addsServer(name string, args *jsonNode) bool {
	words := toolWords(name)
	if args.get("command", "package", "url") == nil || !slices.Contains(words, "mcp") && !slices.Contains(words, "mcpserver") {
		return false
	}
	for _, word := range words {
		switch word {
		case "add", "install", "register", "create", "configure", "enable", "set", "connect":
			return w.servers(&jsonNode{kind: '{', keys: []string{name}, kids: []*jsonNode{args}, start: args.start, end: args.end})
		}
	}
	return false
}

// documents judges a tool of a document database as the shell's method of that
// name: {collection, pipeline} of aggregate, {collection, filter} of delete_many.
func (w *jsonWalk) documents(name string, args *jsonNode) bool {
	collection := args.str("collection", "collectionName", "collection_name")
	if w.src.depth >= scan.MaxDepth {
		return false
	}
	if command := args.get("command", "cmd", "runCommand", "run_command", "document", "commandDocument"); command != nil && command.kind == '{' {
		return w.mongo(args, "db.runCommand("+strings.ReplaceAll(w.src.text[command.start:command.end], " ", "")+")")
	}
	if collection == "" {
		return false
	}
	words := toolWords(bareToolName(name))
	for len(words) > 1 && (words[0] == "mongo" || words[0] == "mongodb" || words[0] == "db") {
		words = words[1:]
	}
	method := camel(words)
	var list []string
	for _, key := range [...]string{"filter", "query", "pipeline", "update", "replacement", "document", "documents", "options"} {
		if k := args.get(key); k != nil && (k.kind == '{' || k.kind == '[') {
			list = append(list, w.src.text[k.start:k.end])
		}
	}
	if mongoEffect(&mongoCall{method: method, args: strings.Join(list, ","), receiver: "db." + collection}) == "" {
		return false
	}
	return w.mongo(args, "db."+collection+"."+method+"("+strings.Join(list, ",")+")")
}

// mongo runs a statement that stands for what the arguments say.
func (w *jsonWalk) mongo(args *jsonNode, text string) bool {
	if !looksMongo(text) {
		return false
	}
	src := source{text: text, at: -1, via: w.src.via, depth: w.src.depth + 1}
	src.span, _ = w.src.where(args.start, args.end)
	before := len(w.e.findings)
	w.e.read("sql", &src, nil)
	return len(w.e.findings) > before
}

// mutation judges a GraphQL mutation by the names of its fields; the worst counts.
func (w *jsonWalk) mutation(v *jsonNode) bool {
	if !strings.HasPrefix(strings.TrimSpace(v.text), "mutation") {
		return false
	}
	worst, field := "", ""
	for _, f := range mutationFields(v.text) {
		class := toolClass(f)
		if class == "unknown" || class == "read" {
			class = "write"
		}
		if worst == "" || class == "destructive" || class == "money" && worst == "write" {
			worst, field = class, f
		}
	}
	return worst != "" && w.e.match(&item{kind: kindTool, name: worst, src: w.src, from: v.start, to: v.end, target: printable(field)})
}

// placeWords are the arguments that say where a tool acts.
func placeWords(args *jsonNode) string {
	var b strings.Builder
	if args != nil {
		for i, k := range args.kids {
			switch key := strings.ToLower(args.keysAt(i)); key {
			case "env", "environment", "stage", "project", "namespace", "cluster", "database", "db", "host", "hostname", "context", "workspace", "account", "profile", "instance", "branch":
				if k.kind == '"' {
					b.WriteString(" " + k.text)
				}
			}
		}
	}
	return b.String()
}

func (n *jsonNode) keysAt(i int) string {
	if n.kind == '{' && i < len(n.keys) {
		return n.keys[i]
	}
	return ""
}

// arguments runs what the arguments carry and tells whether any was program text.
func (w *jsonWalk) arguments(name, class string, args *jsonNode) bool {
	if args == nil {
		return false
	}
	via := "mcp:" + printable(name)
	if args.kind == '"' {
		switch {
		case class == "shell" || class == "sql":
			return w.carry(args, args, map[string]string{"shell": "any", "sql": "sql"}[class], via)
		case languageOf(name) != "":
			return w.programText(args, languageOf(name), via)
		case hasWord(toolWords(name)[:1], verbs().shellVerb):
			return w.carry(args, args, "any", via)
		}
		return false
	}
	if args.kind != '{' {
		w.node(args, "")
		return false
	}
	w.files(name, class, args)
	if !(class == "read" && args.get("to", "address", "contract", "contractAddress", "contract_address") != nil) && w.shape(args) {
		return true
	}
	if url := args.get("url", "uri", "endpoint"); url != nil && url.kind == '"' && methodByName(name) != "" {
		return w.request(args, url, methodByName(name))
	}
	carried := false
	for i, k := range args.kids {
		carried = w.argument(name, class, args, args.keys[i], k, via) || carried
	}
	if !carried && class == "shell" && len(args.kids) == 1 && args.kids[0].kind == '"' {
		carried = w.carry(args, args.kids[0], "any", via)
	}
	return carried
}

// argument runs one member if it is program text.
func (w *jsonWalk) argument(name, class string, args *jsonNode, member string, k *jsonNode, via string) bool {
	key, lang := strings.ToLower(member), w.carrierOf(member)
	if k.kind == '"' {
		switch {
		case languageOf(name) != "" && (textKeys[key] || browserCode[key]):
			return w.programText(k, languageOf(name), via)
		case browserCode[plainKey(key)] && (inBrowser(name) || class == "shell" && strings.Contains(scan.FirstLine(k.text), "=>")):
			return w.page(k, via)
		case typedKeys[key] && inTerminal(name):
			return w.carry(args, k, "any", via)
		case class == "read" && lang == "sql?" && !looksSQL(k.text):
			return false
		}
	}
	switch {
	case class == "read" && searches(name) && (strings.HasPrefix(lang, "sql?") || lang == "code"):
		return false // what is searched for
	case w.carrier(args, member, k, via):
		return true
	case k.kind == '"' && class == "shell" && (key == "input" || key == "text" || key == "line" || key == "value"):
		return w.carry(args, k, "any", via)
	case k.kind == '"' && class == "sql" && (key == "query" || key == "input" || key == "q" || key == "text"):
		return w.carry(args, k, "sql", via)
	case k.kind == '"':
		return (class == "shell" || payloadKeys[key]) && w.payload(name, class, k)
	case k.kind == '{' || k.kind == '[':
		w.node(k, key)
	}
	return false
}

// languageOf is the language of the texts that a tool runs, by its name.
func languageOf(name string) string {
	words := toolWords(bareToolName(name))
	if len(words) == 0 || verbs().class[words[0]] == "read" {
		return ""
	}
	for _, w := range words {
		switch w {
		case "python", "python3", "ipython", "jupyter", "py", "pyodide", "notebook", "kernel":
			return "python"
		case "node", "nodejs", "javascript", "js", "deno", "typescript":
			return "node"
		case "ruby", "irb", "rails":
			return "ruby"
		case "php":
			return "php"
		case "perl":
			return "perl"
		}
	}
	return ""
}

// programText runs a text of a language, with the shell lines of a notebook in it.
func (w *jsonWalk) programText(k *jsonNode, lang, via string) bool {
	if strings.TrimSpace(k.text) == "" || w.src.depth >= scan.MaxDepth {
		return false
	}
	src := k.source(w.src, via)
	if !w.notebook(&src) {
		w.e.read("whole "+lang, &src, nil)
	}
	w.known = true
	return true
}

// payloadKeys are members that hold further arguments, as JSON in a string too.
var payloadKeys = scan.SetOf("payload input arguments args params parameters request tool_input toolinput call data")

// payload judges JSON in a string as the arguments themselves.
func (w *jsonWalk) payload(name, class string, k *jsonNode) bool {
	text := strings.TrimSpace(k.text)
	if text == "" || text[0] != '{' || w.src.depth >= scan.MaxDepth || !w.e.budget.spend(len(text)/4) {
		return false
	}
	root, strict := parseJSON(text)
	if root == nil || !strict {
		return false
	}
	src := k.source(w.src, "json")
	src.text, src.at = text, -1
	sub := jsonWalk{e: w.e, src: &src}
	return sub.arguments(name, class, root) || sub.known
}

// browserCode are members whose text a browser runs in a page.
var browserCode = scan.SetOf("function script expression code js javascript pagefunction evaluate snippet")

// typedKeys are members whose text is typed into a terminal.
var typedKeys = scan.SetOf("keys text input data line value chars characters stdin content")

// inTerminal tells whether a tool types into a terminal.
func inTerminal(name string) bool {
	words := toolWords(name)
	terminal := slices.ContainsFunc(words, func(w string) bool {
		return w == "terminal" || w == "tmux" || w == "pty" || w == "tty" || w == "console" || w == "shell" || w == "screen" || w == "process"
	})
	return terminal && slices.ContainsFunc(words, func(w string) bool {
		return w == "send" || w == "write" || w == "type" || w == "input" || w == "keys" || w == "stdin" || w == "paste" || w == "feed" || w == "interact"
	})
}

// inBrowser tells whether a tool works in a web page.
func inBrowser(name string) bool {
	return slices.ContainsFunc(toolWords(strings.ReplaceAll(name, "__", "_")), func(w string) bool {
		return w == "browser" || w == "puppeteer" || w == "playwright" || w == "page" || w == "chrome" || w == "devtools" || w == "cdp" || w == "javascript" && strings.Contains(name, "tab")
	})
}

// page runs text in a web page.
func (w *jsonWalk) page(k *jsonNode, via string) bool {
	src := k.source(w.src, via)
	w.e.read("whole node", &src, nil)
	w.e.pageData(&src)
	return true
}

// searches tells whether a reading tool looks for its query rather than runs it.
func searches(name string) bool {
	found := false
	for _, w := range toolWords(name) {
		switch w {
		case "search", "find", "grep", "lookup", "list", "rg", "browse", "discover":
			found = true
		case "sql", "database", "db", "postgres", "mysql", "sqlite", "bigquery", "snowflake", "clickhouse", "table":
			return false
		}
	}
	return found
}

// runToolPhrase reads "call tool NAME with {…}" and "mcp call NAME {…}".
func (e *engine) runToolPhrase(src *source) bool {
	if !e.budget.spend(len(src.text) / 4) {
		return false
	}
	p := readPhrase(src.text)
	if len(p.words) < 3 || !toolPhrases[p.words[0]] {
		return false
	}
	i := 1
	for i < len(p.words) && slices.Contains([]string{"call", "tool", "the", "mcp", "use", "invoke", "run", "a", "named", "execute"}, p.words[i]) {
		i++
	}
	if i >= len(p.words) || i == 1 && p.words[0] != "call" && p.words[0] != "tool" && p.words[0] != "invoke" {
		return false
	}
	if !p.has("tool", "mcp") && p.words[0] != "tool" && p.words[0] != "mcp" {
		return false
	}
	name := strings.Trim(p.raw[i], "`\"'.,:;()")
	if name == "" || strings.ContainsAny(name, "/") && strings.HasPrefix(name, "http") {
		return false
	}
	n := &jsonNode{kind: '{', start: 0, end: len(src.text)}
	w := jsonWalk{e: e, src: src}
	e.ran = true
	var args *jsonNode
	if open := strings.IndexByte(src.text, '{'); open >= 0 {
		inner := *src
		inner.text = src.text[open:]
		if inner.at >= 0 {
			inner.at += open
		}
		if root, _ := parseJSON(inner.text); root != nil {
			w.src, args = &inner, root
			n.end = len(inner.text)
		}
	}
	return w.tool(n, name, args)
}

// operations judges a text that a tool of operations is called with.
func (w *jsonWalk) operations(src *source, lang string) bool {
	if !slices.ContainsFunc(operationMarks[lang], func(mark string) bool { return strings.Contains(src.text, mark) }) {
		return false
	}
	w.e.ran, w.known = true, true
	w.e.read(lang, src, &invocation{exe: "tool", src: src, to: len(src.text)})
	return false // the tool's name counts as well
}

// toolPhrases begin a sentence that names a tool.
var toolPhrases = scan.SetOf("call invoke tool use mcp execute")
