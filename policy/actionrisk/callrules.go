package actionrisk

import (
	"math/big"
	"slices"
	"strings"
)

// rules are the rule ids of the phrase.
func (p *phrase) rules() []string {
	if len(p.words) == 0 {
		return nil
	}
	if ids := p.keyRules(); ids != nil {
		return ids
	}
	var ids ruleList
	add := ids.add
	if p.has("disable", "bypass", "increase", "set", "change", "double", "ignore", "skip", "remove", "turn off", "override", "without", "raise", "lift", "no") &&
		p.has("spending limit", "spend limit", "spending policy", "payment policy", "spending cap", "spend cap", "policy check", "payment approval", "approval check", "--no-policy", "--skip-policy", "spending guard", "max spend", "daily limit", "transaction limit", "allowlist", "payment limit", "--ignore-policy") || p.has("--no-policy", "--skip-policy", "--ignore-policy", "--disable-policy") {
		add("x402.policy-off")
	}
	if len(ids) > 0 && p.to == "" && p.url == "" {
		return ids // a limit is changed, nothing is paid
	}
	if p.has("replay", "reuse", "re-use", "resend", "resubmit") && p.has("payment", "x-payment", "signature", "authorization", "nonce", "payload", "payment-signature", "x402") {
		add("x402.replay")
	}
	if a := p.allowanceRule(); a != "" {
		return append(ids, a)
	}
	if c := p.controlRule(); c != "" {
		return append(ids, c)
	}
	if !p.moves() {
		return ids
	}
	if p.to != "" && isZeroAddress(p.to) || p.has("zero address", "burn address", "null address", "dead address") {
		if p.isPayment() {
			add("x402.zero-payto")
		} else {
			add("wallet.zero-address")
		}
	}
	if !p.isPayment() {
		if p.amount.unlimited {
			p.amount.all = true
		}
		add(p.amount.transferRule())
		p.loopRule(add, "wallet.transfer-large")
		return ids
	}
	add(p.amount.payRule(p.network && (p.url != "" || p.bareHost() != "" || p.to != "")))
	for _, r := range urlRules(p.url) {
		add(r)
	}
	p.loopRule(add, "x402.pay-very-large")
	return ids
}

// ruleList is rule ids, each once, in the order found.
type ruleList []string

func (l *ruleList) add(id string) {
	if !slices.Contains(*l, id) {
		*l = append(*l, id)
	}
}

func (l *ruleList) addAll(ids []string) {
	for _, id := range ids {
		l.add(id)
	}
}

// loopRule multiplies the amount by its repetitions.
func (p *phrase) loopRule(add func(string), large string) {
	if p.times == nil {
		return
	}
	add("x402.loop")
	if p.amount.value != nil && p.amount.asset != nil {
		total := amount{value: new(big.Rat).Mul(p.amount.value, p.times), asset: p.amount.asset}
		if total.isLarge() {
			add(large)
		}
	}
}

// urlRules judges where a payment goes.
func urlRules(url string) []string {
	if url == "" {
		return nil
	}
	var ids []string
	scheme, host, _, ok := urlOf(url)
	if !ok {
		return nil
	}
	if strings.EqualFold(scheme, "http") && !localHost(host) {
		ids = append(ids, "x402.insecure-transport")
	}
	if oddHost(url, host) {
		ids = append(ids, "x402.odd-host")
	}
	return ids
}

// oddHost: an address instead of a name, credentials before it, punycode or
// other alphabets, a throw-away tunnel.
func oddHost(url, host string) bool {
	host = strings.ToLower(host)
	if localHost(host) {
		return false
	}
	name, _, _ := strings.Cut(host, ":")
	authority := url[strings.Index(url, "//")+2:]
	if n := strings.IndexAny(authority, "/?#"); n >= 0 {
		authority = authority[:n]
	}
	if strings.Contains(authority, "@") || strings.Contains(name, "xn--") || strings.HasPrefix(name, "[") || strings.HasSuffix(name, ".onion") {
		return true
	}
	if strings.Trim(name, "0123456789.") == "" || strings.HasPrefix(name, "0x") {
		return true
	}
	for i := 0; i < len(name); i++ {
		if name[i] >= 0x80 {
			return true
		}
	}
	for _, t := range [...]string{".ngrok.io", ".ngrok-free.app", ".ngrok.app", ".trycloudflare.com", ".loca.lt", ".serveo.net", ".requestbin.com", ".webhook.site", ".burpcollaborator.net", ".oast.pro", ".zip", ".mov"} {
		if strings.HasSuffix(name, t) {
			return true
		}
	}
	return false
}

// moves reports whether the phrase moves money at all.
func (p *phrase) moves() bool {
	if len(p.words) == 0 || p.has("balance of", "quote", "estimate", "simulate", "history", "--dry-run", "--help", "status of", "list payments", "do not", "don't", "how to") {
		return false
	}
	switch p.words[0] {
	case "show", "print", "list", "check", "get", "use", "set", "add", "connect", "import", "call", "change", "remove", "upgrade", "raise", "ignore", "allow", "reveal", "tool", "mcp":
		return false
	case "x402":
		second := ""
		if len(p.words) > 1 {
			second = p.words[1]
		}
		switch second {
		case "balance", "info", "inspect", "discover", "search", "list", "quote", "verify", "status", "config", "help", "bazaar", "schema", "check", "--version", "version", "probe", "details", "address", "addresses", "login", "logout", "auth", "whoami", "history", "receipts", "wallet", "doctor", "init", "pricing", "show", "receive", "networks", "serve", "server", "facilitator":
			return false
		}
		return true
	}
	pays := slices.Contains([]string{"pay", "settle", "purchase", "buy", "fund", "tip", "donate", "authorize", "authorise", "execute", "make", "submit", "initiate", "please"}, p.words[0])
	switch {
	case p.amount.value != nil, p.to != "":
		return true
	case p.amount.all, p.amount.unlimited:
		return pays || p.has("funds", "balance", "money", "wallet", "vault", "treasury", "assets") || p.namesAsset()
	case pays:
		return p.url != "" || p.has("payment", "invoice", "x402", "funds", "money") || p.namesAsset()
	}
	return p.has("x402", "funds", "money", "payment") || p.namesAsset()
}

// namesAsset reports whether a word is a currency.
func (p *phrase) namesAsset() bool {
	for _, w := range p.words {
		if a := assetOf(w); a != nil && a != amounts().other {
			return true
		}
	}
	return false
}

// keyRules: words about keys and signatures.
func (p *phrase) keyRules() []string {
	switch p.words[0] {
	case "eth_sign", "eth_sendrawtransaction":
		return []string{"wallet.blind-sign"}
	case "personal_sign":
		return []string{"wallet.sign-text"}
	case "eth_signtypeddata_v4":
		return []string{permitRule(p.text)}
	}
	key := p.has("private key", "private keys", "seed phrase", "mnemonic", "recovery phrase", "secret key", "keystore", "wallet key", "privatekey")
	switch {
	case key && p.has("export", "reveal", "show", "print", "send", "dump", "copy", "post", "share", "upload", "give"):
		return []string{"wallet.key-export"}
	case key && p.has("import", "use", "set"):
		return []string{"wallet.key-in-argv"}
	case p.words[0] == "sign" && p.has("permit", "permit2", "permitsingle", "permitbatch"):
		if p.amount.unlimited || p.amount.value == nil && p.has("max", "unlimited") || isUnlimited(p.amount.value, false) {
			return []string{"wallet.permit-unlimited"}
		}
		return []string{"wallet.permit-bounded"}
	case p.words[0] == "sign" && p.has("raw", "hash", "blind", "unknown", "calldata", "eth_sign", "transaction", "tx", "blindly", "digest"):
		return []string{"wallet.blind-sign"}
	case p.words[0] == "sign" && p.has("message", "typed data", "eip-712", "eip712", "login", "siwe"):
		return []string{"wallet.sign-text"}
	}
	return nil
}

// allowanceRule: approvals in words.
func (p *phrase) allowanceRule() string {
	first := p.words[0]
	switch {
	case p.has("approval for all", "setapprovalforall", "approve all nfts", "approve all tokens", "approve all"):
		if p.has("revoke", "false", "remove") {
			return "wallet.approve-revoke"
		}
		return "wallet.approve-all"
	case first == "revoke" && p.has("approval", "allowance", "approvals", "usdc", "usdt", "dai", "spender"):
		return "wallet.approve-revoke"
	case first == "approve" || p.has("allowance", "approval") && (first == "set" || first == "increase" || first == "grant" || first == "give" || first == "allow"):
		if p.has("pull request", "pr", "merge", "release", "deployment", "review", "workflow") {
			return ""
		}
		if p.amount.unlimited || p.amount.all || p.has("max", "maximum", "full") || isUnlimited(p.amount.value, false) {
			return "wallet.approve-unlimited"
		}
		if p.amount.value != nil && p.amount.value.Sign() == 0 {
			return "wallet.approve-revoke"
		}
		return "wallet.approve-bounded"
	}
	return ""
}

// controlRule: ownership, roles, upgrades and burns in words.
func (p *phrase) controlRule() string {
	switch first := p.words[0]; {
	case p.has("ownership", "transferownership", "renounceownership") && (p.to != "" || p.has("contract", "proxy", "token", "vault", "multisig")):
		return "wallet.ownership"
	case first == "grant" && p.has("role", "minter_role", "admin_role", "default_admin_role") && p.has("contract", "0x", "minter", "admin", "default_admin_role") && p.to != "":
		return "wallet.role-admin"
	case first == "upgrade" && p.has("proxy", "implementation", "contract"):
		return "wallet.upgrade"
	case first == "burn" && p.amount.value != nil:
		return "wallet.burn"
	}
	return ""
}
