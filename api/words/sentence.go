// Package words says in plain words what is in the records: who wants to do what, what
// decided, what a policy allows, and what differs between two texts. Pages, e-mails, answers
// of the API and the command line use the same sentences.
package words

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/assurance"
)

// Who returns the agent of a decision, as the beginning of a sentence.
func Who(s assurance.Subject) string {
	if s.AgentID == "" {
		return "An agent"
	}
	return Visible(s.AgentID)
}

// Deed returns what an agent wants to do: "pay 4.20 USDC to api.example.com", "call
// read of files".
func Deed(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return "call " + Visible(n.ToolName) + " of " + Visible(n.ServerID)
	}
	host := n.ResourceURL
	if u, err := url.Parse(n.ResourceURL); err == nil && u.Host != "" {
		host = u.Host
	}
	return "pay " + Amount(n) + " to " + Visible(host)
}

// Amount returns the price of a purchase with its unit.
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

// cents writes a decimal with at least two digits after the point: "4.2" becomes "4.20".
func cents(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return whole + "." + fraction
}

// Because returns the messages of the findings that decided, those with the worst effect. It
// is empty if there are no findings.
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
