package actionrisk

import (
	"slices"
	"strings"
)

// moduleEffect is what a module of Ansible or a function of Salt does, in the words
// of a plain command.
type moduleEffect struct {
	Module []string `json:"module"` // the last part of Ansible's name, or Salt's with its dot
	When   []string `json:"when,omitempty"`
	Take   []string `json:"take"` // parameters by name, "*" for those without one
	As     []string `json:"as"`
}

// modules judges what the module that the invocation names does.
func (sh *shell) modules(v *invocation) {
	switch v.exe {
	case "ansible":
		module, ok := v.value("-m", "--module-name")
		args, given := v.value("-a", "--args")
		if !ok {
			return // its default runs the arguments, as the wrapper does
		}
		words := []Word(nil)
		if given {
			words = ansibleArgs(args)
		}
		sh.module(module.Text[strings.LastIndexByte(module.Text, '.')+1:], words, v)
	case "salt", "salt-call", "salt-ssh", "salt-run":
		for i, w := range v.operands {
			if w.Text == "state.single" || strings.IndexByte(w.Text, '.') < 0 {
				continue
			}
			sh.module(w.Text, v.operands[i+1:], v)
			return
		}
	}
}

// ansibleArgs are the parameters key=value of one text, or of a JSON object.
func ansibleArgs(args Word) []Word {
	text := args.Text
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		text = strings.NewReplacer("{", "", "}", "", `":`, "=", `"`, "", ",", " ", "= ", "=").Replace(text)
	}
	args.Text = text
	return splitWords(args)
}

// module judges one module with its parameters.
func (sh *shell) module(name string, params []Word, v *invocation) {
	e := sh.e
	for i := range e.modules {
		m := &e.modules[i]
		if !slices.Contains(m.Module, name) || !e.budget.spend(4) {
			continue
		}
		holds := true
		for _, want := range m.When {
			holds = holds && slices.ContainsFunc(params, func(w Word) bool { return matchWord(want, w.Text) })
		}
		if words := taken(m.Take, params); holds && (len(words) > 0 || len(m.Take) == 0) {
			inner := *sh
			inner.remote = true
			inner.act(m.As, words, v)
		}
	}
}

// taken are the values of the parameters of these names.
func taken(names []string, params []Word) []Word {
	var out []Word
	for _, name := range names {
		for _, w := range params {
			key, value, named := strings.Cut(w.Text, "=")
			switch {
			case named && key == name:
				w.Text, w.At = value, -1
				out = append(out, w)
			case !named && name == "*":
				out = append(out, w)
			}
		}
	}
	return out
}
