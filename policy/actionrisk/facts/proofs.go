package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// proof says by which subcommands and options a program changes nothing, or only shows
// what it would do.
type proof struct {
	Sub []string `json:"sub,omitempty"`
	// None: with one of these options the line proves nothing.
	None []string `json:"none,omitempty"`
	// Any: one of these must be given.
	Any []string `json:"any,omitempty"`
	// Bare: no operand beyond the subcommand; Most: the largest number of operands.
	Bare bool `json:"bare,omitempty"`
	Most int  `json:"most,omitempty"`
}

// Holds tells whether the call is one that the line speaks of.
func (p *proof) Holds(v *act.Invocation) bool {
	if len(p.Sub) > 0 && !v.UnderAny(p.Sub) || slices.ContainsFunc(p.None, v.Has) {
		return false
	}
	if len(p.Any) > 0 && !slices.ContainsFunc(p.Any, v.Has) {
		return false
	}
	if p.Most > 0 && len(v.Operands) > p.Most {
		return false
	}
	if p.Bare {
		return len(v.Operands) == Depth(p.Sub)
	}
	return true
}

// StandardDirectories are where programs of the system and the user lie.
var StandardDirectories = [...]string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/", "~/bin/", "~/.local/bin/"}

// StandardDirectory tells whether a path is directly in one of them.
func StandardDirectory(path string) bool {
	for _, d := range StandardDirectories {
		if rest, ok := strings.CutPrefix(path, d); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Depth is how many operands a subcommand path is, of which a row has several of the
// same length.
func Depth(sub []string) int {
	if len(sub) == 0 {
		return 0
	}
	return 1 + strings.Count(sub[0], " ")
}
