package amounts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// ContractCall is a call of a contract function in a text.
type ContractCall struct {
	Receiver   string // the expression before the dot: "usdc" or an address
	Name       string
	Args       []string
	Start, End int
}

// names returns calls.json of this release. It is used for earlier rule sets, too, and so are the
// assets of amounts.json.
func names() *facts.Calls { return &facts.Tables().Calls }

// LooksCall is a cheap test whether a text may be calldata or a call of a contract function.
func LooksCall(text string) bool {
	if data, ok := strings.CutPrefix(text, "0x"); ok {
		return len(data) >= 8 && IsHexText(data[:8])
	}
	open := strings.IndexByte(text, '(')
	if open < 0 || open > 160 {
		return false
	}
	line := strings.TrimRight(text[:open], " ")
	if strings.ContainsAny(line[strings.LastIndexAny(line, "\n;")+1:], `'"`) {
		return false // the name is inside a quoted word of a shell command
	}
	n := strings.LastIndexAny(line, " .=\t")
	name := line[n+1:]
	switch {
	case n < 0 && chained(text, name):
	case contractMakers[name]:
		return strings.Contains(text, ").") && len(findCalls(text)) > 0
	case !names().IsContractVerb(name):
		return MemberCall(text) != ""
	case plainVerbs.Has(name): // "transfer() {" defines a function of the shell; no call of one has parentheses
		return !strings.HasPrefix(strings.ReplaceAll(text[len(line):], " ", ""), "(){")
	}
	return true
}

// chained reports whether a later call in a chain is a call of a contract function:
// IERC20(usdc).approve(…).
func chained(text, name string) bool {
	return strings.Contains(text, ").") && strings.Count(text, "(") > 1 && len(text) < 1000 &&
		slices.ContainsFunc(findCalls(text), func(c ContractCall) bool { return c.Name != name })
}

// ofContracts are parts of names that variables for contracts have.
var ofContracts = []string{"token", "contract", "nft", "vault", "proxy", "usdc", "erc20", "erc721", "wallet", "safe", "pool", "router", "multicall", "functions", "timelock", "registry", "coin", "0x"}

// contractMakers are functions that return a contract, on which another function is called.
// plainVerbs are names of contract functions that a shell function may also have.
var (
	contractMakers = map[string]bool{"": true, "connect": true, "contract": true, "Contract": true, "getContractAt": true}
	plainVerbs     = scan.SetOf("kill destroy burn transfer drain sweep upgrade permit approve")
)

// pageObjects are objects of the page or program that runs, not of a service.
var pageObjects = scan.SetOf("localStorage sessionStorage document window console history caches cookieStore Array Object Math")

// MemberCall returns the dotted name of the call if the whole text is one call whose name means
// that it destroys or moves money: gateway.customer.delete('x'). Such a text is not valid as a
// shell command, but it is an action in other languages.
func MemberCall(text string) string {
	open := strings.IndexByte(text, '(')
	if open < 3 || open > 120 || strings.HasPrefix(text[open:], "()") && strings.Contains(text[open:], "{") {
		return ""
	}
	name := strings.TrimPrefix(text[:open], "await ")
	if first, _, _ := strings.Cut(name, "."); pageObjects.Has(first) {
		return ""
	}
	if names().Drivers.Get(name[strings.LastIndexByte(name, '.')+1:]).Scoped != "" {
		return "" // the effect depends on the filter in the arguments
	}
	if strings.IndexByte(name, '.') < 0 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") != "" {
		return ""
	}
	end := strings.TrimRight(text, "; \n")
	if !strings.HasSuffix(end, ")") {
		return ""
	}
	switch facts.ToolClass(name[strings.LastIndexByte(name, '.')+1:]) {
	case "destructive", "money":
		return name
	}
	return ""
}

// CommonNames are contract functions whose names sockets, processes and queues also use.
var CommonNames = scan.SetOf("kill destroy drain sweep upgrade permit burn transfer multicall setOwner addOwner removeOwner grantRole revokeRole")

// deciders are parts of the names of contracts that call other contracts on behalf of users.
var deciders = []string{"timelock", "governor", "multisig", "dao", "safe", "executor", "smartaccount"}

// GeneralNames are very common function names that contracts named in deciders also use.
var GeneralNames = scan.SetOf("execute executeBatch schedule scheduleBatch propose queue")

// OnChain reports whether a call with a common name is a call of a contract. An address, an amount
// of a currency, or the receiver's name shows that.
func (c *ContractCall) OnChain() bool {
	receiver := strings.ToLower(c.Receiver)
	switch {
	case GeneralNames.Has(c.Name):
		return scan.HasAny(receiver, deciders...)
	case receiver == "":
		return len(c.Args) > 0
	}
	return AssetOf(receiver) != nil || IsAddress(receiver) || scan.HasAny(receiver, ofContracts...) || slices.ContainsFunc(c.Args, func(a string) bool {
		return IsAddress(a) || IsZeroAddress(a) || scan.HasAny(a, "parseUnits", "parseEther")
	})
}

// RecognizeCall returns the calls of contract functions outside strings, and whether there are
// any.
func RecognizeCall(text string) ([]ContractCall, bool) {
	calls := findCalls(text)
	return calls, len(calls) > 0
}

func findCalls(text string) []ContractCall {
	var out []ContractCall
	for _, c := range stores.MongoCalls("." + text) { // MongoCalls finds any name( outside strings
		if len(out) < MaxCalls && names().IsContractVerb(c.Method) {
			start, end := max(c.Start-1, 0), min(c.End-1, len(text))
			out = append(out, ContractCall{Receiver: strings.TrimPrefix(c.Receiver, "."), Name: c.Method, Args: splitArgs(c.Args), Start: start, End: max(end, start+1)})
		}
	}
	return out
}

func (c *ContractCall) arg(i int) string {
	if i >= 0 && i < len(c.Args) {
		return c.Args[i]
	}
	return ""
}

// splitArgs splits the arguments of a call at commas.
func splitArgs(text string) []string {
	var args []string
	for strings.TrimSpace(text) != "" && len(args) < 33 {
		var a string
		a, text = stores.SplitArg(text)
		args = append(args, strings.TrimSpace(a))
	}
	return args
}

// Rules returns the rule ids of the call. text is the complete submitted text, in which the amount
// of a permit is searched.
func (c *ContractCall) Rules(text string) []string {
	token := cmp.Or(AssetOf(c.Receiver), AssetOf(c.Receiver[strings.LastIndexByte(c.Receiver, '.')+1:]))
	switch c.Name {
	case "approve", "increaseAllowance", "safeApprove", "forceApprove", "approveChecked":
		return []string{ApproveRule(CallAmount(c.arg(len(c.Args)-1-nestedOptions(c.Args)), token))}
	case "setApprovalForAll":
		if strings.Contains(strings.ToLower(c.arg(1)), "false") || c.arg(1) == "0" {
			return []string{act.Revokes}
		}
		return []string{act.ApprovesAll}
	case "transfer", "safeTransfer", "transferChecked":
		return WithZero(c.arg(0), CallAmount(c.arg(1), token).TransferRule())
	case "transferFrom", "safeTransferFrom":
		return WithZero(c.arg(1), CallAmount(c.arg(2), token).TransferRule())
	case "permit", "permitSingle", "permitBatch", "signTypedData":
		return []string{PermitRule(text)}
	case "sendTransaction", "sendEth", "sendCalls":
		return transactionRules(c)
	case "multicall":
		return multicallRules(c)
	case "writeContract":
		return writeContractRules(c)
	}
	if rule := names().Contracts.Get(c.Name); rule != "" {
		return []string{rule}
	}
	return nil
}

// nestedOptions returns 1 if the last argument is an options object ({gasLimit: …}), and 0
// otherwise.
func nestedOptions(args []string) int {
	if len(args) > 2 && strings.HasPrefix(args[len(args)-1], "{") {
		return 1
	}
	return 0
}

// WithZero returns the rule, and also the rule for the zero address if that is the recipient.
func WithZero(to, rule string) []string {
	if to != "" && IsZeroAddress(to) {
		return []string{rule, act.ToNobody}
	}
	return []string{rule}
}

// MaxCalls is the largest number of contract calls that are judged in one text.
const MaxCalls = 64

// field returns the value in "name: value" of an object literal, or "".
func field(object, name string) string {
	for i := 0; ; {
		n := strings.Index(object[i:], name)
		if n < 0 {
			return ""
		}
		i += n
		j := i + len(name)
		before := i == 0 || !scan.IsNameByte(object[i-1])
		for j < len(object) && (object[j] == '"' || object[j] == '\'' || object[j] == ' ') {
			j++
		}
		if before && j < len(object) && object[j] == ':' {
			v, _ := stores.SplitArg(strings.TrimSuffix(strings.TrimSpace(object[j+1:]), "}"))
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
		i += len(name)
	}
}

// transactionRules returns the rules for sendTransaction({to, value, data}).
func transactionRules(c *ContractCall) []string {
	object := strings.Join(c.Args, ",")
	data, value, to := field(object, "data"), field(object, "value"), field(object, "to")
	var ids []string
	if strings.HasPrefix(data, "0x") && len(data) >= 10 {
		ids = OrBlind(CalldataRules(data[2:], AssetOf(to), 0))
	}
	if value != "" && value != "0" && value != "0x0" {
		ids = append(ids, WithZero(to, CallAmount(value, AssetOf("eth")).TransferRule())...)
	}
	if len(ids) == 0 {
		return WithZero(to, act.Transfers)
	}
	return ids
}

// writeContractRules returns the rules for viem's writeContract({functionName, args}).
func writeContractRules(c *ContractCall) []string {
	object := strings.Join(c.Args, ",")
	inner := ContractCall{Name: field(object, "functionName"), Receiver: field(object, "address")}
	if args, ok := strings.CutPrefix(field(object, "args"), "["); ok {
		inner.Args = splitArgs(strings.TrimSuffix(args, "]"))
	}
	if inner.Name == "writeContract" {
		return []string{act.SignsBlindly}
	}
	return OrBlind(inner.Rules(object))
}

// multicallRules returns the rules for multicall([…]) with calldata or encoded calls.
func multicallRules(c *ContractCall) []string {
	var ids []string
	text := strings.Join(c.Args, ",")
	for _, part := range strings.Split(text, "0x")[1:] {
		if data := part[:len(part)-len(strings.TrimLeft(part, "0123456789abcdefABCDEF"))]; len(data) >= 8 {
			ids = append(ids, CalldataRules(data, nil, 1)...)
		}
	}
	for _, w := range [...]struct{ name, rule string }{{"setApprovalForAll", act.ApprovesAll}, {"transferOwnership", act.ChangesOwner}, {"grantRole", act.ChangesRole}} {
		if strings.Contains(text, w.name) {
			ids = append(ids, w.rule)
		}
	}
	if strings.Contains(text, "approve") && strings.Contains(strings.ToLower(text), "maxuint") {
		ids = append(ids, act.ApprovesAny)
	}
	return OrBlind(ids)
}
