// Package facts reads the tables into what the engine looks up: the rules as data, and
// for each program how its arguments are read, what it carries, writes, reads and
// proves. It is read once and never changed.
package facts

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Rule is one line of a table: an effect, how bad it is, and what to match.
// An id is for ever: a rule may be retired, its id never gets another meaning.
type Rule struct {
	ID         string    `json:"id"`
	Level      act.Level `json:"level" jsonschema:"minimum=0,maximum=3"`             // base level
	Class      string    `json:"class,omitempty"`                                    // letters of e, b, c, p: which context moves the level
	Category   string    `json:"category"`                                           // destructive, deployment, data_mutation, secrets, network, payment, privilege, supply_chain
	Effect     string    `json:"effect"`                                             // what happens, one clause
	Reversible string    `json:"reversible" jsonschema:"enum=yes,enum=hard,enum=no"` // can it be undone
	Title      string    `json:"title"`                                              // one line for people
	Instead    string    `json:"instead,omitempty"`                                  // the safer way
	Questions  []string  `json:"questions,omitempty"`                                // what a reviewer needs to know
	Match      []Matcher `json:"match,omitempty"`                                    // alternatives; none: found by the engine itself
	Yes        []string  `json:"yes"`                                                // must raise the rule
	No         []string  `json:"no"`                                                 // must not
	Retired    bool      `json:"retired,omitempty"`                                  // kept for old records only
}

// Matcher is one alternative of a rule. Everything given must hold.
type Matcher struct {
	Kind string   `json:"kind,omitempty"` // item kind, "exe" if empty
	Exe  []string `json:"exe,omitempty"`  // names; "@group" stands for a group of groups.json; "*" for any
	Sub  []string `json:"sub,omitempty"`  // subcommand paths, one of which begins the operands; a word may end in * ("s3 rb", "delete-*")
	Any  []string `json:"any,omitempty"`  // one of these options or words stands there
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
	Place int // among all ways
}

// table is a file of rules.
type table struct {
	Rules []Rule `json:"rules"`
	// Also holds further ways to the effect of a rule of another table, so that
	// what belongs to one family of tools stands in one place.
	Also []addition `json:"also,omitempty"`
}

// addition are further alternatives of a rule, with their own examples.
type addition struct {
	ID    string    `json:"id"`
	Match []Matcher `json:"match"`
	Yes   []string  `json:"yes"`
	No    []string  `json:"no"`
}

// TableFiles are the rule tables in the order of GET /api/rules.
var TableFiles = []string{"shell", "git", "sql", "nosql", "orm", "infra", "k8s", "cloud", "deploy",
	"http", "secret", "rce", "priv", "wallet", "x402", "mcp", "text", "win"}

// RulesetVersion is the day that the rule set is released on, YYYY.MM.DD. It is stated
// here only. Once a release has it, TestGolden fails when a table or a verdict changes and
// it does not.
const RulesetVersion = "2026.11.26"

// RulesetHash is tablesHash, written down: to make it takes longer than any verdict.
// TestTablesStrict says what it must be.
const RulesetHash = "99c6a5b7f689fd62d9052407f723a7cf27ae9c2e14e77700a729a01d4795f0a1"

// Set is everything read from the tables, made once.
type Set struct {
	Rules     []Rule
	ByID      map[string]*Rule
	programs  map[string]*Program // what rules and the engine say; rows of the table come to it when asked
	rowsOf    map[string][]int32  // the rows of programs.json by the names of programs
	row       func(int32) *programRow
	ready     sync.Map          // by name, what Program put together
	present   bool              // the tables are those of this release
	Other     map[string][]*Way // what rules say of anything else, by kind + " " + name
	Anything  []*Way            // what they say of every program
	Seen      map[act.Sight]*Rule
	Ways      int // how many ways there are
	Groups    map[string][]string
	members   map[string]map[string]bool // of Groups
	variables map[string]*variable       // by name
	Configs   []ConfigFile
	families  []family // those with a part that may be anything
	Clients   ClientTable
	// What few texts need is read when one does.
	Resources func() map[string][]*resourceEntry // what configuration tools describe, by kind
	names     func() map[string]map[string][]called
	languages func() map[string]*Language
	Calls     func() *Calls
	functions func() functions
	// what a command line is called in a file of settings
	CommandKeys, CommandSections map[string]bool
	Lifecycle                    []string
	Windows                      *windowsNames
}

// Tables reads the embedded tables once. A fault in them is a fault in the
// program, which the first test finds, so it panics.
var Tables = sync.OnceValue(func() *Set {
	c, err := compile(rules.DecodeTable, true)
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	return c
})

// Compile reads the tables that a reader gives.
func Compile(read rules.TableReader) (*Set, error) { return compile(read, false) }

func compile(read rules.TableReader, present bool) (*Set, error) {
	c := &Set{present: present, ByID: map[string]*Rule{}, programs: map[string]*Program{}, Other: map[string][]*Way{}}
	var also []addition
	for _, name := range TableFiles {
		var t table
		if err := read(name, &t); err != nil {
			return nil, err
		}
		c.Rules, also = append(c.Rules, t.Rules...), append(also, t.Also...)
	}
	if err := c.support(read); err != nil {
		return nil, err
	}
	if err := c.extend(also); err != nil {
		return nil, err
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if c.ByID[r.ID] != nil {
			return nil, fmt.Errorf("rule %s is there twice", r.ID)
		}
		c.ByID[r.ID] = r
		if r.Questions == nil {
			r.Questions = []string{}
		}
		for i := range r.Match {
			if err := c.about(&Way{r, &r.Match[i], c.Ways}); err != nil {
				return nil, fmt.Errorf("rule %s: %w", r.ID, err)
			}
			c.Ways++
		}
	}
	return c, c.readSeen(read)
}

// readSeen reads which rule speaks of what front-ends see.
func (c *Set) readSeen(read rules.TableReader) error {
	ids := map[string]string{}
	if err := read("seen", &ids); err != nil {
		return err
	}
	c.Seen = make(map[act.Sight]*Rule, len(ids))
	for what, id := range ids {
		c.Seen[act.Sight(what)] = c.ByID[id]
	}
	return nil
}

// about notes what a way to a rule is about.
func (c *Set) about(w *Way) error {
	names, err := c.Names(w.Exe)
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case w.Kind != "" && w.Kind != act.KindExe && w.Kind != act.KindRedir:
			c.Other[w.Kind+" "+n] = append(c.Other[w.Kind+" "+n], w)
		case n != "*" || w.Kind == act.KindRedir:
			p := c.entry(n)
			p.Rules, p.Judged = append(p.Rules, w), true
		default:
			c.Anything = append(c.Anything, w)
		}
	}
	return nil
}

// extend adds the alternatives that stand in other tables than their rule.
func (c *Set) extend(also []addition) error {
	for _, a := range also {
		i := slices.IndexFunc(c.Rules, func(r Rule) bool { return r.ID == a.ID })
		if i < 0 {
			return fmt.Errorf("no rule %s to add to", a.ID)
		}
		r := &c.Rules[i]
		r.Match, r.Yes, r.No = append(r.Match, a.Match...), append(r.Yes, a.Yes...), append(r.No, a.No...)
	}
	return nil
}

// support reads the tables that are not rules.
func (c *Set) support(read rules.TableReader) error {
	if err := read("groups", &c.Groups); err != nil {
		return err
	}
	for name, members := range c.Groups { // a group may hold others
		all, err := c.Names(members)
		if err != nil {
			return err
		}
		c.Groups[name] = all
	}
	c.members = map[string]map[string]bool{}
	for name, members := range c.Groups {
		c.members[name] = setOf(members)
	}
	for _, part := range [...]func(rules.TableReader) error{
		c.readPrograms,
		c.readVariables,
		c.readReads,
		c.readClients,
		c.readWindows,
	} {
		if err := part(read); err != nil {
			return err
		}
	}
	c.Resources, c.Calls = later(read, readResources), later(read, readCalls)
	c.names, c.languages = later(read, readNames), later(read, readLanguages)
	c.functions = later(read, readFunctions)
	return nil
}

// later reads a table when it is asked for. A fault in one is a fault in the program.
func later[T any](read rules.TableReader, from func(rules.TableReader) (T, error)) func() T {
	return sync.OnceValue(func() T {
		table, err := from(read)
		if err != nil {
			panic("actionrisk: " + err.Error())
		}
		return table
	})
}

// In tells whether a name stands in a group of groups.json.
func (c *Set) In(group, name string) bool { return c.members[group][name] }

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
		members, ok := c.Groups[n[1:]]
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
func Rules() []Rule { return Tables().Rules }
