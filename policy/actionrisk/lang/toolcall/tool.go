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

// isMCPMethod reports whether a method is one of the MCP protocol that does not call a tool.
func isMCPMethod(method string) bool {
	if scan.HasAnyPrefix(method, "resources/", "prompts/", "roots/", "sampling/", "logging/", "completion/", "notifications/", "elicitation/") {
		return true
	}
	return method == "initialize" || method == "ping"
}

func (w *jsonWalk) mcp(method string, params *tree.Node) bool {
	if method == "tools/call" && params != nil {
		return w.tool(params, params.Str("name"), params.Get("arguments", "args", "input"))
	}
	if params != nil && method == "resources/read" {
		w.files(method, "read", params)
	}
	w.e.Match(&act.Item{Kind: act.KindTool, Name: "read", Src: w.src, From: 0, To: len(w.src.Text), Target: act.Printable(method)})
	return true
}

// tool judges one tool call by the name of the tool and by its arguments.
func (w *jsonWalk) tool(n *tree.Node, name string, args *tree.Node) bool {
	e := w.e
	via := "mcp:" + act.Printable(name)
	inner := *w.src
	inner.Via = append(append([]string(nil), w.src.Via...), via)
	if args != nil && args.Kind == '"' { // the arguments are a JSON text in a string
		if root, _ := tree.JSON(args.Text); root != nil && root.Kind == '{' {
			span, _ := w.src.Where(args.Start, args.End)
			text := act.Source{Text: args.Text, At: -1, Span: span, Via: inner.Via, Depth: w.src.Depth + 1}
			if args.Verbatim && w.src.At >= 0 {
				text.At = w.src.At + args.Start + 1
			}
			sub := jsonWalk{e: e, src: &text}
			return sub.judge(n, name, root, w.src)
		}
	}
	sub := jsonWalk{e: e, src: &inner}
	return sub.judge(n, name, args, w.src)
}

// judge judges the arguments of a tool call. If these do not decide, it judges the call by its
// class. outer is the source that contains the whole call.
func (w *jsonWalk) judge(n *tree.Node, name string, args *tree.Node, outer *act.Source) bool {
	e := w.e
	class := callClass(name, args)
	w.walletKeys(name, args)
	if w.contract(name, class, args) {
		return true
	}
	w.saysByName(n, name, class, args, outer)
	before := len(e.Findings)
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
	e.Match(&act.Item{Kind: act.KindTool, Name: class, Src: outer, From: n.Start, To: n.End, Target: act.Printable(name), Words: name + " " + placeWords(args)})
	return true
}

// callClass returns the class of a call by the name of the tool and by the members that describe
// the action.
func callClass(name string, args *tree.Node) string {
	class := facts.ToolClass(bareToolName(name))
	if saysLittle(class) {
		class = actionClass(name, class, args)
	}
	switch {
	case class == "read" && offersForSale(name, args), saysLittle(class) && (sendsTo(name, args) || paysFor(name, args)):
		return "money"
	case class == "money" && (facts.PreparedOnly(name) && !sendsTo(name, args) && !facts.Confirmed(args) || !facts.SaysSum(name, args)):
		return "write"
	}
	return class
}

// saysByName reports effects that the name of a tool reveals and its class does not.
func (w *jsonWalk) saysByName(n *tree.Node, name, class string, args *tree.Node, outer *act.Source) {
	for _, s := range [...]struct {
		holds bool
		what  act.Sight
	}{
		{facts.MakesKeyByName(name), act.MakesKey},
		{facts.ShowsSecretByName(name), act.ReadsStore},
		{facts.ShowsKeyByName(name), act.ShowsWalletKey},
		{opensPolicy(name, class, args), act.DropsLimits},
	} {
		if s.holds {
			w.e.See(s.what, outer, n.Start, n.End, act.Printable(name))
		}
	}
}

// judgedBetter reports whether the arguments, or the program after which the tool is named,
// describe the effect of the call better than its class, so that the class need not be judged.
// before is the number of findings before the arguments were judged.
func (w *jsonWalk) judgedBetter(name, class string, args *tree.Node, carried bool, before int) bool {
	found := func() bool { return len(w.e.Findings) > before }
	switch class {
	case "shell", "sql":
		program := w.program(name, args)
		return carried || program && found()
	case "money":
		return w.payment(name, args)
	case "write", "unknown":
		return w.approves(args) || (w.documents(name, args) || w.program(name, args) || carried) && found()
	case "read":
		return w.readBetter(name, args)
	case "destructive":
		if w.onlyFile(name, args, before) {
			return true
		}
		w.listProgram(name, args)
	}
	return false
}

// approves judges an allowance for the spender among the arguments.
func (w *jsonWalk) approves(args *tree.Node) bool {
	return args.Get("spender") != nil && w.payment("approve", args)
}

// readBetter is judgedBetter for a tool that reads. Such a tool may pay for what it reads, or
// start a program that shows secrets or takes an argument for an option.
func (w *jsonWalk) readBetter(name string, args *tree.Node) bool {
	if facts.Says(facts.ToolWords(name), "paid") && w.payment(name, args) {
		return true
	}
	if !w.documents(name, args) && (injectsOption(args) || w.readsSecrets(name)) {
		w.program(name, args)
	}
	return false
}

// paysFor reports whether the call pays for a booking or an order at once.
func paysFor(name string, args *tree.Node) bool {
	return args.Get("payment", "payment_source", "paymentMethodId", "payment_method_id", "card_id") != nil &&
		facts.Says(facts.ToolWords(name), "orders")
}

// sendsTo reports whether the arguments are those of a transfer, a blockchain address and an
// amount, whatever the name of the tool is.
func sendsTo(name string, args *tree.Node) bool {
	if args == nil || args.Kind != '{' || facts.Says(facts.ToolWords(name), "asks-for") {
		return false
	}
	flat := map[string]string{}
	flatten(args, flat, 1)
	to := firstOf(flat, "to", "recipient", "destination", "payee", "receiver", "to_address", "toaddress", "recipient_address", "recipientaddress", "dest", "beneficiary", "payto", "pay_to")
	return amounts.IsAddress(to) && firstOf(flat, "amount", "value", "lamports", "wei", "sats", "quantity", "amount_usd", "amountusd", "amount_wei", "amountwei") != "" && len(to) > 12
}

// offersForSale reports whether the call lists a token with a price, that is, offers it for sale.
func offersForSale(name string, args *tree.Node) bool {
	return args.Get("price", "listPrice", "list_price", "startPrice", "listingPrice") != nil && args.Get("tokenId", "token_id", "mint", "nftId", "nft_id", "assetId") != nil && slices.Contains(facts.ToolWords(name), "list")
}

// onlyFile reports whether the tool deletes one file whose path has already been judged as low
// risk.
func (w *jsonWalk) onlyFile(name string, args *tree.Node, before int) bool {
	file := args.Get("path", "file_path", "filePath", "file", "filename")
	if file == nil || file.Kind != '"' || strings.ContainsAny(file.Text, "*?") || len(w.e.Findings) == before || !slices.Contains(facts.ToolWords(name), "file") {
		return false
	}
	for _, f := range w.e.Findings[before:] {
		if f.Level > act.Low {
			return false
		}
	}
	return true
}

// actionClass returns the class of a tool with many actions, by the member that names the action.
func actionClass(name, class string, args *tree.Node) string {
	if args == nil || args.Kind != '{' || facts.Says(facts.ToolWords(name), "small") {
		return class
	}
	for _, key := range [...]string{"action", "operation", "operation_name", "op", "method", "mode", "verb", "command"} {
		text := args.Str(key)
		if len(text) > 40 || strings.ContainsAny(text, " /") {
			continue
		}
		words := facts.ToolWords(text)
		if facts.Says(words[:min(1, len(words))], "strong") && !facts.Says(words, "small") {
			return "destructive"
		}
		if c := facts.ToolClass(text); c == "money" && key != "method" {
			return c
		}
	}
	return class
}

// readsSecrets reports whether the tool is named after a program that can show credentials. Then
// the arguments must be judged.
func (w *jsonWalk) readsSecrets(name string) bool {
	exe, _ := programOf(w.e, name)
	return exe != "" && w.e.In("secret-readers", exe)
}

// injectsOption reports whether an argument begins with "-", so that the program may take it for
// an option instead of a name.
func injectsOption(args *tree.Node) bool {
	if args == nil {
		return false
	}
	for _, k := range args.Kids {
		if k.Kind == '"' && strings.HasPrefix(k.Text, "-") || k.Kind == '[' && injectsOption(k) {
			return true
		}
	}
	return false
}

// addsServer judges a tool that adds an MCP server, whose program then runs. It returns false for
// other tools.
func (w *jsonWalk) addsServer(name string, args *tree.Node) bool {
	words := facts.ToolWords(name)
	if args.Get("command", "package", "url") == nil || !facts.Says(words, "mcp") || !facts.Says(words, "adds") {
		return false
	}
	return w.servers(&tree.Node{Kind: '{', Keys: []string{name}, Kids: []*tree.Node{args}, Start: args.Start, End: args.End})
}

// documents judges a call of a document database's tool like the method of the same name in the
// MongoDB shell. For example, the tool delete_many with {collection, filter} is judged like
// db.collection.deleteMany(filter). It reports whether a rule matched.
func (w *jsonWalk) documents(name string, args *tree.Node) bool {
	collection := args.Str("collection", "collectionName", "collection_name")
	if w.src.Depth >= scan.MaxDepth {
		return false
	}
	if command := args.Get("command", "cmd", "runCommand", "run_command", "document", "commandDocument"); command != nil && command.Kind == '{' {
		return w.mongo(args, stores.MongoCall{Method: "runCommand", Args: w.src.Text[command.Start:command.End], Receiver: "db"})
	}
	if collection == "" {
		return false
	}
	words := facts.ToolWords(bareToolName(name))
	for len(words) > 1 && facts.Says(words[:1], "mongo") {
		words = words[1:]
	}
	var list []string
	for _, key := range [...]string{"filter", "query", "pipeline", "update", "replacement", "document", "documents", "options"} {
		if k := args.Get(key); k != nil && (k.Kind == '{' || k.Kind == '[') {
			list = append(list, w.src.Text[k.Start:k.End])
		}
	}
	return w.mongo(args, stores.MongoCall{Method: camel(words), Args: strings.Join(list, ","), Receiver: "db." + collection})
}

// mongo judges a call of the MongoDB shell that is equivalent to the arguments, and reports
// whether a rule matched.
func (w *jsonWalk) mongo(args *tree.Node, call stores.MongoCall) bool {
	src := w.src.Inside(w.src.Word(args.Start, args.End), "")
	call.End = len(src.Text)
	r := stores.MongoDoes(&w.e.Calls, []stores.MongoCall{call})
	before := len(w.e.Findings)
	w.e.Statements(&src, &r, "")
	return len(w.e.Findings) > before
}

// mutation judges a GraphQL mutation by the names of its fields. The field with the worst class
// counts.
func (w *jsonWalk) mutation(v *tree.Node) bool {
	if !strings.HasPrefix(strings.TrimSpace(v.Text), "mutation") {
		return false
	}
	worst, field := "", ""
	for _, f := range facts.MutationFields(v.Text) {
		class := facts.ToolClass(f)
		if class == "unknown" || class == "read" {
			class = "write"
		}
		if worst == "" || class == "destructive" || class == "money" && worst == "write" {
			worst, field = class, f
		}
	}
	return worst != "" && w.e.Match(&act.Item{Kind: act.KindTool, Name: worst, Src: w.src, From: v.Start, To: v.End, Target: act.Printable(field)})
}

// placeKeys lists members that name the environment, host or account on which a tool acts.
var placeKeys = scan.SetOf("env environment stage project namespace cluster database db host hostname context workspace account profile instance branch")

// placeWords returns the values of the members in placeKeys.
func placeWords(args *tree.Node) string {
	var b strings.Builder
	for i, k := range args.KidsOrNone() {
		if placeKeys.Has(strings.ToLower(args.KeysAt(i))) && k.Kind == '"' {
			b.WriteString(" " + k.Text)
		}
	}
	return b.String()
}

// arguments judges the arguments of a tool call, and reports whether one of them is a program text
// or command.
func (w *jsonWalk) arguments(name, class string, args *tree.Node) bool {
	via := "mcp:" + act.Printable(name)
	switch {
	case args == nil:
		return false
	case args.Kind == '"':
		return w.textArgument(name, class, args, via)
	case args.Kind != '{':
		w.node(args, "")
		return false
	}
	w.files(name, class, args)
	if w.shapeOf(class, args) {
		return true
	}
	if url := args.Get("url", "uri", "endpoint"); isText(url) && methodByName(name) != "" {
		return w.request(args, url, methodByName(name))
	}
	carried := false
	for i, k := range args.Kids {
		carried = w.argument(name, class, args, args.Keys[i], k, via) || carried
	}
	return carried || class == "shell" && len(args.Kids) == 1 && isText(args.Kids[0]) && w.carry(args, args.Kids[0], "any", via)
}

// isText reports whether n is a string.
func isText(n *tree.Node) bool { return n != nil && n.Kind == '"' }

// shapeOf judges arguments whose form the method shape recognizes. For a tool that reads, an
// address is an account to read and not the recipient of a transfer.
func (w *jsonWalk) shapeOf(class string, args *tree.Node) bool {
	if class == "read" && args.Get("to", "address", "contract", "contractAddress", "contract_address") != nil {
		return false
	}
	return w.shape(args)
}

// textArgument judges arguments that are a single string.
func (w *jsonWalk) textArgument(name, class string, text *tree.Node, via string) bool {
	switch lang := languageOf(name); {
	case class == "sql":
		return w.carry(text, text, "sql", via)
	case class == "shell":
		return w.carry(text, text, "any", via)
	case lang != "":
		return w.programText(text, lang, via)
	}
	return facts.Says(facts.ToolWords(name)[:1], "shell-verbs") && w.carry(text, text, "any", via)
}

// argument judges one member, and reports whether it is a program text or command.
func (w *jsonWalk) argument(name, class string, args *tree.Node, member string, k *tree.Node, via string) bool {
	key, lang := strings.ToLower(member), w.carrierOf(member)
	if k.Kind == '"' {
		if judged, is := w.codeMember(name, class, args, key, k, via); is {
			return judged
		}
	}
	if class == "read" && searchedFor(name, lang, k) {
		return false
	}
	if w.carrier(args, member, k, via) {
		return true
	}
	switch k.Kind {
	case '"':
		if carried := linesOf[class]; carried.keys.Has(key) {
			return w.carry(args, k, carried.lang, via)
		}
		return (class == "shell" || payloadKeys.Has(key)) && w.payload(name, class, k)
	case '{', '[':
		w.node(k, key)
	}
	return false
}

// codeMember judges a string that, by the name of the tool, is source code, a script for a web
// page, or a command typed into a terminal. The second result reports whether it is one of these.
func (w *jsonWalk) codeMember(name, class string, args *tree.Node, key string, k *tree.Node, via string) (judged, is bool) {
	lang := languageOf(name)
	switch {
	case lang != "" && (textKeys.Has(key) || browserCode.Has(key) || lang == "applescript" && w.carrierOf(key) != ""):
		return w.programText(k, lang, via), true
	case browserCode.Has(tree.PlainKey(key)) && (inBrowser(name) || class == "shell" && strings.Contains(scan.FirstLine(k.Text), "=>")):
		return w.page(k, via), true
	case typedKeys.Has(key) && (inTerminal(name) || w.typesLine(k) && facts.Says(facts.ToolWords(name), "types")):
		return w.carry(args, k, "any", via), true
	}
	return false, false
}

// linesOf maps a class of tools to members that contain a command or statement only in this class.
var linesOf = map[string]struct {
	lang string
	keys *scan.Set
}{"shell": {"any", scan.SetOf("input text line value")}, "sql": {"sql", scan.SetOf("query input q text")}}

// searchedFor reports whether a tool that reads uses the text as a search query.
func searchedFor(name, lang string, k *tree.Node) bool {
	if k.Kind == '"' && lang == "sql?" && !stores.LooksSQL(k.Text) {
		return true
	}
	return searches(name) && (strings.HasPrefix(lang, "sql?") || lang == "code")
}

// languageOf returns the language of the texts that a tool runs, by the name of the tool, or "".
func languageOf(name string) string {
	words := facts.ToolWords(bareToolName(name))
	if len(words) == 0 || facts.Verbs().Class.Get(words[0]) == "read" {
		return ""
	}
	if facts.Says(words, "shell-verbs") {
		words = append(words, wholeWords(name)...)
	}
	for _, w := range words {
		if lang := facts.Verbs().Languages.Get(w); lang != "" {
			return lang
		}
	}
	return ""
}

// programText judges a program text, including the shell lines of a notebook cell.
func (w *jsonWalk) programText(k *tree.Node, lang, via string) bool {
	if strings.TrimSpace(k.Text) == "" || w.src.Depth >= scan.MaxDepth {
		return false
	}
	src := k.Source(w.src, via)
	switch {
	case w.notebook(&src):
	case lang == "applescript":
		w.e.Read(lang, &src, nil)
	default:
		w.e.Read("whole "+lang, &src, nil)
	}
	w.known = true
	return true
}

// payloadKeys lists members that contain further arguments, as an object or as JSON in a string.
var payloadKeys = scan.SetOf("payload input arguments args params parameters request tool_input toolinput call data")

// payload judges JSON in a string as if it were the arguments themselves.
func (w *jsonWalk) payload(name, class string, k *tree.Node) bool {
	text := strings.TrimSpace(k.Text)
	if text == "" || text[0] != '{' || w.src.Depth >= scan.MaxDepth || !w.e.Budget.Spend(len(text)/4) {
		return false
	}
	root, strict := tree.JSON(text)
	if root == nil || !strict {
		return false
	}
	src := k.Source(w.src, "json")
	src.Text, src.At = text, -1
	sub := jsonWalk{e: w.e, src: &src}
	return sub.arguments(name, class, root) || sub.known
}

// browserCode lists members whose text a browser runs in a page.
var browserCode = scan.SetOf("function script expression code js javascript pagefunction evaluate snippet")

// typedKeys lists members whose text is typed into a terminal.
var typedKeys = scan.SetOf("keys text input data line value chars characters stdin content")

// inTerminal reports whether a tool types into a terminal.
func inTerminal(name string) bool {
	words := facts.ToolWords(name)
	return facts.Says(wholeWords(name), "terminal") && facts.Says(words, "types") && !slices.Contains(words, "file")
}

// wholeWords returns the words of a tool's name, including the name of its server.
func wholeWords(name string) []string {
	return facts.ToolWords(strings.ReplaceAll(bareToolName(name), "__", "_"))
}

// inBrowser reports whether a tool works in a web page.
func inBrowser(name string) bool {
	words := wholeWords(name)
	return facts.Says(words, "browser") || slices.Contains(words, "javascript") && strings.Contains(name, "tab")
}

// page judges a text that runs in a web page.
func (w *jsonWalk) page(k *tree.Node, via string) bool {
	src := k.Source(w.src, via)
	w.e.Read("whole node", &src, nil)
	pageData(w.e, &src)
	return true
}

// searches reports whether a tool uses its query for a search and does not run it.
func searches(name string) bool {
	words := facts.ToolWords(name)
	return facts.Says(words, "searches") && !facts.Says(words, "databases")
}

// Phrase judges sentences such as "call tool NAME with {…}" and "mcp call NAME {…}". It
// returns false for other sentences.
func Phrase(e *interp.Env, src *act.Source) bool {
	if !e.Budget.Spend(len(src.Text) / 4) {
		return false
	}
	name := toolInPhrase(amounts.ReadPhrase(src.Text))
	if name == "" || strings.Contains(name, "/") && strings.HasPrefix(name, "http") {
		return false
	}
	n := &tree.Node{Kind: '{', Start: 0, End: len(src.Text)}
	w := jsonWalk{e: e, src: src}
	e.Ran = true
	var args *tree.Node
	if open := strings.IndexByte(src.Text, '{'); open >= 0 {
		inner := behind(src, open)
		if root, _ := tree.JSON(inner.Text); root != nil {
			w.src, args = &inner, root
			n.End = len(inner.Text)
		}
	}
	return w.tool(n, name, args)
}

// toolInPhrase returns the tool that a sentence asks to call, or "".
func toolInPhrase(p *amounts.Phrase) string {
	if len(p.Words) < 3 || !toolPhrases.Has(p.Words[0]) || !p.Has("tool", "mcp") {
		return ""
	}
	i := 1
	for i < len(p.Words) && slices.Contains([]string{"call", "tool", "the", "mcp", "use", "invoke", "run", "a", "named", "execute"}, p.Words[i]) {
		i++
	}
	if i == len(p.Words) || i == 1 && !slices.Contains([]string{"call", "tool", "invoke"}, p.Words[0]) {
		return ""
	}
	return strings.Trim(p.Raw[i], "`\"'.,:;()")
}

// operations judges a text in a language such as manifest or playbook, if it contains one of its
// operationMarks.
func (w *jsonWalk) operations(src *act.Source, lang string) bool {
	if !scan.HasAny(src.Text, operationMarks[lang]...) {
		return false
	}
	w.e.Ran, w.known = true, true
	w.e.Read(lang, src, &act.Invocation{Exe: "tool", Src: src, To: len(src.Text)})
	return false // the name of the tool must still be judged
}

// toolPhrases lists first words of sentences that name a tool.
var toolPhrases = scan.SetOf("call invoke tool use mcp execute")

// saysLittle reports whether the names of tools in this class do not show what they do.
func saysLittle(class string) bool { return class == "write" || class == "unknown" }
