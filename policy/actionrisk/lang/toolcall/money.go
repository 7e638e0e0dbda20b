package toolcall

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// payment judges the arguments of a tool that moves money. It reports whether a rule matched.
func (w *jsonWalk) payment(name string, args *tree.Node) bool {
	if args == nil || args.Kind != '{' {
		return false
	}
	flat := map[string]string{}
	flatten(args, flat, 0)
	value := firstOf(flat, "amount", "amountusd", "amount_usd", "value", "usd", "maxamount", "max_amount", "max_price", "maxpayment", "max_payment", "maxpaymentusd", "max_payment_usd", "maxprice", "max_usd", "budget", "price", "total", "amountunits", "quantity", "maxamountrequired", "max_amount_usd", "maxamountusd")
	to := firstOf(flat, "to", "recipient", "payto", "pay_to", "destination", "address", "to_address", "payee", "spender", "receiver")
	symbol := firstOf(flat, "asset", "currency", "token", "symbol", "coin", "token_address", "mint")
	money := func(ids ...string) bool { return w.e.Money(w.src, args.Start, args.End, to, ids...) }
	name = strings.ToLower(name)
	says := func(word string) bool { return strings.Contains(name, word) }
	a, ok := paid(flat, value, symbol)
	switch {
	case to+symbol != "" && (says("approve") || says("allowance")):
		return money(amounts.ApproveRule(amounts.CallAmount(value, amounts.AssetOf(symbol))))
	case !ok:
		return false
	}
	times, loop := repetitions(flat)
	if times != nil && a.Value != nil {
		a.Value = new(big.Rat).Mul(a.Value, times)
	}
	if loop {
		money(act.PaysAgain)
	}
	if url := firstOf(flat, "url", "resource", "resource_url", "endpoint", "resourceurl"); url != "" || says("x402") {
		onChain := firstOf(flat, "network", "chain", "chainid") != ""
		return money(append([]string{a.PayRule(url != "" && onChain)}, amounts.AddressRules(url)...)...)
	}
	return sendsMoney(a, to, says("transfer") || says("send")) && money(amounts.WithZero(to, a.TransferRule())...)
}

// sendsMoney reports whether the arguments are a transfer. They are if the recipient is a
// blockchain address, or the asset is not pegged to the US dollar. An amount in dollars may only
// be a number on a bill, so it counts only if the amount is large or the tool's name means a
// transfer (says).
func sendsMoney(a amounts.Amount, to string, says bool) bool {
	return amounts.IsZeroAddress(to) || amounts.IsAddress(to) || a.Asset != nil && (!a.Asset.Pegged || says || a.IsLarge())
}

// dollarKeys lists members whose amount is in US dollars.
var dollarKeys = []string{"amountusd", "amount_usd", "usd", "max_amount_usd", "maxamountusd", "maxpaymentusd", "max_payment_usd", "max_usd"}

// paid returns the amount in the arguments, with its asset if they name one. It returns false if
// they contain no amount.
func paid(flat map[string]string, value, symbol string) (amounts.Amount, bool) {
	a := amounts.Amount{Asset: amounts.AssetOf(symbol), Value: amounts.ParseNumber(strings.TrimLeft(value, "$"))}
	if number, unit, two := strings.Cut(value, " "); a.Asset == nil && two {
		a.Value, a.Asset = amounts.ParseNumber(number), amounts.AssetOf(unit)
	}
	if a.Asset == nil && (strings.HasPrefix(value, "$") || firstOf(flat, dollarKeys...) != "") {
		a.Asset = amounts.AssetOf("usd")
	}
	if n := firstOf(flat, "amountunits", "amount_units", "base_units"); n == value && a.Asset != nil && a.Value != nil {
		a.Value = amounts.Scaled(a.Value, a.Asset.Decimals)
	}
	a.All = slices.Contains([]string{"all", "max", "everything"}, value)
	a.Unlimited = !a.All && amounts.IsUnlimitedWord(value)
	return a, a.All || a.Unlimited || a.Value != nil
}

// timesKeys lists members with the number of repetitions, and scheduleKeys those that repeat a
// call until it is stopped.
var (
	timesKeys    = []string{"repeat", "repeats", "repetitions", "repeatcount", "repeat_count", "times", "iterations", "loops", "runs", "calls", "numcalls", "num_calls", "maxcalls", "max_calls", "num_requests", "requests", "numrequests", "occurrences", "concurrency"}
	scheduleKeys = []string{"interval", "intervalms", "interval_ms", "intervalseconds", "interval_seconds", "every", "cron", "schedule", "frequency", "recurrence", "recurring", "forever", "rrule"}
)

// repetitions returns how many times the arguments repeat a payment, or nil if they do not state
// it. loop means 20 times or more, or until it is stopped.
func repetitions(flat map[string]string) (times *big.Rat, loop bool) {
	text := firstOf(flat, timesKeys...)
	if text == "" && firstOf(flat, "query", "q", "search", "prompt") == "" { // in a search, "count" is the number of results
		text = flat["count"]
	}
	times = amounts.ParseNumber(text)
	if times != nil && (times.Cmp(amounts.RatOf("1")) <= 0 || !times.IsInt()) {
		times = nil
	}
	loop = times != nil && times.Cmp(amounts.RatOf("20")) >= 0 || amounts.IsUnlimitedWord(text) || text == "forever"
	return times, loop || firstOf(flat, scheduleKeys...) != ""
}

// contract judges a tool that calls a contract function, or is named after one. It reports whether
// the tool does so and a rule matched.
func (w *jsonWalk) contract(name, class string, args *tree.Node) bool {
	if class == "read" || args == nil || args.Kind != '{' {
		return false
	}
	words := facts.ToolWords(bareToolName(name))
	function, data := contractFunction(args.Str(functionKeys[:len(functionKeys)-1]...))
	about, named := facts.Says(words, "chain"), camel(words)
	switch {
	case function+data != "" && about:
	case about && slices.Contains(words, "deploy"):
		return w.e.Money(w.src, args.Start, args.End, name, act.RunsContract)
	case len(words) > 1 && w.isFunction(named) && !amounts.CommonNames.Has(named):
		function = named
	default:
		if function = w.namedAfter(words, args); function == "" {
			return w.contractObject(args)
		}
	}
	return w.contractRun(args, args, args.Str(receiverKeys...), function, data)
}

// isFunction reports whether contracts have a function with this name, and other programs usually
// do not.
func (w *jsonWalk) isFunction(name string) bool {
	return w.e.Calls.IsContractVerb(name) && !amounts.GeneralNames.Has(name)
}

// namedAfter returns the contract function whose name is the last two to four words of the tool's
// name, such as addOwner for safe_add_owner. It returns "" if there is none, or if no argument is
// a blockchain address.
func (w *jsonWalk) namedAfter(words []string, args *tree.Node) string {
	if !slices.ContainsFunc(args.Kids, func(k *tree.Node) bool {
		return k.Kind == '"' && strings.HasPrefix(k.Text, "0x") && amounts.IsAddress(k.Text)
	}) {
		return ""
	}
	for i := max(0, len(words)-4); i+1 < len(words); i++ { // one word alone is not specific enough
		if f := camel(words[i:]); w.isFunction(f) {
			return f
		}
	}
	return ""
}

// camel joins words in the form of a contract function: setApprovalForAll.
func camel(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// walletKeyKeys lists members that contain the key of a wallet. rawKeys lists members with an
// encoded transaction, which cannot be read before it is signed or sent.
var (
	walletKeyKeys = scan.SetOf("privatekey mnemonic seedphrase secretkey recoveryphrase")
	rawKeys       = scan.SetOf("psbt rawtx rawtransaction signedtx signedtransaction serializedtransaction txhex rawhex")
)

// walletKeys reports the key of a wallet among the arguments, and the signing or sending of a text
// that cannot be read.
func (w *jsonWalk) walletKeys(name string, args *tree.Node) {
	if args == nil || args.Kind != '{' {
		return
	}
	words, raw := facts.ToolWords(name), args.Get("raw")
	sends, signs := facts.Says(words, "sends"), slices.Contains(words, "sign")
	for i, k := range args.Kids {
		switch key := tree.PlainKey(args.KeysAt(i)); {
		case walletKeyKeys.Has(key) && k.Kind == '"' && len(k.Text) >= 32 && !w.e.PublicKey(k.Text):
			w.e.Money(w.src, k.Start, k.End, "", act.KeyInView)
		case sends && rawKeys.Has(key), signs && isDigest(key, k.Text, raw):
			w.e.Money(w.src, k.Start, k.End, "", act.SignsBlindly)
		}
	}
}

// isDigest reports whether the text is a value of 32 bytes that is signed without hashing.
func isDigest(key, text string, raw *tree.Node) bool {
	asItIs := raw != nil && raw.Kind == 't'
	return strings.HasPrefix(text, "0x") && len(text) == 66 && (key == "hash" || key == "digest" || key == "message" && asItIs)
}

// opensPolicy reports whether a tool that sets the spending limits of a wallet removes a limit.
func opensPolicy(name, class string, args *tree.Node) bool {
	if class == "read" || args == nil {
		return false
	}
	value := args.Get("value", "val")
	if value != nil && amounts.OpensPayments(args.Str("key", "name", "setting", "path", "option", "variable", "field", "config_key"), cmp.Or(value.Text, "null")) {
		return true // for example {"key":"x402.maxAmount","value":"unlimited"}
	}
	words := facts.ToolWords(name)
	return facts.Says(words, "spending") && facts.Says(words, "spending-limits") && slices.ContainsFunc(args.Kids, isNoLimit)
}

// isNoLimit reports whether the value of a limit means that there is no limit.
func isNoLimit(k *tree.Node) bool {
	switch k.Kind {
	case 'n', 'f':
		return true
	case '"':
		if amounts.IsUnlimitedWord(k.Text) || slices.Contains([]string{"none", "*", "disabled", "off"}, k.Text) {
			return true
		}
	}
	return amounts.IsUnlimited(amounts.ParseNumber(k.Text), true)
}

func flatten(n *tree.Node, into map[string]string, depth int) {
	for i, k := range n.Kids {
		key := strings.ToLower(n.KeysAt(i))
		switch k.Kind {
		case '"', '0':
			if _, ok := into[key]; !ok {
				into[key] = k.Text
			}
		case '{':
			if depth < 3 {
				flatten(k, into, depth+1)
			}
		}
	}
}

func firstOf(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if v := m[k]; v != "" {
			return v
		}
	}
	return ""
}

// rpc judges a JSON-RPC request to an Ethereum or Solana node or a wallet.
func (w *jsonWalk) rpc(n *tree.Node, method string, params *tree.Node) bool {
	first := &tree.Node{}
	if params != nil && len(params.Kids) > 0 {
		first = params.Kids[0]
	}
	report := func(ids ...string) bool { return w.e.Money(w.src, n.Start, n.End, method, ids...) }
	if first.Get("tx_json", "tx_blob") != nil && first.Get("secret", "seed", "tx_blob") != nil { // this is a request of the XRP Ledger
		return report(act.Transfers)
	}
	switch rule := w.e.Clients.Method.Get(method); rule {
	case "":
	case "transaction":
		return w.calls(first)
	case "typed":
		return w.signTyped(params, report)
	case "bitcoin":
		v := &act.Invocation{Exe: "bitcoin-cli", Operands: []act.Word{{Text: method}}}
		for _, k := range params.KidsOrNone() {
			v.Operands = append(v.Operands, act.Word{Text: k.Text})
		}
		return report(w.e.Front.Money(w.e, v)...)
	default:
		return report(rule)
	}
	for _, p := range [...]string{"eth_", "net_", "web3_", "get", "txpool_", "trace_", "debug_trace", "anvil_", "hardhat_", "evm_", "simulate"} {
		if strings.HasPrefix(method, p) {
			w.known = true
			return true
		}
	}
	// another JSON-RPC method: judge it like a tool
	return w.tool(n, method, params)
}

// calls judges a transaction, or the transactions of a batch, and the contracts that it authorizes
// to act for the account.
func (w *jsonWalk) calls(n *tree.Node) bool {
	if n.Get("authorizationList", "authorization_list") != nil {
		w.e.Money(w.src, n.Start, n.End, "", act.ChangesOwner)
	}
	list := n.Get("calls")
	if list == nil {
		return w.transaction(n)
	}
	for _, c := range list.Kids {
		w.transaction(c)
	}
	return true
}

// signTyped judges the typed data (EIP-712) among the parameters, which is an object or a JSON
// text.
func (w *jsonWalk) signTyped(params *tree.Node, report func(...string) bool) bool {
	for _, k := range params.KidsOrNone() {
		if k.Kind == '{' && k.Get("primaryType") != nil {
			return w.typedData(k)
		}
		if k.Kind == '"' && strings.HasPrefix(strings.TrimSpace(k.Text), "{") {
			if root, _ := tree.JSON(k.Text); root != nil {
				return report(typedRules(root, k.Text)...)
			}
		}
	}
	return report(act.SignsBlindly)
}

// transaction judges an Ethereum transaction {to, value, data}.
func (w *jsonWalk) transaction(n *tree.Node) bool {
	to, data, value := n.Str("to"), n.Str("data", "input"), n.Str("value")
	var ids []string
	if hex, ok := strings.CutPrefix(data, "0x"); ok && len(hex) >= 8 {
		if ids = amounts.CalldataRules(hex, amounts.AssetOf(to), 0); len(ids) == 0 {
			ids = []string{act.SignsBlindly}
		}
	}
	if to == "" && data != "" {
		ids = []string{act.SignsBlindly} // the transaction creates a contract
	}
	if v := amounts.ParseNumber(value); v != nil && v.Sign() > 0 {
		a := amounts.Amount{Asset: amounts.AssetOf("eth"), Value: amounts.Scaled(v, 18)}
		if !strings.HasPrefix(value, "0x") && strings.Contains(value, ".") {
			a.Value = v
		}
		ids = append(ids, amounts.WithZero(to, a.TransferRule())...)
	}
	if len(ids) == 0 {
		ids = amounts.WithZero(to, act.Transfers)
	}
	return w.e.Money(w.src, n.Start, n.End, to, ids...)
}

func (w *jsonWalk) typedData(n *tree.Node) bool {
	return w.e.Money(w.src, n.Start, n.End, n.Str("primaryType"), typedRules(n, w.src.Text[n.Start:n.End])...)
}

// typedRules returns the rule ids for EIP-712 data, by its primary type.
func typedRules(n *tree.Node, text string) []string {
	kind := n.Str("primaryType")
	message := n.Get("message")
	switch {
	case strings.HasPrefix(kind, "Permit"):
		return []string{amounts.PermitRule(text)}
	case kind == "TransferWithAuthorization" || kind == "ReceiveWithAuthorization":
		a := amounts.Amount{Value: amounts.ParseNumber(message.Str("value"))}
		if d := n.Get("domain"); d != nil {
			a.Asset = amounts.AssetOf(d.Str("verifyingContract"))
		}
		if a.Value != nil && a.Asset != nil {
			a.Value = amounts.Scaled(a.Value, a.Asset.Decimals)
		}
		ids := []string{a.PayRule(true)}
		if amounts.IsZeroAddress(message.Str("to")) {
			ids = append(ids, act.PaysNobody)
		}
		return ids
	case strings.Contains(kind, "Order"), strings.Contains(kind, "Delegation"), kind == "SafeTx", kind == "ForwardRequest", kind == "MetaTransaction", kind == "UserOperation":
		return []string{act.SignsBlindly}
	}
	return []string{act.SignsText}
}

// isAuthorization reports whether the object is the authorization of an x402 payment with the
// scheme "exact".
func isAuthorization(n *tree.Node) bool {
	a := n.Get("authorization")
	if p := n.Get("payload"); a == nil && p != nil {
		a = p.Get("authorization")
	}
	return a != nil && a.Get("value") != nil && a.Get("to") != nil
}

// ReadRPC judges one or several JSON-RPC requests that a client sends to a node or a wallet. It
// ignores methods that are not those of wallets.
func ReadRPC(sh *interp.Process, src *act.Source, _ string, v *act.Invocation) act.Flow {
	e, text := sh.Env, src.Text
	if len(text) > scan.MaxDecoded || !e.Budget.Spend(len(text)/4) || v.Src.Depth >= scan.MaxDepth {
		return act.Flow{}
	}
	root, _ := tree.JSON(strings.TrimSpace(text))
	if root == nil {
		return act.Flow{}
	}
	list := []*tree.Node{root}
	if root.Kind == '[' {
		list = root.Kids
	}
	at := *v.Src
	at.Span, _ = v.Src.Where(v.From, v.To)
	at.Text, at.At, at.Depth = text, -1, at.Depth+1
	for _, n := range list {
		if method := n.Str("method"); e.Clients.Method.Get(method) != "" {
			w := jsonWalk{e: e, src: &at}
			w.rpc(n, method, n.Get("params"))
		}
	}
	return act.Flow{}
}
