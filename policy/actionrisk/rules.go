package actionrisk

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/canon"
)

// How a domain plugs in
//
// The engine turns the submitted text into items (see item in engine.go): one
// for each invocation that would run, each SQL statement, each contract call,
// each payment, each tool call. An item has a kind, a name and facts:
//
//	kind "exe"   name = base name of the executable; options and operands are parsed
//	kind "sql"   name = statement verb ("delete"); tags = what the classifier knows
//	             about it ("object=table", "where=none", "tautology")
//	kind "call"  name = function ("approve"); tags; kind "pay", kind "tool" alike
//	kind "money" name = the id of the rule; what clients.json and the parsers of
//	             calls and payments found
//	kind "redir" name = ">" or ">>"; its one operand is the file written
//
// A domain is (1) a pure classifier that calls e.match(&item{…}) for what it
// finds, (2) a table rules/<domain>.json listed in tableFiles, and (3) its
// predicates, a map merged into predicateByName. The tables decide the level;
// a classifier never does. Text of another language found inside is handed on
// with e.interpret(lang, text source), which dispatches to the domain.

//go:embed rules/*.json
var tables embed.FS

// Rule is one line of a table: an effect, how bad it is, and what to match.
// An id is for ever: a rule may be retired, its id never gets another meaning.
type Rule struct {
	ID         string    `json:"id"`
	Level      Level     `json:"level" jsonschema:"minimum=0,maximum=3"`             // base level
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
	// negation; subject is a predicate of predicates*.go.
	Where []string `json:"where,omitempty"`
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

// tableFiles are the rule tables in the order of GET /api/rules.
var tableFiles = []string{"shell", "git", "sql", "nosql", "orm", "infra", "k8s", "cloud", "deploy",
	"http", "secret", "rce", "priv", "wallet", "x402", "mcp", "text", "win"}

// supportFiles are the tables that are not rules.
var supportFiles = []string{
	"groups", "wrappers", "wrappers_sql", "effects", "reads", "code", "tools", "tools_sql", "readonly",
	"dryrun",
	"verbs",
	"env",
	"amounts",
	"clients",
	"windows",
	"wrappers_ops",
	"resources",
	"sdk",
}

// rulesetVersion is YYYY.MM.N; TestGolden fails when a table or a verdict changed and it did not.
const rulesetVersion = "2026.11.18"

// rulesetHash is tablesHash, written down: to make it takes longer than any verdict.
// TestTablesStrict says what it must be.
const rulesetHash = "c0d22b1707f03f76ddc1598a755fe5d4197fbb79ada0e266dc115e25be0cde0f"

// compiled is everything read from the tables, made once.
type compiled struct {
	rules     []Rule
	byID      map[string]*Rule
	exe       map[string]bool // programs that rules or clients are about
	other     map[string]bool // what else rules are about, by kind + " " + name
	groups    map[string][]string
	tools     map[string]*tool
	wrappers  map[string][]*wrapper
	effects   map[string][]*effect
	variables map[string]*variable // by name
	configs   []configFile
	families  []family // those with a part that may be anything
	readonly  map[string][]*proof
	dryrun    map[string][]*proof
	clients   clientTable
	resources map[string][]*resourceEntry // what configuration tools describe, by kind
	sdks      []sdkEntry
	reads     map[string][]*read
	code      *code
	// what a command line is called in a file of settings
	commandKeys, commandSections map[string]bool
	lifecycle                    []string
	windows                      *windowsNames
}

// ruleset reads the embedded tables once. A fault in them is a fault in the
// program, which the first test finds, so it panics.
var ruleset = sync.OnceValue(func() *compiled {
	c, err := compile()
	if err != nil {
		panic("actionrisk: " + err.Error())
	}
	return c
})

func compile() (*compiled, error) {
	c := &compiled{byID: map[string]*Rule{}, exe: map[string]bool{}, other: map[string]bool{}}
	var also []addition
	for _, name := range tableFiles {
		var t table
		if err := decodeTable(name, &t); err != nil {
			return nil, err
		}
		c.rules, also = append(c.rules, t.Rules...), append(also, t.Also...)
	}
	if err := c.support(); err != nil {
		return nil, err
	}
	if err := c.extend(also); err != nil {
		return nil, err
	}
	for i := range c.rules {
		r := &c.rules[i]
		if c.byID[r.ID] != nil {
			return nil, fmt.Errorf("rule %s is there twice", r.ID)
		}
		c.byID[r.ID] = r
		if r.Questions == nil {
			r.Questions = []string{}
		}
		for _, m := range r.Match {
			if err := c.about(m); err != nil {
				return nil, fmt.Errorf("rule %s: %w", r.ID, err)
			}
		}
	}
	return c, nil
}

// about notes what a matcher is about.
func (c *compiled) about(m Matcher) error {
	names, err := c.names(m.Exe)
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case m.Kind != "" && m.Kind != kindExe && m.Kind != kindRedir:
			c.other[m.Kind+" "+n] = true
		case n != "*" || m.Kind == kindRedir:
			c.exe[n] = true
		}
	}
	return nil
}

// extend adds the alternatives that stand in other tables than their rule.
func (c *compiled) extend(also []addition) error {
	for _, a := range also {
		i := slices.IndexFunc(c.rules, func(r Rule) bool { return r.ID == a.ID })
		if i < 0 {
			return fmt.Errorf("no rule %s to add to", a.ID)
		}
		r := &c.rules[i]
		r.Match, r.Yes, r.No = append(r.Match, a.Match...), append(r.Yes, a.Yes...), append(r.No, a.No...)
	}
	return nil
}

// decodeTable decodes one table. The tables are ours: that they are strict JSON is
// checked once, by TestTablesStrict, and not at every start.
func decodeTable(name string, into any) error {
	text, err := tables.ReadFile("rules/" + name + ".json")
	if err == nil {
		err = canon.DecodeChecked(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// tableReader decodes one table into a value; a table that is not there leaves it alone.
type tableReader = func(name string, into any) error

// support reads the tables that are not rules.
func (c *compiled) support() error {
	if err := decodeTable("groups", &c.groups); err != nil {
		return err
	}
	for name, members := range c.groups { // a group may hold others
		all, err := c.names(members)
		if err != nil {
			return err
		}
		c.groups[name] = all
	}
	for _, part := range [...]func(tableReader) error{
		c.readTools,
		c.readWrappers,
		c.readVariables,
		c.readEffects,
		c.readProofs,
		c.readReads,
		c.readCode,
		c.readClients,
		c.readWindows,
		c.readResources,
		c.readSDKs,
	} {
		if err := part(decodeTable); err != nil {
			return err
		}
	}
	return nil
}

// names replaces "@group" by the group's names.
func (c *compiled) names(list []string) ([]string, error) {
	var out []string
	for _, n := range list {
		if !strings.HasPrefix(n, "@") {
			out = append(out, n)
			continue
		}
		members, ok := c.groups[n[1:]]
		if !ok {
			return nil, fmt.Errorf("no group %s", n)
		}
		more, err := c.names(members)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// Ruleset returns the version (YYYY.MM.N) and the SHA-256 of the canonical JSON
// of all tables together. The same version always gives the same answers.
func Ruleset() (version, hash string) { return rulesetVersion, rulesetHash }

// Rules is the catalogue: every rule of every table, in table order. The caller
// must not change it.
func Rules() []Rule { return ruleset().rules }
