package gate

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Rules has the commands that list the gate's rules and show one of them.
type Rules struct {
	List RulesList `cmd:"" help:"List the rules with id, level and title."`
	Show RulesShow `cmd:"" help:"Show one rule: what it matches and does not match, the reason, the safer way, and examples with their verdicts."`
}

// RulesList lists the rules.
type RulesList struct {
	Category string `help:"Only rules of this category, such as destructive or payment." placeholder:"NAME"`
	Text     string `arg:"" optional:"" help:"Only rules with this text in their id or title."`
}

// Run prints a line for each rule.
func (c *RulesList) Run(o *Output) error {
	shown := []actionrisk.Summary{}
	rows := screen.Table{Heads: []string{"rule", "level", "category", "title"}}
	for _, r := range actionrisk.Summaries() {
		text := strings.ToLower(r.ID + " " + r.Title)
		if r.Retired || c.Category != "" && r.Category != c.Category || !strings.Contains(text, strings.ToLower(c.Text)) {
			continue
		}
		shown = append(shown, r)
		rows.Add(r.ID, r.Level, r.Category, r.Title)
	}
	version, hash := actionrisk.Ruleset()
	return o.Result(map[string]any{"rulesetVersion": version, "rulesetHash": hash, "rules": shown}, o.Table(rows))
}

// RulesShow shows one rule.
type RulesShow struct {
	ID string `arg:"" help:"Id of the rule, as a verdict shows it."`
}

// Run prints the description of the rule.
func (c *RulesShow) Run(o *Output) error {
	r, known := actionrisk.RecordOf(c.ID)
	if !known {
		return fmt.Errorf("no rule has this id; countersign rules list shows all of them")
	}
	return o.Result(r, rulePage(o, r))
}

func rulePage(o *Output, r actionrisk.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s (%s)\n%s\n\n", o.Styled(screen.Bold, r.ID), o.Styled(levelStyles[r.Level], r.Level), r.Category, r.Title)
	if r.Retired {
		b.WriteString("retired: new verdicts do not contain this rule; it is shown for old verdicts\n\n")
	}
	part := func(head string, lines ...string) {
		for i, line := range lines {
			if line == "" {
				continue
			}
			if i > 0 {
				head = ""
			}
			fmt.Fprintf(&b, "%s  %s\n", o.Styled(screen.Faint, fmt.Sprintf("%-10s", head)), line)
		}
	}
	part("catches", r.Detail())
	part("not", r.CatchesNot...)
	part("why", r.Why)
	part("moved by", r.Context...)
	part("reversible", map[string]string{"yes": "yes", "hard": "with effort", "no": "no"}[r.Reversible])
	part("instead", r.Instead)
	part("ask", r.Questions...)
	for _, group := range []struct {
		head string
		list []actionrisk.Judged
	}{{"raises it", r.Raised}, {"does not", r.NotRaised}, {"safer", r.Safer}} {
		rows := screen.Table{Heads: []string{group.head, "level", "context"}}
		for _, e := range group.list {
			rows.Add(e.Command, e.Risk, e.OtherMembers())
		}
		if len(rows.Rows) > 0 {
			if !o.Terminal {
				fmt.Fprintf(&b, "\n%s:", group.head)
			}
			b.WriteString("\n" + o.Table(rows))
		}
	}
	return b.String()
}
