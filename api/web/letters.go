package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/assurance"
)

// Member is a name and a value of an action.
type Member struct{ Name, Value string }

// Action lists the members of a normalized intent, sorted.
func Action(normalized jsontext.Value) ([]Member, error) {
	var members map[string]any
	if err := json.Unmarshal(normalized, &members); err != nil {
		return nil, err
	}
	list := []Member{}
	for name, value := range members {
		text, isText := value.(string)
		if !isText { // flags that only stand there when they are true
			text = "true"
		}
		list = append(list, Member{name, text})
	}
	slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ReviewLetter tells a reviewer of a decision that waits what its page says: who
// asks, the exact action in normal form, what the rules found. The arguments of a
// tool are on the page only: a letter cannot be erased. The values are an agent's;
// none but the purpose has a line break. waiting is how many decisions wait in all.
// organization is the name of the decision's; the link leads to its page in it.
func ReviewLetter(record jsontext.Value, organization string, waiting int, baseURL string) (Letter, error) {
	d, err := assurance.ReadDecision(record)
	if err != nil {
		return Letter{}, err
	}
	normalized, err := json.Marshal(d.Normalized)
	if err != nil {
		return Letter{}, err
	}
	members, err := Action(normalized)
	if err != nil {
		return Letter{}, err
	}
	sentence := Who(d.Subject) + " wants to " + Deed(d.Protocol, d.Normalized)
	l := Letter{Subject: "Waits for your review: " + clipTo(sentence, maxSubject), Link: baseURL + inOrganization("/reviews/"+d.DecisionID, d.OrgID)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s. The policy leaves it to a person: %s.\n\nRun %s.", sentence, Because(d.Findings), visible(d.Subject.RunID))
	if d.Subject.Purpose != "" {
		fmt.Fprintf(&text, " Its purpose, in the agent's words: %q", clip(visible(d.Subject.Purpose)))
	}
	fmt.Fprintf(&text, "\nDecision %s of %s, %s, policy version %d.\n\nThe exact action (%s):\n",
		d.DecisionID, visible(organization), d.IssuedAt, d.Policy.Version, d.Protocol)
	for _, m := range members {
		fmt.Fprintf(&text, "  %s: %s\n", m.Name, clip(m.Value))
	}
	text.WriteString("\nWhat the rules found:\n")
	for _, f := range d.Findings {
		fmt.Fprintf(&text, "  %s %s, %s: %s; wanted %s, got %s\n", f.Effect, f.RuleID, f.Field, f.Message, clip(f.Expected), clip(f.Actual))
	}
	fmt.Fprintf(&text, "\nResolve it: %s\n", l.Link)
	if waiting > 1 {
		atLeast := ""
		if waiting == countedReviews {
			atLeast = "At least "
		}
		fmt.Fprintf(&text, "\n%s%d decisions wait in all: %s\n", atLeast, waiting, baseURL+inOrganization("/reviews", d.OrgID))
	}
	l.Text = text.String()
	return l, nil
}

// maxLetterValue is how many characters of a value a letter repeats.
const maxLetterValue = 500

func clip(text string) string {
	if short := clipTo(text, maxLetterValue); short != text {
		return short + " (the page has all of it)"
	}
	return text
}

// maxSubject keeps a subject readable in a list of letters.
const maxSubject = 120

func clipTo(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
