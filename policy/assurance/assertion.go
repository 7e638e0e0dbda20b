package assurance

import (
	"math/big"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

// Codes of the errors of Compare. The API answers both with status 409.
const (
	CodeOtherPolicy  = "policy_assertion_mismatch"
	CodeWeakerPolicy = "policy_assertion_weaker"
)

// Assertion is the caller's copy of the policy: the active policy as the caller knows it, or a
// stricter one, which is then also applied. It can never weaken the active policy.
type Assertion struct {
	PolicyID string
	Version  int64
	Hash     string // SHA-256 of the assertion's canonical JSON
	Rules    Rules
	denied   []string // names of the flags that the assertion sets to false
}

// Compare compares an assertion with the active policy. It returns the sorted names of the fields
// in which the assertion is stricter. It returns CodeOtherPolicy if the assertion names another
// policy or version, and CodeWeakerPolicy for the first field, in the order of names, in which the
// assertion is weaker.
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
	same relation = iota // equally strict, or absent from the assertion
	tighter
	weaker
)

// comparison compares one field of an assertion with the active policy.
type comparison struct {
	field   string
	flag    bool
	compare func(asserted, active Rules) relation
}

// comparisons contains the comparison of every field, sorted by name.
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

// allowList returns the comparison of an allow list. The asserted list is weaker if one of its
// entries is not covered by the active list.
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

// blockList returns the comparison of a block list. The asserted list is weaker if it does not
// cover every entry of the active list.
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

// allCovered reports whether every entry of narrow is covered by an entry of wide. It searches for
// an equal entry first, because lists may be long and most entries are equal.
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

// sameAccount reports whether two addresses are equal. If both are EVM addresses, it ignores the
// case of letters.
func sameAccount(a, b string) bool {
	return a == b || normal.LooksEVM(a) && normal.LooksEVM(b) && strings.EqualFold(a, b)
}

// toolCovers reports whether wide, an entry of an allow list, allows every tool that the entry
// narrow allows. A tool name without a server allows the tool of this name on every server.
func toolCovers(wide, narrow string) bool {
	server, tool, qualified := strings.Cut(narrow, "/")
	return wide == narrow || qualified && server != "" && wide == tool && !strings.Contains(tool, "/")
}

func toolBlockCovers(wide, narrow string) bool {
	_, tool, qualified := strings.Cut(narrow, "/")
	return strings.EqualFold(wide, narrow) || qualified && strings.EqualFold(wide, tool)
}

// hostCovers reports whether the entry wide of an allow list allows every URL that the entry
// narrow allows. Both are in normal form and end with their port, if they have one, so comparing
// the texts is enough.
func hostCovers(wide, narrow string) bool {
	below, wildcard := strings.CutPrefix(wide, "*")
	return wide == narrow || wildcard && strings.HasSuffix(narrow, below)
}

func hostBlockCovers(wide, narrow string) bool {
	w, err1 := normal.NormalHostEntry(wide)
	n, err2 := normal.NormalHostEntry(narrow)
	return err1 == nil && err2 == nil && blockCovers(w, n)
}

// blockCovers reports whether the entry wide of a block list blocks every host that the entry
// narrow blocks. Ports do not matter. An entry "h" blocks h and every host below it; "*.h" does
// not block h itself.
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

// ordered turns the result of a comparison into a relation: the larger value is the weaker one.
func ordered(c int) relation {
	switch {
	case c > 0:
		return weaker
	case c < 0:
		return tighter
	}
	return same
}

// compareFlag compares a flag. It treats an absent flag as false; Compare then ignores the flags
// that the assertion does not contain.
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
