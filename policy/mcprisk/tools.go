package mcprisk

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy/canon"
)

// tool applies the rules about what one tool can do and how it is declared.
func (s *scan) tool(t *tool) {
	if utf8.RuneCountInString(stringOf(t.raw["description"])) > maxDescription {
		s.report("oversized_description", "", t.name, t.path+"/description", "")
	}
	for _, c := range capabilities {
		if evidence, ok := c.has(t, &s.budget); ok {
			if c.id == "destructive_capability" && t.hint("destructiveHint") {
				continue
			}
			s.report(c.id, "", t.name, t.path, evidence)
		}
	}
	if t.hint("readOnlyHint") {
		if evidence, ok := t.writes(&s.budget); ok {
			s.report("annotation_mismatch", "", t.name, t.path+"/annotations/readOnlyHint", evidence)
		}
	}
	s.schema(t)
}

// hint reads one boolean annotation.
func (t *tool) hint(name string) bool {
	return membersOf(t.raw["annotations"])[name].Kind() == 't'
}

// capability recognises what a tool does by the words of its name and by its
// description.
type capability struct {
	id       string
	named    func(parts []string) bool
	triggers []string // words without which the description is not looked at
	form     func() *regexp.Regexp
	accept   func(text string, loc []int) bool
}

func (c capability) has(t *tool, b *budget) (evidence string, ok bool) {
	if c.named(t.nameParts) {
		return t.name, true
	}
	if !slices.ContainsFunc(c.triggers, t.says) || !b.spend(len(t.clean), perOctet) {
		return "", false
	}
	for _, loc := range c.form().FindAllStringIndex(t.clean, 8) {
		if notNegated(t.clean, loc) && (c.accept == nil || c.accept(t.clean, loc)) {
			return around(t.clean, loc), true
		}
	}
	return "", false
}

// anyOf says whether one of the words is part of the name.
func anyOf(words ...string) func([]string) bool {
	return func(parts []string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(words, p) })
	}
}

// verbAndObject says whether the name begins with one of the verbs and has one of
// the objects behind it.
func verbAndObject(verbs, objects []string) func([]string) bool {
	return func(parts []string) bool {
		return len(parts) > 1 && slices.Contains(verbs, parts[0]) && anyOf(objects...)(parts[1:])
	}
}

func either(a, b func([]string) bool) func([]string) bool {
	return func(parts []string) bool { return a(parts) || b(parts) }
}

// firstIs says whether the name begins with, or is, one of the words.
func firstIs(words ...string) func([]string) bool {
	return func(parts []string) bool { return len(parts) > 0 && slices.Contains(words, parts[0]) }
}

const money = `(?:funds?|tokens?|money|eth|sol|usdc|usdt|btc|crypto|cryptocurrency|coins?|assets?|payments?)`

var moneyWords = []string{"fund", "funds", "token", "tokens", "money", "eth", "sol", "usdc", "usdt", "btc", "crypto", "asset", "assets", "balance", "payment", "payments", "coins"}

var capabilities = []capability{
	{id: "command_execution",
		named:    either(anyOf("exec", "shell", "eval", "bash", "powershell", "subprocess"), verbAndObject([]string{"run", "execute"}, []string{"command", "commands", "code", "script", "python", "javascript", "cmd", "terminal"})),
		triggers: []string{"exec", "execute", "executes", "executing", "run", "runs", "running", "shell", "subprocess", "eval", "bash"},
		form: expression(`\b(?:execut(?:es?|ing)|runs?|running) (?:[^ .!?;]+ ){0,3}?(?:commands?|code|scripts?|javascript|python)\b|\b(?:shell|bash|terminal|powershell) commands?\b` +
			`|\b(?:in|via|through|on) (?:a |the )?(?:shell|terminal|subprocess)\b|\bsubprocess\b|\beval\b`),
		accept: codeRuns},
	{id: "destructive_capability",
		named:    firstIs("delete", "drop", "wipe", "overwrite", "truncate", "destroy", "purge", "erase"),
		triggers: []string{"delete", "deletes", "drop", "drops", "wipe", "wipes", "overwrite", "overwrites", "truncate", "truncates", "destroys", "purges", "erases"},
		form: expression(`(?:^|\. |, |\band |\bor |\bto |\bwill |\bcan |\bpermanently |\bit )(?:permanently )?(?:deletes?|wipes?|overwrites?|destroys|purges|erases)\b` +
			`|\b(?:drops?|truncates?) (?:[^ .!?;]+ ){0,3}?(?:tables?|databases?|collections?|ind(?:ex|exes|ices)|schemas?|columns?|files?|data)\b`),
		accept: ownAct},
	{id: "payment_capability",
		named: either(either(firstIs("pay", "withdraw"), verbAndObject([]string{"transfer", "send", "swap", "bridge"}, moneyWords)),
			either(verbAndObject([]string{"sign"}, []string{"transaction", "transactions", "message", "tx", "typed", "payload", "permit"}),
				either(verbAndObject([]string{"approve"}, []string{"token", "tokens", "allowance", "spend", "spender", "erc20"}), verbAndObject([]string{"make", "create", "execute", "submit"}, []string{"payment", "payout", "transfer"})))),
		triggers: []string{"sign", "signs", "transfer", "transfers", "pay", "pays", "withdraw", "withdraws", "approve", "approves", "private", "payment", "payments", "send", "sends"},
		form: expression(`\bsign(?:s|ing)? (?:[^ .!?;]+ ){0,2}?(?:transactions?|typed data|payloads? with)\b` +
			`|\b(?:transfer|send|withdraw|move)(?:s|ing)? (?:[^ .!?;]+ ){0,3}?` + money + `\b|\bwithdraws?\b (?:[^ .!?;]+ ){0,2}?from\b` +
			`|\bpays? (?:for |an? |the |your )?(?:[^ .!?;]+ )?(?:invoices?|bills?|orders?|merchants?|sellers?|recipients?|amounts?|subscriptions?)\b|\bmakes? (?:an? |the )?payments?\b` +
			`|\bapproves? (?:[^ .!?;]+ ){0,2}?(?:tokens?|allowances?|spend(?:ing|er)?)\b|\bprivate keys?\b`)},
	{id: "filesystem_write",
		named:    verbAndObject([]string{"write", "save", "edit", "create", "append", "move", "rename", "copy", "mkdir"}, []string{"file", "files", "directory", "directories", "dir", "folder", "path"}),
		triggers: []string{"write", "writes", "save", "saves", "create", "creates", "edit", "edits", "append", "appends", "modify", "modifies", "overwrite", "overwrites", "move", "moves"},
		form: expression(`\b(?:(?:over)?writes?|saves?|creates?|edits?|appends?|modif(?:y|ies)|moves?) (?:[^ .!?;]+ ){0,4}?` +
			`(?:files?|director(?:y|ies)|folders?|disk)\b`),
		accept: ownAct},
}

// codeRuns refuses "runs the code review" and "executes the scripted search".
func codeRuns(text string, loc []int) bool {
	rest := strings.TrimPrefix(text[loc[1]:], " ")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		end = len(rest)
	}
	return !slices.Contains([]string{"review", "reviews", "analysis", "search", "quality", "coverage", "formatter", "generator", "generation", "completion", "scan", "scanning", "metrics", "owners", "tests", "test", "linter"}, rest[:end])
}

// ownAct refuses statements about what others do or may do: "lists who may write
// files", "whether you are allowed to delete".
func ownAct(text string, loc []int) bool {
	before := text[max(0, loc[0]-30):loc[0]] + " "
	for _, about := range []string{" who ", "permission", "allowed ", "whether ", " able ", "right to", "rights", "how "} {
		if strings.Contains(before, about) {
			return false
		}
	}
	return true
}

var (
	writerNames = firstIs("write", "delete", "remove", "send", "execute", "exec", "pay", "create", "update", "transfer", "drop", "insert", "edit", "overwrite", "withdraw", "wipe", "move", "rename", "run", "upload")
	writerForm  = expression(`^(?:[^ .]+\. )?(?:writes?|deletes?|removes?|sends?|executes?|pays?|transfers?|overwrites?|uploads?|creates?|updates?|wipes?|drops?|withdraws?) ` +
		`|(?:\band |\bthen |\balso |, )(?:will )?(?:writes|deletes|removes|sends|executes|pays|transfers|overwrites|uploads|write|delete|send|execute|pay|transfer|wipes) `)
	writerWords = []string{"write", "writes", "delete", "deletes", "remove", "removes", "send", "sends", "execute", "executes", "pay", "pays", "transfer", "transfers",
		"overwrite", "overwrites", "upload", "uploads", "create", "creates", "update", "updates", "wipe", "wipes", "drop", "drops", "withdraw", "withdraws"}
	readsOnly = expression(`\b(?:quer(?:y|ies)|search(?:es)?|select|lookup|read-only|read only|report)\b`)
)

// writes says whether a tool that claims to be read-only changes something. A
// query that is executed is still a query.
func (t *tool) writes(b *budget) (evidence string, ok bool) {
	if writerNames(t.nameParts) && !(slices.Contains([]string{"execute", "exec", "run"}, t.nameParts[0]) && readsOnly().MatchString(strings.Join(t.nameParts, " "))) {
		return t.name, true
	}
	if !slices.ContainsFunc(writerWords, t.says) || !b.spend(len(t.clean), perOctet) {
		return "", false
	}
	for _, loc := range writerForm().FindAllStringIndex(t.clean, 4) {
		sentence := t.clean[loc[0]:]
		if end := strings.Index(sentence, ". "); end > 0 && loc[0]+end > loc[1] {
			sentence = sentence[:end]
		}
		if notNegated(t.clean, loc) && !(strings.Contains(t.clean[loc[0]:loc[1]], "execute") && readsOnly().MatchString(sentence)) {
			return around(t.clean, loc), true
		}
	}
	return "", false
}

// Parameters that ask for what a tool does not need, names folded.
var (
	contextParameters = []string{"sidenote", "sidenotes", "conversationhistory", "chathistory", "messagehistory", "previousmessages", "systemprompt",
		"fullcontext", "fullconversation", "modelname", "reasoning", "chainofthought", "contextdump"}
	credentialParameters = []string{"apikey", "password", "privatekey", "seedphrase", "mnemonic", "secretkey"}
	authWords            = []string{"auth", "login", "signin", "authenticate", "authentication", "oauth", "register", "credential", "credentials", "unlock"}
	egressWords          = []string{"fetch", "fetches", "request", "requests", "post", "posts", "download", "downloads", "crawl", "crawls", "scrape", "scrapes", "http", "get", "browse", "visit", "navigate", "webhook", "call", "curl", "load", "loads", "retrieve", "retrieves"}
	urlParameters        = []string{"url", "uri", "endpoint", "targeturl", "webhookurl", "callbackurl", "urls"}
)

// schema applies the rules about the input schema.
func (s *scan) schema(t *tool) {
	if !isObject(t.raw["inputSchema"]) {
		s.report("missing_input_schema", "", t.name, t.path, "")
		return
	}
	path, schema := t.path+"/inputSchema", membersOf(t.raw["inputSchema"])
	has := isObject(schema["properties"])
	additional := schema["additionalProperties"].Kind()
	given := additional == 't' || additional == 'f'
	if additional == 't' || !has && !given && schema["$ref"] == nil && schema["allOf"] == nil && schema["oneOf"] == nil && schema["anyOf"] == nil {
		s.report("open_schema", "", t.name, path, "")
	}
	isAuth := anyOf(authWords...)(t.nameParts) || slices.ContainsFunc(authWords, t.says)
	s.parameters(t, nil, canon.NewReader(t.raw["inputSchema"]), false, isAuth)
	fetches := anyOf(egressWords...)(t.nameParts) || slices.ContainsFunc(egressWords, t.says)
	if !fetches || !has {
		return
	}
	for in := enter(schema["properties"]); in.More(); {
		name, value := string(in.Name()), in.Raw()
		if isObject(value) && slices.Contains(urlParameters, foldName(name)) && isFree(membersOf(value)) {
			s.report("arbitrary_network_egress", "", t.name, path+"/properties/"+escaped(name), name)
		}
	}
}

// isFree says whether nothing restricts a parameter's value.
func isFree(property members) bool {
	return property["enum"] == nil && property["const"] == nil && property["pattern"] == nil
}

// parameters looks at the names of all properties of the next value, nested ones
// included; named says whether its own members are properties. The place is made of its
// parts only for a finding: a long name stands in the place of everything below it.
func (s *scan) parameters(t *tool, path []string, in *canon.Reader, named, isAuth bool) {
	switch in.Kind() {
	case '[':
		for in.Enter(); in.More(); {
			s.parameters(t, path, in, false, isAuth)
		}
	case '{':
		for in.Enter(); in.More(); {
			name := string(in.Name())
			below := append(path, name)
			if named {
				s.parameter(t, below, name, isAuth)
			}
			s.parameters(t, below, in, name == "properties", isAuth)
		}
	default:
		in.Skip()
	}
}

func (s *scan) parameter(t *tool, path []string, name string, isAuth bool) {
	severity := "high"
	switch folded := foldName(name); {
	case slices.Contains(contextParameters, folded):
	case !slices.Contains(credentialParameters, folded):
		return
	case isAuth:
		severity = "medium"
	}
	octets := 0
	for _, part := range path {
		octets += len(part) + 1
	}
	if s.spend(octets, perPlaceOctet) {
		s.report("suspicious_parameter", severity, t.name, t.path+"/inputSchema"+pointerOf(path), name)
	}
}

// pointerOf is the JSON pointer of the parts of a place.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, part := range path {
		b.WriteByte('/')
		b.WriteString(escaped(part))
	}
	return b.String()
}
