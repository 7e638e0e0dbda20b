// Package payment is the front-end for clients that hold keys or money: wallets, blockchain
// clients, x402 clients and payment services. It also reads contract calls, and sentences that
// describe a payment.
package payment

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Call judges a call of a wallet, blockchain, payment or HTTP client. It reports whether a rule
// matched.
func Call(sh *interp.Process, v *act.Invocation) bool {
	e := sh.Env
	if v.Dry {
		return false
	}
	if v.Exe == "forge" {
		foreignCalls(e, sh, v)
	}
	ids := Rules(e, v)
	if len(ids) == 0 || !e.Budget.Spend(4+len(v.Argv)) {
		return false
	}
	ids = append(ids, loopRules(sh, v, ids)...)
	return e.Money(v.Src, v.From, v.To, v.Exe, ids...)
}

// foreignCalls judges the shell commands in Solidity files that the command itself wrote, if forge
// is called with --ffi or FOUNDRY_FFI, which let contracts run programs.
func foreignCalls(e *interp.Env, sh *interp.Process, v *act.Invocation) {
	ffi := v.Has("--ffi")
	for _, a := range v.Env {
		ffi = ffi || a.Name == "FOUNDRY_FFI" && a.Value.Text != "false"
	}
	if w := sh.Vars["FOUNDRY_FFI"]; len(w) == 1 && w[0].Text == "true" {
		ffi = true
	}
	if !ffi {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		if f := e.Files[name]; strings.HasSuffix(name, ".sol") && f.Known {
			src := sh.Src.Inside(f.Word, "forge --ffi")
			sh.Read("strings", &src, nil)
		}
	}
}

// Rules returns the rule ids that match one call.
func Rules(e *interp.Env, v *act.Invocation) []string {
	var ids amounts.RuleList
	v = spelledOut(&e.Clients, v)
	switch v.Exe {
	case "cast":
		castRules(e, v, &ids)
	case "websocat", "wscat", "nc", "ncat", "netcat", "socat":
		spokenRequest(e, v)
		return ids
	case "curl", "wget", "http", "https", "xh", "xhs", "httpie", "curlie":
		amounts.HeaderRules(v, &ids)
		serviceRules(e, v, &ids)
		return ids
	}
	if e.In("paying-clients", v.Exe) {
		amounts.PayClientRules(v, &ids)
	}
	payingScript(e, v, &ids)
	if liveScript(e, v) {
		ids.Add(act.ServiceMoves)
	}
	clients := e.Program(v.Exe).Clients
	if i := slices.IndexFunc(clients, func(l *facts.Client) bool { return clientHolds(e, l, v) }); i >= 0 {
		rules(clients[i], v, &ids)
		if clients[i].Rule == act.Upgrades && interp.TestChain(e, &act.Item{Src: v.Src}) {
			ids = amounts.RuleList{act.RunsContract} // no user depends on a contract on a test network
		}
	}
	if move := unknownMove(e, v); move != "" && len(ids) == 0 {
		ids.Add(move)
	}
	if e.Program(v.Exe).Judged && (len(clients)+len(ids) > 0 || v.Exe == "cast") && e.LiteralKey(v) {
		ids.Add(act.KeyInView)
	}
	return ids
}

// spokenRequest judges a JSON-RPC request of a wallet that the command writes into a raw
// connection.
func spokenRequest(e *interp.Env, v *act.Invocation) {
	text := v.Stdin.Word.Text
	if given := at(v, "-x"); given != "" && v.Exe == "wscat" {
		text = given
	}
	if strings.Contains(text, "method") {
		e.Read("rpc", &act.Source{Text: text}, v)
	}
}

// spelledOut returns the call with the aliases of its subcommands replaced by their full names.
func spelledOut(t *facts.ClientTable, v *act.Invocation) *act.Invocation {
	at, short := v.Exe, t.Aliases.Get(v.Exe)
	for i := 0; len(short.Entries) > 0 && i < len(v.Operands); i++ {
		long := short.Get(v.Operands[i].Text)
		if long == "" {
			long = v.Operands[i].Text
		} else {
			of := *v
			of.Operands = slices.Clone(v.Operands)
			of.Operands[i].Text, of.Operands[i].At = long, -1
			v = &of
		}
		at += " " + long
		short = t.Aliases.Get(at)
	}
	return v
}

func clientHolds(e *interp.Env, l *facts.Client, v *act.Invocation) bool {
	if len(l.Sub) > 0 && !underLater(v, l.Sub) ||
		len(l.Any) > 0 && !slices.ContainsFunc(l.Any, v.Has) || slices.ContainsFunc(l.None, v.Has) {
		return false
	}
	if len(l.Text) > 0 {
		text := act.ArgvText(v)
		for _, a := range v.Env {
			text += " " + a.Value.Text
		}
		if !scan.HasAny(text, l.Text...) {
			return false
		}
	}
	if len(l.Live) > 0 && !slices.ContainsFunc(l.Live, func(o string) bool { return liveNetwork(e, v, o) }) {
		return false
	}
	return len(l.Class) == 0 || slices.Contains(l.Class, operandClass(v))
}

// underLater is like UnderAny, but also accepts operands in front of the path if they are values
// of options that the facts do not list for the tool. It skips at most four.
func underLater(v *act.Invocation, paths []string) bool {
	if v.UnderAny(paths) {
		return true
	}
	for n := 1; n < min(5, len(v.Operands)); n++ {
		before := v.Operands[n-1]
		i := slices.IndexFunc(v.Argv, func(w act.Word) bool { return w.Text == before.Text && w.Span == before.Span })
		if i < 2 || !strings.HasPrefix(v.Argv[i-1].Text, "-") || strings.Contains(v.Argv[i-1].Text, "=") {
			return false
		}
		later := *v
		later.Operands = v.Operands[n:]
		if later.UnderAny(paths) {
			return true
		}
	}
	return false
}

// liveNetwork reports whether the option is given and its value is not a local network. It
// searches all words, including those that the tool passes on to another program.
func liveNetwork(e *interp.Env, v *act.Invocation, name string) bool {
	for i, w := range v.Argv {
		value, ok := "", w.Text == name
		if ok && i+1 < len(v.Argv) && !strings.HasPrefix(v.Argv[i+1].Text, "-") {
			value = v.Argv[i+1].Text
		}
		if !ok {
			value, ok = strings.CutPrefix(w.Text, name+"=")
		}
		if ok {
			return !e.Clients.IsLocal.Get(strings.ToLower(value))
		}
	}
	return false
}

// operandClass returns the class of the first three operands of a service's client, read like the
// name of a tool: "payouts create", "post /v1/charges".
func operandClass(v *act.Invocation) string {
	var b strings.Builder
	for i := range min(3, len(v.Operands)) {
		b.WriteString(v.Operands[i].Text)
		b.WriteByte(' ')
	}
	class := facts.ServiceClass(b.String())
	if words := facts.ToolWords(b.String()); class != "read" && facts.Says(words[:min(2, len(words))], "moving") {
		return "money"
	}
	return class
}

// liveScript reports whether a script whose name contains a word for moving money is called with
// an option or word such as --live or production.
func liveScript(e *interp.Env, v *act.Invocation) bool {
	t := &e.Clients.Services
	if !e.Program(v.Exe).Judged && len(v.Argv) > 1 && !strings.Contains(v.Exe, "test") {
		if words := facts.ToolWords(v.Exe); facts.HasWord(words, &t.Move) && !facts.HasWord(words, &t.Draft) {
			return forReal(v) // for example ./payout.sh --live
		}
	}
	name := scriptOf(e, v)
	if name == "" || strings.Contains(name, "test") {
		return false
	}
	return (facts.ServiceClass(name) == "money" || facts.HasWord(facts.ToolWords(name), &t.Move)) && forReal(v)
}

// scriptOf returns the name of the file that an interpreter runs, without folder and extension. It
// returns "" if the call runs no file, or a file without an extension.
func scriptOf(e *interp.Env, v *act.Invocation) string {
	if !e.In("script-runners", v.Exe) {
		return ""
	}
	file := v.Operand(0)
	if file == "run" && len(v.Operands) > 1 {
		file = v.Operand(1)
	}
	if strings.ContainsAny(file, " \n") { // the operand is a program text, not a file name
		return ""
	}
	name := scan.Base(file)
	return name[:max(0, strings.LastIndexByte(name, '.'))]
}

// forReal reports whether the words of a call ask for a real run ("--live", "mainnet") and none of
// them for a trial ("dry", "sandbox").
func forReal(v *act.Invocation) bool {
	text := strings.ToLower(act.ArgvText(v))
	return !scan.HasAny(text, "dry", "sandbox", "staging") && scan.HasAny(text, "--live", "--prod", "production", "mainnet", "--execute", "--for-real", "--no-dry", "--commit", "--confirm", "--yes")
}

// rules adds the rule ids for the effect of a row of clients.json.
func rules(l *facts.Client, v *act.Invocation, ids *amounts.RuleList) {
	asset, value := cmp.Or(at(v, l.Asset), l.Asset), at(v, l.Amount)
	switch l.Rule {
	case "transfer":
		if n := amounts.ParseNumber(value); n != nil && l.Scale > 0 {
			value = amounts.Scaled(n, l.Scale).FloatString(l.Scale)
		}
		ids.Transfer(plainNumber(value), asset, at(v, l.To))
	case "approve":
		ids.Add(amounts.ApproveRule(allowance(l, v, value, asset)))
	default:
		ids.Add(l.Rule)
	}
}

// allowance returns the amount that a call approves, by a row of clients.json.
func allowance(l *facts.Client, v *act.Invocation, value, asset string) amounts.Amount {
	if strings.HasPrefix(l.Amount, "#") {
		if i := int(l.Amount[1] - '0'); i < len(v.Operands) {
			value = amounts.AmountText(v.Operands[i])
		}
	}
	a, n := amounts.CallAmount(value, amounts.AssetOf(asset)), amounts.ParseNumber(value)
	computed := strings.IndexByte(value, scan.Hole) >= 0 && slices.ContainsFunc(v.Operands, amounts.ComputedNumber)
	a.Unlimited = a.Unlimited || computed || strings.EqualFold(value, "all") || n != nil && n.Cmp(amounts.Unlimited64) >= 0
	return a
}

// plainNumber returns the number at the start of a value: "75" of "75 NEAR", "2500" of
// "2500uatom".
func plainNumber(value string) string {
	if n := len(value) - len(strings.TrimLeft(value, "0123456789.,_")); n > 0 {
		return strings.TrimRight(value[:n], ".,_")
	}
	return value
}

// at returns the text of operand n if place is "#n", or the value of the option that place names.
// It returns "" if the call has none.
func at(v *act.Invocation, place string) string {
	switch {
	case place == "":
	case place[0] == '#':
		return v.Operand(int(place[1] - '0'))
	case place[0] == '-':
		for i, w := range v.Argv {
			if w.Text == place && i+1 < len(v.Argv) {
				return v.Argv[i+1].Text
			}
			if value, ok := strings.CutPrefix(w.Text, place+"="); ok {
				return value
			}
		}
	}
	return ""
}
