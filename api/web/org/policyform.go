package org

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/words"
)

// policyForm shows a policy as fields next to its text. The text counts: the form is made from it, and
// only the fields that were changed since are written into it.
type policyForm struct {
	Fields   []policyField
	Made     string   // the text that the fields were made from
	Written  []string // labels of the fields that were just written into the text
	Problems []string // why the changed fields are not written; if there is one, no field is
}

// Open reports whether the form was used, so that the page shows it opened.
func (f policyForm) Open() bool { return len(f.Written)+len(f.Problems) > 0 }

// policyField is one member of a policy in the form.
type policyField struct {
	Name, Label, Hint, Kind string
	Value                   string // of a flag: "true", or nothing
	Kept                    bool   // it was written in the form, and is not in the text
}

// policyMembers returns the members of a text. isObject is false if it is not a JSON object.
func policyMembers(text string) (members map[string]jsontext.Value, isObject bool) {
	err := json.Unmarshal([]byte(text), &members)
	return members, err == nil && members != nil
}

// policyFields returns the members of a text in the order of the form. A list has one entry a line. An
// empty field means that the member is absent; the word none is a list without entries, which allows
// nothing.
func policyFields(text string) []policyField {
	members, _ := policyMembers(text) // a text that cannot be read leaves the form empty
	fields := []policyField{
		{Name: "maxUsdPerTransaction", Label: "At most, for one purchase", Hint: "US dollars", Kind: "number"},
		{Name: "allowedHosts", Label: "Hosts that may be paid", Hint: "one a line; *.example.com for all below", Kind: "list"},
		{Name: "blockedHosts", Label: "Hosts that never may", Kind: "list"},
		{Name: "allowedNetworks", Label: "Networks", Hint: "base, ethereum, solana …", Kind: "list"},
		{Name: "allowedPayTo", Label: "Addresses that may receive", Kind: "list"},
		{Name: "allowedMcpServers", Label: "MCP servers that may be called", Kind: "list"},
		{Name: "allowedMcpTools", Label: "Tools that may be called", Hint: "tool, or server/tool", Kind: "list"},
		{Name: "blockedMcpTools", Label: "Tools that never may", Kind: "list"},
		{Name: "reviewMcpRiskAtOrAbove", Label: "A person decides from this declared risk on", Hint: "medium, high or critical", Kind: "text"},
		{Name: "requireHttps", Label: "https only", Kind: "flag"},
		{Name: "requireExactScheme", Label: "Scheme exact only", Kind: "flag"},
		{Name: "requireResourceBinding", Label: "The payment names its resource", Kind: "flag"},
		{Name: "requirePaymentIdentifier", Label: "Every payment has an identifier", Kind: "flag"},
		{Name: "requireMcpArgumentBinding", Label: "Tool calls name their arguments", Kind: "flag"},
	}
	for i, f := range fields {
		value, present := members[f.Name]
		if !present {
			continue
		}
		var list []string
		switch {
		case f.Kind == "flag":
			if string(value) == "true" {
				fields[i].Value = "true"
			}
		case f.Kind == "list" && json.Unmarshal(value, &list) == nil:
			fields[i].Value = strings.Join(list, "\n")
			if len(list) == 0 {
				fields[i].Value = "none"
			}
		default:
			fields[i].Value = strings.Trim(string(value), `"`)
		}
	}
	return fields
}

// formOf makes the form of a text.
func formOf(text string) policyForm {
	f := policyForm{Fields: policyFields(text)}
	if _, isObject := policyMembers(text); isObject {
		f.Made = text
	}
	return f
}

// plain returns a value without the white space and empty lines that browsers and people add.
func (f policyField) plain(value string) string {
	var lines []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// given returns the value of the field in a form. A field that was not sent keeps its value.
func (f policyField) given(form url.Values) string {
	if f.Kind != "flag" && !form.Has("f_"+f.Name) {
		return f.plain(f.Value)
	}
	return f.plain(form.Get("f_" + f.Name))
}

// member returns the value of a field as JSON, nil if it is empty, or the problem with it.
func (f policyField) member(given string) (value jsontext.Value, problem string) {
	var says any = given
	switch {
	case given == "":
		return nil, ""
	case f.Kind == "flag":
		says = true
	case f.Kind == "number":
		if value := jsontext.Value(given); value.IsValid() && value.Kind() == '0' {
			return value, ""
		}
		return nil, f.Name + " must be a number, such as 2.50"
	case f.Kind == "list":
		list := []string{}
		for line := range strings.Lines(given) {
			if line = strings.TrimSpace(line); line != "none" {
				list = append(list, line)
			}
		}
		says = list
	}
	value, err := json.Marshal(says)
	if err != nil {
		return nil, f.Name + " has characters that are no text"
	}
	return value, ""
}

// writeForm writes the fields that were changed in the form into the text. If a field cannot be read,
// was changed in the text as well, or the text is not a JSON object, it writes none of them, and they
// stay in the form.
func writeForm(text string, form url.Values) (string, policyForm) {
	if !form.Has("was") { // only the text was sent
		return text, formOf(text)
	}
	made := lineFeeds(form.Get("was"))
	before := policyFields(made)
	members, isObject := policyMembers(text)
	f := policyForm{Fields: policyFields(text), Made: text}
	if !isObject {
		f = policyForm{Fields: policyFields(made), Made: made}
	}
	var changed []string
	for i := range f.Fields {
		field := &f.Fields[i]
		given, was, is := before[i].given(form), field.plain(before[i].Value), field.plain(field.Value)
		if given == was || given == is {
			continue
		}
		field.Value, field.Kept = given, true
		changed = append(changed, field.Label)
		value, problem := field.member(given)
		if problem != "" {
			f.Problems = append(f.Problems, problem)
		}
		if is != was && isObject {
			f.Problems = append(f.Problems, field.Name+" was changed in the JSON as well as in the form: if the form is right, write it into the JSON once more")
		}
		switch {
		case value == nil:
			delete(members, field.Name)
		case isObject:
			members[field.Name] = value
		}
	}
	switch {
	case len(changed) == 0:
		return text, f
	case !isObject:
		f.Problems = append(f.Problems, "the text is no JSON object: mend it, the form keeps what you changed")
		return text, f
	case len(f.Problems) > 0:
		return text, f
	}
	whole, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		f.Problems = append(f.Problems, "the text and the form together are no JSON")
		return text, f
	}
	written := formOf(words.IndentJSON(whole))
	written.Written = changed
	return written.Made, written
}

// lineFeeds returns a text of a form with the line breaks that it had before it was sent.
func lineFeeds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
