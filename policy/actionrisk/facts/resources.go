package facts

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Configuration tools (Ansible, Salt, Puppet, Chef, Bolt, pyinfra) describe resources: a kind, a
// name and a desired state. rules/resources.json maps each kind to the command with the same
// effect, and this command is judged. One table is enough for all tools, because they describe the
// same resources: Puppet's ensure, Chef's action and Salt's function all become the property
// "state".

// resourceEntry is a row of resources.json.
type resourceEntry struct {
	// Name are the kinds, without the prefix of their collection: "file".
	Name []string `json:"name"`
	// When are conditions: "property=value|value" (it has one of these values), "property" (it is
	// given) or "!property" (it is not given).
	When []string `json:"when,omitempty"`
	// Run is the command with the same effect. "{a|b}" is the value of the first of these
	// properties that is given; a list gives one word for each of its values. If none is given, it
	// is an unknown word. Quotes keep blanks in a word.
	Run string `json:"run,omitempty"`
	// Text are properties that contain a program text in the language Lang (shell if empty).
	Text []string `json:"text,omitempty"`
	Lang string   `json:"lang,omitempty"`
	// Here: the effect is on this machine, not on the described one.
	Here bool `json:"here,omitempty"`
	// None: removing the resource is harmless.
	None bool `json:"none,omitempty"`
}

func (c *Set) readResources(read rules.TableReader) error {
	var t struct {
		Resources []*resourceEntry `json:"resources"`
	}
	if err := read("resources", &t); err != nil {
		return err
	}
	byKind := map[string][]*resourceEntry{}
	for _, r := range t.Resources {
		if r.Run == "" && len(r.Text) == 0 && !r.None {
			return fmt.Errorf("resources.json: the row of %v must have one of the members \"run\", \"text\" and \"none\"", r.Name)
		}
		for _, n := range r.Name {
			byKind[n] = append(byKind[n], r)
		}
	}
	c.Resources = dictOf(byKind)
	return nil
}

// Resource is a resource that a configuration describes.
type Resource struct {
	Kind  string
	Props []Property
	From  *tree.Node
}

// Property is a property of a resource with its values.
type Property struct {
	Name string
	List []act.Word
}

// Add adds a property. A resource has at most 64; further ones are ignored.
func (r *Resource) Add(name string, list ...act.Word) {
	if len(r.Props) < 64 {
		r.Props = append(r.Props, Property{name, list})
	}
}

// Get returns the values of the first of the named properties that is given.
func (r *Resource) Get(names ...string) ([]act.Word, bool) {
	for _, name := range names {
		for i := range r.Props {
			if r.Props[i].Name == name && len(r.Props[i].List) > 0 {
				return r.Props[i].List, true
			}
		}
	}
	return nil, false
}

// GoneStates are the states that mean that a resource is removed.
var GoneStates = scan.SetOf("absent deleted delete destroy destroyed purged purge terminated terminate removed remove drop dropped uninstall uninstalled")

// KindOf returns the last part of a kind's name in lower case, as the tables have it. A name with
// only one dot, such as Salt's "file.absent", is not cut.
func KindOf(name string) string {
	if strings.Count(name, ".") > 1 {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	return strings.ToLower(name)
}

// KindResource is the kind of an item that is a removed resource, if no command with the same
// effect is known.
const KindResource = "resource"

// Meets reports whether a condition of an entry holds.
func (r *Resource) Meets(condition string) bool {
	if name, ok := strings.CutPrefix(condition, "!"); ok {
		_, given := r.Get(name)
		return !given
	}
	name, values, valued := strings.Cut(condition, "=")
	list, given := r.Get(name)
	if !valued || !given {
		return given
	}
	for _, w := range list {
		for value := range strings.SplitSeq(values, "|") {
			if act.MatchWord(value, strings.ToLower(w.Text)) {
				return true
			}
		}
	}
	return false
}

// Words returns the words of a command with the properties filled in.
func (r *Resource) Words(run string, src *act.Source) []act.Word {
	var out []act.Word
	for _, part := range scan.OptionWords(run) {
		open := strings.IndexByte(part, '{')
		shut := strings.LastIndexByte(part, '}')
		if open < 0 || shut < open {
			out = append(out, act.Word{Text: part, At: -1, Span: src.Span})
			continue
		}
		list, given := r.Get(strings.Split(part[open+1:shut], "|")...)
		if !given {
			list = []act.Word{{Text: string(scan.Hole), At: -1, Span: src.Span, Lone: true, Var: "resource"}}
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
