package v1

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/normal"
)

// Rules is a policy, or an assertion, in normal form: networks as CAIP-2, hosts in the form of
// comparisons, the maximum as an exact decimal. A nil list is a rule that does not apply; an
// empty list allows nothing. Its JSON form is stored with decisions and changes only by adding
// optional members.
type Rules struct {
	MaxUSDPerTransaction string   `json:"maxUsdPerTransaction,omitempty"` // decimal; empty: no maximum
	AllowedNetworks      []string `json:"allowedNetworks,omitzero"`
	AllowedPayTo         []string `json:"allowedPayTo,omitzero"` // as written; compared as the network requires
	AllowedHosts         []string `json:"allowedHosts,omitzero"`
	BlockedHosts         []string `json:"blockedHosts,omitzero"`
	AllowedMCPServers    []string `json:"allowedMcpServers,omitzero"`
	AllowedMCPTools      []string `json:"allowedMcpTools,omitzero"`
	BlockedMCPTools      []string `json:"blockedMcpTools,omitzero"`

	RequireExactScheme        bool `json:"requireExactScheme,omitzero"`
	RequireHTTPS              bool `json:"requireHttps,omitzero"`
	RequireResourceBinding    bool `json:"requireResourceBinding,omitzero"`
	RequirePaymentIdentifier  bool `json:"requirePaymentIdentifier,omitzero"`
	RequireMCPArgumentBinding bool `json:"requireMcpArgumentBinding,omitzero"`

	ReviewMCPRiskAtOrAbove string `json:"reviewMcpRiskAtOrAbove,omitempty"` // medium, high, critical
}

// Concern reports whether any rule is about a protocol.
func (r Rules) Concern(protocol string) bool {
	if protocol == X402 {
		return r.MaxUSDPerTransaction != "" || r.AllowedNetworks != nil || r.AllowedPayTo != nil ||
			r.AllowedHosts != nil || r.BlockedHosts != nil || r.RequireExactScheme || r.RequireHTTPS ||
			r.RequireResourceBinding || r.RequirePaymentIdentifier
	}
	return r.AllowedMCPServers != nil || r.AllowedMCPTools != nil || r.BlockedMCPTools != nil ||
		r.ReviewMCPRiskAtOrAbove != "" || r.RequireMCPArgumentBinding
}

// risks are in rising order.
var risks = []string{"low", "medium", "high", "critical"}

// atOrAbove compares two risks. An unknown risk is above all others.
func atOrAbove(risk, threshold string) bool {
	at := slices.Index(risks, risk)
	return at < 0 || at >= slices.Index(risks, threshold)
}

// anyHost reports whether the test accepts an entry of a list. Entries are in normal form, so
// that a list of thousands takes little time. An entry in another form matches nothing.
func anyHost(list []string, test func(normal.HostEntry) bool) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		e, err := normal.NormalHostEntry(entry)
		return err == nil && test(e)
	})
}

func (r Rules) allowsHost(u normal.URL) bool {
	return anyHost(r.AllowedHosts, func(e normal.HostEntry) bool { return e.Allows(u) })
}

func (r Rules) blocksHost(u normal.URL) bool {
	return anyHost(r.BlockedHosts, func(e normal.HostEntry) bool { return e.Blocks(u) })
}

// allowsPayTo compares addresses as the network's family does: EVM addresses without regard to
// case, all others exactly.
func (r Rules) allowsPayTo(network, payTo string) bool {
	return slices.ContainsFunc(r.AllowedPayTo, func(entry string) bool {
		return entry == payTo || normal.IsEVM(network) && normal.LooksEVM(entry) && strings.EqualFold(entry, payTo)
	})
}

// allowsTool looks for "server/tool" and for the bare name. It does not look for a bare name
// that contains a slash: a server chooses the names of its tools, so the tool "files/read" of
// another server would be taken for the tool read of files.
func (r Rules) allowsTool(server, tool string) bool {
	return slices.Contains(r.AllowedMCPTools, server+"/"+tool) ||
		!strings.Contains(tool, "/") && slices.Contains(r.AllowedMCPTools, tool)
}

// blocksTool compares both forms without regard to case.
func (r Rules) blocksTool(server, tool string) bool {
	return slices.ContainsFunc(r.BlockedMCPTools, func(entry string) bool {
		return strings.EqualFold(entry, tool) || strings.EqualFold(entry, server+"/"+tool)
	})
}

// rational reads a decimal in normal form. ok is false for other text.
func rational(decimal string) (r *big.Rat, ok bool) {
	if decimal == "" {
		return nil, false
	}
	return new(big.Rat).SetString(decimal)
}
