package assurance

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Policy is the JSON form of a policy, and of a caller's assertion about one. An absent list (nil)
// means that the rule does not apply; an empty list allows nothing. An absent flag means false.
type Policy struct {
	PolicyID             string   `json:"policyId" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Id of the organization's policy."`
	Version              int64    `json:"version" jsonschema:"minimum=1" jsonschema_description:"The activated version."`
	MaxUSDPerTransaction *float64 `json:"maxUsdPerTransaction,omitempty" jsonschema:"minimum=0" jsonschema_description:"Maximum of one transaction, in US dollars."`
	AllowedNetworks      []string `json:"allowedNetworks,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Allowed networks, by CAIP-2 name or alias."`
	AllowedPayTo         []string `json:"allowedPayTo,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Addresses that can be paid."`
	AllowedHosts         []string `json:"allowedHosts,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Allowed hosts, each in the form host, *.domain or host:port."`
	BlockedHosts         []string `json:"blockedHosts,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Blocked hosts, in the forms of allowedHosts. An entry also blocks every subdomain and port, and overrides allowedHosts."`
	AllowedMCPServers    []string `json:"allowedMcpServers,omitzero" jsonschema:"maxItems=1000"`
	AllowedMCPTools      []string `json:"allowedMcpTools,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Allowed tools, each in the form tool or server/tool."`
	BlockedMCPTools      []string `json:"blockedMcpTools,omitzero" jsonschema:"maxItems=1000" jsonschema_description:"Blocked tools, each in the form tool or server/tool, compared without regard to case."`

	RequireExactScheme        *bool `json:"requireExactScheme,omitempty"`
	RequireHTTPS              *bool `json:"requireHttps,omitempty"`
	RequireResourceBinding    *bool `json:"requireResourceBinding,omitempty"`
	RequirePaymentIdentifier  *bool `json:"requirePaymentIdentifier,omitempty"`
	RequireMCPArgumentBinding *bool `json:"requireMcpArgumentBinding,omitempty"`

	ReviewMCPRiskAtOrAbove string `json:"reviewMcpRiskAtOrAbove,omitempty" jsonschema:"enum=medium,enum=high,enum=critical" jsonschema_description:"A declared risk at or above this level needs a review."`
}

// statedPolicy is a policy that was read. It contains the maximum as written, the normal form and
// the canonical bytes.
type statedPolicy struct {
	Policy
	literal   string // maxUsdPerTransaction as written; empty if absent
	rules     Rules
	canonical []byte
}

// RefusesNull is a marker: a schema that is made from a type with this method does not allow null
// for any member.
func (Policy) RefusesNull() {}

// fields returns the readers of the members of a policy. If versioned is true, the version is
// required. A draft may contain the version that its activation would assign.
func (p *statedPolicy) fields(versioned bool) []field {
	fields := []field{
		{"policyId", true, text(&p.PolicyID, maxID)},
		{"maxUsdPerTransaction", false, literal(&p.literal)},
		{"allowedNetworks", false, list(&p.AllowedNetworks, maxEntries, maxText, nil)},
		{"allowedPayTo", false, list(&p.AllowedPayTo, maxEntries, maxText, checkPayTo)},
		{"allowedHosts", false, list(&p.AllowedHosts, maxEntries, maxText, checkHost)},
		{"blockedHosts", false, list(&p.BlockedHosts, maxEntries, maxText, checkHost)},
		{"allowedMcpServers", false, list(&p.AllowedMCPServers, maxEntries, maxText, nil)},
		{"allowedMcpTools", false, list(&p.AllowedMCPTools, maxEntries, maxText, nil)},
		{"blockedMcpTools", false, list(&p.BlockedMCPTools, maxEntries, maxText, nil)},
		{"requireExactScheme", false, flag(&p.RequireExactScheme)},
		{"requireHttps", false, flag(&p.RequireHTTPS)},
		{"requireResourceBinding", false, flag(&p.RequireResourceBinding)},
		{"requirePaymentIdentifier", false, flag(&p.RequirePaymentIdentifier)},
		{"requireMcpArgumentBinding", false, flag(&p.RequireMCPArgumentBinding)},
		{"reviewMcpRiskAtOrAbove", false, oneOf(&p.ReviewMCPRiskAtOrAbove, "medium", "high", "critical")},
	}
	return append(fields, field{"version", versioned, integer(&p.Version, 1, canon.MaxInteger)})
}

func checkHost(entry string) string {
	if _, err := normal.ParseHostEntry(entry); err != nil {
		return " is not a host, *.domain or host:port"
	}
	return ""
}

// checkPayTo refuses text that looks like an EVM address but is not a valid one.
func checkPayTo(entry string) string {
	if !normal.LooksEVM(entry) {
		return ""
	}
	if _, err := normal.EVMAddress(entry); err != nil {
		return " is not a valid address"
	}
	return ""
}

// read returns a reader for a complete policy. It refuses a member that is null: an absent member
// means that the rule does not apply, but many programs write null where their author meant an
// empty list, which allows nothing.
func (p *statedPolicy) read(versioned bool) func(value) error {
	return func(v value) error {
		if err := members(v, p.fields(versioned), nil, false); err != nil {
			return err
		}
		return p.complete(v)
	}
}

// complete computes the normal form and the canonical bytes of a policy whose members were read.
func (p *statedPolicy) complete(v value) error {
	p.rules = Rules{
		AllowedNetworks: each(p.AllowedNetworks, normal.Network), AllowedPayTo: each(p.AllowedPayTo, nil),
		AllowedHosts: each(p.AllowedHosts, hostForm), BlockedHosts: each(p.BlockedHosts, hostForm),
		AllowedMCPServers: each(p.AllowedMCPServers, nil), AllowedMCPTools: each(p.AllowedMCPTools, nil),
		BlockedMCPTools:    each(p.BlockedMCPTools, nil),
		RequireExactScheme: isTrue(p.RequireExactScheme), RequireHTTPS: isTrue(p.RequireHTTPS),
		RequireResourceBinding:    isTrue(p.RequireResourceBinding),
		RequirePaymentIdentifier:  isTrue(p.RequirePaymentIdentifier),
		RequireMCPArgumentBinding: isTrue(p.RequireMCPArgumentBinding),
		ReviewMCPRiskAtOrAbove:    p.ReviewMCPRiskAtOrAbove,
	}
	if p.literal != "" {
		exact, err := normal.Decimal(p.literal)
		if err != nil || exact.Sign() < 0 {
			return refuse("out_of_range", member(v.name, "maxUsdPerTransaction"), " must be at least 0, with an exponent of at most 400")
		}
		if p.rules.MaxUSDPerTransaction, err = normal.DecimalString(exact); err != nil {
			return err
		}
		f, err := strconv.ParseFloat(p.literal, 64)
		if err != nil || math.IsInf(f, 0) {
			return errShape
		}
		p.MaxUSDPerTransaction = &f
	}
	var err error
	p.canonical, err = canonicalOf(v.raw)
	return err
}

// each applies the function form to the entries of a list (nil leaves them unchanged), sorts them
// and removes duplicates, because their order has no meaning. It returns nil for an absent list.
func each(entries []string, form func(string) string) []string {
	if entries == nil {
		return nil
	}
	mapped := make([]string, len(entries))
	for i, entry := range entries {
		mapped[i] = entry
		if form != nil {
			mapped[i] = form(entry)
		}
	}
	slices.Sort(mapped)
	return slices.Compact(mapped)
}

// hostForm returns the normal form of a host entry that passed checkHost.
func hostForm(entry string) string {
	e, err := normal.ParseHostEntry(entry)
	if err != nil {
		return entry
	}
	text := e.Host
	if e.Wildcard {
		text = "*." + text
	}
	if e.Port != 0 {
		text += ":" + strconv.Itoa(e.Port)
	}
	return text
}

func isTrue(b *bool) bool { return b != nil && *b }

// StoredPolicy is an activated policy.
type StoredPolicy struct {
	PolicyID string
	Version  int64
	Hash     string // hash of the canonical bytes
	Rules    Rules
}

// ReadPolicy reads an activated policy, with its version, from its canonical bytes.
func ReadPolicy(canonical []byte) (StoredPolicy, error) {
	var p statedPolicy
	if err := canon.Check(canonical); err != nil {
		return StoredPolicy{}, err
	}
	if err := p.read(true)(value{jsontext.Value(canonical), "policy"}); err != nil {
		return StoredPolicy{}, err
	}
	return StoredPolicy{p.PolicyID, p.Version, canon.Hash(p.canonical), p.rules}, nil
}

// WithVersion adds the version that the activation assigns to the canonical bytes of a draft. It
// returns the canonical bytes and their hash, which is the policyHash of decisions.
func WithVersion(draft []byte, version int64) (canonical []byte, hash string, err error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(draft, &members); err != nil {
		return nil, "", policy.Refuse("invalid_json", "", "invalid JSON: not an object")
	}
	members["version"] = jsontext.Value(strconv.FormatInt(version, 10))
	if canonical, err = canon.Marshal(members); err != nil {
		return nil, "", err
	}
	if _, err := ReadPolicy(canonical); err != nil {
		return nil, "", err
	}
	return canonical, canon.Hash(canonical), nil
}
