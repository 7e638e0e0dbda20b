package actionrisk

import (
	"slices"
	"strings"
)

// proof is a line of readonly.json (what changes nothing) or dryrun.json (what
// only shows what it would do).
type proof struct {
	Exe []string `json:"exe"`
	Sub []string `json:"sub,omitempty"`
	// None: with one of these options the line proves nothing.
	None []string `json:"none,omitempty"`
	// Any: one of these must stand there.
	Any []string `json:"any,omitempty"`
	// Bare: no operand beyond the subcommand; Most: at most so many.
	Bare bool `json:"bare,omitempty"`
	Most int  `json:"most,omitempty"`

	sub [][]string
}

type proofTable struct {
	Proofs []proof `json:"proofs"`
}

func (c *compiled) readProofs(read tableReader) error {
	for _, file := range [...]struct {
		name string
		into *map[string][]*proof
	}{{"readonly", &c.readonly}, {"dryrun", &c.dryrun}} {
		var t proofTable
		if err := read(file.name, &t); err != nil {
			return err
		}
		*file.into = map[string][]*proof{}
		for i := range t.Proofs {
			p := &t.Proofs[i]
			for _, s := range p.Sub {
				p.sub = append(p.sub, strings.Fields(s))
			}
			names, err := c.names(p.Exe)
			if err != nil {
				return err
			}
			for _, n := range names {
				(*file.into)[n] = append((*file.into)[n], p)
			}
		}
	}
	return nil
}

func (p *proof) holds(v *invocation) bool {
	if len(p.sub) > 0 && !v.underAny(p.sub) || slices.ContainsFunc(p.None, v.has) {
		return false
	}
	if len(p.Any) > 0 && !slices.ContainsFunc(p.Any, v.has) {
		return false
	}
	if p.Most > 0 && len(v.operands) > p.Most {
		return false
	}
	if p.Bare {
		n := 0
		if len(p.sub) > 0 {
			n = len(p.sub[0])
		}
		return len(v.operands) == n
	}
	return true
}

// proven tells whether an invocation is known to change nothing. A program is
// known only by a bare name or in a standard directory: ./sed proves nothing.
func (e *engine) proven(v *invocation) bool {
	if v.dry {
		return true
	}
	if strings.Contains(v.path, "/") && !standardDirectory(v.path) {
		return false
	}
	for _, p := range e.readonly[v.exe] {
		if p.holds(v) {
			return true
		}
	}
	return false
}

// changesItself: a program that runs the text it is given changes something by an
// option of its own as well: sed -i.
func (e *engine) changesItself(v *invocation) bool {
	for _, p := range e.readonly[v.exe] {
		for _, o := range p.None {
			if v.has(o) && !slices.ContainsFunc(e.wrappers[v.exe], func(w *wrapper) bool {
				return slices.Contains(w.After, o) || slices.Contains(w.Options, o) || slices.Contains(w.FileOptions, o)
			}) {
				return true
			}
		}
	}
	return false
}

var standardDirectories = [...]string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/", "~/bin/", "~/.local/bin/"}

func standardDirectory(path string) bool {
	for _, d := range standardDirectories {
		if rest, ok := strings.CutPrefix(path, d); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// isDryRun tells whether the invocation only shows what it would do.
func (e *engine) isDryRun(v *invocation) bool {
	for _, p := range e.dryrun[v.exe] {
		if p.holds(v) {
			return true
		}
	}
	return false
}
