package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Calls of contract functions that stand in JSON: as the arguments of a tool, or as
// an object of its own that names a contract and a function of it.

var (
	receiverKeys  = []string{"contract", "contractAddress", "contract_address", "address", "to", "target", "token", "tokenAddress", "token_address", "proxy", "proxyAddress", "vault"}
	functionKeys  = []string{"functionName", "function_name", "function", "functionSignature", "function_signature", "signature", "selector", "functionSelector", "function_selector", "methodId", "method_id", "methodName", "method_name", "method", "func", "entrypoint", "sig", "fn", "abi_function", "abiFunction", "contractMethod", "contract_method", "contractFunction", "contract_function", "call", "calldata"}
	argumentKeys  = []string{"args", "arguments", "params", "inputs", "functionArgs", "function_args", "parameters", "functionParams", "callArgs"}
	viewWords     = scan.SetOf("view pure read call eth_call simulate static staticcall read_contract readcontract estimate")
	mutabilityKey = []string{"stateMutability", "mutability", "type", "callType", "call_type", "mode", "action", "kind"}
)

// contractFunction is the name of a function that is given by name, signature or
// selector, and the calldata if it is that.
func contractFunction(text string) (name, data string) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "function ")
	if hex, ok := strings.CutPrefix(text, "0x"); ok && len(hex) >= 8 && isHexText(hex) {
		return selectorNames[strings.ToLower(hex[:8])], hex
	}
	if len(text) == 8 && isHexText(text) && selectorNames[strings.ToLower(text)] != "" {
		return selectorNames[strings.ToLower(text)], text
	}
	if i := strings.IndexByte(text, '('); i > 0 {
		text = text[:i]
	}
	return text[strings.LastIndexByte(text, '.')+1:], ""
}

// contractObject judges {contract, function, args}, whatever the members are called.
func (w *jsonWalk) contractObject(n *jsonNode) bool {
	to, function := "", n.str(functionKeys...)
	for _, key := range receiverKeys {
		if a := n.str(key); strings.HasPrefix(a, "0x") && isAddress(a) {
			to = a
			break
		}
	}
	if to == "" || function == "" || strings.Contains(function, "_") && w.e.clients.method[function] != "" {
		return false
	}
	name, data := contractFunction(function)
	if name != "" && (!syntaxName(name) || name == strings.ToUpper(name)) { // GET and POST are of requests
		return false
	}
	return w.contractRun(n, n, to, name, data)
}

// contractRun judges one call of a contract's function; unknown functions may do
// anything, unless something says that they only read.
func (w *jsonWalk) contractRun(n, args *jsonNode, to, name, data string) bool {
	call := contractCall{name: name, receiver: to, args: w.contractArgs(args)}
	var ids []string
	switch {
	case len(data) > 8:
		ids = calldataRules(data, assetOf(to), 0)
	case data != "" && readSelectors[strings.ToLower(data)]:
		return w.e.match(&item{kind: kindTool, name: "read", src: w.src, from: n.start, to: n.end, target: printable(to)})
	case name != "":
		ids = call.rules(w.src.text)
	}
	switch {
	case len(ids) > 0:
	case data != "":
		ids = []string{"wallet.blind-sign"}
	case readsContract(n, name), args != n && readsContract(args, name):
		return w.e.match(&item{kind: kindTool, name: "read", src: w.src, from: n.start, to: n.end, target: printable(name)})
	default:
		ids = []string{"wallet.contract-run"}
	}
	if value := parseNumber(args.str("value", "amountEth", "ethValue")); value != nil && value.Sign() > 0 {
		ids = append(slices.Clone(ids), withZero(to, callAmount(args.str("value", "amountEth", "ethValue"), assetOf("eth")).transferRule())...)
	}
	return w.e.money(w.src, n.start, n.end, name, ids...)
}

// contractArgs are the arguments of a call as texts; lists and objects as they stand.
func (w *jsonWalk) contractArgs(args *jsonNode) []string {
	var out []string
	add := func(k *jsonNode) {
		switch {
		case len(out) >= 32:
		case k.kind == '{' || k.kind == '[':
			out = append(out, w.src.text[min(k.start, len(w.src.text)):min(max(k.end, k.start), len(w.src.text))])
		default:
			out = append(out, k.text)
		}
	}
	list := args.get(argumentKeys...)
	switch {
	case list != nil && (list.kind == '[' || list.kind == '{'):
		for _, k := range list.kids {
			add(k)
		}
	default:
		for _, k := range args.kids {
			if k.kind == '"' || k.kind == '0' || k.kind == 't' || k.kind == 'f' {
				add(k)
			}
		}
	}
	return out
}

// readsContract: the function's name, its interface or the kind of the call says that
// nothing is changed.
func readsContract(n *jsonNode, name string) bool {
	for _, key := range mutabilityKey {
		if viewWords[strings.ToLower(n.str(key))] {
			return true
		}
	}
	abi := n.get("abi", "functionAbi", "fragment")
	for _, k := range abi.kidsOrNone() {
		if strings.Contains(k.text, " view") || strings.Contains(k.text, " pure") || viewWords[k.str("stateMutability")] {
			return true
		}
	}
	if abi != nil && viewWords[abi.str("stateMutability")] {
		return true
	}
	return viewFunctions[name] || toolClass(name) == "read"
}

// viewFunctions are functions of common contracts that only show something, whose
// names are no verbs.
var viewFunctions = scan.SetOf(`balanceOf totalSupply allowance decimals symbol name owner ownerOf tokenURI totalAssets convertToShares convertToAssets previewDeposit previewMint previewWithdraw previewRedeem maxDeposit
 maxMint maxWithdraw maxRedeem asset hasRole paused nonces DOMAIN_SEPARATOR supportsInterface isApprovedForAll latestAnswer latestRoundData slot0 token0 token1 fee liquidity reserves implementation admin threshold nonce uri contractURI cap minter
 exchangeRate exchangeRateStored rewardRate earned rewardPerToken pendingRewards userInfo poolInfo poolLength isOwner isModuleEnabled version eip712Domain tokenByIndex tokenOfOwnerByIndex royaltyInfo votingPower quorum state proposals delegates numCheckpoints borrowRate supplyRate`)
