package discovery

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/api/site"
	"github.com/countersign/countersign/api/words"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/assurance"
)

// Findings returns the data of a page for each finding id, of decisions and of component services.
// It computes the examples.
var Findings = sync.OnceValues(func() (list []site.Finding, err error) {
	add := func(id string, of site.FindingOf) {
		if i := slices.IndexFunc(list, func(f site.Finding) bool { return f.ID == id }); i >= 0 {
			list[i].Of = append(list[i].Of, of)
			return
		}
		list = append(list, site.Finding{ID: id, Of: []site.FindingOf{of}})
	}
	documented, err := assurance.Document()
	if err != nil {
		return nil, err
	}
	for _, d := range documented {
		add(d.ID, decisionFinding(d))
	}
	for _, s := range services.List() {
		if s.Rules == nil {
			continue
		}
		for _, r := range s.Rules() {
			of, err := serviceFinding(s, r)
			if err != nil {
				return nil, err
			}
			add(r.ID, of)
		}
	}
	return list, nil
})

func decisionFinding(d assurance.Documented) site.FindingOf {
	of := site.FindingOf{Of: "Purchase decisions", Page: "docs/assurance", Level: strings.Join(d.Effects, " or "),
		Catches: d.Catches, Why: d.Why, Instead: d.Instead, About: "A policy, and an intent that is decided under it:",
		Request: words.IndentJSON(d.Request), Finding: words.IndentJSON(d.Finding)}
	switch {
	case strings.HasPrefix(d.ID, "receipt."):
		of.Of, of.About = "Execution receipts", "A decision, and the receipt that was reported for it:"
	case len(d.Protocols) == 0 && d.Request != nil:
		of.Of, of.Level, of.About = "Reading a policy", severityOf(d.Finding), "A policy:"
	}
	return of
}

func serviceFinding(s policy.Service, r policy.Rule) (site.FindingOf, error) {
	of := site.FindingOf{Of: s.Title, Page: "tools/" + s.Operation, Service: true, Catches: r.Catches, Why: r.Why, Instead: r.Instead, Unseen: r.Unseen}
	for _, other := range services.List() {
		if slices.Contains(other.PassesOn, s.Name) {
			of.Passed = append(of.Passed, site.Service{Operation: other.Operation, Title: other.Title})
		}
	}
	if r.Unseen != "" {
		return of, nil
	}
	shown, err := s.Show(r)
	if err != nil {
		return of, err
	}
	of.Level, of.Finding = severityOf(shown.Finding), words.IndentJSON(shown.Finding)
	of.About, of.Request = "The example of ["+s.Title+"](/tools/"+s.Operation+") with these members changed; null removes a member:", words.IndentJSON(clipped([]byte(r.Example)))
	if r.Example == "{}" {
		of.About, of.Request = "The example of ["+s.Title+"](/tools/"+s.Operation+"), unchanged:", words.IndentJSON(shown.Request)
	}
	return of, nil
}

func severityOf(finding jsontext.Value) string {
	var said struct {
		Severity string `json:"severity"`
	}
	if json.Unmarshal(finding, &said) != nil { // cannot happen, because this program has written the text
		return ""
	}
	return said.Severity
}

// shownText is the largest number of characters of a text in an example. Some texts are long on
// purpose.
const shownText = 400

// clipped returns JSON in which long texts are shortened.
func clipped(text jsontext.Value) jsontext.Value {
	switch text.Kind() {
	case '"':
		var s string
		if json.Unmarshal(text, &s) != nil || utf8.RuneCountInString(s) <= shownText {
			return text
		}
		text, _ = json.Marshal(string([]rune(s)[:shownText]) + "…")
	case '{':
		var members map[string]jsontext.Value
		if json.Unmarshal(text, &members) != nil {
			return text
		}
		for name, value := range members {
			members[name] = clipped(value)
		}
		text, _ = json.Marshal(members, json.Deterministic(true))
	case '[':
		var elements []jsontext.Value
		if json.Unmarshal(text, &elements) != nil {
			return text
		}
		for i, value := range elements {
			elements[i] = clipped(value)
		}
		text, _ = json.Marshal(elements)
	}
	return text
}
