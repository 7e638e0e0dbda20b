package facts

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Configuration tools (Ansible, Salt, Puppet, Chef, Bolt, pyinfra) describe resources:
// a kind, a name and the state that it is to have. rules/resources.json says for each kind
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
			return fmt.Errorf("resource %v has no effect", r.Name)
		}
		for _, n := range r.Name {
			byKind[n] = append(byKind[n], r)
		}
	}
	c.Resources = dictOf(byKind)
	return nil
}

// Resource is one that a description names.
type Resource struct {
	Kind  string
	Props []Property
	From  *tree.Node
}

// Property is one value of a resource.
type Property struct {
	Name string
	List []act.Word
}

// Add adds a value under a name.
func (r *Resource) Add(name string, list ...act.Word) {
	if len(r.Props) < 64 {
		r.Props = append(r.Props, Property{name, list})
	}
}

// Get is the value of the first of the properties that is given.
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

// GoneStates are the states in which a resource is no longer there.
var GoneStates = scan.SetOf("absent deleted delete destroy destroyed purged purge terminated terminate removed remove drop dropped uninstall uninstalled")

// KindOf is the last part of a kind's name, by which the tables know it. Salt's
// functions keep two: "file.absent".
func KindOf(name string) string {
	if strings.Count(name, ".") > 1 {
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	return strings.ToLower(name)
}

// KindResource items are resources that a description takes away, of kinds for which
// no command of the same effect is known.
const KindResource = "resource"

// Meets tells whether a condition of an entry holds.
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

// Words fills in a command.
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
