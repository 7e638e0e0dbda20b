package actionrisk

import (
	"encoding/base64"
	"slices"
	"strings"
)

// clientRules are the rule ids of one call of a wallet or payment client; nil
// for other programs and for calls that only read.
func clientRules(v *invocation) []string {
	var ids ruleList
	switch v.exe {
	case "cast":
		castRules(v, &ids)
	case "solana", "solana-keygen", "spl-token", "sugar", "metaboss":
		solanaRules(v, &ids)
	case "bitcoin-cli", "litecoin-cli", "dogecoin-cli", "elements-cli", "lncli", "lightning-cli", "electrum":
		bitcoinRules(v, &ids)
	case "near", "aptos", "sui", "xrpl", "tezos-client", "octez-client", "cardano-cli", "gaiad", "osmosisd", "tronweb", "flow", "starkli", "ton-cli", "algo", "goal", "polkadot", "subkey":
		chainRules(v, &ids)
	case "geth", "clef", "ethkey":
		gethRules(v, &ids)
	case "x402", "x402-cli", "x402curl", "x402-fetch", "awal", "purl", "agentcash", "payments-mcp":
		payClientRules(v, &ids)
	case "curl", "wget", "http", "https", "xh", "httpie":
		headerRules(v, &ids)
	default:
		return nil
	}
	if literalKey(v) {
		ids.add("wallet.key-in-argv")
	}
	return ids
}

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
func literalKey(v *invocation) bool {
	for _, n := range [...]string{"--private-key", "--mnemonic", "--seed-phrase", "--secret-key", "--privateKey", "--private-keys", "--seed"} {
		if w, ok := v.value(n); ok && len(w.Text) >= 16 && w.known() {
			return true
		}
	}
	return false
}

func castRules(v *invocation, ids *ruleList) {
	switch v.operand(0) {
	case "send":
		ids.castSend(v)
	case "publish":
		ids.add("wallet.blind-sign")
	case "mktx":
		ids.add("wallet.blind-sign")
	case "erc20", "erc20-token":
		if slices.Contains([]string{"transfer", "approve", "burn"}, v.operand(1)) {
			call := contractCall{receiver: v.operand(2), name: v.operand(1), args: []string{v.operand(3), v.operand(4)}}
			for _, id := range call.rules("") {
				ids.add(id)
			}
		}
	case "wallet":
		switch v.operand(1) {
		case "private-key", "decrypt-keystore", "pk", "dk":
			ids.add("wallet.key-export")
		case "sign", "sign-auth":
			if v.has("--no-hash") {
				ids.add("wallet.blind-sign")
			} else {
				ids.add("wallet.sign-text")
			}
		case "import":
			if v.has("--private-key") || v.has("--mnemonic") {
				ids.add("wallet.key-in-argv")
			}
		}
	}
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
			call.args = append(call.args, w.Text)
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

// weiText reads "1ether", "5gwei" and plain wei.
func weiText(s string) string {
	if n, ok := strings.CutSuffix(strings.ToLower(s), "gwei"); ok {
		return strings.TrimSpace(n) + "e9"
	}
	return s
}

func solanaRules(v *invocation, ids *ruleList) {
	first, second := v.operand(0), v.operand(1)
	switch v.exe + " " + first {
	case "solana transfer", "solana pay":
		ids.transfer(v.operand(2), "sol", second)
	case "solana program":
		switch second {
		case "deploy", "upgrade", "write-buffer":
			ids.add("wallet.upgrade")
		case "set-upgrade-authority":
			ids.add("wallet.ownership")
		case "close":
			ids.add("wallet.burn")
		}
	case "solana stake-authorize", "solana vote-authorize-voter", "spl-token authorize":
		ids.add("wallet.ownership")
	case "solana withdraw-stake", "solana withdraw-from-vote-account", "solana withdraw-from-nonce-account":
		ids.transfer(v.operand(3), "sol", v.operand(2))
	case "solana confirm", "solana balance", "solana airdrop", "solana config":
	case "solana-keygen recover", "solana-keygen new":
	case "spl-token transfer":
		ids.transfer(v.operand(2), second, v.operand(3))
	case "spl-token approve":
		a := callAmount(v.operand(2), assetOf("tokens"))
		if strings.EqualFold(v.operand(2), "all") {
			a.unlimited = true
		}
		ids.add(approveRule(a))
	case "spl-token burn", "spl-token close":
		ids.add("wallet.burn")
	case "spl-token revoke":
		ids.add("wallet.approve-revoke")
	}
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

func bitcoinRules(v *invocation, ids *ruleList) {
	switch v.operand(0) {
	case "sendtoaddress", "send", "payto":
		ids.transfer(v.operand(2), "btc", v.operand(1))
	case "sendmany":
		ids.add("wallet.transfer")
	case "sendall":
		ids.add("wallet.drain")
	case "dumpprivkey", "dumpwallet", "getseed", "getprivatekeys":
		ids.add("wallet.key-export")
	case "listdescriptors":
		if v.operand(1) == "true" {
			ids.add("wallet.key-export")
		}
	case "sendrawtransaction", "signrawtransactionwithkey", "signrawtransactionwithwallet", "walletprocesspsbt", "broadcast":
		ids.add("wallet.blind-sign")
	case "importprivkey", "walletpassphrase", "sethdseed":
		ids.add("wallet.key-in-argv")
	case "payinvoice", "sendpayment", "pay", "keysend":
		ids.add("wallet.transfer")
	case "sendcoins", "withdraw":
		if v.has("--sweepall") || v.operand(2) == "all" {
			ids.add("wallet.drain")
		} else {
			ids.add("wallet.transfer")
		}
	}
}

func chainRules(v *invocation, ids *ruleList) {
	text := strings.ToLower(argvText(v))
	first := v.operand(0)
	switch {
	case first == "send" || first == "send-near" || first == "tokens" && strings.Contains(text, "send-near"):
		ids.transfer(strings.TrimSuffix(strings.ToLower(v.operand(3)), "near"), "near", v.operand(2))
	case first == "delete" || first == "delete-account" || strings.Contains(text, "account delete-account"):
		ids.add("wallet.drain")
	case strings.Contains(text, " account transfer"), strings.Contains(text, " client transfer-sui"), strings.Contains(text, " client pay"), strings.Contains(text, "bank send"), strings.Contains(text, "clerk send"), strings.Contains(text, " transfer "):
		value, _ := v.value("--amount", "-a")
		ids.transfer(value.Text, "tokens", "")
		if strings.Contains(text, "pay-all-sui") {
			ids.add("wallet.drain")
		}
	case strings.Contains(text, "keys export"), strings.Contains(text, "export-private-key"), strings.Contains(text, "export-account"), strings.Contains(text, "account export"), strings.Contains(text, "keytool export"), strings.Contains(text, "show address") && v.has("-S"):
		ids.add("wallet.key-export")
	case strings.Contains(text, "transaction submit"), strings.Contains(text, "execute-signed-tx"), strings.Contains(text, "tx broadcast"):
		ids.add("wallet.blind-sign")
	}
}

func gethRules(v *invocation, ids *ruleList) {
	text := argvText(v)
	switch {
	case strings.Contains(text, "sendTransaction"):
		ids.add("wallet.transfer")
	case strings.Contains(text, "account export"), strings.Contains(text, "inspect --private"), v.exe == "ethkey" && v.has("--private"):
		ids.add("wallet.key-export")
	}
}

// payClientRules reads the words of an x402 client as a phrase.
func payClientRules(v *invocation, ids *ruleList) {
	words := argvText(v)
	if v.operand(0) == "x402" { // awal x402 pay …
		_, rest, _ := strings.Cut(words, " ")
		words = rest
	} else {
		_, rest, _ := strings.Cut(words, " ")
		words = "x402 " + rest
	}
	if v.dry {
		return
	}
	for _, id := range readPhrase(words).rules() {
		ids.add(id)
	}
}

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
	if len(value) < 16 || len(value) > maxDecoded {
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
