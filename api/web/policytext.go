package web

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy/assurance"
)

// PolicySentences says what a policy allows, one sentence for each member it has.
func PolicySentences(canonical []byte) ([]string, error) {
	var p assurance.Policy
	if err := json.Unmarshal(canonical, &p); err != nil {
		return nil, err
	}
	var said []string
	if p.MaxUSDPerTransaction != nil {
		said = append(said, "A purchase may cost at most "+cents(strconv.FormatFloat(*p.MaxUSDPerTransaction, 'f', -1, 64))+" US dollars.")
	}
	for _, l := range []struct {
		list      []string
		some, non string
	}{
		{p.AllowedNetworks, "Payments go over these networks only: ", "No network is allowed, so nothing may be paid."},
		{p.AllowedHosts, "Only these hosts may be paid: ", "No host is allowed, so nothing may be paid."},
		{p.BlockedHosts, "Never these hosts, nor what lies below them: ", ""},
		{p.AllowedPayTo, "Money goes to these addresses only: ", "No address is allowed, so nothing may be paid."},
		{p.AllowedMCPServers, "Only these MCP servers may be called: ", "No MCP server is allowed, so no tool may be called."},
		{p.AllowedMCPTools, "Only these tools may be called: ", "No tool is allowed."},
		{p.BlockedMCPTools, "Never these tools: ", ""},
	} {
		switch {
		case len(l.list) > 0:
			said = append(said, l.some+list(l.list)+".")
		case l.list != nil && l.non != "":
			said = append(said, l.non)
		}
	}
	for _, f := range []struct {
		flag *bool
		text string
	}{
		{p.RequireHTTPS, "Addresses must be https."},
		{p.RequireExactScheme, "Payments must use the scheme exact."},
		{p.RequireResourceBinding, "The payment must name the resource it is for."},
		{p.RequirePaymentIdentifier, "Every payment must have an identifier."},
		{p.RequireMCPArgumentBinding, "A tool call must name its arguments, or their hash."},
	} {
		if f.flag != nil && *f.flag {
			said = append(said, f.text)
		}
	}
	if p.ReviewMCPRiskAtOrAbove != "" {
		said = append(said, "A person decides about tool calls that are declared "+p.ReviewMCPRiskAtOrAbove+" or above.")
	}
	return said, nil
}

// list names the first of many.
func list(names []string) string {
	const most = 8
	if len(names) <= most {
		return visible(strings.Join(names, ", "))
	}
	return visible(strings.Join(names[:most], ", ")) + " and " + strconv.Itoa(len(names)-most) + " more"
}

// DiffLine is a line of two texts: in both, only in the first, or only in the
// second.
type DiffLine struct {
	Kind string // "", "del" or "ins"
	Text string
}

// Diff compares two texts line by line, with the longest common subsequence. Texts
// of many lines are shown as replaced: nobody reads such a comparison.
func Diff(before, after string) []DiffLine {
	a, b := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	const most = 1500
	var lines []DiffLine
	if len(a) > most || len(b) > most {
		for _, l := range a {
			lines = append(lines, DiffLine{"del", l})
		}
		for _, l := range b {
			lines = append(lines, DiffLine{"ins", l})
		}
		return lines
	}
	common := longestCommon(a, b)
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, DiffLine{"", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, DiffLine{"del", a[i]})
			i++
		default:
			lines = append(lines, DiffLine{"ins", b[j]})
			j++
		}
	}
	return lines
}

// longestCommon is, at i and j, how many lines a from i and b from j have in common.
func longestCommon(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	return n
}
