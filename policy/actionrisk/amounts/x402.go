package amounts

import (
	"cmp"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// X402Rules returns the rules for payment requirements and payloads at any depth of the object. If
// a payer may choose between several options, the rules of all are added, so the most expensive
// option decides.
func X402Rules(n *tree.Node) []string {
	var ids RuleList
	resource := cmp.Or(findString(n, "resource", 0), findString(n, "url", 0))
	ids.ways(n, findString(n, "network", 0) != "" && resource != "", 0)
	ids.AddAll(AddressRules(resource))
	if len(ids) == 0 {
		ids.Add(act.PaysUnknown)
	}
	return ids
}

// ways adds the rules for each payment option in the object. bound means that the resource and the
// network are stated.
func (l *RuleList) ways(n *tree.Node, bound bool, depth int) {
	if depth > 8 {
		return
	}
	value, to := n.Str("maxAmountRequired", "amount"), n.Str("payTo")
	if n.Get("validBefore") != nil || n.Get("nonce") != nil && n.Get("from") != nil {
		value, to = n.Str("value"), n.Str("to")
	}
	if to != "" || n.Get("payTo") != nil {
		l.Add(wayAmount(n, value).PayRule(bound))
		if IsZeroAddress(to) {
			l.Add(act.PaysNobody)
		}
	}
	for _, k := range n.Kids {
		if k.Kind == '{' || k.Kind == '[' {
			l.ways(k, bound, depth+1)
		}
	}
}

// wayAmount returns the amount of one payment option, in units of its asset.
func wayAmount(n *tree.Node, value string) Amount {
	a := Amount{Value: ParseNumber(value), Asset: cmp.Or(AssetOf(n.Str("asset")), AssetOf(findString(n, "name", 0)))}
	if a.Asset == nil && n.Str("asset") == "" {
		a.Asset = AssetOf("usdc") // the default asset of x402
	}
	if IsUnlimited(a.Value, true) {
		a.Unlimited = true
	} else if a.Value != nil && a.Asset != nil {
		a.Value = Scaled(a.Value, a.Asset.Decimals)
	}
	return a
}

// findString returns the first string member with this name, at any depth.
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
