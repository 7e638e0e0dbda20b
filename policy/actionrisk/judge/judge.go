// Package judge matches the rules with the items that were found, applies the context, and
// combines the findings into one verdict. Rules are data. Their predicates are functions of this
// package and of the front-ends.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// matcher is a facts.Way prepared for matching.
type matcher struct {
	rule           *facts.Rule
	kind           string
	sub            []string
	any, all, none []string
	where          []condition
}

type condition struct {
	not  bool
	test interp.Predicate
	args []string
}

// Bench matches items with the rules of a rule set. It prepares each matcher at its first use,
// because an evaluation uses only a few of the thousands of matchers.
type Bench struct {
	set        *facts.Set
	ready      []atomic.Pointer[matcher] // prepared matchers by facts.Way.Place
	predicates map[string]interp.Predicate
	grouped    map[string]bool // predicates whose arguments may be names of groups
}

// NewBench returns a Bench for a rule set with the predicates of this package and those of the
// front-ends.
func NewBench(c *facts.Set, own ...interp.Predicates) *Bench {
	b := &Bench{set: c, ready: make([]atomic.Pointer[matcher], c.Ways), predicates: make(map[string]interp.Predicate, 256), grouped: make(map[string]bool, 256)}
	for _, set := range append([]interp.Predicates{{Test: ShellPredicates}, {Test: SecretPredicates}, {Test: servicePredicates}}, own...) {
		for name, p := range set.Test {
			b.predicates[name], b.grouped[name] = p, set.Groups
		}
	}
	return b
}

// Check prepares every matcher and returns the first error.
func (b *Bench) Check() error {
	place := 0
	for _, r := range b.set.Rules {
		for _, m := range r.Match {
			if _, err := b.prepare(&facts.Way{Rule: r, Matcher: m, Place: place}); err != nil {
				return fmt.Errorf("rule %s: %w", r.ID, err)
			}
			place++
		}
	}
	return nil
}

// of returns the prepared matcher for a facts.Way. It panics if the Way is invalid; Check reports
// an invalid Way as an error.
func (b *Bench) of(w *facts.Way) *matcher {
	if m := b.ready[w.Place].Load(); m != nil {
		return m
	}
	m, err := b.prepare(w)
	if err != nil {
		panic("actionrisk: rule " + w.Rule.ID + ": " + err.Error())
	}
	b.ready[w.Place].Store(m)
	return m
}

func (b *Bench) prepare(w *facts.Way) (*matcher, error) {
	m := &matcher{rule: w.Rule, kind: cmp.Or(w.Kind, act.KindExe), all: w.All}
	for _, list := range [...]struct {
		from []string
		into *[]string
	}{{w.Any, &m.any}, {w.None, &m.none}, {w.Sub, &m.sub}} {
		var err error
		if *list.into, err = b.set.Names(list.from); err != nil {
			return nil, err
		}
	}
	for _, text := range w.Where {
		c, err := b.condition(text)
		if err != nil {
			return nil, err
		}
		m.where = append(m.where, c)
	}
	return m, nil
}

// condition parses "subject class|class", or "!subject class" for the negation.
func (b *Bench) condition(text string) (c condition, err error) {
	text, c.not = strings.CutPrefix(text, "!")
	subject, classes, _ := strings.Cut(text, " ")
	if c.test = b.predicates[subject]; c.test == nil {
		return c, fmt.Errorf("unknown predicate %q", subject)
	}
	if classes == "" {
		return c, nil
	}
	if c.args = strings.Split(classes, "|"); b.grouped[subject] {
		c.args, err = b.set.Names(c.args)
	}
	if subject == "operand" {
		for _, a := range c.args {
			if _, ok := paths.ClassByName[a]; !ok {
				return c, fmt.Errorf("unknown path class %q", a)
			}
		}
	}
	return c, err
}

// Match adds a finding for each rule that the item triggers, and reports whether there was one.
func (b *Bench) Match(e *interp.Env, it *act.Item) bool {
	found, letter := false, facts.FirstLetter(it.Subcommand())
	try := func(list []*facts.Way) {
		for _, w := range list {
			if w.Letters != 0 && w.Letters&letter == 0 {
				continue
			}
			if it.Inv != nil && (it.Inv.Dry && !OutlastsDryRun(w.Rule) || it.Inv.Scratch && !OutlastsScratch(w.Rule)) {
				continue
			}
			if about, ok := b.of(w).matches(e, it); ok {
				found = true
				e.Report(w.Rule, it, about)
			}
		}
	}
	switch it.Kind {
	case act.KindExe:
		try(e.Program(it.Name).Rules)
		try(e.Anything)
	case act.KindRedir:
		try(e.Program(it.Name).Rules)
	default:
		try(e.Other.Get(it.Kind + " " + it.Name))
		try(e.Other.Get(it.Kind + " *"))
	}
	return found
}

// OutlastsDryRun reports whether a rule applies to a dry run: rules about secrets, remote code,
// privilege or the form of the text do, unless they are about destruction.
func OutlastsDryRun(r *facts.Rule) bool {
	domain, _, _ := strings.Cut(r.ID, ".")
	switch domain {
	case "secret", "rce", "priv", "obf", "text", "parse":
		return r.Category != "destructive"
	}
	return false
}

// OutlastsScratch reports whether a rule applies in a temporary container: the container still
// fetches, runs and sends, but its files and permissions are discarded.
func OutlastsScratch(r *facts.Rule) bool {
	return OutlastsDryRun(r) && !strings.HasPrefix(r.ID, "priv.")
}

// matches reports whether the item meets all conditions, and returns the word that the first of
// them is about.
func (m *matcher) matches(e *interp.Env, it *act.Item) (act.Word, bool) {
	var about act.Word
	if m.kind != it.Kind || len(m.sub) > 0 && !it.UnderAny(m.sub) || !m.given(it) {
		return about, false
	}
	for i := range m.where {
		c := &m.where[i]
		e.Budget.Spend(1)
		w, ok := c.test(e, it, c.args)
		if ok == c.not {
			return about, false
		}
		if ok && about.Text == "" {
			about = w
		}
	}
	return about, true
}

// given reports whether the item has the required options and words.
func (m *matcher) given(it *act.Item) bool {
	for _, o := range m.all {
		if !it.Has(o) {
			return false
		}
	}
	for _, o := range m.none {
		if it.Has(o) {
			return false
		}
	}
	return len(m.any) == 0 || slices.ContainsFunc(m.any, it.Has)
}

// hasAny reports whether one of the options or words is given.
func hasAny(v *act.Invocation, options ...string) bool { return slices.ContainsFunc(options, v.Has) }
