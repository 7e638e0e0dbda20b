package actionrisk

import (
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// Summary is one row of the list of rules, without examples. The whole list is below 64 KB.
type Summary struct {
	ID       string `json:"id"`
	Level    string `json:"level"` // level before the context changes it
	Category string `json:"category"`
	Title    string `json:"title"`
	Retired  bool   `json:"retired,omitempty"`
}

// Record is the page of one rule: a description, and examples with the verdicts of this release.
type Record struct {
	Summary
	Catches    string   `json:"catches" jsonschema_description:"Effect of the action, one clause."`
	CatchesNot []string `json:"catchesNot" jsonschema_description:"Similar cases that the rule does not match, one clause each."`
	Why        string   `json:"why" jsonschema_description:"Reason for the level of the rule."`
	Reversible string   `json:"reversible" jsonschema:"enum=yes,enum=hard,enum=no"`
	Context    []string `json:"context" jsonschema_description:"How other members of the action change the level."`
	Instead    string   `json:"instead,omitempty" jsonschema_description:"A safer alternative, in words."`
	Safer      []Judged `json:"safer" jsonschema_description:"Safer alternatives as actions. None of them is stopped."`
	Questions  []string `json:"questions" jsonschema_description:"Questions that a reviewer should answer."`
	Raised     []Judged `json:"raised" jsonschema_description:"Examples that trigger the rule."`
	NotRaised  []Judged `json:"notRaised" jsonschema_description:"Similar examples that do not trigger the rule."`
}

// Judged is an example with its verdict.
type Judged struct {
	act.Action
	Risk    string   `json:"risk" jsonschema:"enum=low,enum=medium,enum=high,enum=critical"`
	RuleIDs []string `json:"matchedRuleIds"`
}

// OtherMembers returns the members of the action other than its command, as text.
func (j Judged) OtherMembers() string {
	var said []string
	for _, m := range []struct{ name, value string }{
		{"environment", j.Environment}, {"branch", j.Branch}, {"target", j.Target}, {"cwd", j.Cwd}, {"repo", j.Repo},
	} {
		if m.value != "" {
			said = append(said, m.name+" "+m.value)
		}
	}
	if j.FailClosedOnUnmatched {
		said = append(said, "failClosedOnUnmatched")
	}
	return strings.Join(said, ", ")
}

// safety is the row of a rule in safer.json.
type safety struct {
	Instead  string   `json:"instead,omitempty"`  // used if the rule's own row has no alternative
	Commands []string `json:"commands,omitempty"` // safer actions, in the format of the examples
}

// saferWays is loaded when the first Record is built. No verdict needs it.
var saferWays = sync.OnceValue(func() map[string]safety {
	ways := map[string]safety{}
	if err := rules.DecodeTable("safer", &ways); err != nil { // a bug, which any test finds
		panic("actionrisk: " + err.Error())
	}
	return ways
})

// Summaries returns all rules in the order of the tables, without examples.
func Summaries() []Summary {
	rules := facts.Rules()
	out := make([]Summary, len(rules))
	for i := range rules {
		out[i] = summarize(rules[i])
	}
	return out
}

func summarize(r *facts.Rule) Summary {
	return Summary{r.ID, r.Level.String(), r.Category, r.Title, r.Retired}
}

// RecordOf returns the page of the rule that has this id, and whether there is one. It judges the
// rule's examples again, at about ten microseconds each.
func RecordOf(id string) (Record, bool) {
	r := facts.Tables().Rule(id)
	if r == nil {
		return Record{}, false
	}
	way := saferWays()[id]
	out := Record{
		Summary: summarize(r), Catches: r.Effect, CatchesNot: catchesNot(r), Why: why(r), Reversible: r.Reversible, Context: movedBy(r),
		Instead: r.Instead, Questions: r.Questions, Safer: judgeAll(way.Commands), Raised: judgeAll(r.Yes), NotRaised: judgeAll(r.No),
	}
	if out.Instead == "" {
		out.Instead = way.Instead
	}
	return out, true
}

// judgeAll parses examples and judges them.
func judgeAll(examples []string) []Judged {
	out := make([]Judged, len(examples))
	for i, text := range examples {
		a := exampleAction(text)
		verdict := Assess(a)
		out[i] = Judged{a, verdict.Risk.String(), verdict.RuleIDs()}
	}
	return out
}

// exampleAction parses an example of a table: a command, and after " ## " other members of the
// action as name=value, separated by blanks.
func exampleAction(text string) act.Action {
	command, members, _ := strings.Cut(text, " ## ")
	a := act.Action{Command: command}
	for _, m := range strings.Fields(members) {
		name, value, _ := strings.Cut(m, "=")
		switch name {
		case "environment":
			a.Environment = value
		case "branch":
			a.Branch = value
		case "target":
			a.Target = value
		case "cwd":
			a.Cwd = value
		case "repo":
			a.Repo = value
		case "failClosed":
			a.FailClosedOnUnmatched = true
		}
	}
	return a
}

// catchesNot returns cases that look similar but do not trigger the rule: mentions, dry runs and
// temporary containers.
func catchesNot(r *facts.Rule) []string {
	out := []string{"text that only names the action: what is printed, searched for, quoted in a message or written in a comment"}
	if len(r.Match) > 0 && !judge.OutlastsDryRun(r) {
		out = append(out, "a dry run of the same tool, where the tool has one")
	}
	if len(r.Match) > 0 && !judge.OutlastsScratch(r) {
		out = append(out, "the same in a container that is created for one run and then removed")
	}
	return out
}

// why explains a rule's level in one clause without repeating the title.
func why(r *facts.Rule) string {
	undo := map[string]string{"yes": "this can be undone", "hard": "this can be undone only with effort", "no": "this cannot be undone"}[r.Reversible]
	end := map[act.Level]string{
		act.Low: "it is recorded and allowed", act.Medium: "it is reported and allowed",
		act.High: "a person decides", act.Critical: "a person decides, whatever the environment",
	}[r.Level]
	if r.Level == act.Critical && !strings.Contains(r.Class, "p") {
		end = "a person decides"
	}
	if stopped := r.Level >= act.High; stopped == (r.Reversible == "yes") {
		return undo + ", but " + end
	}
	return undo + ", so " + end
}

// Detail returns the description of the effect if that contains more than the title, otherwise "".
func (r Record) Detail() string {
	if strings.EqualFold(r.Catches, r.Title) {
		return ""
	}
	return r.Catches
}

// movedBy explains which context changes the level, by the letters of the rule's class.
func movedBy(r *facts.Rule) []string {
	out := []string{}
	for _, c := range r.Class {
		out = append(out, map[rune]string{
			'e': "production raises the level by one, development lowers it by one",
			'b': "a protected branch raises the level by one",
			'c': "a test network lowers the level by one",
			'p': "nothing lowers the level",
		}[c])
	}
	return out
}
