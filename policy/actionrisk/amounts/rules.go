package amounts

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Rules returns the rule ids of the phrase.
func (p *Phrase) Rules() []string {
	if len(p.Words) == 0 {
		return nil
	}
	if ids := p.keyRules(); ids != nil {
		return ids
	}
	var ids RuleList
	if p.switchesOff() {
		ids.Add(act.DropsSpendLimits)
		if p.To == "" && p.Url == "" {
			return ids // it only changes a limit and pays nothing
		}
	}
	if p.Has("replay", "reuse", "re-use", "resend", "resubmit") && p.Has("payment", "x-payment", "signature", "authorization", "nonce", "payload", "payment-signature", "x402") {
		ids.Add(act.PaysTwice)
	}
	if rule := cmp.Or(p.allowanceRule(), p.controlRule()); rule != "" {
		return append(ids, rule)
	}
	if p.moves() {
		p.moveRules(&ids)
	}
	return ids
}

// switchesOff reports whether the phrase changes a limit on payments or a check of them.
func (p *Phrase) switchesOff() bool {
	return p.Has("disable", "bypass", "increase", "set", "change", "double", "ignore", "skip", "remove", "turn off", "override", "without", "raise", "lift", "no") &&
		p.Has("spending limit", "spend limit", "spending policy", "payment policy", "spending cap", "spend cap", "policy check", "payment approval", "approval check", "--no-policy", "--skip-policy", "spending guard", "max spend", "daily limit", "transaction limit", "allowlist", "payment limit", "--ignore-policy") ||
		p.Has("--no-policy", "--skip-policy", "--ignore-policy", "--disable-policy")
}

// moveRules adds the rules for an x402 payment or a transfer.
func (p *Phrase) moveRules(ids *RuleList) {
	pays := p.isPayment()
	if p.To != "" && IsZeroAddress(p.To) || p.Has("zero address", "burn address", "null address", "dead address") {
		ids.Add(map[bool]string{true: act.PaysNobody, false: act.ToNobody}[pays])
	}
	if !pays {
		p.Amount.All = p.Amount.All || p.Amount.Unlimited
		ids.Add(p.Amount.TransferRule())
		p.loopRule(ids.Add, act.TransfersMuch)
		return
	}
	ids.Add(p.Amount.PayRule(p.network && (p.Url != "" || p.bareHost() != "" || p.To != "")))
	ids.AddAll(AddressRules(p.Url))
	p.loopRule(ids.Add, act.PaysVeryLarge)
}

// RuleList is a list of rule ids without duplicates, in the order in which they were found.
type RuleList []string

// Add adds a rule id, unless the list has it.
func (l *RuleList) Add(id string) {
	if !slices.Contains(*l, id) {
		*l = append(*l, id)
	}
}

// AddAll adds the ids that the list does not have.
func (l *RuleList) AddAll(ids []string) {
	for _, id := range ids {
		l.Add(id)
	}
}

// loopRule adds the rules for a repeated payment. The total of all repetitions decides whether the
// payment is large.
func (p *Phrase) loopRule(add func(string), large string) {
	if p.times == nil {
		return
	}
	add(act.PaysAgain)
	if p.Amount.Value != nil && p.Amount.Asset != nil {
		total := Amount{Value: new(big.Rat).Mul(p.Amount.Value, p.times), Asset: p.Amount.Asset}
		if total.IsLarge() {
			add(large)
		}
	}
}

// AddressRules returns the rules for the URL that is paid.
func AddressRules(url string) []string {
	if url == "" {
		return nil
	}
	var ids []string
	scheme, host, _, ok := hosts.Split(url)
	if !ok {
		return nil
	}
	if strings.EqualFold(scheme, "http") && !hosts.LocalHost(host) {
		ids = append(ids, act.PaysOpenly)
	}
	if oddHost(url, host) {
		ids = append(ids, act.PaysOddHost)
	}
	return ids
}

// oddHost reports whether a host is suspicious: an IP address, credentials before the host,
// punycode or another alphabet, or a temporary tunnel.
func oddHost(url, host string) bool {
	host = strings.ToLower(host)
	if hosts.LocalHost(host) {
		return false
	}
	name, _, _ := strings.Cut(host, ":")
	authority := url[strings.Index(url, "//")+2:]
	if n := strings.IndexAny(authority, "/?#"); n >= 0 {
		authority = authority[:n]
	}
	return strings.Contains(authority, "@") || strings.Contains(name, "xn--") || !scan.IsASCII(name) ||
		strings.Trim(name, "0123456789.") == "" || scan.HasAnyPrefix(name, "[", "0x") ||
		scan.HasAnySuffix(name, ".onion", ".ngrok.io", ".ngrok-free.app", ".ngrok.app", ".trycloudflare.com", ".loca.lt", ".serveo.net", ".requestbin.com", ".webhook.site", ".burpcollaborator.net", ".oast.pro", ".zip", ".mov")
}

// stillWords are first words of sentences that move no money. stillX402 are subcommands of x402
// that move no money. payWords are first words of sentences that pay.
var (
	stillWords = scan.SetOf("show print list check get use set add connect import call change remove upgrade raise ignore allow reveal tool mcp")
	stillX402  = scan.SetOf("balance info inspect discover search list quote verify status config help bazaar schema check --version version probe details address addresses login logout auth whoami history receipts wallet doctor init pricing show receive networks serve server facilitator")
	payWords   = scan.SetOf("pay settle purchase buy fund tip donate authorize authorise execute make submit initiate please")
)

// moves reports whether the phrase moves money.
func (p *Phrase) moves() bool {
	first := p.Words[0]
	switch {
	case stillWords.Has(first), p.Has("balance of", "quote", "estimate", "simulate", "history", "--dry-run", "--help", "status of", "list payments", "do not", "don't", "how to"):
		return false
	case first == "x402":
		return !stillX402.Has(p.word(1))
	case p.Amount.Value != nil, p.To != "", p.namesAsset():
		return true
	case p.Amount.All, p.Amount.Unlimited:
		return payWords.Has(first) || p.Has("funds", "balance", "money", "wallet", "vault", "treasury", "assets")
	case payWords.Has(first) && (p.Url != "" || p.Has("invoice")):
		return true
	}
	return p.Has("x402", "funds", "money", "payment")
}

// namesAsset reports whether a word is the name of an asset.
func (p *Phrase) namesAsset() bool {
	for _, w := range p.Words {
		if a := AssetOf(w); a != nil && a != amounts().other {
			return true
		}
	}
	return false
}

// keyRules returns the rules for phrases about keys and signatures.
func (p *Phrase) keyRules() []string {
	switch p.Words[0] {
	case "eth_sign", "eth_sendrawtransaction":
		return []string{act.SignsBlindly}
	case "personal_sign":
		return []string{act.SignsText}
	case "eth_signtypeddata_v4":
		return []string{PermitRule(p.text)}
	}
	if p.Has("private key", "private keys", "seed phrase", "mnemonic", "recovery phrase", "secret key", "keystore", "wallet key", "privatekey") {
		switch {
		case p.Has("export", "reveal", "show", "print", "send", "dump", "copy", "post", "share", "upload", "give"):
			return []string{act.ExportsKey}
		case p.Has("import", "use", "set"):
			return []string{act.KeyInView}
		}
	}
	if p.Words[0] == "sign" {
		return p.signs()
	}
	return nil
}

// signs returns the rules for a phrase that asks to sign something.
func (p *Phrase) signs() []string {
	switch {
	case p.Has("permit", "permit2", "permitsingle", "permitbatch"):
		if p.Amount.Unlimited || p.Amount.Value == nil && p.Has("max", "unlimited") || IsUnlimited(p.Amount.Value, false) {
			return []string{act.PermitsAny}
		}
		return []string{act.PermitsSome}
	case p.Has("raw", "hash", "blind", "unknown", "calldata", "eth_sign", "transaction", "tx", "blindly", "digest"):
		return []string{act.SignsBlindly}
	case p.Has("message", "typed data", "eip-712", "eip712", "login", "siwe"):
		return []string{act.SignsText}
	}
	return nil
}

// allowanceRule returns the rule for a phrase about an allowance, or "".
func (p *Phrase) allowanceRule() string {
	first := p.Words[0]
	switch {
	case p.Has("approval for all", "setapprovalforall", "approve all nfts", "approve all tokens", "approve all"):
		if p.Has("revoke", "false", "remove") {
			return act.Revokes
		}
		return act.ApprovesAll
	case first == "revoke" && p.Has("approval", "allowance", "approvals", "usdc", "usdt", "dai", "spender"):
		return act.Revokes
	case first == "approve", slices.Contains([]string{"set", "increase", "grant", "give", "allow"}, first) && p.Has("allowance", "approval"):
		return p.approval()
	}
	return ""
}

// approval returns the rule for an allowance, or "" if the phrase approves something else.
func (p *Phrase) approval() string {
	a := p.Amount
	a.Unlimited = a.Unlimited || a.All || p.Has("max", "maximum", "full") || IsUnlimited(a.Value, false)
	if p.Has("pull request", "pr", "merge", "release", "deployment", "review", "workflow") {
		return ""
	}
	return ApproveRule(a)
}

// controlRule returns the rule for a phrase about ownership, roles, upgrades or burns, or "".
func (p *Phrase) controlRule() string {
	switch first := p.Words[0]; {
	case p.Has("ownership", "transferownership", "renounceownership") && (p.To != "" || p.Has("contract", "proxy", "token", "vault", "multisig")):
		return act.ChangesOwner
	case first == "grant" && p.Has("role", "minter_role", "admin_role", "default_admin_role") && p.Has("contract", "0x", "minter", "admin", "default_admin_role") && p.To != "":
		return act.ChangesRole
	case first == "upgrade" && p.Has("proxy", "implementation", "contract"):
		return act.Upgrades
	case first == "burn" && p.Amount.Value != nil:
		return act.Burns
	}
	return ""
}
