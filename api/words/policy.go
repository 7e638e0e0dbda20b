package words

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/policy/assurance"
)

// Policy describes a policy, with one sentence for each of its members.
func Policy(canonical []byte) ([]string, error) {
	var p assurance.Policy
	if err := json.Unmarshal(canonical, &p); err != nil {
		return nil, err
	}
	var said []string
	if p.MaxUSDPerTransaction != nil {
		said = append(said, "A purchase may cost at most "+cents(strconv.FormatFloat(*p.MaxUSDPerTransaction, 'f', -1, 64))+" US dollars.")
	}
	// Lists: an empty list allows nothing, a missing one has no sentence.
	for _, l := range []struct {
		list      []string
		some, non string
	}{
		{p.AllowedNetworks, "Payments may use only these networks: ", "No network is allowed, so nothing may be paid."},
		{p.AllowedHosts, "Only these hosts may be paid: ", "No host is allowed, so nothing may be paid."},
		{p.BlockedHosts, "These hosts and their subdomains may never be paid: ", ""},
		{p.AllowedPayTo, "Only these addresses may be paid: ", "No address is allowed, so nothing may be paid."},
		{p.AllowedMCPServers, "Only these MCP servers may be called: ", "No MCP server is allowed, so no tool may be called."},
		{p.AllowedMCPTools, "Only these tools may be called: ", "No tool is allowed."},
		{p.BlockedMCPTools, "These tools may never be called: ", ""},
	} {
		switch {
		case len(l.list) > 0:
			said = append(said, l.some+list(l.list)+".")
		case l.list != nil && l.non != "":
			said = append(said, l.non)
		}
	}
	// Requirements that are switched on.
	for _, f := range []struct {
		flag *bool
		text string
	}{
		{p.RequireHTTPS, "Addresses must use https."},
		{p.RequireExactScheme, "Payments must use the scheme exact."},
		{p.RequireResourceBinding, "Every payment must name its resource."},
		{p.RequirePaymentIdentifier, "Every payment must have an identifier."},
		{p.RequireMCPArgumentBinding, "Every tool call must contain its arguments or their hash."},
	} {
		if f.flag != nil && *f.flag {
			said = append(said, f.text)
		}
	}
	if p.ReviewMCPRiskAtOrAbove != "" {
		said = append(said, "A person must approve tool calls with a declared risk of "+p.ReviewMCPRiskAtOrAbove+" or above.")
	}
	return said, nil
}

// Changes are the sentences in which a policy differs from another one.
type Changes struct {
	Edited         []Edited
	Added, Dropped []string
}

// Edited has the two versions of a sentence about one list: that of the new policy and that of the
// old one.
type Edited struct{ Now, Before string }

// PolicyChanges compares the sentences of two policies. Two sentences that are equal up to their
// first colon are about the same list.
func PolicyChanges(before, now []string) (c Changes) {
	for _, sentence := range before {
		if !slices.Contains(now, sentence) {
			c.Dropped = append(c.Dropped, sentence)
		}
	}
	for _, sentence := range now {
		if slices.Contains(before, sentence) {
			continue
		}
		about, _, isList := strings.Cut(sentence, ": ")
		i := slices.IndexFunc(c.Dropped, func(old string) bool { return strings.HasPrefix(old, about+": ") })
		if !isList || i < 0 {
			c.Added = append(c.Added, sentence)
			continue
		}
		c.Edited, c.Dropped = append(c.Edited, Edited{sentence, c.Dropped[i]}), slices.Delete(c.Dropped, i, i+1)
	}
	return c
}

// list joins names. For more than eight, it lists eight and the number of the others.
func list(names []string) string {
	const most = 8
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, plainName(name))
	}
	joined := strings.Join(shown, ", ")
	if len(names) > most {
		joined += " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return joined
}

// plainName quotes a name that could be read as part of the sentence: one with a space, or with a
// punctuation mark that names of hosts, addresses and tools do not need.
func plainName(name string) string {
	if name == "" || strings.HasSuffix(name, ".") || strings.Trim(name, nameCharacters) != "" {
		return Quote(name)
	}
	return name
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/*@"
