package policy

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Rule describes the findings of one id. Each such finding links to the rule's page; a test
// requires a rule for every finding that a service can make.
type Rule struct {
	ID      string
	Catches string // what the rule finds, as a clause
	Why     string // why the finding matters, as a clause
	Instead string // what the caller should do, as a clause in the imperative
	Example string // JSON merge patch (RFC 7396): the service's Example, patched with it, triggers the rule
	Unseen  string // if there is no Example: why no request can trigger the rule
}

// RulePath returns the path of the rule's page on the service.
func RulePath(id string) string { return "/rules/" + id }

// Shown is the example request of a rule and the finding in its answer.
type Shown struct {
	Request jsontext.Value
	Finding jsontext.Value // the first finding of the rule
}

// Show answers the example of a rule. It returns an error if the example is refused or does not
// trigger the rule.
func (s Service) Show(r Rule) (Shown, error) {
	request, err := Patch([]byte(s.Example), []byte(r.Example))
	if err != nil {
		return Shown{}, fmt.Errorf("%s of %s: %w", r.ID, s.Name, err)
	}
	answer, err := s.Evaluate(request)
	if err != nil {
		return Shown{}, fmt.Errorf("%s of %s: the example is refused: %w", r.ID, s.Name, err)
	}
	var said struct {
		Findings []jsontext.Value `json:"findings"`
	}
	if err := json.Unmarshal(answer.Body, &said); err != nil {
		return Shown{}, fmt.Errorf("%s of %s: %w", r.ID, s.Name, err)
	}
	for _, finding := range said.Findings {
		if start, end, has := canon.Find(finding, "id"); has && string(finding[start:end]) == `"`+r.ID+`"` {
			return Shown{request, finding}, nil
		}
	}
	return Shown{}, fmt.Errorf("%s of %s: the example does not trigger the rule", r.ID, s.Name)
}

// Patch applies a JSON merge patch (RFC 7396) to target. The digits of numbers do not change.
func Patch(target, patch jsontext.Value) (jsontext.Value, error) {
	if patch.Kind() != '{' {
		return patch, nil
	}
	var members, changes map[string]jsontext.Value
	if target.Kind() == '{' {
		if err := json.Unmarshal(target, &members); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	if members == nil {
		members = map[string]jsontext.Value{}
	}
	for name, change := range changes {
		if change.Kind() == 'n' {
			delete(members, name)
			continue
		}
		patched, err := Patch(members[name], change)
		if err != nil {
			return nil, err
		}
		members[name] = patched
	}
	return json.Marshal(members, json.Deterministic(true))
}
