package v1

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/normal"
)

// Rules is a policy, or an assertion, in normal form: networks as CAIP-2, hosts
// as they compare, the maximum as an exact decimal. A nil list is a rule that
// does not apply, an empty one allows nothing. The JSON form is stored beside
// decisions; it changes only by optional members.
type Rules struct {
	MaxUSDPerTransaction string   `json:"maxUsdPerTransaction,omitempty"` // decimal; empty: no maximum
	AllowedNetworks      []string `json:"allowedNetworks,omitzero"`
	AllowedPayTo         []string `json:"allowedPayTo,omitzero"` // as written; compared by network
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

// Concern says whether any rule is about a protocol.
func (r Rules) Concern(protocol string) bool {
	if protocol == X402 {
		return r.MaxUSDPerTransaction != "" || r.AllowedNetworks != nil || r.AllowedPayTo != nil ||
			r.AllowedHosts != nil || r.BlockedHosts != nil || r.RequireExactScheme || r.RequireHTTPS ||
			r.RequireResourceBinding || r.RequirePaymentIdentifier
	}
	return r.AllowedMCPServers != nil || r.AllowedMCPTools != nil || r.BlockedMCPTools != nil ||
		r.ReviewMCPRiskAtOrAbove != "" || r.RequireMCPArgumentBinding
}

// risks from harmless to grave.
var risks = []string{"low", "medium", "high", "critical"}

// atOrAbove compares two risks; what is none of them is above everything.
func atOrAbove(risk, threshold string) bool {
	at := slices.Index(risks, risk)
	return at < 0 || at >= slices.Index(risks, threshold)
}

// anyHost says whether a list has an entry that the test accepts. Entries are in
// normal form, so that a list of thousands costs a decision next to nothing; one
// that is not matches nothing.
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

// allowsPayTo compares as the network's family does: EVM addresses without
// regard to case, all others exactly.
func (r Rules) allowsPayTo(network, payTo string) bool {
	return slices.ContainsFunc(r.AllowedPayTo, func(entry string) bool {
		return entry == payTo || normal.IsEVM(network) && normal.LooksEVM(entry) && strings.EqualFold(entry, payTo)
	})
}

// allowsTool looks for "server/tool", and for the bare name. A bare name with a
// slash in it is not looked for: the server that offers a tool chooses its name,
// so "files/read" of another server would pass for the tool read of files.
func (r Rules) allowsTool(server, tool string) bool {
	return slices.Contains(r.AllowedMCPTools, server+"/"+tool) ||
		!strings.Contains(tool, "/") && slices.Contains(r.AllowedMCPTools, tool)
}

// blocksTool is generous: either form, without regard to case.
func (r Rules) blocksTool(server, tool string) bool {
	return slices.ContainsFunc(r.BlockedMCPTools, func(entry string) bool {
		return strings.EqualFold(entry, tool) || strings.EqualFold(entry, server+"/"+tool)
	})
}

// rational reads a decimal of a normal form; ok is false for what is none.
func rational(decimal string) (r *big.Rat, ok bool) {
	if decimal == "" {
		return nil, false
	}
	return new(big.Rat).SetString(decimal)
}
