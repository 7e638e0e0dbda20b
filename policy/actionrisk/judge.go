package actionrisk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// matcher is a Matcher ready to run.
type matcher struct {
	rule           *Rule
	kind           string
	sub            [][]string
	any, all, none []string
	where          []condition
}

type condition struct {
	not  bool
	test predicate
	args []string
}

// bench is every rule ready to be held against what was found.
type bench struct {
	exe        map[string][]*matcher // kind exe and redir, by name
	other      map[string][]*matcher // other kinds, by kind + " " + name
	anyExe     []*matcher            // exe "*"
	predicates map[string]predicate
	grouped    map[string]bool // predicates whose arguments may name groups
}

// newBench compiles the rules of the tables with the general predicates and those
// that front-ends bring for facts of their own.
func newBench(c *compiled, own ...predicates) (*bench, error) {
	b := &bench{exe: map[string][]*matcher{}, other: map[string][]*matcher{}, predicates: map[string]predicate{}, grouped: map[string]bool{}}
	for _, set := range append([]predicates{{test: shellPredicates}, {test: secretPredicates}, {test: servicePredicates}}, own...) {
		for name, p := range set.test {
			b.predicates[name], b.grouped[name] = p, set.groups
		}
	}
	for i := range c.rules {
		for _, m := range c.rules[i].Match {
			if err := b.add(c, &c.rules[i], m); err != nil {
				return nil, fmt.Errorf("rule %s: %w", c.rules[i].ID, err)
			}
		}
	}
	return b, nil
}

// add compiles one alternative of a rule.
func (b *bench) add(c *compiled, r *Rule, m Matcher) error {
	out := &matcher{rule: r, kind: m.Kind, all: m.All}
	if out.kind == "" {
		out.kind = kindExe
	}
	var err error
	if out.any, err = c.names(m.Any); err != nil {
		return err
	}
	if out.none, err = c.names(m.None); err != nil {
		return err
	}
	subs, err := c.names(m.Sub)
	if err != nil {
		return err
	}
	for _, s := range subs {
		out.sub = append(out.sub, strings.Fields(s))
	}
	for _, w := range m.Where {
		cond := condition{not: strings.HasPrefix(w, "!")}
		subject, classes, _ := strings.Cut(strings.TrimPrefix(w, "!"), " ")
		if cond.test = b.predicates[subject]; cond.test == nil {
			return fmt.Errorf("no predicate %q", subject)
		}
		if classes != "" {
			if cond.args = strings.Split(classes, "|"); b.grouped[subject] {
				if cond.args, err = c.names(cond.args); err != nil {
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
	names, err := c.names(m.Exe)
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case out.kind == kindExe && n == "*":
			b.anyExe = append(b.anyExe, out)
		case out.kind == kindExe || out.kind == kindRedir:
			b.exe[n] = append(b.exe[n], out)
		default:
			b.other[out.kind+" "+n] = append(b.other[out.kind+" "+n], out)
		}
	}
	return nil
}

// match reports every rule that holds for the item and tells whether one did.
func (b *bench) match(e *engine, it *item) bool {
	found := false
	try := func(list []*matcher) {
		for _, m := range list {
			if it.inv != nil && (it.inv.dry && !outlastsDryRun(m.rule) || it.inv.scratch && !outlastsScratch(m.rule)) {
				continue
			}
			if about, ok := m.matches(e, it); ok {
				found = true
				e.report(m.rule, it, about)
			}
		}
	}
	switch it.kind {
	case kindExe:
		try(b.exe[it.name])
		try(b.anyExe)
	case kindRedir:
		try(b.exe[it.name])
	default:
		try(b.other[it.kind+" "+it.name])
		try(b.other[it.kind+" *"])
	}
	return found
}

// outlastsDryRun: a dry run says nothing about secrets, remote code, privilege or how
// the text is written; what it would destroy, it does not.
func outlastsDryRun(r *Rule) bool {
	domain, _, _ := strings.Cut(r.ID, ".")
	switch domain {
	case "secret", "rce", "priv", "obf", "text", "parse":
		return r.Category != "destructive"
	}
	return false
}

// outlastsScratch: what a container made for one run deletes, or whom it lets in,
// is gone with it; what it fetches, runs and sends is not.
func outlastsScratch(r *Rule) bool {
	return outlastsDryRun(r) && !strings.HasPrefix(r.ID, "priv.")
}

// matches tells whether all of m holds for the item, and about which word.
func (m *matcher) matches(e *engine, it *item) (Word, bool) {
	var about Word
	if m.kind != it.kind {
		return about, false
	}
	if len(m.sub) > 0 && !it.underAny(m.sub) {
		return about, false
	}
	if len(m.any) > 0 && !slices.ContainsFunc(m.any, it.has) {
		return about, false
	}
	for _, o := range m.all {
		if !it.has(o) {
			return about, false
		}
	}
	for _, o := range m.none {
		if it.has(o) {
			return about, false
		}
	}
	for i := range m.where {
		c := &m.where[i]
		e.budget.spend(1)
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
