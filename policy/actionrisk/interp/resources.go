package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Describe judges a resource by the commands of the same effect.
func (sh *Process) Describe(r *facts.Resource, v *act.Invocation) {
	e := sh.Env
	if !e.Budget.Spend(2) || sh.Src.Depth > scan.MaxDepth {
		return
	}
	known := false
	entries := e.Resources()[facts.KindOf(r.Kind)]
	if len(entries) == 0 { // ansible.builtin.file, community.docker.docker_volume
		entries = e.Resources()[strings.ToLower(r.Kind[strings.LastIndexByte(r.Kind, '.')+1:])]
	}
	for _, entry := range entries {
		if slices.ContainsFunc(entry.When, func(c string) bool { return !r.Meets(c) }) {
			continue
		}
		known = true
		inner := *sh
		if entry.Here {
			inner.Remote = false
		}
		if entry.Run != "" {
			inner.Start(r.Words(entry.Run, sh.Src), v)
		}
		lang := entry.Lang
		if lang == "" {
			lang = "shell"
		}
		for _, name := range entry.Text {
			list, _ := r.Get(name)
			if len(list) > 1 {
				inner.Start(list, v)
			} else if len(list) == 1 {
				inner.Interpret(lang, list[0], v, r.Kind, nil)
			}
		}
	}
	state, _ := r.Get("state")
	if !known && len(state) > 0 && facts.GoneStates[strings.ToLower(state[0].Text)] {
		name, _ := r.Get("name", "title", "path", "id", "1")
		it := act.Item{Kind: facts.KindResource, Name: strings.ToLower(r.Kind), Tags: []string{"gone"}, Src: sh.Src, From: 0, To: len(sh.Src.Text), Words: PlaceOf(v)}
		if len(name) > 0 {
			it.Target = act.Printable(name[0].Text)
			it.Words += " " + it.Target
		}
		e.Match(&it)
	}
}

// PlaceOf are the words of a command that say where it acts.
func PlaceOf(v *act.Invocation) string {
	var out []string
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && facts.LabelOptions[o.Name] {
			out = append(out, o.Value.Text)
		}
	}
	return strings.Join(out, " ")
}
