package web

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/assurance"
)

// Letter is the text of a mail, as plain text.
type Letter struct {
	Subject, Text string
	Link          string // the one in the text
}

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

// ReviewLetter tells a reviewer of a decision that waits: the exact action in
// normal form and what the rules found. The values are an agent's; none has a line
// break. others is how many more came since the last letter.
func ReviewLetter(record jsontext.Value, others int, baseURL string) (Letter, error) {
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
	l := Letter{Subject: "A decision waits for your review: " + d.DecisionID, Link: baseURL + "/reviews/" + d.DecisionID}
	var text strings.Builder
	fmt.Fprintf(&text, "An agent wants to do what a person has to decide about.\n\nDecision %s of %s, %s, policy version %d.\n\nThe exact action (%s):\n",
		d.DecisionID, d.OrgID, d.IssuedAt, d.Policy.Version, d.Protocol)
	for _, m := range members {
		fmt.Fprintf(&text, "  %s: %s\n", m.Name, clip(m.Value))
	}
	text.WriteString("\nWhat the rules found:\n")
	for _, f := range d.Findings {
		fmt.Fprintf(&text, "  %s %s, %s: %s; wanted %s, got %s\n", f.Effect, f.RuleID, f.Field, f.Message, clip(f.Expected), clip(f.Actual))
	}
	fmt.Fprintf(&text, "\nResolve it: %s\n", l.Link)
	if others > 0 {
		fmt.Fprintf(&text, "\n%d more wait since the last letter: %s/reviews\n", others, baseURL)
	}
	l.Text = text.String()
	return l, nil
}

// maxLetterValue is how many characters of a value a letter repeats.
const maxLetterValue = 500

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxLetterValue {
		return string(runes[:maxLetterValue]) + "... (the page has all of it)"
	}
	return text
}
