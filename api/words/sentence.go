// Package words describes records in plain language: who wants to do what, why it was decided,
// what a policy allows, and what differs between two texts. Pages, e-mails, the API and the
// command line use the same sentences.
package words

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/normal"
)

// Phrase is part of a sentence, divided into our own text and text that an agent sent.
type Phrase []Piece

// Piece is one part of a phrase. If Claimed is set, an agent sent the text and nobody has verified
// it; it must be shown in quotation marks.
type Piece struct {
	Text    string
	Claimed bool
}

// String returns the phrase as plain text, with the text of agents in quotation marks.
func (p Phrase) String() string {
	var b strings.Builder
	for _, piece := range p {
		if piece.Claimed {
			b.WriteString(Quote(piece.Text))
			continue
		}
		b.WriteString(piece.Text)
	}
	return b.String()
}

// Unverified explains the quotation marks on pages and in e-mails that show texts of agents.
const Unverified = "Text in quotation marks comes from an agent. Nobody has verified it."

// Quote puts a text in quotation marks. It replaces quotation marks in the text, so that they
// cannot be mistaken for the end.
func Quote(text string) string {
	return "“" + quotationMarks.Replace(Visible(text)) + "”"
}

var quotationMarks = strings.NewReplacer("“", "<U+201C>", "”", "<U+201D>", "„", "<U+201E>", "‟", "<U+201F>", `"`, `\"`, "\n", " ")

// Who returns the agent of a decision, for the beginning of a sentence.
func Who(s assurance.Subject) Phrase {
	if s.AgentID == "" {
		return Phrase{{Text: "An agent"}}
	}
	return Phrase{{s.AgentID, true}}
}

// Kind returns "payment" or "tool call". It contains no text of the agent.
func Kind(protocol string) string {
	if protocol == assurance.MCP {
		return "tool call"
	}
	return "payment"
}

// Title returns the title of a decision, such as "Payment of 4.20 USDC" or "Tool call". It
// contains no text of the agent.
func Title(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return "Tool call"
	}
	return "Payment of " + Amount(n)
}

// Deed describes what an agent wants to do, such as: pay 4.20 USDC to “api.example.com”, or:
// call “read” of “files”.
func Deed(protocol string, n assurance.Intent) Phrase {
	if protocol == assurance.MCP {
		return Phrase{{Text: "call "}, {n.ToolName, true}, {Text: " of "}, {n.ServerID, true}}
	}
	return Phrase{{Text: "pay " + Amount(n) + " to "}, {Target(protocol, n), true}}
}

// Target returns the host to be paid, or the server and the tool to be called, as the agent named
// them.
func Target(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return n.ServerID + "/" + n.ToolName
	}
	if u, err := url.Parse(n.ResourceURL); err == nil && u.Host != "" {
		return u.Host
	}
	return n.ResourceURL
}

// Amount returns the amount of a payment with its unit.
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

// cents formats a decimal with at least two digits after the point: "4.2" becomes "4.20".
func cents(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return whole + "." + fraction
}

// Because joins the messages of the findings that determined the decision: those with the severest
// effect. It returns "" without findings.
func Because(findings []assurance.Finding) string {
	var said []string
	for _, f := range findings { // findings are sorted, severest first
		if f.Effect == "info" || f.Effect != findings[0].Effect {
			break
		}
		if !slices.Contains(said, f.Message) {
			said = append(said, f.Message)
		}
	}
	return strings.Join(said, "; ")
}

// Network returns the display name of a network, such as "Base" for eip155:8453, or "" if it has
// none.
func Network(id string) string {
	name := strings.ReplaceAll(normal.NetworkName(id), "-", " ")
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
