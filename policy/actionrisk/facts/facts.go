// Package facts holds the tables in the form in which the engine looks things up: the rules
// as data, and for each program how its arguments are read, what it carries, writes, reads
// and proves.
//
// The tables of this release are Go data in tables_generated.go, which "go generate" writes
// from the files of package rules: run it after a change of a table. Compile reads the files
// of another rule set into the same form.
package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Rule is one line of a table: an effect, how bad it is, and what to match.
// An id is for ever: a rule may be retired, its id never gets another meaning.
type Rule struct {
	ID         string     `json:"id"`
	Level      act.Level  `json:"level" jsonschema:"minimum=0,maximum=3"`             // base level
	Class      string     `json:"class,omitempty"`                                    // letters of e, b, c, p: which context moves the level
	Category   string     `json:"category"`                                           // destructive, deployment, data_mutation, secrets, network, payment, privilege, supply_chain
	Effect     string     `json:"effect,omitempty"`                                   // what happens, one clause; a row has it only where it says more than the title
	Reversible string     `json:"reversible" jsonschema:"enum=yes,enum=hard,enum=no"` // can it be undone
	Title      string     `json:"title"`                                              // what the action does, as in "Deletes a tag": one line that begins with the verb
	Instead    string     `json:"instead,omitempty"`                                  // the safer way
	Questions  []string   `json:"questions,omitempty"`                                // what a reviewer needs to know
	Match      []*Matcher `json:"match,omitempty"`                                    // alternatives; none: found by the engine itself
	Yes        []string   `json:"yes"`                                                // must raise the rule
	No         []string   `json:"no"`                                                 // must not
	Retired    bool       `json:"retired,omitempty"`                                  // kept for old records only
}

// Matcher is one alternative of a rule. Everything given must hold.
type Matcher struct {
	Kind string   `json:"kind,omitempty"` // item kind, "exe" if empty
	Exe  []string `json:"exe,omitempty"`  // names; "@group" stands for a group of groups.json; "*" for any
	Sub  []string `json:"sub,omitempty"`  // subcommand paths, one of which begins the operands; a word may end in * ("s3 rb", "delete-*")
	Any  []string `json:"any,omitempty"`  // one of these options or words is given
	All  []string `json:"all,omitempty"`  // all of them
	None []string `json:"none,omitempty"` // none of them
	// Where lists conditions "subject class|class", "!subject class" for its
	// negation; subject is a predicate of package judge or of a front-end.
	Where []string `json:"where,omitempty"`
}

// Way is one alternative of a rule.
type Way struct {
	Rule *Rule
	*Matcher
	Place   int    // among all ways
	Letters uint32 // the FirstLetter of each of Sub: a call with another subcommand is not looked at further; 0 if Sub is empty
}

// FirstLetter is a bit for the first letter of a word. A word that begins with a star, as
// any word may that it stands for, has all bits.
func FirstLetter(word string) uint32 {
	switch {
	case word == "":
		return 0
	case word[0] == '*':
		return ^uint32(0)
	}
	return 1 << (word[0] % 32)
}

// table is a file of rules.
type table struct {
	Rules []*Rule `json:"rules"`
	// Also holds further ways to the effect of a rule of another table, so that
	// what belongs to one family of tools is in one place.
	Also []addition `json:"also,omitempty"`
}

// addition are further alternatives of a rule, with their own examples.
type addition struct {
	ID    string     `json:"id"`
	Match []*Matcher `json:"match"`
	Yes   []string   `json:"yes"`
	No    []string   `json:"no"`
}

// TableFiles are the rule tables in the order of GET /api/rules.
var TableFiles = []string{"shell", "git", "sql", "nosql", "orm", "infra", "k8s", "cloud", "deploy",
	"http", "secret", "rce", "priv", "wallet", "x402", "mcp", "text", "win"}

// RulesetVersion is the day that the rule set is released on, YYYY.MM.DD. It is stated
// here only. Once a release has it, TestGolden fails when a table or a verdict changes and
// it does not.
const RulesetVersion = "2026.11.26"

// Set is a rule set: what the files of package rules say, in the form in which the engine
// asks for it. All of it is lists, texts and pointers, without a Go map or a function, so
// that the one of this release can be data of the program: a guard starts at every tool
// call of an agent, and to read the files then would take longer than everything else.
// It is never changed.
type Set struct {
	Rules    []*Rule
	ByID     Dict[*Rule]
	Programs Dict[*Program]
	Other    Dict[[]*Way] // what rules say of anything else, by kind + " " + name
	Anything []*Way       // what they say of every program
	Ways     int          // how many ways there are
	Seen     Dict[*Rule]  // by act.Sight
	Groups   Dict[[]string]
	GroupsOf Dict[[]string] // the groups that a name is in

	Variables Dict[*variable] // by name
	Families  []family        // those with a part that may be anything
	Configs   []ConfigFile
	// what a command line is called in a file of settings
	CommandKeys, CommandSections Dict[bool]
	Lifecycle                    []string
	Clients                      ClientTable
	Windows                      WindowsTable
	Verbs                        VerbTable
	Calls                        Calls
	Called                       Dict[Dict[[]called]]   // names.json, by list and last part
	Resources                    Dict[[]*resourceEntry] // what configuration tools describe, by kind
	Languages                    Dict[*Language]
	Functions                    Dict[*TextFunction] // by language + " " + name
}

//go:generate go test -tags ungenerated -run ^TestTablesAreGenerated$ . -update

// Tables is the rule set of this release.
func Tables() *Set { return present() }

// Compile reads the tables that a reader gives.
func Compile(read rules.TableReader) (*Set, error) {
	c := &Set{}
	for _, part := range [...]func(rules.TableReader) error{c.readGroups, c.readRules, c.readPrograms, c.readSeen, c.readVariables,
		c.readReads, c.readClients, c.readWindows, c.readVerbs, c.readCalls, c.readNames, c.readResources, c.readLanguages, c.readFunctions} {
		if err := part(read); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// readSeen reads which rule speaks of what front-ends see.
func (c *Set) readSeen(read rules.TableReader) error {
	ids, seen := map[string]string{}, map[string]*Rule{}
	err := read("seen", &ids)
	for what, id := range ids {
		seen[what] = c.ByID.Get(id)
	}
	c.Seen = dictOf(seen)
	return err
}

// readRules reads the rules, and notes what each way to one of them is about.
func (c *Set) readRules(read rules.TableReader) error {
	var also []addition
	for _, name := range TableFiles {
		var t table
		if err := read(name, &t); err != nil {
			return err
		}
		c.Rules, also = append(c.Rules, t.Rules...), append(also, t.Also...)
	}
	byID := map[string]*Rule{}
	for _, r := range c.Rules {
		if byID[r.ID] != nil {
			return fmt.Errorf("rule %s is there twice", r.ID)
		}
		if byID[r.ID] = r; r.Questions == nil {
			r.Questions = []string{}
		}
		if r.Effect == "" && r.Title != "" {
			r.Effect = strings.ToLower(r.Title[:1]) + r.Title[1:]
		}
	}
	for _, a := range also {
		r := byID[a.ID]
		if r == nil {
			return fmt.Errorf("no rule %s to add to", a.ID)
		}
		r.Match, r.Yes, r.No = append(r.Match, a.Match...), append(r.Yes, a.Yes...), append(r.No, a.No...)
	}
	other := map[string][]*Way{}
	programs := map[string]*Program{}
	for _, r := range c.Rules {
		for _, m := range r.Match {
			names, err := c.Names(m.Exe)
			if err != nil {
				return fmt.Errorf("rule %s: %w", r.ID, err)
			}
			w := &Way{Rule: r, Matcher: m, Place: c.Ways}
			paths, err := c.Names(m.Sub)
			if err != nil {
				return fmt.Errorf("rule %s: %w", r.ID, err)
			}
			for _, path := range paths {
				w.Letters |= FirstLetter(path)
			}
			c.about(w, names, programs, other)
			c.Ways++
		}
	}
	c.ByID, c.Other, c.Programs = dictOf(byID), dictOf(other), dictOf(programs)
	return nil
}

// about notes what a way to a rule is about.
func (c *Set) about(w *Way, names []string, programs map[string]*Program, other map[string][]*Way) {
	for _, n := range names {
		switch {
		case w.Kind != "" && w.Kind != act.KindExe && w.Kind != act.KindRedir:
			other[w.Kind+" "+n] = append(other[w.Kind+" "+n], w)
		case n != "*" || w.Kind == act.KindRedir:
			p := entry(programs, n)
			p.Rules, p.Judged = append(p.Rules, w), true
		default:
			c.Anything = append(c.Anything, w)
		}
	}
}

// readGroups reads groups.json, in which a group may hold others.
func (c *Set) readGroups(read rules.TableReader) error {
	groups, groupsOf := map[string][]string{}, map[string][]string{}
	if err := read("groups", &groups); err != nil {
		return err
	}
	c.Groups = dictOf(groups)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		all, err := c.Names(groups[group])
		if err != nil {
			return err
		}
		groups[group] = all
		for _, name := range all {
			groupsOf[name] = append(groupsOf[name], group)
		}
	}
	c.Groups, c.GroupsOf = dictOf(groups), dictOf(groupsOf)
	return nil
}

// Rule is a rule by its id, nil if there is none.
func (c *Set) Rule(id string) *Rule { return c.ByID.Get(id) }

// In tells whether a name is in a group of groups.json. Each call of a program asks that
// of its name some thirty times, and a name is in ten groups at most.
func (c *Set) In(group, name string) bool {
	return slices.Contains(c.GroupsOf.Get(name), group)
}

// Names replaces "@group" by the group's names. The caller must not change what it gets.
func (c *Set) Names(list []string) ([]string, error) {
	if !slices.ContainsFunc(list, func(n string) bool { return strings.HasPrefix(n, "@") }) {
		return list, nil
	}
	var out []string
	for _, n := range list {
		if !strings.HasPrefix(n, "@") {
			out = append(out, n)
			continue
		}
		members, ok := c.Groups.Find(n[1:])
		if !ok {
			return nil, fmt.Errorf("no group %s", n)
		}
		more, err := c.Names(members)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Ruleset returns the version (YYYY.MM.DD) and the SHA-256 of the canonical JSON
// of all tables together. The same version always gives the same answers.
func Ruleset() (version, hash string) { return RulesetVersion, RulesetHash }

// Rules is the catalogue: every rule of every table, in table order. The caller
// must not change it.
func Rules() []*Rule { return Tables().Rules }
