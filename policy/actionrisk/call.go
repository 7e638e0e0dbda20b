package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// contractCall is one call of a contract function as the text writes it.
type contractCall struct {
	receiver   string // what stands before the dot: "usdc", an address
	name       string
	args       []string
	start, end int
}

// contractVerbs are the functions whose calls mean money or control. A text is
// read as a call only if it names one of them.
var contractVerbs = scan.SetOf(`approve increaseAllowance setApprovalForAll transfer transferFrom safeTransfer safeTransferFrom safeApprove forceApprove
 permit permitSingle permitBatch transferOwnership renounceOwnership acceptOwnership setOwner changeOwner setAdmin changeAdmin changeProxyAdmin addOwner addOwnerWithThreshold removeOwner swapOwner changeThreshold
 grantRole revokeRole renounceRole setupRole upgradeTo upgradeToAndCall upgrade upgradeAndCall setImplementation burn burnFrom multicall
 sendTransaction sendEth sendRawTransaction sendUserOperation selfdestruct destroy kill execTransaction emergencyWithdraw withdrawAll sweep sweepToken drain
 writeContract sendAndConfirmTransaction signTransaction signMessage signTypedData requestAirdrop sendCalls transferChecked approveChecked setAuthority closeAccount exportPrivateKey signAuthorization enableModule disableModule setGuard setFallbackHandler diamondCut
 execute executeBatch schedule scheduleBatch propose queue eth_sign personal_sign`)

// looksCall is the router's cheap test: calldata, or a first word that runs into
// a parenthesis with one of the contract functions before it.
func looksCall(text string) bool {
	if strings.HasPrefix(text, "0x") {
		n := 2
		for n < len(text) && n < 12 && isHexText(text[n:n+1]) {
			n++
		}
		return n >= 10
	}
	line := text
	if n := strings.IndexByte(line, '('); n < 0 || n > 160 {
		return false
	} else {
		line = line[:n]
	}
	line = strings.TrimRight(line, " ")
	if strings.ContainsAny(line[strings.LastIndexAny(line, "\n;")+1:], `'"`) {
		return false // a word of a shell command that names a call
	}
	n := strings.LastIndexAny(line, " .=\t")
	name := line[n+1:]
	if n < 0 && strings.Contains(text, ").") && strings.Count(text, "(") > 1 && len(text) < 1000 { // IERC20(usdc).approve(…)
		for _, c := range findCalls(text) {
			if c.name != name {
				return true
			}
		}
	}
	if name == "connect" || name == "" || name == "contract" || name == "Contract" || name == "getContractAt" {
		return strings.Contains(text, ").") && len(findCalls(text)) > 0
	}
	if !contractVerbs[name] {
		return memberCall(text) != ""
	}
	if name == "kill" || name == "destroy" || name == "burn" || name == "transfer" || name == "drain" || name == "sweep" || name == "upgrade" || name == "permit" || name == "approve" {
		// A shell function is defined by "transfer() {", never called so.
		rest := strings.TrimLeft(text[len(line):], " ")
		return !strings.HasPrefix(strings.ReplaceAll(rest, " ", ""), "(){")
	}
	return true
}

// runCalls reads src as contract calls or calldata.
func (e *engine) runCalls(src *source) bool {
	text := src.text
	trimmed := strings.TrimSpace(text)
	if strings.HasPrefix(trimmed, "0x") && len(trimmed) >= 10 && isHexText(trimmed[2:]) {
		ids := calldataRules(trimmed[2:], nil, 0)
		if len(ids) == 0 {
			ids = []string{"wallet.blind-sign"}
		}
		return e.money(src, 0, len(text), trimmed[:10], ids...)
	}
	calls, ok := recognizeCall(text)
	if !ok {
		return e.runMember(src)
	}
	if len(calls) >= maxCalls {
		e.tooDeep = true
	}
	found := false
	for i := range calls {
		c := &calls[i]
		if (commonNames[c.name] || generalNames[c.name]) && !c.onChain() {
			continue
		}
		if !e.budget.spend(2 + len(c.args)) {
			return found
		}
		if ids := c.rules(text); len(ids) > 0 {
			found = e.money(src, c.start, c.end, c.name, ids...) || found
		}
	}
	return found
}

// pageObjects hold what belongs to the page or program that is running.
var pageObjects = scan.SetOf("localStorage sessionStorage document window console history caches cookieStore Array Object Math")

// memberCall is the dotted name of a call that is the whole text and whose name
// says that it destroys or moves money: gateway.customer.delete('x'). As shell it
// does not even parse; as code it is an action.
func memberCall(text string) string {
	open := strings.IndexByte(text, '(')
	if open < 3 || open > 120 || strings.HasPrefix(text[open:], "()") && strings.Contains(text[open:], "{") {
		return ""
	}
	name := strings.TrimPrefix(text[:open], "await ")
	if first, _, _ := strings.Cut(name, "."); pageObjects[first] {
		return ""
	}
	if driverEffects[name[strings.LastIndexByte(name, '.')+1:]].scoped != "" {
		return "" // its filter says more than its name
	}
	if strings.IndexByte(name, '.') < 0 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$") != "" {
		return ""
	}
	end := strings.TrimRight(text, "; \n")
	if !strings.HasSuffix(end, ")") {
		return ""
	}
	switch toolClass(name[strings.LastIndexByte(name, '.')+1:]) {
	case "destructive", "money":
		return name
	}
	return ""
}

// runMember judges a memberCall like a tool of that name.
func (e *engine) runMember(src *source) bool {
	name := memberCall(strings.TrimSpace(src.text))
	if name == "" {
		return false
	}
	class := toolClass(name[strings.LastIndexByte(name, '.')+1:])
	e.ran = true
	return e.match(&item{kind: kindTool, name: class, src: src, from: 0, to: len(src.text), target: name})
}

// commonNames are functions that sockets, processes and queues have as well.
var commonNames = scan.SetOf("kill destroy drain sweep upgrade permit burn transfer multicall setOwner addOwner removeOwner grantRole revokeRole")

// deciders are what contracts are called that act for others by a general function.
var deciders = []string{"timelock", "governor", "multisig", "dao", "safe", "executor", "smartaccount"}

// generalNames are functions that everything has, and contracts that act for others too.
var generalNames = scan.SetOf("execute executeBatch schedule scheduleBatch propose queue")

// onChain reports whether a call of a common name is one of a contract: by an
// address, an amount of a currency, or what its receiver is called.
func (c *contractCall) onChain() bool {
	receiver := strings.ToLower(c.receiver)
	if generalNames[c.name] {
		return slices.ContainsFunc(deciders, func(d string) bool { return strings.Contains(receiver, d) })
	}
	if receiver == "" || assetOf(receiver) != nil || isAddress(receiver) {
		return receiver != "" || len(c.args) > 0
	}
	for _, w := range [...]string{"token", "contract", "nft", "vault", "proxy", "usdc", "erc20", "erc721", "wallet", "safe", "pool", "router", "multicall", "functions", "timelock", "registry", "coin", "0x"} {
		if strings.Contains(receiver, w) {
			return true
		}
	}
	for _, a := range c.args {
		if isAddress(a) || isZeroAddress(a) || strings.Contains(a, "parseUnits") || strings.Contains(a, "parseEther") {
			return true
		}
	}
	return false
}

// recognizeCall finds the calls of contract functions outside strings.
func recognizeCall(text string) ([]contractCall, bool) {
	calls := findCalls(text)
	return calls, len(calls) > 0
}

func findCalls(text string) []contractCall {
	var out []contractCall
	for _, c := range mongoCalls("." + text) { // the same scan: name( outside strings
		if !contractVerbs[c.method] {
			continue
		}
		start := max(c.start-1, 0)
		end := min(c.end-1, len(text))
		call := contractCall{receiver: strings.TrimPrefix(c.receiver, "."), name: c.method, start: start, end: max(end, start+1)}
		for rest := c.args; strings.TrimSpace(rest) != ""; {
			var a string
			a, rest = splitArg(rest)
			call.args = append(call.args, strings.TrimSpace(a))
			if len(call.args) > 32 {
				break
			}
		}
		out = append(out, call)
		if len(out) >= maxCalls {
			break
		}
	}
	return out
}

func (c *contractCall) arg(i int) string {
	if i >= 0 && i < len(c.args) {
		return c.args[i]
	}
	return ""
}

// rules are the rule ids of one call.
func (c *contractCall) rules(text string) []string {
	token := assetOf(c.receiver)
	if token == nil {
		token = assetOf(c.receiver[strings.LastIndexByte(c.receiver, '.')+1:])
	}
	switch c.name {
	case "approve", "increaseAllowance", "safeApprove", "forceApprove", "approveChecked":
		return []string{approveRule(callAmount(c.arg(len(c.args)-1-nestedOptions(c.args)), token))}
	case "setApprovalForAll":
		if strings.Contains(strings.ToLower(c.arg(1)), "false") || c.arg(1) == "0" {
			return []string{"wallet.approve-revoke"}
		}
		return []string{"wallet.approve-all"}
	case "transfer", "safeTransfer", "transferChecked":
		return withZero(c.arg(0), callAmount(c.arg(1), token).transferRule())
	case "transferFrom", "safeTransferFrom":
		return withZero(c.arg(1), callAmount(c.arg(2), token).transferRule())
	case "permit", "permitSingle", "permitBatch":
		return []string{permitRule(text)}
	case "transferOwnership", "renounceOwnership", "acceptOwnership", "setOwner", "changeOwner", "setAdmin", "changeAdmin", "changeProxyAdmin",
		"addOwner", "addOwnerWithThreshold", "removeOwner", "swapOwner", "changeThreshold", "signAuthorization", "enableModule", "disableModule", "setGuard", "setFallbackHandler", "selfdestruct", "destroy", "kill", "setAuthority":
		return withZero("", "wallet.ownership")
	case "grantRole", "revokeRole", "renounceRole", "setupRole":
		return []string{"wallet.role-admin"}
	case "upgradeTo", "upgradeToAndCall", "upgrade", "upgradeAndCall", "setImplementation", "diamondCut":
		return []string{"wallet.upgrade"}
	case "burn", "burnFrom":
		return []string{"wallet.burn"}
	case "emergencyWithdraw", "withdrawAll", "sweep", "sweepToken", "drain":
		return []string{"wallet.drain"}
	case "execute", "executeBatch", "schedule", "scheduleBatch", "propose", "queue":
		return []string{"wallet.contract-run"}
	case "execTransaction", "signTransaction", "sendRawTransaction", "sendUserOperation", "eth_sign", "sendAndConfirmTransaction":
		return []string{"wallet.blind-sign"}
	case "signMessage", "personal_sign":
		return []string{"wallet.sign-text"}
	case "signTypedData":
		return []string{permitRule(text)}
	case "exportPrivateKey":
		return []string{"wallet.key-export"}
	case "sendTransaction", "sendEth", "sendCalls":
		return transactionRules(c)
	case "multicall":
		return multicallRules(c)
	case "writeContract":
		return writeContractRules(c)
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

func withZero(to, rule string) []string {
	if to != "" && isZeroAddress(to) {
		return []string{rule, "wallet.zero-address"}
	}
	return []string{rule}
}

// maxCalls is how many contract calls of one text are judged.
const maxCalls = 64

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
			v, _ := splitArg(strings.TrimSuffix(strings.TrimSpace(object[j+1:]), "}"))
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
		i += len(name)
	}
}

// transactionRules: sendTransaction({to, value, data}).
func transactionRules(c *contractCall) []string {
	object := strings.Join(c.args, ",")
	data, value, to := field(object, "data"), field(object, "value"), field(object, "to")
	var ids []string
	if strings.HasPrefix(data, "0x") && len(data) >= 10 {
		ids = calldataRules(data[2:], assetOf(to), 0)
		if len(ids) == 0 {
			ids = []string{"wallet.blind-sign"}
		}
	}
	if value != "" && value != "0" && value != "0x0" {
		a := callAmount(value, assetOf("eth"))
		ids = append(ids, withZero(to, a.transferRule())...)
	}
	if len(ids) == 0 {
		ids = withZero(to, "wallet.transfer")
	}
	return ids
}

// writeContractRules: viem's writeContract({functionName, args}).
func writeContractRules(c *contractCall) []string {
	object := strings.Join(c.args, ",")
	inner := contractCall{name: field(object, "functionName"), receiver: field(object, "address")}
	if args := field(object, "args"); strings.HasPrefix(args, "[") {
		for rest := strings.TrimSuffix(args[1:], "]"); strings.TrimSpace(rest) != ""; {
			var a string
			a, rest = splitArg(rest)
			inner.args = append(inner.args, strings.TrimSpace(a))
		}
	}
	if ids := inner.rules(object); len(ids) > 0 && inner.name != "writeContract" {
		return ids
	}
	return []string{"wallet.blind-sign"}
}

// multicallRules reads multicall([…]): encoded calls or calldata.
func multicallRules(c *contractCall) []string {
	var ids []string
	text := strings.Join(c.args, ",")
	for i := 0; ; {
		n := strings.Index(text[i:], "0x")
		if n < 0 {
			break
		}
		i += n + 2
		j := i
		for j < len(text) && isHexText(text[j:j+1]) {
			j++
		}
		if j-i >= 8 {
			ids = append(ids, calldataRules(text[i:j], nil, 1)...)
		}
		i = j
	}
	for _, w := range [...]struct{ name, rule string }{{"setApprovalForAll", "wallet.approve-all"}, {"transferOwnership", "wallet.ownership"}, {"grantRole", "wallet.role-admin"}} {
		if strings.Contains(text, w.name) {
			ids = append(ids, w.rule)
		}
	}
	if strings.Contains(text, "approve") && strings.Contains(strings.ToLower(text), "maxuint") {
		ids = append(ids, "wallet.approve-unlimited")
	}
	if len(ids) == 0 {
		ids = []string{"wallet.blind-sign"}
	}
	return ids
}

// readCalls judges contract calls in a program text.
func readCalls(sh *shell, src *source, _ string, _ *invocation) flow {
	sh.e.runCalls(src)
	return flow{}
}
