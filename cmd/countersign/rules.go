package main

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk"
)

// rulesCmd shows what the verdicts rest on.
type rulesCmd struct {
	List rulesListCmd `cmd:"" help:"List the rules: id, level, what each is about."`
	Show rulesShowCmd `cmd:"" help:"Show one rule: what it catches and what not, why, the safer way, examples that are judged now."`
}

type rulesListCmd struct {
	Category string `help:"Only rules of this category, such as destructive or payment." placeholder:"NAME"`
	Text     string `arg:"" optional:"" help:"Only rules with this text in their id or title."`
}

// Run prints one line per rule.
func (c *rulesListCmd) Run(o *output) error {
	shown := []actionrisk.Summary{}
	rows := table{heads: []string{"rule", "level", "category", "title"}}
	for _, r := range actionrisk.Summaries() {
		text := strings.ToLower(r.ID + " " + r.Title)
		if r.Retired || c.Category != "" && r.Category != c.Category || !strings.Contains(text, strings.ToLower(c.Text)) {
			continue
		}
		shown = append(shown, r)
		rows.add(r.ID, r.Level, r.Category, r.Title)
	}
	version, hash := actionrisk.Ruleset()
	return o.result(map[string]any{"rulesetVersion": version, "rulesetHash": hash, "rules": shown}, o.table(rows))
}

type rulesShowCmd struct {
	ID string `arg:"" help:"Id of the rule, as a verdict names it."`
}

// Run prints the rule's page.
func (c *rulesShowCmd) Run(o *output) error {
	r, known := actionrisk.RecordOf(c.ID)
	if !known {
		return fmt.Errorf("there is no rule of this name; countersign rules list shows all of them")
	}
	return o.result(r, rulePage(o, r))
}

func rulePage(o *output, r actionrisk.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s (%s)\n%s\n\n", o.styled(bold, r.ID), o.styled(levelStyles[r.Level], r.Level), r.Category, r.Title)
	if r.Retired {
		b.WriteString("retired: it is raised no more, and stands here for old verdicts\n\n")
	}
	part := func(head string, lines ...string) {
		for i, line := range lines {
			if line == "" {
				continue
			}
			if i > 0 {
				head = ""
			}
			fmt.Fprintf(&b, "%s  %s\n", o.styled(faint, fmt.Sprintf("%-10s", head)), line)
		}
	}
	part("catches", r.Catches)
	part("not", r.CatchesNot...)
	part("why", r.Why)
	part("moved by", r.Context...)
	part("taken back", map[string]string{"yes": "easily", "hard": "hardly", "no": "not at all"}[r.Reversible])
	part("instead", r.Instead)
	part("ask", r.Questions...)
	for _, group := range []struct {
		head string
		list []actionrisk.Judged
	}{{"raises it", r.Raised}, {"does not", r.NotRaised}, {"safer", r.Safer}} {
		rows := table{heads: []string{group.head, "level", "beside it"}}
		for _, e := range group.list {
			rows.add(e.Command, e.Risk, e.Beside())
		}
		if len(rows.rows) > 0 {
			if !o.terminal {
				fmt.Fprintf(&b, "\n%s:", group.head)
			}
			b.WriteString("\n" + o.table(rows))
		}
	}
	return b.String()
}
