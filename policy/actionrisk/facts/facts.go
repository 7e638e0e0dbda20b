// Package facts holds the tables in the form that the engine uses for lookups: the rules, and for
// each program how its arguments are parsed, which commands and files it runs, which files it
// writes and reads, and which options change nothing.
//
// The tables of this release are Go data in tables_generated.go, which "go generate" writes from
// the files of package rules: run it after a change of a table. Compile converts the files of
// another rule set into the same form.
package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Rule is a row of a rule table: an effect, its level of risk, and the conditions to match. An id
// is permanent: a rule may be retired, but its id never gets another meaning.
type Rule struct {
	ID         string     `json:"id"`
	Level      act.Level  `json:"level" jsonschema:"minimum=0,maximum=3"`             // level before the context changes it
	Class      string     `json:"class,omitempty"`                                    // e, b and c: the environment, the branch and a test network may change the level; p: nothing lowers it
	Category   string     `json:"category"`                                           // destructive, deployment, data_mutation, secrets, network, payment, privilege, supply_chain
	Effect     string     `json:"effect,omitempty"`                                   // the effect in one clause, if the title does not say all of it
	Reversible string     `json:"reversible" jsonschema:"enum=yes,enum=hard,enum=no"` // whether the effect can be undone: yes, hard (with effort) or no
	Title      string     `json:"title"`                                              // the effect in one line that begins with a verb: "Deletes a tag"
	Instead    string     `json:"instead,omitempty"`                                  // a safer alternative
	Questions  []string   `json:"questions,omitempty"`                                // questions that a reviewer should answer
	Match      []*Matcher `json:"match,omitempty"`                                    // alternatives; without any, the code of the engine triggers the rule
	Yes        []string   `json:"yes"`                                                // examples that must trigger the rule
	No         []string   `json:"no"`                                                 // examples that must not trigger it
	Retired    bool       `json:"retired,omitempty"`                                  // never triggered; kept to verify old records
}

// Matcher is one alternative of a rule. All given conditions must hold.
type Matcher struct {
	Kind string   `json:"kind,omitempty"` // kind of the item; "exe" if empty
	Exe  []string `json:"exe,omitempty"`  // names of programs or items; "@group" is a group of groups.json, "*" is any name
	Sub  []string `json:"sub,omitempty"`  // subcommand paths, one of which must begin the operands; a word may end in * ("s3 rb", "delete-*")
	Any  []string `json:"any,omitempty"`  // one of these options or words is given
	All  []string `json:"all,omitempty"`  // all of these options or words are given
	None []string `json:"none,omitempty"` // none of these options or words is given
	// Where lists conditions "subject class|class", or "!subject class" for the negation. The
	// subject is a predicate of package judge or of a front-end.
	Where []string `json:"where,omitempty"`
}

// Way is a matcher together with its rule.
type Way struct {
	Rule *Rule
	*Matcher
	Place   int    // index among all matchers of the rule set
	Letters uint32 // FirstLetter bits of all paths in Sub, to skip calls with another subcommand quickly; 0 if Sub is empty
}

// FirstLetter returns a bit for the first letter of a word. A word that begins with a star gets
// all bits, because it can match any word.
func FirstLetter(word string) uint32 {
	switch {
	case word == "":
		return 0
	case word[0] == '*':
		return ^uint32(0)
	}
	return 1 << (word[0] % 32)
}

// table is a file with rules.
type table struct {
	Rules []*Rule `json:"rules"`
	// The list Also adds alternatives to rules of other tables, so that everything about one family
	// of tools is in one file.
	Also []addition `json:"also,omitempty"`
}

// addition has further alternatives of a rule, with their examples.
type addition struct {
	ID    string     `json:"id"`
	Match []*Matcher `json:"match"`
	Yes   []string   `json:"yes"`
	No    []string   `json:"no"`
}

// TableFiles are the rule tables in the order in which GET /api/rules lists them.
var TableFiles = []string{"shell", "git", "sql", "nosql", "orm", "infra", "k8s", "cloud", "deploy",
	"http", "secret", "rce", "priv", "wallet", "x402", "mcp", "text", "win"}

// RulesetVersion is the release day of the rule set, YYYY.MM.DD. It is set only here. After a
// release with this version, TestGolden fails if a table or a verdict changes and the version does
// not.
const RulesetVersion = "2026.11.26"

// Set is a rule set: the files of package rules in the form that the engine uses. It has only
// lists, strings and pointers, and no Go map or function, so that the compiler can write this
// release's Set into the program's data. The guard starts at every tool call of an agent, and
// parsing the files would take longer than the evaluation. A Set is never changed.
type Set struct {
	Rules    []*Rule
	ByID     Dict[*Rule]
	Programs Dict[*Program]
	Other    Dict[[]*Way] // matchers of items other than programs, by kind + " " + name
	Anything []*Way       // matchers of any program
	Ways     int          // number of matchers
	Seen     Dict[*Rule]  // rules by act.Sight
	Groups   Dict[[]string]
	GroupsOf Dict[[]string] // names of the groups that contain a name

	Variables Dict[*variable] // by name
	Families  []family        // variables whose name has a "*"
	Configs   []ConfigFile
	// settings and sections of configuration files that contain command lines
	CommandKeys, CommandSections Dict[bool]
	Lifecycle                    []string
	Clients                      ClientTable
	Windows                      WindowsTable
	Verbs                        VerbTable
	Calls                        Calls
	Called                       Dict[Dict[[]called]]   // rows of names.json by list and last part of the name
	Resources                    Dict[[]*resourceEntry] // resources of configuration tools by kind
	Languages                    Dict[*Language]
	Functions                    Dict[*TextFunction] // by language + " " + name
}

//go:generate go test -tags ungenerated -run ^TestTablesAreGenerated$ . -update

// Tables returns the rule set of this release.
func Tables() *Set { return present() }

// Compile builds a rule set from the tables that read decodes.
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

// readSeen reads seen.json, which maps each act.Sight to a rule.
func (c *Set) readSeen(read rules.TableReader) error {
	ids, seen := map[string]string{}, map[string]*Rule{}
	err := read("seen", &ids)
	for what, id := range ids {
		seen[what] = c.ByID.Get(id)
	}
	c.Seen = dictOf(seen)
	return err
}

// readRules reads the rule tables, and indexes the matchers by the programs and items that they
// match.
func (c *Set) readRules(read rules.TableReader) error {
	// Collect the rules of all tables.
	var also []addition
	for _, name := range TableFiles {
		var t table
		if err := read(name, &t); err != nil {
			return err
		}
		c.Rules, also = append(c.Rules, t.Rules...), append(also, t.Also...)
	}
	// Index them by id. The title, in lower case, is the default of the effect.
	byID := map[string]*Rule{}
	for _, r := range c.Rules {
		if byID[r.ID] != nil {
			return fmt.Errorf("rule %s is defined twice", r.ID)
		}
		if byID[r.ID] = r; r.Questions == nil {
			r.Questions = []string{}
		}
		if r.Effect == "" && r.Title != "" {
			r.Effect = strings.ToLower(r.Title[:1]) + r.Title[1:]
		}
	}
	// Add the alternatives that are in the tables of other rules.
	for _, a := range also {
		r := byID[a.ID]
		if r == nil {
			return fmt.Errorf("a table adds alternatives to rule %s, which does not exist", a.ID)
		}
		r.Match, r.Yes, r.No = append(r.Match, a.Match...), append(r.Yes, a.Yes...), append(r.No, a.No...)
	}
	// Index each matcher by the names that it matches.
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

// about indexes a matcher by the names that it matches.
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

// readGroups reads groups.json. A group may contain other groups.
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

// Rule returns the rule that has this id, or nil.
func (c *Set) Rule(id string) *Rule { return c.ByID.Get(id) }

// In reports whether a name is in a group of groups.json. It searches the list of the name's
// groups, because no name is in more than ten.
func (c *Set) In(group, name string) bool {
	return slices.Contains(c.GroupsOf.Get(name), group)
}

// Names replaces each "@group" with the group's names. The caller must not change the result.
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
			return nil, fmt.Errorf("group %s does not exist", n)
		}
		more, err := c.Names(members)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Ruleset returns the version (YYYY.MM.DD), and the SHA-256 of the canonical JSON of all tables
// except safer.json. The same version always gives the same verdicts.
func Ruleset() (version, hash string) { return RulesetVersion, RulesetHash }

// Rules returns all rules in the order of the tables. The caller must not change them.
func Rules() []*Rule { return Tables().Rules }
