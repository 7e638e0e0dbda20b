package words

import (
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

// list joins names. For more than eight, it lists eight and the number of the others.
func list(names []string) string {
	const most = 8
	if len(names) <= most {
		return Visible(strings.Join(names, ", "))
	}
	return Visible(strings.Join(names[:most], ", ")) + " and " + strconv.Itoa(len(names)-most) + " more"
}
