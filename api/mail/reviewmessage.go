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

// reviewMessage writes the e-mail about a decision that waits: who requested it, the exact
// normalized action, and the findings of the rules. It omits the arguments of a tool, because an
// e-mail cannot be erased; the page of the decision shows them. Texts of the agent are quoted on
// one line each, and the subject contains none. organization is the name of the organization;
// waiting is the total number of decisions that wait.
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
	title := words.Title(d.Protocol, d.Normalized)
	m := Message{Subject: title + " waits for your review: " + d.DecisionID, Link: baseURL + "/reviews/" + d.DecisionID + "?org=" + url.QueryEscape(d.OrgID)}
	var text strings.Builder
	fmt.Fprintf(&text, "%s wants to %s.\nThe policy requires that a person approves it: %s.\n%s\n\nRun: %s\n",
		words.Who(d.Subject), words.Deed(d.Protocol, d.Normalized), words.Because(d.Findings), words.Unverified, quote(d.Subject.RunID))
	if d.Subject.Purpose != "" {
		fmt.Fprintf(&text, "Purpose: %s\n", quote(d.Subject.Purpose))
	}
	fmt.Fprintf(&text, "Decision: %s of %s, %s, policy version %d\n\nThe action (%s):\n",
		d.DecisionID, words.Visible(organization), d.IssuedAt, d.Policy.Version, words.Kind(d.Protocol))
	for _, member := range members {
		fmt.Fprintf(&text, "  %s: %s\n", member.Name, quote(member.Value))
	}
	text.WriteString("\nFindings of the rules:\n")
	for _, f := range d.Findings {
		fmt.Fprintf(&text, "  %s (%s, %s): %s; policy requires %s, request has %s\n", strings.ReplaceAll(f.Effect, "_", " "), f.RuleID, f.Field, f.Message,
			quote(f.Expected), quote(f.Actual))
	}
	fmt.Fprintf(&text, "\nApprove or reject it: %s\n", m.Link)
	if waiting > 1 {
		atLeast := ""
		if waiting == countedReviews {
			atLeast = "At least "
		}
		fmt.Fprintf(&text, "\n%s%d decisions in total wait for a review: %s\n", atLeast, waiting, baseURL+"/reviews?org="+url.QueryEscape(d.OrgID))
	}
	m.Text = text.String()
	return m, nil
}

// quote quotes a text of an agent. It cuts a long text, and adds that the page shows all of it.
func quote(text string) string {
	if runes := []rune(text); len(runes) > maxValue {
		return words.Quote(string(runes[:maxValue])) + " (cut off here; the page shows the whole text)"
	}
	return words.Quote(text)
}
