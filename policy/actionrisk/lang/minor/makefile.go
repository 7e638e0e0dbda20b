package minor

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// makeRule is a rule of a makefile, or a recipe of a justfile: targets, prerequisites and command
// lines.
type makeRule struct {
	targets, needs []string
	lines          []recipeLine
}

// recipeLine is a command line of a recipe and its position in the source.
type recipeLine struct {
	text     string
	from, to int
}

// makefile is the state of one run of make or just. Only rules that the goals need are run.
type makefile struct {
	sh    *interp.Process
	just  bool // a justfile: spaces indent the recipes, and {{NAME}} is a variable
	vars  map[string]string
	rules []*makeRule
	ran   map[*makeRule]bool
}

// runMake judges the recipes that make, or just, would run for the goals on its command line.
// Without goals it takes the first target.
func runMake(sh *interp.Process, just bool) {
	m := &makefile{sh: sh, just: just, ran: map[*makeRule]bool{},
		vars: map[string]string{"RM": "rm -f", "HOME": "~", "CURDIR": ".", "PWD": ".", "MAKE": "make", "SHELL": "sh"}}
	goals := m.goals()
	m.parse()
	if len(goals) == 0 {
		for _, r := range m.rules {
			if !strings.HasPrefix(r.targets[0], ".") {
				goals = r.targets[:1]
				break
			}
		}
	}
	for _, goal := range goals {
		m.run(goal, 0)
	}
}

// goals returns the targets that the command line names. It stores the variables that the command
// line sets as NAME=value.
func (m *makefile) goals() (out []string) {
	if m.sh.Carrier == nil {
		return nil
	}
	for _, w := range m.sh.Carrier.Operands {
		if name, value, ok := strings.Cut(w.Text, "="); ok {
			m.vars[name] = value
		} else if w.Text != "" && w.Text != "-" {
			out = append(out, w.Text)
		}
	}
	return out
}

// parse reads variables and rules. It judges $(shell …) at once, as make does.
func (m *makefile) parse() {
	var rule *makeRule
	m.eachLine(func(line string, from, to int) {
		indented := strings.HasPrefix(line, "\t") || m.just && strings.HasPrefix(line, " ")
		text := strings.TrimSpace(line)
		switch {
		case text == "" || !indented && text[0] == '#':
		case indented && rule != nil:
			rule.lines = append(rule.lines, recipeLine{text, from + strings.Index(line, text), to})
		case m.assigned(text, from, to):
		default:
			if rule = m.rule(text, from, to); rule != nil && len(m.rules) < scan.MaxRules {
				m.rules = append(m.rules, rule)
			} else if strings.Contains(text, "$(") {
				m.expand(text, from, to, 0) // expand judges the $(shell …) in the line
			}
		}
	})
}

// eachLine calls f with each line, after it has joined lines that end in a backslash with the next
// one.
func (m *makefile) eachLine(f func(line string, from, to int)) {
	text, start, joined := m.sh.Src.Text, 0, ""
	for at := 0; at < len(text) && m.sh.Env.Budget.Spend(1); {
		end := scan.LineEnd(text, at)
		line := text[at:end]
		if joined == "" {
			start = at
		}
		if at = end + 1; strings.HasSuffix(line, "\\") && at < len(text) {
			joined += line[:len(line)-1] + " "
			continue
		}
		f(joined+line, start, end)
		joined = ""
	}
}

// assigned reports whether the line assigns a variable, and stores the value. It accepts all
// forms: =, :=, ?=, += and NAME != command, whose command it judges.
func (m *makefile) assigned(text string, from, to int) bool {
	left, value, ok := strings.Cut(text, "=")
	if !ok || left == "" || strings.ContainsAny(left, "\"'`;$") {
		return false
	}
	name := strings.TrimSpace(strings.TrimRight(left, ":?+!"))
	for _, word := range [...]string{"export ", "override ", "set ", "private "} {
		name = strings.TrimSpace(strings.TrimPrefix(name, word))
	}
	if strings.ContainsAny(name, ": ") {
		return false
	}
	value = m.assignedValue(name, left[len(left)-1], strings.TrimSpace(value), from, to)
	if len(m.vars) < scan.MaxLoop && len(value) <= scan.MaxValue {
		m.vars[name] = value
	}
	return true
}

// assignedValue returns the new value of a variable. sign is the byte before "=".
func (m *makefile) assignedValue(name string, sign byte, value string, from, to int) string {
	switch {
	case sign == '!':
		m.carry(m.expand(value, from, to, 0), from, to)
	case m.just:
		if strings.HasPrefix(value, "`") {
			m.carry(strings.Trim(value, "`"), from, to)
		}
		return strings.Trim(value, `"'`)
	case sign == '+' && m.vars[name] != "":
		return m.vars[name] + " " + value
	case strings.Contains(value, "$(shell"):
		return m.expand(value, from, to, 0)
	}
	return value
}

// rule parses "targets: prerequisites ; recipe", or in a justfile "@name parameters:
// dependencies". It returns nil if the text is not a rule.
func (m *makefile) rule(text string, from, to int) *makeRule {
	head, rest, ok := strings.Cut(text, ":")
	if !ok || strings.HasPrefix(text, "[") {
		return nil
	}
	r := &makeRule{targets: strings.Fields(m.expand(head, from, to, 0))}
	if len(r.targets) == 0 {
		return nil
	}
	if m.just {
		r.targets = []string{strings.TrimPrefix(r.targets[0], "@")}
	}
	needs, recipe, more := strings.Cut(strings.TrimLeft(rest, ":"), ";")
	if more {
		r.lines = append(r.lines, recipeLine{strings.TrimSpace(recipe), from, to})
	}
	needs, _, _ = strings.Cut(needs, "#")
	r.needs = strings.Fields(strings.NewReplacer("|", " ", "&&", " ", "(", " ", ")", " ").Replace(m.expand(needs, from, to, 0)))
	return r
}

// run judges the recipes of a goal, after the recipes of its prerequisites.
func (m *makefile) run(goal string, depth int) {
	if depth > scan.MaxDepth || !m.sh.Env.Budget.Spend(1+len(m.rules)/16) {
		return
	}
	for _, r := range m.rules {
		if m.ran[r] || !slices.ContainsFunc(r.targets, func(t string) bool {
			return t == goal || strings.IndexByte(goal, scan.Hole) >= 0 || strings.Contains(t, "%") && paths.GlobMatch(strings.ReplaceAll(t, "%", "*"), goal)
		}) {
			continue
		}
		m.ran[r] = true
		for _, need := range r.needs {
			m.run(need, depth+1)
		}
		m.vars["@"] = goal
		m.recipe(r)
	}
}

// recipe judges the lines of a rule. Each line runs in its own shell, but if the first line starts
// with "#!", the program it names runs all of them.
func (m *makefile) recipe(r *makeRule) {
	if len(r.lines) > 0 && strings.HasPrefix(r.lines[0].text, "#!") {
		var text strings.Builder
		for _, l := range r.lines {
			text.WriteString(l.text + "\n")
		}
		first, last := r.lines[0], r.lines[len(r.lines)-1]
		m.sh.CarriedAs(m.sh.Env.Shebang(first.text), first.from, last.to, text.String(), "make")
		return
	}
	for _, l := range r.lines {
		m.carry(m.expand(strings.TrimLeft(l.text, "@-+"), l.from, l.to, 0), l.from, l.to)
	}
}

func (m *makefile) carry(text string, from, to int) {
	if text = strings.TrimSpace(text); text != "" {
		m.sh.Carried(from, to, text, "make")
	}
}

// expand replaces $(NAME), {{NAME}} and calls of a few functions by their values. An unknown value
// becomes a reference to a shell variable.
func (m *makefile) expand(text string, from, to, depth int) string {
	open := "$"
	if m.just {
		open = "{{"
	}
	if depth > scan.MaxLayers || !strings.Contains(text, open) || !m.sh.Env.Budget.Spend(1+len(text)/8) {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, open)
		if i < 0 || i+1 >= len(text) || b.Len() > scan.MaxValue {
			return b.String() + text
		}
		b.WriteString(text[:i])
		name, rest := m.reference(text[i+1:])
		if text = rest; name == "$" {
			b.WriteByte('$')
		} else {
			b.WriteString(m.value(strings.TrimSpace(name), from, to, depth))
		}
	}
}

// reference returns the name after a "$" or inside brackets, and the text after the reference.
func (m *makefile) reference(text string) (name, rest string) {
	switch {
	case m.just:
		name, rest, _ = strings.Cut(text[1:], "}}")
		return name, rest
	case text[0] == '(' || text[0] == '{':
		end := tokens.Balanced(text)
		return text[1:end], text[min(1+end, len(text)):]
	}
	return text[:1], text[1:]
}

// value returns the text that a variable name or a function call expands to.
func (m *makefile) value(name string, from, to, depth int) string {
	if f, args, ok := strings.Cut(name, " "); ok && !m.just {
		args = m.expand(strings.TrimSpace(args), from, to, depth+1)
		last := args[strings.LastIndexByte(args, ',')+1:]
		switch f {
		case "shell":
			m.carry(args, from, to)
		case "wildcard", "strip", "sort", "abspath", "realpath", "firstword", "basename", "notdir", "patsubst", "filter", "filter-out", "subst", "or", "if":
			return last
		case "addprefix":
			prefix, list, _ := strings.Cut(args, ",")
			return prefix + strings.TrimSpace(list)
		}
		return "${_}"
	}
	plain, _, _ := strings.Cut(name, ":") // ignore the substitution of $(SOURCES:.c=.o)
	if v, ok := m.vars[plain]; ok {
		return m.expand(v, from, to, depth+1)
	}
	if act.SyntaxName(plain) {
		return "${" + plain + "}"
	}
	return "${_}"
}

// runGenerate judges the commands in the //go:generate lines of a Go file.
func runGenerate(sh *interp.Process) {
	sh.Env.EachLine(sh.Src.Text, "\n", func(from, to int) {
		if rest, ok := strings.CutPrefix(sh.Src.Text[from:to], "//go:generate "); ok {
			sh.Carried(to-len(rest), to, rest, "go generate")
		}
	})
}
