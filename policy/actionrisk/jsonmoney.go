package actionrisk

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// payment judges the arguments of a tool that moves money.
func (w *jsonWalk) payment(name string, args *jsonNode) bool {
	if args == nil || args.kind != '{' {
		return false
	}
	flat := map[string]string{}
	flatten(args, flat, 0)
	value := firstOf(flat, "amount", "amountusd", "amount_usd", "value", "usd", "maxamount", "max_amount", "max_price", "maxpayment", "max_payment", "maxpaymentusd", "max_payment_usd", "maxprice", "max_usd", "budget", "price", "total", "amountunits", "quantity", "maxamountrequired", "max_amount_usd", "maxamountusd")
	to := firstOf(flat, "to", "recipient", "payto", "pay_to", "destination", "address", "to_address", "payee", "spender", "receiver")
	symbol := firstOf(flat, "asset", "currency", "token", "symbol", "coin", "token_address", "mint")
	words := strings.ToLower(name)
	p := phrase{url: firstOf(flat, "url", "resource", "resource_url", "endpoint", "resourceurl"), to: to}
	if (strings.Contains(words, "approve") || strings.Contains(words, "allowance")) && (to != "" || symbol != "") {
		return w.e.money(w.src, args.start, args.end, to, approveRule(callAmount(value, assetOf(symbol))))
	}
	a := amount{asset: assetOf(symbol), value: parseNumber(strings.TrimLeft(value, "$"))}
	if a.asset == nil && strings.Contains(value, " ") {
		number, unitName, _ := strings.Cut(value, " ")
		a.value, a.asset = parseNumber(number), assetOf(unitName)
	}
	if a.asset == nil && (strings.HasPrefix(value, "$") || firstOf(flat, "amountusd", "amount_usd", "usd", "max_amount_usd", "maxamountusd", "maxpaymentusd", "max_payment_usd", "max_usd") != "") {
		a.asset = assetOf("usd")
	}
	if n := firstOf(flat, "amountunits", "amount_units", "base_units"); n != "" && n == value && a.asset != nil && a.value != nil {
		a.value = scaled(a.value, a.asset.Decimals)
	}
	switch {
	case isUnlimitedWord(value) && value != "all" && value != "max":
		a.unlimited = true
	case value == "all" || value == "max" || value == "everything":
		a.all = true
	case a.value == nil:
		return false
	}
	if times, loop := repetitions(flat); times != nil || loop {
		if times != nil && a.value != nil {
			a.value = new(big.Rat).Mul(a.value, times)
		}
		if loop {
			w.e.money(w.src, args.start, args.end, to, "x402.loop")
		}
	}
	if p.url != "" || strings.Contains(words, "x402") {
		ids := append([]string{a.payRule(p.url != "" && firstOf(flat, "network", "chain", "chainid") != "")}, urlRules(p.url)...)
		return w.e.money(w.src, args.start, args.end, to, ids...)
	}
	if isZeroAddress(to) || isAddress(to) || a.asset != nil && (!a.asset.Pegged || strings.Contains(words, "transfer") || strings.Contains(words, "send") || a.isLarge()) {
		return w.e.money(w.src, args.start, args.end, to, withZero(to, a.transferRule())...)
	}
	return false
}

// timesKeys say how often something is done, scheduleKeys that it is done for ever.
var (
	timesKeys    = []string{"repeat", "repeats", "repetitions", "repeatcount", "repeat_count", "times", "iterations", "loops", "runs", "calls", "numcalls", "num_calls", "maxcalls", "max_calls", "num_requests", "requests", "numrequests", "occurrences", "concurrency"}
	scheduleKeys = []string{"interval", "intervalms", "interval_ms", "intervalseconds", "interval_seconds", "every", "cron", "schedule", "frequency", "recurrence", "recurring", "forever", "rrule"}
)

// repetitions is how often a payment is made by its arguments, nil if they do not say
// it, and whether that is a loop: many times, or until somebody stops it.
func repetitions(flat map[string]string) (times *big.Rat, loop bool) {
	text := firstOf(flat, timesKeys...)
	if text == "" && firstOf(flat, "query", "q", "search", "prompt") == "" { // of a search it is how many results
		text = flat["count"]
	}
	times = parseNumber(text)
	if times != nil && (times.Cmp(ratOf("1")) <= 0 || !times.IsInt()) {
		times = nil
	}
	loop = times != nil && times.Cmp(ratOf("20")) >= 0 || isUnlimitedWord(text) || text == "forever"
	return times, loop || firstOf(flat, scheduleKeys...) != ""
}

// contract judges a tool that calls a function of a contract, or is named after one.
func (w *jsonWalk) contract(name, class string, args *jsonNode) bool {
	if class == "read" || args == nil || args.kind != '{' {
		return false
	}
	words := toolWords(bareToolName(name))
	function, data := contractFunction(args.str(functionKeys[:len(functionKeys)-1]...))
	about := hasWord(words, map[string]bool{"contract": true, "evm": true, "chain": true, "onchain": true, "abi": true})
	switch {
	case function+data != "" && about:
	case about && slices.Contains(words, "deploy"):
		return w.e.money(w.src, args.start, args.end, name, "wallet.contract-run")
	case contractVerbs[camel(words)] && !commonNames[camel(words)] && len(words) > 1 && !generalNames[camel(words)]:
		function = camel(words)
	case namedAfter(words, args) != "":
		function = namedAfter(words, args)
	default:
		return w.contractObject(args)
	}
	return w.contractRun(args, args, args.str(receiverKeys...), function, data)
}

// namedAfter is the function of a contract that the last words of a tool's name are, if
// an address of a chain stands among the arguments: safe_add_owner is addOwner.
func namedAfter(words []string, args *jsonNode) string {
	if !slices.ContainsFunc(args.kids, func(k *jsonNode) bool { return k.kind == '"' && strings.HasPrefix(k.text, "0x") && isAddress(k.text) }) {
		return ""
	}
	for i := max(0, len(words)-4); i+1 < len(words); i++ { // one word alone says too little
		if f := camel(words[i:]); contractVerbs[f] && !generalNames[f] {
			return f
		}
	}
	return ""
}

// camel joins words as a contract's function: setApprovalForAll.
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

// walletKeys raises a wallet's key that stands among the arguments, and the signature
// of a text that nobody can read.
func (w *jsonWalk) walletKeys(name string, args *jsonNode) {
	if args == nil || args.kind != '{' {
		return
	}
	for i, k := range args.kids {
		switch plainKey(args.keysAt(i)) {
		case "privatekey", "mnemonic", "seedphrase", "secretkey", "recoveryphrase":
			if k.kind == '"' && len(k.text) >= 32 && !w.e.publicKey(k.text) {
				w.e.money(w.src, k.start, k.end, "", "wallet.key-in-argv")
			}
		case "psbt", "rawtx", "rawtransaction", "signedtx", "signedtransaction", "serializedtransaction", "txhex", "rawhex":
			if hasWord(toolWords(name), map[string]bool{"sign": true, "broadcast": true, "send": true, "submit": true, "execute": true, "publish": true, "push": true}) {
				w.e.money(w.src, k.start, k.end, "", "wallet.blind-sign")
			}
		case "message", "hash", "digest":
			raw := args.get("raw")
			if hasWord(toolWords(name), map[string]bool{"sign": true}) && strings.HasPrefix(k.text, "0x") && len(k.text) == 66 && (raw != nil && raw.kind == 't' || plainKey(args.keysAt(i)) != "message") {
				w.e.money(w.src, k.start, k.end, "", "wallet.blind-sign")
			}
		}
	}
}

// opensPolicy: a tool that sets what a wallet may spend takes the limit away.
func opensPolicy(name, class string, args *jsonNode) bool {
	if args != nil && args.kind == '{' && class != "read" && args.get("value", "val") != nil && opensPayments(args.str("key", "name", "setting", "path", "option", "variable", "field", "config_key"), cmp.Or(args.get("value", "val").text, "null")) {
		return true // {"key":"x402.maxAmount","value":"unlimited"}
	}
	words := toolWords(name)
	spends := hasWord(words, map[string]bool{"spending": true, "spend": true, "payment": true, "wallet": true, "transaction": true, "x402": true, "payout": true, "transfer": true})
	limits := hasWord(words, map[string]bool{"limit": true, "cap": true, "policy": true, "allowlist": true, "budget": true, "guardrail": true, "approval": true})
	if !spends || !limits || class == "read" || args == nil {
		return false
	}
	for _, k := range args.kids {
		if k.kind == 'n' || k.kind == 'f' || k.kind == '"' && (isUnlimitedWord(k.text) || k.text == "none" || k.text == "*" || k.text == "disabled" || k.text == "off") || isUnlimited(parseNumber(k.text), true) {
			return true
		}
	}
	return false
}

func flatten(n *jsonNode, into map[string]string, depth int) {
	for i, k := range n.kids {
		key := strings.ToLower(n.keysAt(i))
		switch k.kind {
		case '"', '0':
			if key != "" {
				if _, ok := into[key]; !ok {
					into[key] = k.text
				}
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

// rpc judges an Ethereum or Solana JSON-RPC request.
func (w *jsonWalk) rpc(n *jsonNode, method string, params *jsonNode) bool {
	first := &jsonNode{}
	if params != nil && len(params.kids) > 0 {
		first = params.kids[0]
	}
	report := func(ids ...string) bool { return w.e.money(w.src, n.start, n.end, method, ids...) }
	if first.get("tx_json", "tx_blob") != nil && first.get("secret", "seed", "tx_blob") != nil { // XRP Ledger
		return report("wallet.transfer")
	}
	switch rule := w.e.clients.method[method]; rule {
	case "":
	case "transaction":
		return w.calls(first)
	case "typed":
		return w.signTyped(params, report)
	case "bitcoin":
		v := &invocation{exe: "bitcoin-cli", operands: []Word{{Text: method}}}
		for _, k := range params.kidsOrNone() {
			v.operands = append(v.operands, Word{Text: k.text})
		}
		return report(w.e.front.money(w.e, v)...)
	default:
		return report(rule)
	}
	for _, p := range [...]string{"eth_", "net_", "web3_", "get", "txpool_", "trace_", "debug_trace", "anvil_", "hardhat_", "evm_", "simulate"} {
		if strings.HasPrefix(method, p) {
			w.known = true
			return true
		}
	}
	// some other JSON-RPC: a tool by another name
	return w.tool(n, method, params)
}

// calls judges a transaction, or the several of a batch, with what it lets act
// for the account.
func (w *jsonWalk) calls(n *jsonNode) bool {
	if n.get("authorizationList", "authorization_list") != nil {
		w.e.money(w.src, n.start, n.end, "", "wallet.ownership")
	}
	list := n.get("calls")
	if list == nil {
		return w.transaction(n)
	}
	for _, c := range list.kids {
		w.transaction(c)
	}
	return true
}

func (n *jsonNode) kidsOrNone() []*jsonNode {
	if n == nil {
		return nil
	}
	return n.kids
}

// signTyped finds the typed data among the parameters, as object or as text.
func (w *jsonWalk) signTyped(params *jsonNode, report func(...string) bool) bool {
	for _, k := range params.kidsOrNone() {
		if k.kind == '{' && k.get("primaryType") != nil {
			return w.typedData(k)
		}
		if k.kind == '"' && strings.HasPrefix(strings.TrimSpace(k.text), "{") {
			if root, _ := parseJSON(k.text); root != nil {
				return report(typedRules(root, k.text)...)
			}
		}
	}
	return report("wallet.blind-sign")
}

// transaction judges {to, value, data}.
func (w *jsonWalk) transaction(n *jsonNode) bool {
	to, data, value := n.str("to"), n.str("data", "input"), n.str("value")
	var ids []string
	if hex, ok := strings.CutPrefix(data, "0x"); ok && len(hex) >= 8 {
		if ids = calldataRules(hex, assetOf(to), 0); len(ids) == 0 {
			ids = []string{"wallet.blind-sign"}
		}
	}
	if to == "" && data != "" {
		ids = []string{"wallet.blind-sign"} // creates a contract
	}
	if v := parseNumber(value); v != nil && v.Sign() > 0 {
		a := amount{asset: assetOf("eth"), value: scaled(v, 18)}
		if !strings.HasPrefix(value, "0x") && strings.Contains(value, ".") {
			a.value = v
		}
		ids = append(ids, withZero(to, a.transferRule())...)
	}
	if len(ids) == 0 {
		ids = withZero(to, "wallet.transfer")
	}
	return w.e.money(w.src, n.start, n.end, to, ids...)
}

func (w *jsonWalk) typedData(n *jsonNode) bool {
	return w.e.money(w.src, n.start, n.end, n.str("primaryType"), typedRules(n, w.src.text[n.start:n.end])...)
}

// typedRules judges EIP-712 data by its primary type.
func typedRules(n *jsonNode, text string) []string {
	kind := n.str("primaryType")
	message := n.get("message")
	switch {
	case strings.HasPrefix(kind, "Permit"):
		return []string{permitRule(text)}
	case kind == "TransferWithAuthorization" || kind == "ReceiveWithAuthorization":
		a := amount{value: parseNumber(message.str("value"))}
		if d := n.get("domain"); d != nil {
			a.asset = assetOf(d.str("verifyingContract"))
		}
		if a.value != nil && a.asset != nil {
			a.value = scaled(a.value, a.asset.Decimals)
		}
		ids := []string{a.payRule(true)}
		if isZeroAddress(message.str("to")) {
			ids = append(ids, "x402.zero-payto")
		}
		return ids
	case strings.Contains(kind, "Order"), strings.Contains(kind, "Delegation"), kind == "SafeTx", kind == "ForwardRequest", kind == "MetaTransaction", kind == "UserOperation":
		return []string{"wallet.blind-sign"}
	}
	return []string{"wallet.sign-text"}
}

// isAuthorization: the authorization of an x402 exact payment.
func isAuthorization(n *jsonNode) bool {
	a := n.get("authorization")
	if p := n.get("payload"); a == nil && p != nil {
		a = p.get("authorization")
	}
	return a != nil && a.get("value") != nil && a.get("to") != nil
}

// x402Rules judges payment requirements and payment payloads, wherever in the
// object they stand; of several accepted ways the dearest counts.
func x402Rules(n *jsonNode, text string) []string {
	var ids ruleList
	var visit func(n *jsonNode, depth int)
	resource, network := findString(n, "resource", 0), findString(n, "network", 0)
	if resource == "" {
		resource = findString(n, "url", 0)
	}
	visit = func(n *jsonNode, depth int) {
		if depth > 8 {
			return
		}
		value, to := n.str("maxAmountRequired", "amount"), n.str("payTo")
		if n.get("validBefore") != nil || n.get("nonce") != nil && n.get("from") != nil {
			value, to = n.str("value"), n.str("to")
		}
		if to != "" || n.get("payTo") != nil {
			a := amount{value: parseNumber(value), asset: assetOf(n.str("asset"))}
			if a.asset == nil {
				a.asset = assetOf(findString(n, "name", 0))
			}
			if a.asset == nil && n.str("asset") == "" {
				a.asset = assetOf("usdc") // the scheme's own default
			}
			if isUnlimited(a.value, true) {
				a.unlimited = true
			} else if a.value != nil && a.asset != nil {
				a.value = scaled(a.value, a.asset.Decimals)
			}
			ids.add(a.payRule(network != "" && resource != ""))
			if isZeroAddress(to) {
				ids.add("x402.zero-payto")
			}
		}
		for _, k := range n.kids {
			if k.kind == '{' || k.kind == '[' {
				visit(k, depth+1)
			}
		}
	}
	visit(n, 0)
	for _, id := range urlRules(resource) {
		ids.add(id)
	}
	if len(ids) == 0 {
		ids.add("x402.unknown-amount")
	}
	return ids
}

// findString is the first string member of that name in the tree.
func findString(n *jsonNode, name string, depth int) string {
	if n == nil || depth > 8 {
		return ""
	}
	if s := n.str(name); s != "" {
		return s
	}
	for _, k := range n.kids {
		if k.kind == '{' || k.kind == '[' {
			if s := findString(k, name, depth+1); s != "" {
				return s
			}
		}
	}
	return ""
}

// readRPC judges a JSON-RPC request, or several, that a client sends to a node or
// a wallet. Other methods than those of wallets are data here.
func readRPC(sh *shell, src *source, _ string, v *invocation) flow {
	e, text := sh.e, src.text
	if len(text) > scan.MaxDecoded || !e.budget.spend(len(text)/4) || v.src.depth >= scan.MaxDepth {
		return flow{}
	}
	root, _ := parseJSON(strings.TrimSpace(text))
	if root == nil {
		return flow{}
	}
	list := []*jsonNode{root}
	if root.kind == '[' {
		list = root.kids
	}
	at := *v.src
	at.span, _ = v.src.where(v.from, v.to)
	at.text, at.at, at.depth = text, -1, at.depth+1
	for _, n := range list {
		if method := n.str("method"); e.clients.method[method] != "" {
			w := jsonWalk{e: e, src: &at}
			w.rpc(n, method, n.get("params"))
		}
	}
	return flow{}
}
