// Package judge decides: it holds rules against what was found, reads context, and adds
// the findings up to one verdict. Rules are data; the predicates they combine are the
// functions of this package and those that front-ends bring for facts of their own.
package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// matcher is a Matcher ready to run.
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

// Bench is every rule ready to be held against what was found.
type Bench struct {
	exe        map[string][]*matcher // kind exe and redir, by name
	other      map[string][]*matcher // other kinds, by kind + " " + name
	anyExe     []*matcher            // exe "*"
	predicates map[string]interp.Predicate
	grouped    map[string]bool // predicates whose arguments may name groups
}

// NewBench compiles the rules of the tables with the general predicates and those
// that front-ends bring for facts of their own.
func NewBench(c *facts.Set, own ...interp.Predicates) (*Bench, error) {
	b := &Bench{exe: map[string][]*matcher{}, other: map[string][]*matcher{}, predicates: map[string]interp.Predicate{}, grouped: map[string]bool{}}
	for _, set := range append([]interp.Predicates{{Test: ShellPredicates}, {Test: SecretPredicates}, {Test: servicePredicates}}, own...) {
		for name, p := range set.Test {
			b.predicates[name], b.grouped[name] = p, set.Groups
		}
	}
	for i := range c.Rules {
		for _, m := range c.Rules[i].Match {
			if err := b.add(c, &c.Rules[i], m); err != nil {
				return nil, fmt.Errorf("rule %s: %w", c.Rules[i].ID, err)
			}
		}
	}
	return b, nil
}

// add compiles one alternative of a rule.
func (b *Bench) add(c *facts.Set, r *facts.Rule, m facts.Matcher) error {
	out := &matcher{rule: r, kind: m.Kind, all: m.All}
	if out.kind == "" {
		out.kind = act.KindExe
	}
	var err error
	if out.any, err = c.Names(m.Any); err != nil {
		return err
	}
	if out.none, err = c.Names(m.None); err != nil {
		return err
	}
	if out.sub, err = c.Names(m.Sub); err != nil {
		return err
	}
	for _, w := range m.Where {
		cond := condition{not: strings.HasPrefix(w, "!")}
		subject, classes, _ := strings.Cut(strings.TrimPrefix(w, "!"), " ")
		if cond.test = b.predicates[subject]; cond.test == nil {
			return fmt.Errorf("no predicate %q", subject)
		}
		if classes != "" {
			if cond.args = strings.Split(classes, "|"); b.grouped[subject] {
				if cond.args, err = c.Names(cond.args); err != nil {
					return err
				}
			}
		}
		if subject == "operand" || subject == "option" {
			for _, a := range cond.args {
				if _, ok := paths.ClassByName[a]; !ok && subject == "operand" {
					return fmt.Errorf("no path class %q", a)
				}
			}
		}
		out.where = append(out.where, cond)
	}
	names, err := c.Names(m.Exe)
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case out.kind == act.KindExe && n == "*":
			b.anyExe = append(b.anyExe, out)
		case out.kind == act.KindExe || out.kind == act.KindRedir:
			b.exe[n] = append(b.exe[n], out)
		default:
			b.other[out.kind+" "+n] = append(b.other[out.kind+" "+n], out)
		}
	}
	return nil
}

// Match reports every rule that holds for the item and tells whether one did.
func (b *Bench) Match(e *interp.Env, it *act.Item) bool {
	found := false
	try := func(list []*matcher) {
		for _, m := range list {
			if it.Inv != nil && (it.Inv.Dry && !OutlastsDryRun(m.rule) || it.Inv.Scratch && !OutlastsScratch(m.rule)) {
				continue
			}
			if about, ok := m.matches(e, it); ok {
				found = true
				e.Report(m.rule, it, about)
			}
		}
	}
	switch it.Kind {
	case act.KindExe:
		try(b.exe[it.Name])
		try(b.anyExe)
	case act.KindRedir:
		try(b.exe[it.Name])
	default:
		try(b.other[it.Kind+" "+it.Name])
		try(b.other[it.Kind+" *"])
	}
	return found
}

// OutlastsDryRun: a dry run says nothing about secrets, remote code, privilege or how
// the text is written; what it would destroy, it does not.
func OutlastsDryRun(r *facts.Rule) bool {
	domain, _, _ := strings.Cut(r.ID, ".")
	switch domain {
	case "secret", "rce", "priv", "obf", "text", "parse":
		return r.Category != "destructive"
	}
	return false
}

// OutlastsScratch: what a container made for one run deletes, or whom it lets in,
// is gone with it; what it fetches, runs and sends is not.
func OutlastsScratch(r *facts.Rule) bool {
	return OutlastsDryRun(r) && !strings.HasPrefix(r.ID, "priv.")
}

// matches tells whether all of m holds for the item, and about which word.
func (m *matcher) matches(e *interp.Env, it *act.Item) (act.Word, bool) {
	var about act.Word
	if m.kind != it.Kind {
		return about, false
	}
	if len(m.sub) > 0 && !it.UnderAny(m.sub) {
		return about, false
	}
	if len(m.any) > 0 && !slices.ContainsFunc(m.any, it.Has) {
		return about, false
	}
	for _, o := range m.all {
		if !it.Has(o) {
			return about, false
		}
	}
	for _, o := range m.none {
		if it.Has(o) {
			return about, false
		}
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
