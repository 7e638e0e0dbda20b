package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Programs that print lines of a form the command gives (git for-each-ref --format,
// find -printf, stat -c, a string of jq) print a program text where the form is one.
// What stands in the places that the program fills is not known.

// spoken is the text that an invocation prints by such a form.
func (e *engine) spoken(v *invocation) (Word, bool) {
	if len(v.argv) < 2 || slices.Contains(e.groups["speakers"], v.exe) || !e.budget.spend(len(v.argv)) {
		return Word{}, false
	}
	for _, w := range v.argv[1:] {
		t := w.Text
		if len(t) < 4 || strings.IndexByte(t, ' ') < 0 {
			continue
		}
		if t[0] == '-' {
			_, t, _ = strings.Cut(t, "=")
		}
		t = strings.TrimPrefix(t, "+")
		if i := strings.IndexByte(t, '"'); i >= 0 && (v.exe == "jq" || v.exe == "yq" || v.exe == "gojq") {
			t = t[i+1:]
			if j := strings.LastIndexByte(t, '"'); j >= 0 {
				t = t[:j]
			}
		}
		if i := strings.IndexByte(strings.ToLower(t), '\''); i >= 0 && strings.Contains(strings.ToLower(t[:i]), "select") { // of SQL
			t, _, _ = strings.Cut(t[i+1:], "'")
			t += string(scan.Hole)
		}
		for _, form := range [...]string{"go-template=", "jsonpath=", "template=", "custom-columns="} {
			t = strings.TrimPrefix(t, form)
		}
		if t = filledForm(t); e.actsText(t) || v.exe == "git" && strings.HasPrefix(t, "delete ") { // what update-ref --stdin takes
			w.Text, w.At, w.Lone = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\n").Replace(t), -1, false
			return w, true
		}
	}
	return Word{}, false
}

// filledForm puts a hole in every place that a program fills: {{.Name}}, %(refname),
// ${Package}, \(.path), {node}, %h. What only controls a template is dropped.
func filledForm(t string) string {
	for _, m := range [...]struct{ open, shut string }{{"{{", "}}"}, {"%(", ")"}, {"%{", "}"}, {"${", "}"}, {`\(`, ")"}, {"{", "}"}} {
		var b strings.Builder
		for {
			i := strings.Index(t, m.open)
			if i < 0 {
				break
			}
			j := strings.Index(t[i+len(m.open):], m.shut)
			if j < 0 {
				break
			}
			b.WriteString(t[:i])
			inside := strings.TrimLeft(t[i+len(m.open):i+len(m.open)+j], " -")
			switch word, _, _ := strings.Cut(inside, " "); {
			case word == "range" || word == "end" || word == "if" || word == "else" || word == "with":
			case strings.Trim(inside, "\"`\\nt ") == "": // a line end
				b.WriteByte('\n')
			default:
				b.WriteByte(scan.Hole)
			}
			t = t[i+len(m.open)+j+len(m.shut):]
		}
		b.WriteString(t)
		t = b.String()
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] != '%' || i+1 == len(t) {
			b.WriteByte(t[i])
			continue
		}
		for i++; i+1 < len(t) && strings.IndexByte("-+ 0123456789.#", t[i]) >= 0; i++ {
		}
		if t[i] == '%' {
			b.WriteByte('%')
		} else {
			b.WriteByte(scan.Hole)
		}
	}
	return b.String()
}
