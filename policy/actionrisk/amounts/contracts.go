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

// ContractCall is one call of a contract function as the text writes it.
type ContractCall struct {
	Receiver   string // what is before the dot: "usdc", an address
	Name       string
	Args       []string
	Start, End int
}

// names are what calls.json says of called functions. As with the assets of amounts.json,
// those of this program count for released rule sets as well.
func names() *facts.Calls { return &facts.Tables().Calls }

// LooksCall is the router's cheap test: calldata, or a first word that runs into
// a parenthesis with one of the contract functions before it.
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
		return false // a word of a shell command that names a call
	}
	n := strings.LastIndexAny(line, " .=\t")
	name := line[n+1:]
	switch {
	case n < 0 && chained(text, name):
	case contractMakers[name]:
		return strings.Contains(text, ").") && len(findCalls(text)) > 0
	case !names().IsContractVerb(name):
		return MemberCall(text) != ""
	case plainVerbs.Has(name): // a shell function is defined by "transfer() {", never called so
		return !strings.HasPrefix(strings.ReplaceAll(text[len(line):], " ", ""), "(){")
	}
	return true
}

// chained: IERC20(usdc).approve(…)
func chained(text, name string) bool {
	return strings.Contains(text, ").") && strings.Count(text, "(") > 1 && len(text) < 1000 &&
		slices.ContainsFunc(findCalls(text), func(c ContractCall) bool { return c.Name != name })
}

// ofContracts are parts of what contracts and their proxies are called.
var ofContracts = []string{"token", "contract", "nft", "vault", "proxy", "usdc", "erc20", "erc721", "wallet", "safe", "pool", "router", "multicall", "functions", "timelock", "registry", "coin", "0x"}

// contractMakers give a contract on which something is called; plainVerbs are names of
// contract functions that a shell's function may have as well.
var (
	contractMakers = map[string]bool{"": true, "connect": true, "contract": true, "Contract": true, "getContractAt": true}
	plainVerbs     = scan.SetOf("kill destroy burn transfer drain sweep upgrade permit approve")
)

// pageObjects hold what belongs to the page or program that is running.
var pageObjects = scan.SetOf("localStorage sessionStorage document window console history caches cookieStore Array Object Math")

// MemberCall is the dotted name of a call that is the whole text and whose name
// says that it destroys or moves money: gateway.customer.delete('x'). As shell it
// does not even parse; as code it is an action.
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
		return "" // its filter says more than its name
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

// CommonNames are functions that sockets, processes and queues have as well.
var CommonNames = scan.SetOf("kill destroy drain sweep upgrade permit burn transfer multicall setOwner addOwner removeOwner grantRole revokeRole")

// deciders are what contracts are called that act for others by a general function.
var deciders = []string{"timelock", "governor", "multisig", "dao", "safe", "executor", "smartaccount"}

// GeneralNames are functions that everything has, and contracts that act for others too.
var GeneralNames = scan.SetOf("execute executeBatch schedule scheduleBatch propose queue")

// OnChain reports whether a call of a common name is one of a contract: by an
// address, an amount of a currency, or what its receiver is called.
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

// RecognizeCall finds the calls of contract functions outside strings.
func RecognizeCall(text string) ([]ContractCall, bool) {
	calls := findCalls(text)
	return calls, len(calls) > 0
}

func findCalls(text string) []ContractCall {
	var out []ContractCall
	for _, c := range stores.MongoCalls("." + text) { // the same scan: name( outside strings
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

// splitArgs are the arguments of a call, which are between commas.
func splitArgs(text string) []string {
	var args []string
	for strings.TrimSpace(text) != "" && len(args) < 33 {
		var a string
		a, text = stores.SplitArg(text)
		args = append(args, strings.TrimSpace(a))
	}
	return args
}

// Rules are the rule ids of one call.
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

// nestedOptions is 1 if the last argument is an options object ({gasLimit: …}).
func nestedOptions(args []string) int {
	if len(args) > 2 && strings.HasPrefix(args[len(args)-1], "{") {
		return 1
	}
	return 0
}

// WithZero adds the rule of the zero address if that is where something goes.
func WithZero(to, rule string) []string {
	if to != "" && IsZeroAddress(to) {
		return []string{rule, act.ToNobody}
	}
	return []string{rule}
}

// MaxCalls is how many contract calls of one text are judged.
const MaxCalls = 64

// field finds "name: value" in an object literal.
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

// transactionRules: sendTransaction({to, value, data}).
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

// writeContractRules: viem's writeContract({functionName, args}).
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

// multicallRules reads multicall([…]): encoded calls or calldata.
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
