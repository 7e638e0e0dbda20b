package document

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// states judges a state file of Salt. Under each id it lists functions such as "file.absent", each
// with a list of arguments.
func states(sh *interp.Process, src *act.Source, v *act.Invocation) {
	inner := sh.Behalf(src, "state")
	p := &playbookRun{sh: sh, src: src, v: v}
	for _, n := range tree.YAML(src.Text, &sh.Env.Budget) {
		for i, state := range n.Kids {
			if n.Kind != '{' || !sh.Env.Budget.Spend(2) {
				continue
			}
			id := act.Word{Text: n.Keys[i], At: -1, Span: inner.Src.Span, Taint: src.Taint}
			for j, args := range state.Kids {
				if state.Kind != '{' {
					continue
				}
				r := &facts.Resource{Kind: state.Keys[j]}
				p.properties(r, args, nil)
				for _, name := range [...]string{"name", "title", "1"} {
					if _, given := r.Get("name"); !given || name != "name" {
						r.Add(name, id)
					}
				}
				inner.Describe(r, &act.Invocation{Exe: v.Exe, Src: inner.Src, Opts: v.Opts, To: len(src.Text), Stdin: act.Flow{Known: true}})
			}
		}
	}
}
