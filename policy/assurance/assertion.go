package assurance

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Codes of refused assertions; both are 409.
const (
	CodeOtherPolicy  = "policy_assertion_mismatch"
	CodeWeakerPolicy = "policy_assertion_weaker"
)

// Assertion is the caller's copy of the policy: the active policy as the caller knows it, or a
// stricter one, which is then also applied. It can never weaken the active policy.
type Assertion struct {
	PolicyID string
	Version  int64
	Hash     string // H(C(assertion))
	Rules    Rules
	denied   []string // names of the flags that it sets to false
}

// Compare compares an assertion with the active policy. It returns the fields in which the
// assertion is stricter, sorted. Errors: CodeOtherPolicy if it names another policy or version,
// CodeWeakerPolicy for the first field, by name, in which it is weaker.
func (a Assertion) Compare(active StoredPolicy) (stricter []string, err error) {
	if a.PolicyID != active.PolicyID || a.Version != active.Version {
		return nil, policy.Refuse(CodeOtherPolicy, "/policy", "policy assertion does not match the active policy")
	}
	stricter = []string{}
	for _, c := range comparisons {
		is := c.compare(a.Rules, active.Rules)
		if is == weaker && c.flag && !slices.Contains(a.denied, c.field) {
			continue // an absent flag asserts nothing
		}
		if is == weaker {
			return nil, policy.Refuse(CodeWeakerPolicy, "/policy/"+c.field, "policy assertion weakens the active policy: "+c.field)
		}
		if is == tighter {
			stricter = append(stricter, c.field)
		}
	}
	return stricter, nil
}

type relation int

const (
	same relation = iota // or absent, which asserts nothing
	tighter
	weaker
)

// comparison compares one field of an assertion with the active policy.
type comparison struct {
	field   string
	flag    bool
	compare func(asserted, active Rules) relation
}

// comparisons has all fields, sorted by name.
var comparisons = []comparison{
	{"allowedHosts", false, allowList(func(r Rules) []string { return r.AllowedHosts }, hostCovers)},
	{"allowedMcpServers", false, allowList(func(r Rules) []string { return r.AllowedMCPServers }, equal)},
	{"allowedMcpTools", false, allowList(func(r Rules) []string { return r.AllowedMCPTools }, toolCovers)},
	{"allowedNetworks", false, allowList(func(r Rules) []string { return r.AllowedNetworks }, equal)},
	{"allowedPayTo", false, allowList(func(r Rules) []string { return r.AllowedPayTo }, sameAccount)},
	{"blockedHosts", false, blockList(func(r Rules) []string { return r.BlockedHosts }, hostBlockCovers)},
	{"blockedMcpTools", false, blockList(func(r Rules) []string { return r.BlockedMCPTools }, toolBlockCovers)},
	{"maxUsdPerTransaction", false, compareMaximum},
	{"requireExactScheme", true, compareFlag(func(r Rules) bool { return r.RequireExactScheme })},
	{"requireHttps", true, compareFlag(func(r Rules) bool { return r.RequireHTTPS })},
	{"requireMcpArgumentBinding", true, compareFlag(func(r Rules) bool { return r.RequireMCPArgumentBinding })},
	{"requirePaymentIdentifier", true, compareFlag(func(r Rules) bool { return r.RequirePaymentIdentifier })},
	{"requireResourceBinding", true, compareFlag(func(r Rules) bool { return r.RequireResourceBinding })},
	{"reviewMcpRiskAtOrAbove", false, compareThreshold},
}

// allowList is weaker if the active list does not cover an asserted entry.
func allowList(of func(Rules) []string, covers func(wide, narrow string) bool) func(a, b Rules) relation {
	return func(asserted, active Rules) relation {
		own, theirs := of(asserted), of(active)
		switch {
		case own == nil:
			return same
		case theirs == nil:
			return tighter
		case !allCovered(own, theirs, covers):
			return weaker
		case !allCovered(theirs, own, covers):
			return tighter
		}
		return same
	}
}

// blockList is weaker if the asserted list does not cover an active entry.
func blockList(of func(Rules) []string, covers func(wide, narrow string) bool) func(a, b Rules) relation {
	return func(asserted, active Rules) relation {
		own, theirs := of(asserted), of(active)
		switch {
		case own == nil:
			return same
		case !allCovered(theirs, own, covers):
			return weaker
		case !allCovered(own, theirs, covers):
			return tighter
		}
		return same
	}
}

// allCovered first looks for an equal entry: lists have thousands of entries, and most are
// equal.
func allCovered(narrow, wide []string, covers func(wide, narrow string) bool) bool {
	same := make(map[string]bool, len(wide))
	for _, w := range wide {
		same[w] = true
	}
	for _, n := range narrow {
		if !same[n] && !slices.ContainsFunc(wide, func(w string) bool { return covers(w, n) }) {
			return false
		}
	}
	return true
}

func equal(a, b string) bool { return a == b }

// sameAccount compares EVM addresses without regard to case, and others exactly.
func sameAccount(a, b string) bool {
	return a == b || normal.LooksEVM(a) && normal.LooksEVM(b) && strings.EqualFold(a, b)
}

// toolCovers reports whether an entry covers another. A bare tool name covers that tool of
// every server.
func toolCovers(wide, narrow string) bool {
	server, tool, qualified := strings.Cut(narrow, "/")
	return wide == narrow || qualified && server != "" && wide == tool && !strings.Contains(tool, "/")
}

func toolBlockCovers(wide, narrow string) bool {
	_, tool, qualified := strings.Cut(narrow, "/")
	return strings.EqualFold(wide, narrow) || qualified && strings.EqualFold(wide, tool)
}

// hostCovers reports whether the wide entry of an allow list allows every URL that the narrow
// one allows. Both are in normal form and end in their port, if they have one, so it can
// compare their texts.
func hostCovers(wide, narrow string) bool {
	below, wildcard := strings.CutPrefix(wide, "*")
	return wide == narrow || wildcard && strings.HasSuffix(narrow, below)
}

func hostBlockCovers(wide, narrow string) bool {
	w, err1 := normal.NormalHostEntry(wide)
	n, err2 := normal.NormalHostEntry(narrow)
	return err1 == nil && err2 == nil && blockCovers(w, n)
}

// blockCovers reports whether a blocked host covers every host of another entry. Blocks ignore
// ports; "*.h" does not cover h.
func blockCovers(wide, narrow normal.HostEntry) bool {
	if wide.Host == narrow.Host {
		return !wide.Wildcard || narrow.Wildcard
	}
	return normal.IsBelow(narrow.Host, wide.Host)
}

func compareMaximum(asserted, active Rules) relation {
	own, ok := new(big.Rat).SetString(asserted.MaxUSDPerTransaction)
	if !ok {
		return same
	}
	theirs, ok := new(big.Rat).SetString(active.MaxUSDPerTransaction)
	if !ok {
		return tighter
	}
	return ordered(own.Cmp(theirs))
}

// ordered treats the larger value as the weaker one.
func ordered(c int) relation {
	switch {
	case c > 0:
		return weaker
	case c < 0:
		return tighter
	}
	return same
}

// compareFlag treats a flag that is not true as false; Compare knows which flags are absent.
func compareFlag(of func(Rules) bool) func(a, b Rules) relation {
	return func(asserted, active Rules) relation {
		switch {
		case of(asserted) && !of(active):
			return tighter
		case !of(asserted) && of(active):
			return weaker
		}
		return same
	}
}

func compareThreshold(asserted, active Rules) relation {
	levels := []string{"", "medium", "high", "critical"}
	own, theirs := slices.Index(levels, asserted.ReviewMCPRiskAtOrAbove), slices.Index(levels, active.ReviewMCPRiskAtOrAbove)
	switch {
	case own <= 0:
		return same
	case theirs <= 0:
		return tighter
	}
	return ordered(own - theirs)
}
