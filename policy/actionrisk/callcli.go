package actionrisk

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// argvText is the words of an invocation as one text.
func argvText(v *invocation) string {
	parts := make([]string, 0, len(v.argv))
	for _, w := range v.argv {
		parts = append(parts, w.Text)
	}
	return strings.Join(parts, " ")
}

func (v *invocation) operand(i int) string {
	if i < len(v.operands) {
		return v.operands[i].Text
	}
	return ""
}

// literalKey: a secret key stands among the arguments, where every process list
// shows it.
func (c *compiled) literalKey(v *invocation) bool {
	for _, n := range [...]string{"--private-key", "--mnemonic", "--seed-phrase", "--secret-key", "--privateKey", "--private-keys", "--seed"} {
		if w, ok := v.value(n); ok && len(w.Text) >= 16 && w.known() && !c.publicKey(w.Text) {
			return true
		}
	}
	return false
}

// publicKey: the key or the words of a test node, which everybody has.
func (c *compiled) publicKey(text string) bool {
	text = strings.TrimPrefix(strings.ToLower(text), "0x")
	return strings.HasPrefix(text, "test test test test ") || slices.Contains(c.clients.PublicKeys, text)
}

// castRules judges what cast signs, sends and shows.
func (e *engine) castRules(v *invocation, ids *ruleList) {
	switch v.operand(0) {
	case "send":
		ids.castSend(v)
	case "publish", "mktx", "batch-mktx", "batch-send":
		ids.add("wallet.blind-sign")
	case "rpc":
		e.castRPC(v)
	case "erc20", "erc20-token":
		if slices.Contains([]string{"transfer", "approve", "burn", "mint"}, v.operand(1)) {
			call := contractCall{receiver: v.operand(2), name: v.operand(1), args: []string{v.operand(3), v.operand(4)}}
			for _, id := range call.rules("") {
				ids.add(id)
			}
		}
	case "wallet":
		ids.castWallet(v)
	}
	if v.has("--auth") {
		ids.add("wallet.ownership") // EIP-7702: the account runs that contract's code from then on
	}
}

// castWallet: keys shown, texts and authorizations signed.
func (l *ruleList) castWallet(v *invocation) {
	switch v.operand(1) {
	case "private-key", "decrypt-keystore", "pk", "dk", "derive-private-key", "dpk":
		l.add("wallet.key-export")
	case "sign-auth", "sa":
		l.add("wallet.ownership")
	case "sign", "s":
		switch {
		case v.has("--no-hash"):
			l.add("wallet.blind-sign")
		case v.has("--data"):
			l.add("wallet.permit-bounded")
		default:
			l.add("wallet.sign-text")
		}
	}
}

// castRPC judges cast rpc METHOD PARAMS… as the JSON-RPC request that it sends.
func (e *engine) castRPC(v *invocation) {
	params := "[]"
	switch {
	case v.has("--raw") && len(v.operands) > 2:
		params = v.operand(2)
	case v.has("--raw"):
		params = v.stdin.word.Text
	default:
		var list []string
		for _, w := range v.operands[min(2, len(v.operands)):] {
			text := w.Text
			if root, strict := parseJSON(text); root == nil || !strict {
				text = strconv.Quote(text)
			}
			list = append(list, text)
		}
		params = "[" + strings.Join(list, ",") + "]"
	}
	e.read("rpc", &source{text: `{"method":` + strconv.Quote(v.operand(1)) + `,"params":` + params + "}"}, v)
}

// castSend reads cast send TO [SIGNATURE [ARGS…]] [--value V].
func (ids *ruleList) castSend(v *invocation) {
	to, rest := v.operand(1), v.operands[min(2, len(v.operands)):]
	if v.has("--create") {
		ids.add("wallet.blind-sign")
		return
	}
	if len(rest) > 0 {
		signature := rest[0].Text
		if data, ok := strings.CutPrefix(signature, "0x"); ok && isHexText(data) {
			found := calldataRules(data, assetOf(to), 0)
			if len(found) == 0 {
				found = []string{"wallet.blind-sign"}
			}
			for _, id := range found {
				ids.add(id)
			}
			return
		}
		name, _, _ := strings.Cut(signature, "(")
		call := contractCall{receiver: to, name: name}
		for _, w := range rest[1:] {
			call.args = append(call.args, amountText(w))
		}
		if v.has("-1") { // read as an option, but all bits are set
			call.args = append(call.args, "-1")
		}
		for _, id := range call.rules("") {
			ids.add(id)
		}
		if len(*ids) == 0 {
			ids.add("wallet.transfer") // some function that writes
		}
	}
	if value, ok := v.value("--value"); ok && value.Text != "0" {
		for _, id := range withZero(to, callAmount(weiText(value.Text), assetOf("eth")).transferRule()) {
			ids.add(id)
		}
	} else if len(rest) == 0 {
		for _, id := range withZero(to, "wallet.transfer") {
			ids.add(id)
		}
	}
}

// amountText is an argument that may be an amount; one that another program computes
// in a way that is not followed is taken for the largest.
func amountText(w Word) string {
	if !w.known() && (computedNumber(w) || strings.HasPrefix(w.Text, "0x"+string(scan.Hole))) {
		return "maxuint256"
	}
	return w.Text
}

// numberMakers are programs that compute or build what they print.
var numberMakers = scan.SetOf("python python3 node bc dc perl ruby awk gawk mawk php lua xxd base64 tr rev jshell bun deno sed gsed printf seq expr openssl od hexdump numfmt factor julia ghci ocaml elixir erl raku")

// computedNumber: another program computes the word in a way that is not followed.
func computedNumber(w Word) bool {
	return numberMakers[strings.TrimSuffix(strings.TrimPrefix(w.Var, "$("), ")")] || w.Taint&(fromBuilt|fromDecoder) != 0
}

// weiText reads "1ether", "5gwei" and plain wei.
func weiText(s string) string {
	if n, ok := strings.CutSuffix(strings.ToLower(s), "gwei"); ok {
		return strings.TrimSpace(n) + "e9"
	}
	return s
}

// transfer adds the rule of moving an amount, "ALL" included, to a recipient.
func (l *ruleList) transfer(value, symbol, to string) {
	a := amount{asset: assetOf(symbol)}
	switch low := strings.ToLower(value); {
	case low == "all" || low == "max" || low == "everything":
		a.all = true
	default:
		a.value = parseNumber(value)
	}
	if a.asset == nil {
		a.asset = amounts().other
	}
	for _, id := range withZero(to, a.transferRule()) {
		l.add(id)
	}
}

// payClientRules reads the words of an x402 client as a phrase.
func payClientRules(v *invocation, ids *ruleList) {
	words := argvText(v)
	if v.operand(0) == "x402" { // awal x402 pay …
		_, rest, _ := strings.Cut(words, " ")
		words = rest
	} else if v.exe == "awal" {
		return // a wallet, whose calls clients.json lists
	} else {
		_, rest, _ := strings.Cut(words, " ")
		words = "x402 " + rest
	}
	p := readPhrase(words)
	if baseUnitClients[v.exe] {
		if w, ok := v.value("--max-amount"); ok && p.amount.value != nil && !strings.ContainsAny(w.Text, ".$") {
			p.amount.value = scaled(p.amount.value, assetOf("usdc").Decimals)
		}
	}
	ids.addAll(p.rules())
}

// baseUnitClients take their limit in millionths of a dollar.
var baseUnitClients = scan.SetOf("awal purl")

// headerRules: an HTTP request that carries a payment.
func headerRules(v *invocation, ids *ruleList) {
	for i := 1; i < len(v.argv); i++ {
		name, value, ok := strings.Cut(v.argv[i].Text, ":")
		if !ok || len(name) > 40 {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "-H"))) {
		case "x-payment", "payment-signature", "x-payment-signature":
		default:
			continue
		}
		found := payloadRules(strings.TrimSpace(value))
		if found == nil {
			found = []string{"x402.unknown-amount"}
		}
		for _, id := range found {
			ids.add(id)
		}
		for _, w := range v.operands {
			for _, id := range urlRules(w.Text) {
				ids.add(id)
			}
		}
	}
}

// payloadRules decodes the base64 JSON of a payment header.
func payloadRules(value string) []string {
	if len(value) < 16 || len(value) > scan.MaxDecoded {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		if raw, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(value, "=")); err != nil {
			return nil
		}
	}
	root, _ := parseJSON(string(raw))
	if root == nil {
		return nil
	}
	return x402Rules(root, string(raw))
}
