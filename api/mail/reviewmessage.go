package mail

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/policy/assurance"
)

// reviewMessage tells a reviewer about a decision that waits: who asks, the exact action in
// normal form, and what the rules found. It leaves out the arguments of a tool, because an
// e-mail cannot be erased; the page of the decision shows them. The values are an agent's; of
// them only the purpose may have line breaks. organization is the name of the decision's
// organization, waiting the number of decisions that wait in all.
func reviewMessage(record jsontext.Value, organization string, waiting int, baseURL string) (Message, error) {
	d, err := assurance.ReadDecision(record)
	if err != nil {
		return Message{}, err
	}
	normalized, err := json.Marshal(d.Normalized)
	if err != nil {
		return Message{}, err
	}
	members, err := words.Action(normalized)
	if err != nil {
		return Message{}, err
	}
	sentence := words.Who(d.Subject) + " wants to " + words.Deed(d.Protocol, d.Normalized)
	m := Message{Subject: "Waits for your review: " + clipTo(sentence, maxSubject), Link: baseURL + "/reviews/" + d.DecisionID + "?org=" + url.QueryEscape(d.OrgID)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s. The policy leaves it to a person: %s.\n\nRun %s.", sentence, words.Because(d.Findings), words.Visible(d.Subject.RunID))
	if d.Subject.Purpose != "" {
		fmt.Fprintf(&text, " Its purpose, in the agent's words: %q", clip(words.Visible(d.Subject.Purpose)))
	}
	fmt.Fprintf(&text, "\nDecision %s of %s, %s, policy version %d.\n\nThe exact action (%s):\n",
		d.DecisionID, words.Visible(organization), d.IssuedAt, d.Policy.Version, d.Protocol)
	for _, member := range members {
		fmt.Fprintf(&text, "  %s: %s\n", member.Name, clip(member.Value))
	}
	text.WriteString("\nWhat the rules found:\n")
	for _, f := range d.Findings {
		fmt.Fprintf(&text, "  %s %s, %s: %s; wanted %s, got %s\n", f.Effect, f.RuleID, f.Field, f.Message, clip(f.Expected), clip(f.Actual))
	}
	fmt.Fprintf(&text, "\nResolve it: %s\n", m.Link)
	if waiting > 1 {
		atLeast := ""
		if waiting == countedReviews {
			atLeast = "At least "
		}
		fmt.Fprintf(&text, "\n%s%d decisions wait in all: %s\n", atLeast, waiting, baseURL+"/reviews?org="+url.QueryEscape(d.OrgID))
	}
	m.Text = text.String()
	return m, nil
}

// clip shortens a value and says where the rest is.
func clip(text string) string {
	if short := clipTo(text, maxValue); short != text {
		return short + " (the page has all of it)"
	}
	return text
}

func clipTo(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
