package actionrisk

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/canon"
)

// kindTool items are tool calls; their name is what the tool does by its name:
// destructive, money, write, read, shell, sql or unknown.
const kindTool = "tool"

// verbTable is verbs.json: words of tool names by what they do.
type verbTable struct {
	Read                              []string          `json:"read"`
	Write                             []string          `json:"write"`
	Destructive                       []string          `json:"destructive"`
	Money                             []string          `json:"money"`
	MoneyNouns                        []string          `json:"moneyNouns"`
	PlainNouns                        []string          `json:"plainNouns"` // what may be transferred or ordered without money
	Shell                             []string          `json:"shell"`
	ShellVerbs                        []string          `json:"shellVerbs"`
	ShellNouns                        []string          `json:"shellNouns"`
	SQL                               []string          `json:"sql"`
	Programs                          map[string]string `json:"programs"` // words of a tool's name that mean a program
	Posts                             []string          `json:"posts"`    // words of tools that send to others what they are given
	Keeps                             []string          `json:"keeps"`    // words of tools that keep secrets
	post, keep                        map[string]bool
	class                             map[string]string
	nouns, plain, shellVerb, shellSay map[string]bool
}

var verbs = sync.OnceValue(func() *verbTable {
	text, err := tables.ReadFile("rules/verbs.json")
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	t := &verbTable{class: map[string]string{}}
	if err := canon.Decode(text, t); err != nil {
		panic("actionrisk: verbs: " + err.Error())
	}
	for _, c := range [...]struct {
		name string
		list []string
	}{{"read", t.Read}, {"write", t.Write}, {"destructive", t.Destructive}, {"money", t.Money}, {"shell", t.Shell}, {"sql", t.SQL}} {
		for _, w := range c.list {
			t.class[w] = c.name
		}
	}
	t.post, t.keep = setOf(strings.Join(t.Posts, " ")), setOf(strings.Join(t.Keeps, " "))
	t.nouns, t.plain = setOf(strings.Join(t.MoneyNouns, " ")), setOf(strings.Join(t.PlainNouns, " "))
	t.shellVerb, t.shellSay = setOf(strings.Join(t.ShellVerbs, " ")), setOf(strings.Join(t.ShellNouns, " "))
	return t
})

// toolWords splits a tool's name at everything that is no letter or digit and
// at changes of case. What stands before "__" names the server.
func toolWords(name string) []string {
	if n := strings.LastIndex(name, "__"); n >= 0 && n+2 < len(name) {
		name = name[n+2:]
	}
	var words []string
	start := -1
	for i := 0; i <= len(name); i++ {
		boundary := i == len(name) || !alnum(name[i])
		if start >= 0 && (boundary || upper(name[i]) && !upper(name[i-1])) {
			words = append(words, strings.ToLower(name[start:i]))
			start = -1
		}
		if !boundary && start < 0 {
			start = i
		}
		if len(words) > 16 {
			break
		}
	}
	return words
}

// toolClass says what a tool does by its name: the first verb decides, but a
// destructive verb anywhere behind a conjunction counts too.
func toolClass(name string) string {
	t := verbs()
	words := toolWords(name)
	money, plain, runs, shellNoun := false, false, false, false
	verb := slices.IndexFunc(words, func(w string) bool { return t.class[w] != "" })
	for i, w := range words {
		money = money || i != verb && (t.nouns[w] || t.nouns[strings.TrimSuffix(w, "s")])
		plain = plain || t.plain[w] || t.plain[strings.TrimSuffix(w, "s")]
		runs = runs || t.shellVerb[w]
		shellNoun = shellNoun || t.shellSay[w] || t.shellSay[strings.TrimSuffix(w, "s")]
	}
	class := ""
	for i, w := range words {
		c := t.class[w]
		if c == "" {
			continue
		}
		if class == "" {
			class = c
		} else if c == "destructive" && i > 0 && (words[i-1] == "and" || words[i-1] == "or" || words[i-1] == "then") {
			class = c
		}
	}
	switch {
	case len(words) > 0 && class == "read" && t.class[words[0]] == "read":
	case runs && shellNoun, class == "shell":
		class = "shell"
	case class == "sql", runs && slices.ContainsFunc(words, func(w string) bool { return w == "query" || w == "statement" || t.class[w] == "sql" }):
		class = "sql"
	case money && (class == "write" || class == "money" || class == "" && runs):
		class = "money"
	case class == "money" && plain:
		class = "write"
	}
	if class == "" {
		return "unknown"
	}
	return class
}

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
	class := toolClass(bareToolName(name))
	before := len(e.findings)
	if w.addsServer(name, args) {
		return true
	}
	carried := w.arguments(name, class, args)
	if class == "write" || class == "unknown" || class == "money" {
		w.posted(name, args)
		w.changesSettings(name, args)
	}
	at := item{kind: kindTool, name: class, src: outer, from: n.start, to: n.end, target: printable(name), words: name + " " + placeWords(args)}
	switch class {
	case "shell", "sql":
		if carried || w.program(name, args) && len(e.findings) > before {
			return true
		}
		if args != nil && args.kind == '{' && len(args.kids) == 0 {
			return e.match(&at)
		}
	case "money":
		if w.payment(name, args) {
			return true
		}
	case "write", "unknown":
		if args.get("spender") != nil && w.payment("approve", args) {
			return true
		}
		if (w.documents(name, args) || w.program(name, args) || carried) && len(e.findings) > before {
			return true
		}
	case "read":
		if w.documents(name, args) || injectsOption(args) && w.program(name, args) {
			break
		}
	case "destructive":
		w.listProgramOf(name, args)
	}
	e.match(&at)
	return true
}

// listProgramOf: a verb that is a program as well, with its words in a list.
func (w *jsonWalk) listProgramOf(name string, args *jsonNode) {
	if args != nil {
		w.listProgram(name, args)
	}
}

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
	if collection == "" || w.src.depth >= maxDepth {
		return false
	}
	words := toolWords(bareToolName(name))
	for len(words) > 1 && (words[0] == "mongo" || words[0] == "mongodb" || words[0] == "db") {
		words = words[1:]
	}
	method := ""
	for i, word := range words {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		method += word
	}
	var list []string
	for _, key := range [...]string{"filter", "query", "pipeline", "update", "replacement", "document", "documents", "options"} {
		if k := args.get(key); k != nil && (k.kind == '{' || k.kind == '[') {
			list = append(list, w.src.text[k.start:k.end])
		}
	}
	src := source{text: "db." + collection + "." + method + "(" + strings.Join(list, ",") + ")", at: -1, via: w.src.via, depth: w.src.depth + 1}
	src.span, _ = w.src.where(args.start, args.end)
	if !looksMongo(src.text) || mongoEffect(&mongoCall{method: method, args: strings.Join(list, ","), receiver: "db." + collection}) == "" {
		return false
	}
	w.e.runSQL(&src, nil)
	return true
}

// mutation judges a GraphQL mutation by the names of its fields.
func (w *jsonWalk) mutation(v *jsonNode) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(v.text), "mutation")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, "{")
	if !ok {
		return false
	}
	field := strings.TrimLeft(rest, " \n\t")
	end := 0
	for end < len(field) && isNameByte(field[end]) {
		end++
	}
	class := toolClass(field[:end])
	if class == "unknown" || class == "read" {
		class = "write"
	}
	return w.e.match(&item{kind: kindTool, name: class, src: w.src, from: v.start, to: v.end, target: printable(field[:end])})
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
		if class == "shell" || class == "sql" {
			return w.carry(args, args, map[string]string{"shell": "any", "sql": "sql"}[class], via)
		}
		return false
	}
	if args.kind != '{' {
		w.node(args, "")
		return false
	}
	w.files(name, class, args)
	if w.shape(args) {
		return true
	}
	carried := false
	for i, k := range args.kids {
		key := strings.ToLower(args.keys[i])
		lang := w.carrierOf(args.keys[i])
		switch {
		case class == "read" && searches(name) && (strings.HasPrefix(lang, "sql?") || lang == "code"):
			// what is searched for
		case browserCode[plainKey(key)] && k.kind == '"' && inBrowser(name):
			carried = w.page(k, via) || carried
		case class == "read" && lang == "sql?" && k.kind == '"' && !looksSQL(k.text):
		case w.carrier(args, args.keys[i], k, via):
			carried = true
		case k.kind == '"' && class == "shell" && (key == "input" || key == "text" || key == "line" || key == "value"),
			k.kind == '"' && class == "sql" && (key == "query" || key == "input" || key == "q" || key == "text"):
			carried = w.carry(args, k, map[string]string{"shell": "any", "sql": "sql"}[class], via) || carried
		case k.kind == '"' && (class == "shell" || payloadKeys[key]) && w.payload(name, class, k):
			carried = true
		case k.kind == '{' || k.kind == '[':
			w.node(k, key)
		}
	}
	return carried
}

// payloadKeys are members that hold further arguments, as JSON in a string too.
var payloadKeys = setOf("payload input arguments args params parameters request tool_input toolinput call data")

// payload judges JSON in a string as the arguments themselves.
func (w *jsonWalk) payload(name, class string, k *jsonNode) bool {
	text := strings.TrimSpace(k.text)
	if text == "" || text[0] != '{' || w.src.depth >= maxDepth || !w.e.budget.spend(len(text)/4) {
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
var browserCode = setOf("function script expression code js javascript pagefunction evaluate snippet")

// inBrowser tells whether a tool works in a web page.
func inBrowser(name string) bool {
	return slices.ContainsFunc(toolWords(name), func(w string) bool {
		return w == "browser" || w == "puppeteer" || w == "playwright" || w == "page" || w == "chrome" || w == "devtools" || w == "cdp" || w == "javascript" && strings.Contains(name, "tab")
	})
}

// page runs text in a web page.
func (w *jsonWalk) page(k *jsonNode, via string) bool {
	src := k.source(w.src, via)
	w.e.ran = true
	w.e.runInline(&shell{e: w.e, src: &src}, &src, "node")
	w.e.runCalls(&src)
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
func (e *engine) runToolPhrase(src *source, p *phrase) bool {
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
