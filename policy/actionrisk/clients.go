package actionrisk

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// client is a line of clients.json: what a call of a program that holds keys or
// money does. Everything given must hold; of the lines about a program the first
// that holds counts.
type client struct {
	Exe   []string `json:"exe"`
	Sub   []string `json:"sub,omitempty"`   // one of these paths begins the operands
	Any   []string `json:"any,omitempty"`   // one of these options or words stands there
	None  []string `json:"none,omitempty"`  // none of them
	Text  []string `json:"text,omitempty"`  // one of these stands anywhere in the words
	Live  []string `json:"live,omitempty"`  // one of these options is given, and names no network of this machine
	Class []string `json:"class,omitempty"` // what the words say that it does, as of a tool's name
	// Rule is the id of the effect; "transfer" and "approve" are judged by the
	// amount, which stands at operand "#2" or in the option named here.
	Rule   string `json:"rule"`
	To     string `json:"to,omitempty"`
	Amount string `json:"amount,omitempty"`
	Asset  string `json:"asset,omitempty"` // a symbol, or the operand that is one
	Scale  int    `json:"scale,omitempty"` // decimals, if the amount is in base units

	sub [][]string
}

// clientTable is clients.json.
type clientTable struct {
	Clients []client `json:"clients"`
	Local   []string `json:"local"` // networks that live on this machine
	// Aliases are short forms of subcommands, by what stands before them.
	Aliases map[string]map[string]string `json:"aliases"`
	// PublicKeys are the keys of test nodes, which everybody has.
	PublicKeys []string `json:"publicKeys"`
	RPC        []struct {
		Methods []string `json:"methods"`
		Rule    string   `json:"rule"`
	} `json:"rpc"`
	Services serviceTable `json:"services"`
	Code     codeTable    `json:"code"`

	byExe  map[string][]*client
	local  map[string]bool
	method map[string]string // JSON-RPC method to rule
}

func (c *compiled) readClients(read tableReader) error {
	t := &c.clients
	if err := read("clients", t); err != nil {
		return err
	}
	t.byExe, t.method, t.local = map[string][]*client{}, map[string]string{}, scan.SetOf(strings.Join(t.Local, " "))
	for i := range t.Clients {
		l := &t.Clients[i]
		for _, s := range l.Sub {
			l.sub = append(l.sub, strings.Fields(s))
		}
		names, err := c.names(l.Exe)
		if err != nil {
			return err
		}
		for _, n := range names {
			t.byExe[n] = append(t.byExe[n], l)
		}
	}
	for n := range t.byExe {
		c.known(n)
	}
	for _, n := range [...]string{"cast", "x402", "x402-cli", "x402curl", "x402-fetch", "awal", "purl", "agentcash", "payments-mcp"} {
		c.known(n)
	}
	t.Services.index()
	t.Code.index()
	for _, r := range t.RPC {
		for _, m := range r.Methods {
			t.method[m] = r.Rule
		}
	}
	return nil
}

// known notes that the engine says something about a program that no rule lists.
func (c *compiled) known(exe string) { c.exe[exe] = true }

// clientCall judges a call of a wallet, chain, payment or HTTP client.
func clientCall(sh *shell, v *invocation) bool {
	e := sh.e
	if v.dry {
		return false
	}
	if v.exe == "forge" {
		e.foreignCalls(sh, v)
	}
	ids := clientRules(e, v)
	if len(ids) == 0 || !e.budget.spend(4+len(v.argv)) {
		return false
	}
	ids = append(ids, loopRules(sh, v, ids)...)
	return e.money(v.src, v.from, v.to, v.exe, ids...)
}

// foreignCalls runs what contracts that the command itself wrote hand to the shell,
// if their tool is told to let them.
func (e *engine) foreignCalls(sh *shell, v *invocation) {
	ffi := v.has("--ffi")
	for _, a := range v.env {
		ffi = ffi || a.name == "FOUNDRY_FFI" && a.value.Text != "false"
	}
	if w := sh.vars["FOUNDRY_FFI"]; len(w) == 1 && w[0].Text == "true" {
		ffi = true
	}
	if !ffi {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		if f := e.files[name]; strings.HasSuffix(name, ".sol") && f.known {
			src := sh.src.inside(f.word, "forge --ffi")
			sh.read("strings", &src, nil)
		}
	}
}

// clientRules are the rule ids of one call.
func clientRules(e *engine, v *invocation) []string {
	var ids ruleList
	v = e.clients.spelledOut(v)
	switch v.exe {
	case "cast":
		e.castRules(v, &ids)
	case "x402", "x402-cli", "x402curl", "x402-fetch", "awal", "purl", "agentcash", "payments-mcp":
		payClientRules(v, &ids)
	case "websocat", "wscat", "nc", "ncat", "netcat", "socat":
		e.spokenRequest(v)
		return ids
	case "curl", "wget", "http", "https", "xh", "xhs", "httpie", "curlie":
		headerRules(v, &ids)
		e.serviceRules(v, &ids)
		return ids
	}
	payingScript(e, v, &ids)
	if liveScript(e, v) {
		ids.add("wallet.service-move")
	}
	for _, l := range e.clients.byExe[v.exe] {
		if e.clientHolds(l, v) {
			l.rules(v, &ids)
			if l.Rule == "wallet.upgrade" && testChain(e, &item{src: v.src}) {
				ids = ruleList{"wallet.contract-run"} // nobody uses what is deployed there
			}
			break
		}
	}
	if e.exe[v.exe] && e.literalKey(v) && (len(e.clients.byExe[v.exe]) > 0 || len(ids) > 0 || v.exe == "cast") {
		ids.add("wallet.key-in-argv")
	}
	return ids
}

// spokenRequest judges a wallet's JSON-RPC that is typed into a connection.
func (e *engine) spokenRequest(v *invocation) {
	text := v.stdin.word.Text
	if given := (&client{}).at(v, "-x"); given != "" && v.exe == "wscat" {
		text = given
	}
	if strings.Contains(text, "method") {
		e.read("rpc", &source{text: text}, v)
	}
}

// spelledOut is the call with its subcommands in their long form.
func (t *clientTable) spelledOut(v *invocation) *invocation {
	at, short := v.exe, t.Aliases[v.exe]
	for i := 0; short != nil && i < len(v.operands); i++ {
		long := short[v.operands[i].Text]
		if long == "" {
			long = v.operands[i].Text
		} else {
			of := *v
			of.operands = slices.Clone(v.operands)
			of.operands[i].Text, of.operands[i].At = long, -1
			v = &of
		}
		at += " " + long
		short = t.Aliases[at]
	}
	return v
}

func (e *engine) clientHolds(l *client, v *invocation) bool {
	if len(l.sub) > 0 && !underLater(v, l.sub) ||
		len(l.Any) > 0 && !slices.ContainsFunc(l.Any, v.has) || slices.ContainsFunc(l.None, v.has) {
		return false
	}
	if len(l.Text) > 0 {
		text := argvText(v)
		for _, a := range v.env {
			text += " " + a.value.Text
		}
		if !slices.ContainsFunc(l.Text, func(s string) bool { return strings.Contains(text, s) }) {
			return false
		}
	}
	if len(l.Live) > 0 && !slices.ContainsFunc(l.Live, func(o string) bool { return e.liveNetwork(v, o) }) {
		return false
	}
	return len(l.Class) == 0 || slices.Contains(l.Class, operandClass(v))
}

// underLater is underAny, where the first operands may be the values of options that
// the tool's entry does not list.
func underLater(v *invocation, paths [][]string) bool {
	if v.underAny(paths) {
		return true
	}
	for n := 1; n < min(5, len(v.operands)); n++ {
		before := v.operands[n-1]
		i := slices.IndexFunc(v.argv, func(w Word) bool { return w.Text == before.Text && w.Span == before.Span })
		if i < 2 || !strings.HasPrefix(v.argv[i-1].Text, "-") || strings.Contains(v.argv[i-1].Text, "=") {
			return false
		}
		later := *v
		later.operands = v.operands[n:]
		if later.underAny(paths) {
			return true
		}
	}
	return false
}

// liveNetwork: the option is given, and what it names is not on this machine. It
// may also stand behind the operands that a tool hands on.
func (e *engine) liveNetwork(v *invocation, name string) bool {
	for i, w := range v.argv {
		value, ok := "", w.Text == name
		if ok && i+1 < len(v.argv) && !strings.HasPrefix(v.argv[i+1].Text, "-") {
			value = v.argv[i+1].Text
		}
		if !ok {
			value, ok = strings.CutPrefix(w.Text, name+"=")
		}
		if ok {
			return !e.clients.local[strings.ToLower(value)]
		}
	}
	return false
}

// operandClass reads the first words behind a service's client as the name of a
// tool: "payouts create", "post /v1/charges".
func operandClass(v *invocation) string {
	var b strings.Builder
	for i := range min(3, len(v.operands)) {
		b.WriteString(v.operands[i].Text)
		b.WriteByte(' ')
	}
	class := serviceClass(b.String())
	if words := toolWords(b.String()); class != "read" && hasWord(words[:min(2, len(words))], movingVerbs) {
		return "money"
	}
	return class
}

// movingVerbs move money as the first words of a payment service's client.
var movingVerbs = scan.SetOf("send fund capture withdraw payout pay transfer topup")

// liveScript: a script whose name says that it moves money is told to do it for real.
func liveScript(e *engine, v *invocation) bool {
	if !e.exe[v.exe] && len(v.argv) > 1 && hasWord(toolWords(v.exe), e.clients.Services.move) && !hasWord(toolWords(v.exe), e.clients.Services.draft) && !strings.Contains(v.exe, "test") {
		return forReal(v) // ./payout.sh --live
	}
	if len(v.operands) == 0 || !slices.Contains(e.groups["interpreters"], v.exe) && v.exe != "tsx" && v.exe != "go" {
		return false
	}
	i := 0
	if v.operands[0].Text == "run" && len(v.operands) > 1 {
		i = 1
	}
	if strings.ContainsAny(v.operands[i].Text, " \n") { // a program text, not a file
		return false
	}
	name := scan.Base(v.operands[i].Text)
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		name = name[:dot]
	} else {
		return false
	}
	if serviceClass(name) != "money" && !hasWord(toolWords(name), e.clients.Services.move) || strings.Contains(name, "test") {
		return false
	}
	return forReal(v)
}

// forReal: the words of a call say that it shall not only try.
func forReal(v *invocation) bool {
	text := strings.ToLower(argvText(v))
	if strings.Contains(text, "dry") || strings.Contains(text, "sandbox") || strings.Contains(text, "staging") {
		return false
	}
	for _, w := range [...]string{"--live", "--prod", "production", "mainnet", "--execute", "--for-real", "--no-dry", "--commit", "--confirm", "--yes"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// rules adds the effect of a line.
func (l *client) rules(v *invocation, ids *ruleList) {
	asset := l.at(v, l.Asset)
	if asset == "" {
		asset = l.Asset
	}
	value := l.at(v, l.Amount)
	if l.Rule == "approve" && strings.HasPrefix(l.Amount, "#") {
		if i := int(l.Amount[1] - '0'); i < len(v.operands) {
			value = amountText(v.operands[i])
		}
	}
	switch l.Rule {
	case "transfer":
		if n := parseNumber(value); n != nil && l.Scale > 0 {
			value = scaled(n, l.Scale).FloatString(l.Scale)
		}
		ids.transfer(plainNumber(value), asset, l.at(v, l.To))
	case "approve":
		a := callAmount(value, assetOf(asset))
		if n := parseNumber(value); strings.EqualFold(value, "all") || n != nil && n.Cmp(unlimited64) >= 0 {
			a.unlimited = true
		}
		if strings.IndexByte(value, scan.Hole) >= 0 && slices.ContainsFunc(v.operands, computedNumber) {
			a.unlimited = true
		}
		ids.add(approveRule(a))
	default:
		ids.add(l.Rule)
	}
}

// plainNumber is "75" of "75 NEAR" and "2500" of "2500uatom".
func plainNumber(value string) string {
	if n := len(value) - len(strings.TrimLeft(value, "0123456789.,_")); n > 0 {
		return strings.TrimRight(value[:n], ".,_")
	}
	return value
}

// at is the text of operand "#n" or of an option; "" if there is none.
func (l *client) at(v *invocation, place string) string {
	switch {
	case place == "":
	case place[0] == '#':
		return v.operand(int(place[1] - '0'))
	case place[0] == '-':
		for i, w := range v.argv {
			if w.Text == place && i+1 < len(v.argv) {
				return v.argv[i+1].Text
			}
			if value, ok := strings.CutPrefix(w.Text, place+"="); ok {
				return value
			}
		}
	}
	return ""
}
