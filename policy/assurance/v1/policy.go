package v1

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/normal"
)

// Rules is a policy, or an assertion, in normal form: networks are CAIP-2 names, hosts have the
// normal form of host entries, and the maximum is an exact decimal. A nil list means that the rule
// does not apply; an empty list allows nothing. The JSON of this type is stored with decisions. It
// may change only by adding optional members.
type Rules struct {
	MaxUSDPerTransaction string   `json:"maxUsdPerTransaction,omitempty"` // decimal; empty means no maximum
	AllowedNetworks      []string `json:"allowedNetworks,omitzero"`
	AllowedPayTo         []string `json:"allowedPayTo,omitzero"` // as written; compared by the rules of the network
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

	ReviewMCPRiskAtOrAbove string `json:"reviewMcpRiskAtOrAbove,omitempty"` // medium, high or critical; empty means no review
}

// Concern reports whether the policy has at least one rule for the protocol.
func (r Rules) Concern(protocol string) bool {
	if protocol == X402 {
		return r.MaxUSDPerTransaction != "" || r.AllowedNetworks != nil || r.AllowedPayTo != nil ||
			r.AllowedHosts != nil || r.BlockedHosts != nil || r.RequireExactScheme || r.RequireHTTPS ||
			r.RequireResourceBinding || r.RequirePaymentIdentifier
	}
	return r.AllowedMCPServers != nil || r.AllowedMCPTools != nil || r.BlockedMCPTools != nil ||
		r.ReviewMCPRiskAtOrAbove != "" || r.RequireMCPArgumentBinding
}

// risks are in ascending order.
var risks = []string{"low", "medium", "high", "critical"}

// atOrAbove reports whether risk is at or above threshold. An unknown risk is above all others.
func atOrAbove(risk, threshold string) bool {
	at := slices.Index(risks, risk)
	return at < 0 || at >= slices.Index(risks, threshold)
}

// anyHost reports whether test accepts an entry of the list. Entries are already in normal form,
// so that thousands of them can be read quickly. An entry that is not in normal form matches
// nothing.
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

// allowsPayTo compares EVM addresses without regard to case, and all other addresses exactly.
func (r Rules) allowsPayTo(network, payTo string) bool {
	return slices.ContainsFunc(r.AllowedPayTo, func(entry string) bool {
		return entry == payTo || normal.IsEVM(network) && normal.LooksEVM(entry) && strings.EqualFold(entry, payTo)
	})
}

// allowsTool reports whether the list has an entry "server/tool" or an entry with the tool's name
// alone. A tool name that contains a slash never matches alone: a server chooses the names of its
// tools, and a tool named "files/read" on another server must not match the entry for the tool
// read of the server files.
func (r Rules) allowsTool(server, tool string) bool {
	return slices.Contains(r.AllowedMCPTools, server+"/"+tool) ||
		!strings.Contains(tool, "/") && slices.Contains(r.AllowedMCPTools, tool)
}

// blocksTool reports whether the list has an entry "server/tool" or an entry with the tool's name
// alone, in any case.
func (r Rules) blocksTool(server, tool string) bool {
	return slices.ContainsFunc(r.BlockedMCPTools, func(entry string) bool {
		return strings.EqualFold(entry, tool) || strings.EqualFold(entry, server+"/"+tool)
	})
}

// rational parses a decimal in normal form. ok is false for other text.
func rational(decimal string) (r *big.Rat, ok bool) {
	if decimal == "" {
		return nil, false
	}
	return new(big.Rat).SetString(decimal)
}
