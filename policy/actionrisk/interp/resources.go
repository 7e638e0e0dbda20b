package interp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Describe judges a resource by the commands with the same effect.
func (sh *Process) Describe(r *facts.Resource, v *act.Invocation) {
	e := sh.Env
	if !e.Budget.Spend(2) || sh.Src.Depth > scan.MaxDepth {
		return
	}
	known := false
	entries := e.Resources.Get(facts.KindOf(r.Kind))
	if len(entries) == 0 { // the kind may have a collection: ansible.builtin.file, community.docker.docker_volume
		entries = e.Resources.Get(strings.ToLower(r.Kind[strings.LastIndexByte(r.Kind, '.')+1:]))
	}
	for _, entry := range entries {
		if slices.ContainsFunc(entry.When, func(c string) bool { return !r.Meets(c) }) {
			continue
		}
		known = true
		inner := *sh
		inner.Remote = inner.Remote && !entry.Here
		if entry.Run != "" {
			inner.Start(r.Words(entry.Run, sh.Src), v)
		}
		for _, name := range entry.Text {
			inner.property(r, name, cmp.Or(entry.Lang, "shell"), v)
		}
	}
	if state, _ := r.Get("state"); !known && len(state) > 0 && facts.GoneStates.Has(strings.ToLower(state[0].Text)) {
		sh.gone(r, v)
	}
}

// property runs the text or the words in a property of a resource.
func (sh *Process) property(r *facts.Resource, name, lang string, v *act.Invocation) {
	if list, _ := r.Get(name); len(list) > 1 {
		sh.Start(list, v)
	} else if len(list) == 1 {
		sh.Interpret(lang, list[0], v, r.Kind, nil)
	}
}

// gone judges the removal of a resource of an unknown kind.
func (sh *Process) gone(r *facts.Resource, v *act.Invocation) {
	name, _ := r.Get("name", "title", "path", "id", "1")
	it := act.Item{Kind: facts.KindResource, Name: strings.ToLower(r.Kind), Tags: []string{"gone"}, Src: sh.Src, To: len(sh.Src.Text), Words: PlaceOf(v)}
	if len(name) > 0 {
		it.Target = act.Printable(name[0].Text)
		it.Words += " " + it.Target
	}
	sh.Env.Match(&it)
}

// PlaceOf returns the values of the options that name where a command acts (facts.LabelOptions).
func PlaceOf(v *act.Invocation) string {
	var out []string
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && facts.LabelOptions.Has(o.Name) {
			out = append(out, o.Value.Text)
		}
	}
	return strings.Join(out, " ")
}
