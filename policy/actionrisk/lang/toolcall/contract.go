package toolcall

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// This file judges calls of contract functions in JSON: the arguments of a tool, or an object that
// names a contract and one of its functions.

var (
	receiverKeys  = []string{"contract", "contractAddress", "contract_address", "address", "to", "target", "token", "tokenAddress", "token_address", "proxy", "proxyAddress", "vault"}
	functionKeys  = []string{"functionName", "function_name", "function", "functionSignature", "function_signature", "signature", "selector", "functionSelector", "function_selector", "methodId", "method_id", "methodName", "method_name", "method", "func", "entrypoint", "sig", "fn", "abi_function", "abiFunction", "contractMethod", "contract_method", "contractFunction", "contract_function", "call", "calldata"}
	argumentKeys  = []string{"args", "arguments", "params", "inputs", "functionArgs", "function_args", "parameters", "functionParams", "callArgs"}
	viewWords     = scan.SetOf("view pure read call eth_call simulate static staticcall read_contract readcontract estimate")
	mutabilityKey = []string{"stateMutability", "mutability", "type", "callType", "call_type", "mode", "action", "kind"}
)

// contractFunction returns the name of a function that is given by its name, signature or
// selector. For a selector or calldata it also returns the hexadecimal digits.
func contractFunction(text string) (name, data string) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "function ")
	if hex, ok := strings.CutPrefix(text, "0x"); ok && len(hex) >= 8 && amounts.IsHexText(hex) {
		return amounts.SelectorNames[strings.ToLower(hex[:8])], hex
	}
	if len(text) == 8 && amounts.IsHexText(text) && amounts.SelectorNames[strings.ToLower(text)] != "" {
		return amounts.SelectorNames[strings.ToLower(text)], text
	}
	if i := strings.IndexByte(text, '('); i > 0 {
		text = text[:i]
	}
	return text[strings.LastIndexByte(text, '.')+1:], ""
}

// contractObject judges an object {contract, function, args} with any of the usual member names.
// It reports whether the object is such a call and a rule matched.
func (w *jsonWalk) contractObject(n *tree.Node) bool {
	to, function := "", n.Str(functionKeys...)
	for _, key := range receiverKeys {
		if a := n.Str(key); strings.HasPrefix(a, "0x") && amounts.IsAddress(a) {
			to = a
			break
		}
	}
	if to == "" || function == "" || strings.Contains(function, "_") && w.e.Clients.Method.Get(function) != "" {
		return false
	}
	name, data := contractFunction(function)
	if name != "" && (!act.SyntaxName(name) || name == strings.ToUpper(name)) { // GET and POST are methods of requests
		return false
	}
	return w.contractRun(n, n, to, name, data)
}

// contractRun judges one call of a contract function. An unknown function may do anything, unless
// its name or its type shows that it only reads.
func (w *jsonWalk) contractRun(n, args *tree.Node, to, name, data string) bool {
	call := amounts.ContractCall{Name: name, Receiver: to, Args: w.contractArgs(args)}
	var ids []string
	switch {
	case len(data) > 8:
		ids = amounts.CalldataRules(data, amounts.AssetOf(to), 0)
	case data != "" && amounts.ReadSelectors.Has(strings.ToLower(data)):
		return w.e.Match(&act.Item{Kind: act.KindTool, Name: "read", Src: w.src, From: n.Start, To: n.End, Target: act.Printable(to)})
	case name != "":
		ids = call.Rules(w.src.Text)
	}
	switch {
	case len(ids) > 0:
	case data != "":
		ids = []string{act.SignsBlindly}
	case readsContract(n, name), args != n && readsContract(args, name):
		return w.e.Match(&act.Item{Kind: act.KindTool, Name: "read", Src: w.src, From: n.Start, To: n.End, Target: act.Printable(name)})
	default:
		ids = []string{act.RunsContract}
	}
	if value := amounts.ParseNumber(args.Str("value", "amountEth", "ethValue")); value != nil && value.Sign() > 0 {
		ids = append(slices.Clone(ids), amounts.WithZero(to, amounts.CallAmount(args.Str("value", "amountEth", "ethValue"), amounts.AssetOf("eth")).TransferRule())...)
	}
	return w.e.Money(w.src, n.Start, n.End, name, ids...)
}

// contractArgs returns the arguments of a call as texts, at most 32. Lists and objects are
// returned as their JSON text.
func (w *jsonWalk) contractArgs(args *tree.Node) []string {
	kids, listed := args.Kids, false
	if list := args.Get(argumentKeys...); list != nil && (list.Kind == '[' || list.Kind == '{') {
		kids, listed = list.Kids, true
	}
	var out []string
	for _, k := range kids {
		switch compound := k.Kind == '{' || k.Kind == '['; {
		case len(out) >= 32:
			return out
		case compound && listed:
			out = append(out, w.src.Text[min(k.Start, len(w.src.Text)):min(max(k.End, k.Start), len(w.src.Text))])
		case !compound && (listed || k.Kind != 'n'):
			out = append(out, k.Text)
		}
	}
	return out
}

// readsContract reports whether the name of the function, its ABI or the kind of the call shows
// that the call changes nothing.
func readsContract(n *tree.Node, name string) bool {
	for _, key := range mutabilityKey {
		if viewWords.Has(strings.ToLower(n.Str(key))) {
			return true
		}
	}
	abi := n.Get("abi", "functionAbi", "fragment")
	for _, k := range abi.KidsOrNone() {
		if strings.Contains(k.Text, " view") || strings.Contains(k.Text, " pure") || viewWords.Has(k.Str("stateMutability")) {
			return true
		}
	}
	if abi != nil && viewWords.Has(abi.Str("stateMutability")) {
		return true
	}
	return viewFunctions.Has(name) || facts.ToolClass(name) == "read"
}

// viewFunctions lists functions of common contracts that only read, and whose names are not verbs
// for reading.
var viewFunctions = scan.SetOf(`balanceOf totalSupply allowance decimals symbol name owner ownerOf tokenURI totalAssets convertToShares convertToAssets previewDeposit previewMint previewWithdraw previewRedeem maxDeposit
 maxMint maxWithdraw maxRedeem asset hasRole paused nonces DOMAIN_SEPARATOR supportsInterface isApprovedForAll latestAnswer latestRoundData slot0 token0 token1 fee liquidity reserves implementation admin threshold nonce uri contractURI cap minter
 exchangeRate exchangeRateStored rewardRate earned rewardPerToken pendingRewards userInfo poolInfo poolLength isOwner isModuleEnabled version eip712Domain tokenByIndex tokenOfOwnerByIndex royaltyInfo votingPower quorum state proposals delegates numCheckpoints borrowRate supplyRate`)
