// Package words says in plain words what is in the records: who wants to do what, what
// decided, what a policy allows, and what differs between two texts. Pages, e-mails, answers
// of the API and the command line use the same sentences.
package words

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/normal"
)

// Phrase is a part of a sentence, in pieces: our own words, and texts that an agent sent.
type Phrase []Piece

// Piece is a piece of a phrase. Claimed says that an agent sent the text, so that nobody has
// verified it: where it is shown it is quoted and marked.
type Piece struct {
	Text    string
	Claimed bool
}

// String returns the phrase as plain text, with the texts of agents in quotation marks.
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

// Unverified says what quotation marks mean, where texts of agents are shown.
const Unverified = "Text in quotation marks comes from an agent. Nobody has verified it."

// Quote puts a text in quotation marks. Quotation marks in the text are written so that they cannot
// be taken for its end.
func Quote(text string) string {
	return "“" + quotationMarks.Replace(Visible(text)) + "”"
}

var quotationMarks = strings.NewReplacer("“", "<U+201C>", "”", "<U+201D>", "„", "<U+201E>", "‟", "<U+201F>", `"`, `\"`, "\n", " ")

// Who returns the agent of a decision, as the beginning of a sentence.
func Who(s assurance.Subject) Phrase {
	if s.AgentID == "" {
		return Phrase{{Text: "An agent"}}
	}
	return Phrase{{s.AgentID, true}}
}

// Kind names what an agent wants to do, in words of ours alone: "payment" or "tool call".
func Kind(protocol string) string {
	if protocol == assurance.MCP {
		return "tool call"
	}
	return "payment"
}

// Title names a decision, in words of ours alone: "Payment of 4.20 USDC", "Tool call".
func Title(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return "Tool call"
	}
	return "Payment of " + Amount(n)
}

// Deed returns what an agent wants to do: pay 4.20 USDC to “api.example.com”, call “read” of
// “files”.
func Deed(protocol string, n assurance.Intent) Phrase {
	if protocol == assurance.MCP {
		return Phrase{{Text: "call "}, {n.ToolName, true}, {Text: " of "}, {n.ServerID, true}}
	}
	return Phrase{{Text: "pay " + Amount(n) + " to "}, {Target(protocol, n), true}}
}

// Target returns whom an agent wants to pay, or which tool it wants to call, as the agent named it.
func Target(protocol string, n assurance.Intent) string {
	if protocol == assurance.MCP {
		return n.ServerID + "/" + n.ToolName
	}
	if u, err := url.Parse(n.ResourceURL); err == nil && u.Host != "" {
		return u.Host
	}
	return n.ResourceURL
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

// Network returns the name of a network for people: "Base" for eip155:8453. It returns an empty text
// for a network without a name.
func Network(id string) string {
	name := strings.ReplaceAll(normal.NetworkName(id), "-", " ")
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
