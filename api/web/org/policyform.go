package org

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/words"
)

// policyForm shows a policy as form fields next to its JSON text. The text is authoritative: the
// fields are filled from it, and only fields that the person has changed are written into it.
type policyForm struct {
	Fields   []policyField
	Made     string   // text from which the fields were filled
	Written  []string // labels of the fields that were just written into the text
	Problems []string // problems with the changed fields; if there is any, no field is written into the text
}

// Open reports whether the form was used. If so, the page shows it expanded.
func (f policyForm) Open() bool { return len(f.Written)+len(f.Problems) > 0 }

// policyField is the form field of one member of a policy.
type policyField struct {
	Name, Label, Hint, Kind string
	Value                   string // for a flag "true" or empty
	Kept                    bool   // the form has a value that is not in the text
}

// policyMembers returns the members of a JSON object. isObject is false if the text is not an
// object.
func policyMembers(text string) (members map[string]jsontext.Value, isObject bool) {
	err := json.Unmarshal([]byte(text), &members)
	return members, err == nil && members != nil
}

// policyFields returns the members of a policy in the order of the form. A list has one entry per
// line. An empty field means that the member is absent. The word "none" means an empty list, which
// allows nothing.
func policyFields(text string) []policyField {
	members, _ := policyMembers(text) // the form is empty if the text is not JSON
	fields := []policyField{
		{Name: "maxUsdPerTransaction", Label: "Largest amount of one payment", Hint: "US dollars", Kind: "number"},
		{Name: "allowedHosts", Label: "Hosts that may be paid", Hint: "one per line; *.example.com also allows its subdomains", Kind: "list"},
		{Name: "blockedHosts", Label: "Hosts that may never be paid", Kind: "list"},
		{Name: "allowedNetworks", Label: "Networks", Hint: "base, ethereum, solana …", Kind: "list"},
		{Name: "allowedPayTo", Label: "Payee addresses that may be paid", Kind: "list"},
		{Name: "allowedMcpServers", Label: "MCP servers that may be called", Kind: "list"},
		{Name: "allowedMcpTools", Label: "Tools that may be called", Hint: "tool, or server/tool", Kind: "list"},
		{Name: "blockedMcpTools", Label: "Tools that may never be called", Kind: "list"},
		{Name: "reviewMcpRiskAtOrAbove", Label: "Declared risk from which a person must approve", Hint: "medium, high or critical", Kind: "text"},
		{Name: "requireHttps", Label: "Require https", Kind: "flag"},
		{Name: "requireExactScheme", Label: "Require the scheme exact", Kind: "flag"},
		{Name: "requireResourceBinding", Label: "Require that the payment names its resource", Kind: "flag"},
		{Name: "requirePaymentIdentifier", Label: "Require an identifier in every payment", Kind: "flag"},
		{Name: "requireMcpArgumentBinding", Label: "Require the arguments in every tool call", Kind: "flag"},
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

func formOf(text string) policyForm {
	f := policyForm{Fields: policyFields(text)}
	if _, isObject := policyMembers(text); isObject {
		f.Made = text
	}
	return f
}

// plain removes white space around lines, and empty lines, because browsers and people add them.
func (f policyField) plain(value string) string {
	var lines []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// given returns the value of the field in the form that was sent, or the value from the text if
// the field was not sent.
func (f policyField) given(form url.Values) string {
	if f.Kind != "flag" && !form.Has("f_"+f.Name) {
		return f.plain(f.Value)
	}
	return f.plain(form.Get("f_" + f.Name))
}

// member returns the value of a field as JSON, or nil if the field is empty. If the field is
// invalid, it returns the problem.
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
		return nil, f.Label + ": this must be a number, such as 2.50"
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
		return nil, f.Label + ": this has characters that are not valid Unicode"
	}
	return value, ""
}

// writeForm writes the changed fields of the form into the text. It writes no field if one is
// invalid, if one was changed in the text as well, or if the text is not a JSON object. The form
// then keeps the changes.
func writeForm(text string, form url.Values) (string, policyForm) {
	if !form.Has("was") { // the form has no fields for single members, so only the text is used
		return text, formOf(text)
	}
	made := lineFeeds(form.Get("was"))
	before := policyFields(made)
	members, isObject := policyMembers(text)
	f := policyForm{Fields: policyFields(text), Made: text}
	if !isObject {
		f = policyForm{Fields: policyFields(made), Made: made}
	}
	// Take the fields that differ both from the text before and from the text after the person's
	// edit.
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
			f.Problems = append(f.Problems, field.Name+" was changed both in the JSON and in the form: write the right value into the JSON")
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
		f.Problems = append(f.Problems, "the text is not a JSON object: fix it; the form keeps your changes")
		return text, f
	case len(f.Problems) > 0:
		return text, f
	}
	// Write the changed members into the text.
	whole, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		f.Problems = append(f.Problems, "the text and the form cannot be combined into a JSON object")
		return text, f
	}
	written := formOf(words.IndentJSON(whole))
	written.Written = changed
	return written.Made, written
}

// lineFeeds replaces the CRLF line breaks that browsers send by LF.
func lineFeeds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
