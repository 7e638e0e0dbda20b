package assurance

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/normal"
)

// Draft is a policy that passed all checks and can be activated, with warnings for its author.
type Draft struct {
	PolicyID  string
	Version   int64  // the version that the author expects at activation; 0 if not given
	Canonical []byte // canonical JSON without the version
	Hash      string // hash of Canonical
	Rules     Rules  // normal form, which the engine compares
	Warnings  []policy.Finding
}

// Lint reads a draft: a policy, with or without the version that its activation would assign. It
// refuses unknown members and wrong types, host entries that are URLs or not hosts, ports out of
// range, wildcards that are not at the front, addresses with a bad checksum, a maximum that JSON
// cannot represent exactly, and a blocked host that covers an allowed one. The member $schema is
// for editors: Lint accepts it, but it does not become part of the policy.
func Lint(text []byte) (Draft, error) {
	if err := canon.Check(text); err != nil {
		return Draft{}, err
	}
	raw := jsontext.Value(bytes.TrimSpace(text))
	if raw.Kind() != '{' {
		return Draft{}, policy.Refuse("invalid_json", "", "invalid JSON: not an object")
	}
	raw, err := withoutSchema(raw)
	if err != nil {
		return Draft{}, err
	}
	var p statedPolicy
	if err := p.read(false)(value{raw, "policy"}); err != nil {
		return Draft{}, err
	}
	if err := p.exact(); err != nil {
		return Draft{}, err
	}
	if err := p.contradiction(); err != nil {
		return Draft{}, err
	}
	canonical, err := withoutVersion(p.canonical)
	return Draft{p.PolicyID, p.Version, canonical, canon.Hash(canonical), p.rules, p.warnings()}, err
}

// withoutSchema returns the text of a policy without the member $schema.
func withoutSchema(raw jsontext.Value) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil || members["$schema"] == nil {
		return raw, err
	}
	if members["$schema"].Kind() != '"' {
		return nil, refuse("wrong_type", "policy.$schema", " must be a string")
	}
	delete(members, "$schema")
	return json.Marshal(members, json.Deterministic(true)) // numbers keep their digits
}

// withoutVersion returns the bytes of a draft as they are stored, without a version. The ledger
// assigns the version at activation.
func withoutVersion(canonical []byte) ([]byte, error) {
	members, err := canon.Members(canonical)
	if err != nil {
		return nil, err
	}
	delete(members, "version")
	return canon.Object(members), nil
}

// exact refuses a maximum whose canonical number differs from the number as written. Otherwise the
// active policy would have another limit than its author wrote.
func (p *statedPolicy) exact() error {
	if p.MaxUSDPerTransaction == nil {
		return nil
	}
	written, _ := new(big.Rat).SetString(p.rules.MaxUSDPerTransaction)
	if written == nil || normal.Float(*p.MaxUSDPerTransaction).Cmp(written) != 0 {
		return refuse("out_of_range", "policy.maxUsdPerTransaction", " has more digits than a JSON number can represent")
	}
	return nil
}

func (p *statedPolicy) contradiction() error {
	for i, raw := range p.AllowedHosts {
		allowed, err := normal.ParseHostEntry(raw)
		if err != nil {
			return err
		}
		for _, entry := range p.rules.BlockedHosts {
			if blocked, err := normal.NormalHostEntry(entry); err == nil && blockCovers(blocked, allowed) {
				return refuse("inconsistent_input", "policy.allowedHosts."+strconv.Itoa(i), " is covered by blockedHosts")
			}
		}
	}
	return nil
}

func (p *statedPolicy) warnings() []policy.Finding {
	var found []policy.Finding
	warn := func(id, path, message string) {
		found = append(found, policy.Finding{ID: id, Severity: "medium", Path: path, Message: message})
	}
	r := p.rules
	if !r.Concern(X402) {
		warn("policy.no_x402_rule", "", "no rule for x402: every x402 decision needs a review")
	} else {
		if r.AllowedPayTo == nil {
			warn("policy.no_allowed_pay_to", "/allowedPayTo", "no payee list: any address can be paid")
		}
		if r.MaxUSDPerTransaction == "" {
			warn("policy.no_maximum", "/maxUsdPerTransaction", "no maximum: one transaction can have any amount")
		}
	}
	if !r.Concern(MCP) {
		warn("policy.no_mcp_rule", "", "no rule for MCP: every MCP decision needs a review")
	}
	for _, entry := range r.AllowedHosts {
		if e, err := normal.ParseHostEntry(entry); err == nil && e.Wildcard && !strings.Contains(e.Host, ".") {
			warn("policy.wide_wildcard", "/allowedHosts", "a wildcard allows every domain below a top-level domain")
		}
	}
	for i, raw := range p.AllowedNetworks {
		path := "/allowedNetworks/" + strconv.Itoa(i)
		if form := normal.Network(raw); form != raw {
			found = append(found, policy.Finding{ID: "policy.network_alias", Severity: "info", Path: path, Message: "the network is given by an alias", Evidence: form})
		} else if !normal.IsNetwork(raw) {
			warn("policy.unknown_network", path, "the network is neither a CAIP-2 name nor an alias: only the same text matches")
		}
	}
	slices.SortStableFunc(found, func(a, b policy.Finding) int { return strings.Compare(a.Path, b.Path) })
	return policy.SortFindings(found)
}
