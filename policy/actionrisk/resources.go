package actionrisk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Configuration tools (Ansible, Salt, Puppet, Chef, Bolt, pyinfra) describe resources:
// a kind, a name and the state it shall have. rules/resources.json says for each kind
// which command has the same effect; that command is what is judged. One table serves
// all tools, because they name the same things: Puppet's ensure, Chef's action and
// Salt's function all become the property "state".

// resourceEntry is a line of resources.json.
type resourceEntry struct {
	// Name are the kinds it is about, without the collection in front: "file".
	Name []string `json:"name"`
	// When are conditions "property=value|value": the property has one of the values;
	// "property" alone: it is given; "!property": it is not.
	When []string `json:"when,omitempty"`
	// Run is the command of the same effect. "{a|b}" is the value of the first of these
	// properties that is given, of a list all its values; without one an unknown word.
	// Quotes keep blanks in a word.
	Run string `json:"run,omitempty"`
	// Text are properties that hold program text, of the language Lang (shell if none).
	Text []string `json:"text,omitempty"`
	Lang string   `json:"lang,omitempty"`
	// Here: the effect is on this machine, whatever machine is described.
	Here bool `json:"here,omitempty"`
	// None: taking it away costs nothing.
	None bool `json:"none,omitempty"`
}

type resourceTable struct {
	Resources []resourceEntry `json:"resources"`
}

func (c *compiled) readResources(read tableReader) error {
	var t resourceTable
	if err := read("resources", &t); err != nil {
		return err
	}
	c.resources = map[string][]*resourceEntry{}
	for i := range t.Resources {
		r := &t.Resources[i]
		if r.Run == "" && len(r.Text) == 0 && !r.None {
			return fmt.Errorf("resource %v has no effect", r.Name)
		}
		for _, n := range r.Name {
			c.resources[n] = append(c.resources[n], r)
		}
	}
	return nil
}

// resource is one that a description names.
type resource struct {
	kind  string
	props []property
	from  *jsonNode
}

type property struct {
	name string
	list []Word
}

func (r *resource) add(name string, list ...Word) {
	if len(r.props) < 64 {
		r.props = append(r.props, property{name, list})
	}
}

// get is the value of the first of the properties that is given.
func (r *resource) get(names ...string) ([]Word, bool) {
	for _, name := range names {
		for i := range r.props {
			if r.props[i].name == name && len(r.props[i].list) > 0 {
				return r.props[i].list, true
			}
		}
	}
	return nil, false
}

// goneStates are the states in which a resource is no longer there.
var goneStates = scan.SetOf("absent deleted delete destroy destroyed purged purge terminated terminate removed remove drop dropped uninstall uninstalled")

// kindOf is the last part of a kind's name, by which the tables know it. Salt's
// functions keep two: "file.absent".
func kindOf(name string) string {
	if strings.Count(name, ".") > 1 {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	return strings.ToLower(name)
}

// describe judges a resource by the commands of the same effect.
func (sh *shell) describe(r *resource, v *invocation) {
	e := sh.e
	if !e.budget.spend(2) || sh.src.depth > scan.MaxDepth {
		return
	}
	known := false
	entries := e.resources[kindOf(r.kind)]
	if len(entries) == 0 { // ansible.builtin.file, community.docker.docker_volume
		entries = e.resources[strings.ToLower(r.kind[strings.LastIndexByte(r.kind, '.')+1:])]
	}
	for _, entry := range entries {
		if slices.ContainsFunc(entry.When, func(c string) bool { return !r.meets(c) }) {
			continue
		}
		known = true
		inner := *sh
		if entry.Here {
			inner.remote = false
		}
		if entry.Run != "" {
			inner.start(r.words(entry.Run, sh.src), v)
		}
		lang := entry.Lang
		if lang == "" {
			lang = "shell"
		}
		for _, name := range entry.Text {
			list, _ := r.get(name)
			if len(list) > 1 {
				inner.start(list, v)
			} else if len(list) == 1 {
				inner.interpret(lang, list[0], v, r.kind, nil)
			}
		}
	}
	state, _ := r.get("state")
	if !known && len(state) > 0 && goneStates[strings.ToLower(state[0].Text)] {
		name, _ := r.get("name", "title", "path", "id", "1")
		it := item{kind: kindResource, name: strings.ToLower(r.kind), tags: []string{"gone"}, src: sh.src, from: 0, to: len(sh.src.text), words: placeOf(v)}
		if len(name) > 0 {
			it.target = printable(name[0].Text)
			it.words += " " + it.target
		}
		e.match(&it)
	}
}

// kindResource items are resources that a description takes away, of kinds for which
// no command of the same effect is known.
const kindResource = "resource"

// meets tells whether a condition of an entry holds.
func (r *resource) meets(condition string) bool {
	if name, ok := strings.CutPrefix(condition, "!"); ok {
		_, given := r.get(name)
		return !given
	}
	name, values, valued := strings.Cut(condition, "=")
	list, given := r.get(name)
	if !valued || !given {
		return given
	}
	for _, w := range list {
		for value := range strings.SplitSeq(values, "|") {
			if matchWord(value, strings.ToLower(w.Text)) {
				return true
			}
		}
	}
	return false
}

// words fills in a command.
func (r *resource) words(run string, src *source) []Word {
	var out []Word
	for _, part := range scan.OptionWords(run) {
		open := strings.IndexByte(part, '{')
		shut := strings.LastIndexByte(part, '}')
		if open < 0 || shut < open {
			out = append(out, Word{Text: part, At: -1, Span: src.span})
			continue
		}
		list, given := r.get(strings.Split(part[open+1:shut], "|")...)
		if !given {
			list = []Word{{Text: string(scan.Hole), At: -1, Span: src.span, Lone: true, Var: "resource"}}
		}
		for _, w := range list {
			if part[:open] != "" || part[shut+1:] != "" {
				w.Text, w.At, w.Lone = part[:open]+w.Text+part[shut+1:], -1, false
			}
			out = append(out, w)
		}
	}
	return out
}
