package web

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/assurance"
)

// Who is the agent of a decision as a sentence begins.
func Who(s assurance.Subject) string {
	if s.AgentID == "" {
		return "An agent"
	}
	return visible(s.AgentID)
}

// Deed is what an agent wants, in words: "pay 4.20 USDC to api.example.com", "call
// read of files".
func Deed(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return "call " + visible(n.ToolName) + " of " + visible(n.ServerID)
	}
	host := n.ResourceURL
	if u, err := url.Parse(n.ResourceURL); err == nil && u.Host != "" {
		host = u.Host
	}
	return "pay " + Amount(n) + " to " + visible(host)
}

// Amount is the sum of a purchase with its unit.
func Amount(n assurance.Intent) string {
	switch {
	case n.AmountUnitsInUSD != "":
		return cents(n.AmountUnitsInUSD) + " USDC"
	case n.AmountUSD != "" && !n.AmountUSDInvalid:
		return cents(n.AmountUSD) + " US dollars"
	case n.AmountUnits != "" && !n.AmountUnitsInvalid:
		return n.AmountUnits + " units of an unknown token"
	}
	return "an amount that was not named"
}

// cents gives a whole or short decimal its two digits: "4.2" is "4.20".
func cents(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return whole + "." + fraction
}

// Because is what decided in words: the messages of the findings with the worst
// effect, and of no finding an empty text.
func Because(findings []assurance.Finding) string {
	var said []string
	for _, f := range findings { // the worst first
		if f.Effect == "info" || f.Effect != findings[0].Effect {
			break
		}
		if !slices.Contains(said, f.Message) {
			said = append(said, f.Message)
		}
	}
	return strings.Join(said, "; ")
}
