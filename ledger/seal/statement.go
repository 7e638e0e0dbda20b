package seal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// says returns a one-line summary of the verification: what was signed, or what is wrong.
func (d *document) says(valid bool) string {
	if !valid {
		for _, c := range d.checks {
			if c.Result == Fail {
				return "NOT VALID " + c.Detail
			}
		}
		return "NOT VALID no signature could be checked"
	}
	first := d.found[0]
	if first.path == "" || first.path == "/receipt" {
		return "VALID " + strings.Join(append(first.statement(), first.times(first)), " · ")
	}
	return fmt.Sprintf("VALID %d records: %s · %s", len(d.found), strings.Join(d.counts(), ", "), first.times(d.found[len(d.found)-1]))
}

// counts lists each statement with the number of records that make it, in order of first
// appearance.
func (d *document) counts() []string {
	var order []string
	n := map[string]int{}
	for _, f := range d.found {
		what := f.statement()[0]
		if n[what]++; n[what] == 1 {
			order = append(order, what)
		}
	}
	for i, what := range order {
		order[i] = fmt.Sprintf("%d %s", n[what], what)
	}
	return order
}

// statement lists the main facts of a record, the most important first: the conformance of an
// assurance receipt, the decision or verdict of a record that has one, or else the kind of the
// record.
func (f found) statement() []string {
	if conformance := f.text("conformance"); conformance != "" {
		return f.with(conformance, f.text("outcome")+" after "+f.text("decision"), f.rules("findings"))
	}
	if workflow, err := canon.Members(f.members["workflow"]); err == nil && len(workflow) > 0 {
		w := found{members: workflow}
		return f.with(w.text("decision"), w.text("risk"), w.rules("matchedRuleIds"))
	}
	switch {
	case f.members["approvalId"] != nil && f.text("verdict") != "":
		return f.with("approval "+f.text("verdict"), f.text("decisionId"))
	case f.text("verdict") != "":
		return f.with("attested "+f.text("verdict"), f.rules("findingIds"))
	case f.text("decision") != "":
		return f.with(f.text("decision"), f.text("service"), f.rules("findings"))
	case f.text("service") != "":
		return f.with("answer", f.text("service"))
	}
	kind := strings.TrimSuffix(strings.TrimPrefix(f.envelope.Integrity.PayloadType, "application/vnd.svc."), ".v1+json")
	return f.with("record " + word(jsontext.Value(`"`+kind+`"`)))
}

// with returns the parts that are not empty.
func (f found) with(parts ...string) []string {
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

// text returns a string member if it is a plain word, "another value" if it is another string, and
// an empty text if it is no string.
func (f found) text(name string) string {
	if value := f.members[name]; value.Kind() == '"' {
		return word(value)
	}
	return ""
}

// rules returns the first three rule ids of a member that lists ids or findings, and how many more
// follow.
func (f found) rules(name string) string {
	const most = 3
	var list []jsontext.Value
	if json.Unmarshal(f.members[name], &list) != nil {
		return ""
	}
	var ids []string
	for _, element := range list {
		if members, err := canon.Members(element); element.Kind() == '{' && err == nil {
			element = members["ruleId"]
		}
		if element.Kind() == '"' {
			ids = append(ids, word(element))
		}
	}
	if more := len(ids) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), more)
	}
	return strings.Join(ids, ", ")
}

// times returns the period from the first to the last record of a document, and the id of the
// signing key.
func (f found) times(last found) string {
	from, to := f.time(), last.time()
	if from != to && from != "" && to != "" {
		from = min(from, to) + " to " + max(from, to)
	}
	return strings.Join(f.with(from, "key "+word(jsontext.Value(`"`+f.envelope.Integrity.KeyID+`"`))), " · ")
}

// time returns the time in the record, to the second, or an empty text.
func (f found) time() string {
	for _, name := range []string{"issuedAt", "receivedAt"} {
		if t := f.text(name); t != "" {
			seconds, _, _ := strings.Cut(strings.TrimSuffix(t, "Z"), ".")
			return seconds + "Z"
		}
	}
	return ""
}
