package facts

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// proof is a condition under which a program changes nothing, or only shows what it would do.
type proof struct {
	Sub []string `json:"sub,omitempty"`
	// None: none of these options may be given.
	None []string `json:"none,omitempty"`
	// Any: one of these must be given.
	Any []string `json:"any,omitempty"`
	// Bare: no operands after the subcommand. Most: the largest number of operands; 0 means no
	// limit.
	Bare bool `json:"bare,omitempty"`
	Most int  `json:"most,omitempty"`
}

// Holds reports whether the invocation meets the condition.
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

// StandardDirectories are the folders in which the programs of the system and the user are
// installed.
var StandardDirectories = [...]string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/", "~/bin/", "~/.local/bin/"}

// StandardDirectory reports whether a path is directly in one of StandardDirectories.
func StandardDirectory(path string) bool {
	for _, d := range StandardDirectories {
		if rest, ok := strings.CutPrefix(path, d); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Depth returns the number of operands in a subcommand path. All paths of a row have the same
// length.
func Depth(sub []string) int {
	if len(sub) == 0 {
		return 0
	}
	return 1 + strings.Count(sub[0], " ")
}
