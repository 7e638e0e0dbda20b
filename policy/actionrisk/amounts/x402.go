package amounts

import (
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// X402Rules judges payment requirements and payment payloads, wherever in the
// object they stand; of several accepted ways the dearest counts.
func X402Rules(n *tree.Node, text string) []string {
	var ids RuleList
	var visit func(n *tree.Node, depth int)
	resource, network := findString(n, "resource", 0), findString(n, "network", 0)
	if resource == "" {
		resource = findString(n, "url", 0)
	}
	visit = func(n *tree.Node, depth int) {
		if depth > 8 {
			return
		}
		value, to := n.Str("maxAmountRequired", "amount"), n.Str("payTo")
		if n.Get("validBefore") != nil || n.Get("nonce") != nil && n.Get("from") != nil {
			value, to = n.Str("value"), n.Str("to")
		}
		if to != "" || n.Get("payTo") != nil {
			a := Amount{Value: ParseNumber(value), Asset: AssetOf(n.Str("asset"))}
			if a.Asset == nil {
				a.Asset = AssetOf(findString(n, "name", 0))
			}
			if a.Asset == nil && n.Str("asset") == "" {
				a.Asset = AssetOf("usdc") // the scheme's own default
			}
			if IsUnlimited(a.Value, true) {
				a.Unlimited = true
			} else if a.Value != nil && a.Asset != nil {
				a.Value = Scaled(a.Value, a.Asset.Decimals)
			}
			ids.Add(a.PayRule(network != "" && resource != ""))
			if IsZeroAddress(to) {
				ids.Add("x402.zero-payto")
			}
		}
		for _, k := range n.Kids {
			if k.Kind == '{' || k.Kind == '[' {
				visit(k, depth+1)
			}
		}
	}
	visit(n, 0)
	for _, id := range AddressRules(resource) {
		ids.Add(id)
	}
	if len(ids) == 0 {
		ids.Add("x402.unknown-amount")
	}
	return ids
}

// findString is the first string member of that name in the tree.
func findString(n *tree.Node, name string, depth int) string {
	if n == nil || depth > 8 {
		return ""
	}
	if s := n.Str(name); s != "" {
		return s
	}
	for _, k := range n.Kids {
		if k.Kind == '{' || k.Kind == '[' {
			if s := findString(k, name, depth+1); s != "" {
				return s
			}
		}
	}
	return ""
}
