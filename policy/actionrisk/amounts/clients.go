package amounts

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// CastWallet adds the rules for a cast wallet command: it shows keys, or signs texts and
// authorizations.
func (l *RuleList) CastWallet(v *act.Invocation) {
	switch v.Operand(1) {
	case "private-key", "decrypt-keystore", "pk", "dk", "derive-private-key", "dpk":
		l.Add(act.ExportsKey)
	case "sign-auth", "sa":
		l.Add(act.ChangesOwner)
	case "sign", "s":
		switch {
		case v.Has("--no-hash"):
			l.Add(act.SignsBlindly)
		case v.Has("--data"):
			l.Add(act.PermitsSome)
		default:
			l.Add(act.SignsText)
		}
	}
}

// CastSend adds the rules for cast send TO [SIGNATURE [ARGS…]] [--value V].
func (ids *RuleList) CastSend(v *act.Invocation) {
	to, rest := v.Operand(1), v.Operands[min(2, len(v.Operands)):]
	value, sends := v.Value("--value")
	switch {
	case v.Has("--create"):
		ids.Add(act.SignsBlindly)
		return
	case len(rest) > 0:
		if ids.castCall(v, to, rest) {
			return
		}
	case !sends || value.Text == "0":
		ids.AddAll(WithZero(to, act.Transfers))
		return
	}
	if sends && value.Text != "0" {
		ids.AddAll(WithZero(to, CallAmount(weiText(value.Text), AssetOf("eth")).TransferRule()))
	}
}

// castCall adds the rules for the called function. It returns true if the call is given as
// calldata, which includes its value.
func (ids *RuleList) castCall(v *act.Invocation, to string, rest []act.Word) (encoded bool) {
	if data, ok := strings.CutPrefix(rest[0].Text, "0x"); ok && IsHexText(data) {
		ids.AddAll(OrBlind(CalldataRules(data, AssetOf(to), 0)))
		return true
	}
	name, _, _ := strings.Cut(rest[0].Text, "(")
	call := ContractCall{Receiver: to, Name: name}
	for _, w := range rest[1:] {
		call.Args = append(call.Args, AmountText(w))
	}
	if v.Has("-1") { // -1 was parsed as an option, but is the largest value
		call.Args = append(call.Args, "-1")
	}
	ids.AddAll(call.Rules(""))
	if len(*ids) == 0 {
		ids.Add(act.Transfers) // an unknown function that may write
	}
	return false
}

// OrBlind returns ids, or the rule for signing unreadable data if there are none.
func OrBlind(ids []string) []string {
	if len(ids) == 0 {
		return []string{act.SignsBlindly}
	}
	return ids
}

// AmountText returns the text of an argument that may be an amount. If another program computes
// the amount in a way that the engine cannot evaluate, it returns the largest amount.
func AmountText(w act.Word) string {
	if !w.Known() && (ComputedNumber(w) || strings.HasPrefix(w.Text, "0x"+string(scan.Hole))) {
		return "maxuint256"
	}
	return w.Text
}

// ComputedNumber reports whether another program computes the word in a way that the engine cannot
// evaluate.
func ComputedNumber(w act.Word) bool {
	return facts.Tables().In("number-makers", strings.TrimSuffix(strings.TrimPrefix(w.Var, "$("), ")")) || w.Taint&(act.FromBuilt|act.FromDecoder) != 0
}

// weiText converts "5gwei" to wei, as 5e9. Other texts are not changed.
func weiText(s string) string {
	if n, ok := strings.CutSuffix(strings.ToLower(s), "gwei"); ok {
		return strings.TrimSpace(n) + "e9"
	}
	return s
}

// Transfer adds the rule for a transfer of an amount, or of "ALL", to a recipient.
func (l *RuleList) Transfer(value, symbol, to string) {
	a := Amount{Asset: cmp.Or(AssetOf(symbol), amounts().other)}
	if a.All = slices.Contains([]string{"all", "max", "everything"}, strings.ToLower(value)); !a.All {
		a.Value = ParseNumber(value)
	}
	l.AddAll(WithZero(to, a.TransferRule()))
}

// PayClientRules adds the rules for a command line of an x402 client, parsed as a Phrase.
func PayClientRules(v *act.Invocation, ids *RuleList) {
	_, words, _ := strings.Cut(act.ArgvText(v), " ")
	if v.Operand(0) != "x402" { // not "awal x402 pay …", a wallet in which x402 is a subcommand
		if len(facts.Tables().Program(v.Exe).Clients) > 0 {
			return // a wallet whose commands are in the table
		}
		words = "x402 " + words
	}
	p := ReadPhrase(words)
	if facts.Tables().In("base-unit-clients", v.Exe) {
		if w, ok := v.Value("--max-amount"); ok && p.Amount.Value != nil && !strings.ContainsAny(w.Text, ".$") {
			p.Amount.Value = Scaled(p.Amount.Value, AssetOf("usdc").Decimals)
		}
	}
	ids.AddAll(p.Rules())
}

// HeaderRules adds the rules for an HTTP request with a payment in a header.
func HeaderRules(v *act.Invocation, ids *RuleList) {
	for i := 1; i < len(v.Argv); i++ {
		name, value, ok := strings.Cut(v.Argv[i].Text, ":")
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "-H")))
		if !ok || !slices.Contains([]string{"x-payment", "payment-signature", "x-payment-signature"}, name) {
			continue
		}
		found := payloadRules(strings.TrimSpace(value))
		if found == nil {
			found = []string{act.PaysUnknown}
		}
		ids.AddAll(found)
		for _, w := range v.Operands {
			ids.AddAll(AddressRules(w.Text))
		}
	}
}

// payloadRules decodes the base64 JSON of a payment header and returns its rules, or nil if it is
// invalid.
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
	root, _ := tree.JSON(string(raw))
	if root == nil {
		return nil
	}
	return X402Rules(root)
}
