package payment

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Calls judges src as contract calls or as hexadecimal calldata. It reports whether a rule
// matched.
func Calls(e *interp.Env, src *act.Source) bool {
	text := src.Text
	trimmed := strings.TrimSpace(text)
	if data, ok := strings.CutPrefix(trimmed, "0x"); ok && len(data) >= 8 && amounts.IsHexText(data) {
		return e.Money(src, 0, len(text), trimmed[:10], amounts.OrBlind(amounts.CalldataRules(data, nil, 0))...)
	}
	calls, ok := amounts.RecognizeCall(text)
	if !ok {
		return runMember(e, src)
	}
	if len(calls) >= amounts.MaxCalls {
		e.TooDeep = true
	}
	found := false
	for i := range calls {
		c := &calls[i]
		if (amounts.CommonNames.Has(c.Name) || amounts.GeneralNames.Has(c.Name)) && !c.OnChain() {
			continue
		}
		if !e.Budget.Spend(2 + len(c.Args)) {
			return found
		}
		if ids := c.Rules(text); len(ids) > 0 {
			found = e.Money(src, c.Start, c.End, c.Name, ids...) || found
		}
	}
	return found
}

// runMember judges a text that is one call, such as gateway.customer.delete('x'), like a call of a
// tool with that name. It reports whether a rule matched.
func runMember(e *interp.Env, src *act.Source) bool {
	name := amounts.MemberCall(strings.TrimSpace(src.Text))
	if name == "" {
		return false
	}
	class := facts.ToolClass(name[strings.LastIndexByte(name, '.')+1:])
	e.Ran = true
	return e.Match(&act.Item{Kind: act.KindTool, Name: class, Src: src, From: 0, To: len(src.Text), Target: name})
}

// ReadCalls judges the contract calls in a program text.
func ReadCalls(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	Calls(sh.Env, src)
	return act.Flow{}
}

// castRules adds the rule ids for a call of cast, the Ethereum client of Foundry.
func castRules(e *interp.Env, v *act.Invocation, ids *amounts.RuleList) {
	switch v.Operand(0) {
	case "send":
		ids.CastSend(v)
	case "publish", "mktx", "batch-mktx", "batch-send":
		ids.Add(act.SignsBlindly)
	case "rpc":
		castRPC(e, v)
	case "erc20", "erc20-token":
		if slices.Contains([]string{"transfer", "approve", "burn", "mint"}, v.Operand(1)) {
			call := amounts.ContractCall{Receiver: v.Operand(2), Name: v.Operand(1), Args: []string{v.Operand(3), v.Operand(4)}}
			ids.AddAll(call.Rules(""))
		}
	case "wallet":
		ids.CastWallet(v)
	}
	if v.Has("--auth") {
		ids.Add(act.ChangesOwner) // EIP-7702: from then on the account runs the code of that contract
	}
}

// castRPC judges "cast rpc METHOD PARAMS…" as the JSON-RPC request that it sends.
func castRPC(e *interp.Env, v *act.Invocation) {
	params := "[]"
	switch {
	case v.Has("--raw") && len(v.Operands) > 2:
		params = v.Operand(2)
	case v.Has("--raw"):
		params = v.Stdin.Word.Text
	default:
		var list []string
		for _, w := range v.Operands[min(2, len(v.Operands)):] {
			text := w.Text
			if root, strict := tree.JSON(text); root == nil || !strict {
				text = strconv.Quote(text)
			}
			list = append(list, text)
		}
		params = "[" + strings.Join(list, ",") + "]"
	}
	e.Read("rpc", &act.Source{Text: `{"method":` + strconv.Quote(v.Operand(1)) + `,"params":` + params + "}"}, v)
}
