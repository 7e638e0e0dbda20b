package amounts

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// Phrase is a sentence or a command line of a wallet or payment client, with the amount, asset,
// recipient and conditions that were found in it.
type Phrase struct {
	Words   []string // in lower case, without punctuation at the ends
	Raw     []string
	text    string // the whole phrase in lower case
	Amount  Amount
	To      string // address or name of the recipient
	Url     string
	network bool
	times   *big.Rat
}

// phraseVerbs are the words that may begin a sentence about money, keys, contracts or tools.
var phraseVerbs = scan.SetOf(`pay transfer send approve sign swap bridge withdraw deposit buy purchase x402 authorize authorise settle revoke mint burn
 stake unstake export grant fund tip donate increase payment wallet usdc eth sweep drain sell wire remit call invoke tool mcp permit set make execute submit
 disable ignore bypass raise remove import reveal show print initiate please allow give connect add replay retry resend reuse renounce upgrade use eth_sendtransaction eth_sign personal_sign eth_sendrawtransaction eth_signtypeddata_v4 spend double change`)

// LooksPhrase is a cheap test whether a text is a sentence about money, keys, contracts or tools:
// it begins with one of phraseVerbs and has a word that only such sentences have.
func LooksPhrase(text string) bool {
	word, rest, ok := strings.Cut(text, " ")
	if !ok || strings.ContainsAny(word, "=/(;|&$<>{\"'`") {
		return false
	}
	w := strings.ToLower(strings.TrimRight(word, ":,"))
	if !phraseVerbs.Has(w) || strings.HasPrefix(rest, "(") {
		return false
	}
	if name, _, assigns := strings.Cut(rest, "="); w == "export" && assigns && act.SyntaxName(name) {
		return false // it sets a variable of the shell
	}
	low := strings.ToLower(rest)
	return w == "x402" || w == "sign" && stores.HasSQLWord(low, "transaction", "tx", "hash", "message", "permit", "digest") ||
		callsTool(w, low) || namesMoney(rest, low)
}

// callsTool reports whether a verb means a call and the following words name a tool.
func callsTool(verb, low string) bool {
	switch verb {
	case "call", "invoke", "use", "execute":
	case "mcp":
		if strings.HasPrefix(low, "call ") {
			return true
		}
	case "tool":
		if strings.Contains(low, "{") {
			return true
		}
	default:
		return false
	}
	return strings.HasPrefix(low, "tool ") || strings.HasPrefix(low, "mcp ") || strings.HasPrefix(low, "the ") && strings.Contains(low, " tool")
}

// namesMoney reports whether a text has a word for money, keys or contracts, an address, or an
// asset.
func namesMoney(rest, low string) bool {
	for _, mark := range moneyMarks {
		if n := strings.Index(low, mark); n >= 0 && (n == 0 || !scan.IsNameByte(low[n-1])) {
			return true
		}
	}
	for f := range strings.FieldsSeq(rest) {
		if IsAddress(f) && !strings.Contains(f, "/") {
			return true
		}
		f = strings.ToLower(strings.Trim(f, ".,;:()"))
		if len(f) <= 8 && (amounts().byName[f] != nil || amounts().unit[f].asset != nil) && !slices.Contains(amounts().Plain, f) {
			return true
		}
	}
	return false
}

// moneyMarks are words that only texts about money, keys, contracts and tools have.
var moneyMarks = []string{"x402", "usdc", "usdt", "payment", "private key", "seed phrase", "mnemonic", "recovery phrase", "spend limit", "spending limit", "spending cap", "spending policy", "allowance", "wallet",

	"typed data", "eip-712", "eip712", "approval for all", "calldata", "smart contract", "0x0000000000000000000000000000000000000000", "x-payment", "payment-signature", "$0", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9",
	"mcp tool", "mcp server", "tool call", "owner of", "ownership of", "payto", "invoice", "unlimited approval", "infinite approval", "zero address", "burn address", "nft", "blind sign", "transaction hash", "raw transaction", "permit2", "stablecoin", "usd "}

// ReadPhrase parses the words of a phrase.
func ReadPhrase(text string) *Phrase {
	p := &Phrase{text: " " + strings.ToLower(text) + " "}
	for _, f := range strings.Fields(text) {
		p.Raw = append(p.Raw, f)
		p.Words = append(p.Words, strings.ToLower(strings.Trim(f, `.,;:()"'`)))
		if len(p.Words) > 400 {
			break
		}
	}
	for i := range p.Words {
		p.readWord(i)
	}
	if p.Amount.Value == nil {
		p.conditions()
	}
	for _, w := range p.Words {
		if networkWords.Has(strings.ReplaceAll(w, "-", "")) || strings.HasPrefix(w, "eip155:") || strings.HasPrefix(w, "solana:") || scan.HasAny(w, "sepolia", "testnet", "devnet") {
			p.network = true
		}
	}
	p.repetitions()
	return p
}

var networkWords = scan.SetOf("base basemainnet mainnet ethereum polygon arbitrum optimism avalanche solana basesepolia sepolia devnet testnet bsc near")

// readWord parses one word: an address, a URL, or a number with its asset.
func (p *Phrase) readWord(i int) {
	raw, before := strings.Trim(p.Raw[i], `.,;()"'`), p.word(i-1)
	if key, value, ok := strings.Cut(raw, "="); ok && key != "" && !strings.Contains(key, "/") {
		if raw = value; p.setAmount(strings.ToLower(strings.TrimLeft(key, "-")), value) {
			return
		}
	}
	switch low := strings.ToLower(raw); {
	case scan.HasAnyPrefix(low, "http://", "https://"):
		p.Url = cmp.Or(p.Url, raw)
	case IsZeroAddress(raw) || IsAddress(raw):
		if p.To == "" || before == "to" {
			p.To = raw
		}
	case p.Amount.Value == nil && !notAmountAfter.Has(strings.TrimLeft(before, "-")):
		p.readAmount(i, low)
	}
}

// setAmount parses amount=5, and reports whether it is an amount.
func (p *Phrase) setAmount(key, value string) bool {
	n := ParseNumber(value)
	if n == nil || p.Amount.Value != nil || !moneyOptions.Has(key) && key != "value" {
		return false
	}
	p.Amount.Value = n
	for _, w := range p.Words {
		p.Amount.Asset = cmp.Or(AssetOf(w), p.Amount.Asset)
	}
	return true
}

// notAmountAfter are words before a number that is not an amount of money.
var notAmountAfter = scan.SetOf("port chain chainid chain-id nonce slippage block timeout id version step retries max-retries index account decimals gas gas-limit gas-price gaslimit fee priority-fee expires deadline times repeat count every")

// readAmount parses "5 usdc", "$5", "5usdc", "0.1eth", "usdc 5" or "500000 units".
func (p *Phrase) readAmount(i int, low string) {
	number, as, unit := glued(low)
	if number == "" || strings.IndexByte("0123456789.-", number[0]) < 0 {
		return
	}
	n := ParseNumber(number)
	if n == nil || n.Sign() < 0 {
		return
	}
	if unit.asset != nil {
		p.Amount.Value, p.Amount.Asset = Scaled(n, unit.scale), unit.asset
		return
	}
	word := p.word(i + 1)
	if times := map[string]int64{"million": 1_000_000, "thousand": 1_000}[word]; times > 0 {
		n.Mul(n, big.NewRat(times, 1))
		word = cmp.Or(p.word(i+2), word)
	}
	if !p.inUnits(n, word) {
		p.inAsset(n, as, word, strings.TrimLeft(p.word(i-1), "-"))
	}
}

// inUnits sets the amount if a unit follows the number: gwei, or the base unit of an asset.
func (p *Phrase) inUnits(n *big.Rat, word string) bool {
	if u, ok := amounts().unit[word]; ok {
		p.Amount.Value, p.Amount.Asset = Scaled(n, u.scale), u.asset
		return true
	}
	if !baseUnits.Has(word) {
		return false
	}
	a := p.assetAmong(func(a *asset) bool { return a != amounts().other })
	if a != nil {
		p.Amount.Value, p.Amount.Asset = Scaled(n, a.Decimals), a
	}
	return a != nil
}

// inAsset sets the amount if an asset is next to the number. After an option for money, the asset
// may be anywhere in the phrase. After a verb for money, it may be missing.
func (p *Phrase) inAsset(n *big.Rat, as *asset, word, previous string) {
	as = cmp.Or(as, AssetOf(word), AssetOf(previous))
	if as == nil && moneyOptions.Has(previous) {
		as = cmp.Or(p.assetAmong(func(*asset) bool { return true }), AssetOf("usd"))
	}
	if as != nil || moneyVerbs.Has(previous) {
		p.Amount.Value, p.Amount.Asset = n, as
	}
}

// word returns word i, or "" if there is none.
func (p *Phrase) word(i int) string {
	if i >= 0 && i < len(p.Words) {
		return p.Words[i]
	}
	return ""
}

// glued splits a number from the asset or unit that is written next to it without a blank: $5,
// 5usdc, 3gwei.
func glued(low string) (number string, as *asset, of unit) {
	if rest, ok := strings.CutPrefix(low, "$"); ok {
		return rest, AssetOf("usd"), of
	}
	cut := strings.LastIndexAny(low, "0123456789.") + 1
	if cut == 0 || cut == len(low) || low[0] < '0' || low[0] > '9' {
		return low, nil, of
	}
	if a := amounts().byName[low[cut:]]; a != nil {
		return low[:cut], a, of
	}
	if u, ok := amounts().unit[low[cut:]]; ok {
		return low[:cut], nil, u
	}
	return low, nil, of
}

// assetAmong returns the first asset in the words for which meant returns true, or nil.
func (p *Phrase) assetAmong(meant func(*asset) bool) *asset {
	for _, w := range p.Words {
		if a := AssetOf(strings.TrimPrefix(w, "--asset=")); a != nil && meant(a) {
			return a
		}
	}
	return nil
}

// baseUnits are words for the smallest unit of an asset.
var baseUnits = scan.SetOf("units atomic base raw micro")

var moneyOptions = scan.SetOf("max-amount max-price max-value max max-amount-usd max-usd amount price maxamount budget max-payment max-spend limit cap usd")

var moneyVerbs = scan.SetOf("pay transfer send approve swap bridge withdraw deposit tip donate burn mint stake sell wire remit fund allowance spend")

// Has reports whether one of the phrases is in the text as whole words. The text begins and ends
// with a blank, so a match never touches either end.
func (p *Phrase) Has(list ...string) bool {
	for _, s := range list {
		for i := 1; i < len(p.text); i++ {
			n := strings.Index(p.text[i:], s)
			if n < 0 {
				break
			}
			i += n
			if end := i + len(s); !scan.IsNameByte(p.text[i-1]) && (end >= len(p.text) || !scan.IsNameByte(p.text[end])) {
				return true
			}
		}
	}
	return false
}

// conditions sets Unlimited or All if the words state the amount without a number: "any amount",
// "whole balance".
func (p *Phrase) conditions() {
	switch {
	case p.Has("unlimited", "infinite", "maxuint256", "max uint256", "maximum allowance", "max allowance", "max approval", "without limit", "no limit", "no cap", "without a cap", "any amount", "any price", "whatever price", "whatever it costs", "whatever amount", "no maximum", "without a maximum"):
		p.Amount.Unlimited = true
	case p.Has("all", "entire", "everything", "full balance", "whole balance", "remaining balance", "max balance", "drain", "sweep", "empty", "100%") && !p.Has("approval for all", "setapprovalforall", "approve all"):
		p.Amount.All = true
	}
}

// repetitions parses "100 times", "--count 100" or "every minute".
func (p *Phrase) repetitions() {
	for i, w := range p.Words {
		number := ""
		switch {
		case countedNouns.Has(w) && i > 0:
			number = p.Words[i-1]
		case countOptions.Has(w):
			number = p.word(i + 1)
		default:
			continue
		}
		if n := ParseNumber(number); n != nil && n.Cmp(big.NewRat(1, 1)) > 0 {
			p.times = n
		}
	}
	if p.times == nil && p.Has("in a loop", "repeatedly", "every second", "every minute", "every hour", "each minute", "forever", "recurring", "continuously", "per second", "until it fails", "indefinitely") {
		p.times = big.NewRat(1_000, 1)
	}
}

// countedNouns follow a number of repetitions; countOptions precede one.
var countedNouns, countOptions = scan.SetOf("times payments transactions calls requests"), scan.SetOf("repeat --repeat --times --count -n")

// isPayment reports whether the phrase is an x402 payment, not a transfer.
func (p *Phrase) isPayment() bool {
	return p.Url != "" && !p.Has("rpc-url", "--rpc-url", "--url", "-u") || p.Has("x402", "x-payment", "payment-signature", "402", "payto", "facilitator", "paid endpoint", "paid api", "micropayment", "invoice", "api call", "per call") || p.bareHost() != ""
}

// bareHost returns a recipient that is a host without a scheme, or "".
func (p *Phrase) bareHost() string {
	for i, w := range p.Words {
		if slices.Contains([]string{"to", "for", "at", "pay"}, p.word(i-1)) && !IsAddress(w) && likeHost(w) {
			return w
		}
	}
	return ""
}

// likeHost reports whether a word has the form of a host: a dot, and letters after the last one.
// The name of an asset or an amount is not a host.
func likeHost(w string) bool {
	host, _, _ := strings.Cut(w, "/")
	n := strings.LastIndexByte(host, '.')
	return n > 0 && len(host)-n > 2 && strings.Trim(host[n+1:], "abcdefghijklmnopqrstuvwxyz") == "" && ParseNumber(host) == nil && AssetOf(host) == nil
}

// Recipient returns the recipient: an address, a name or a host.
func (p *Phrase) Recipient() string {
	if p.To != "" {
		return p.To
	}
	if p.Url != "" {
		_, host, _, _ := hosts.Split(p.Url)
		return host
	}
	return p.bareHost()
}
