package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// configuration judges a Terraform configuration that the command itself wrote, when
// it is planned or applied: programs that a plan starts already (data "external"),
// those that applying starts (provisioners), and what is written where.
func (sh *shell) configuration(src *source, v *invocation) {
	text := src.text
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") { // the JSON form
		for _, n := range yamlDocuments(text, &sh.e.budget) {
			sh.configurationNode(src, n, v, 0)
		}
		return
	}
	inner := sh.behalf(src, "configuration")
	toks := sh.e.tokens(text, "hcl")
	for i := 0; i+2 < len(toks); i++ {
		name, sign, value := toks[i], toks[i+1], toks[i+2]
		if name.kind != 'i' || sign.kind != '=' {
			continue
		}
		r := &inlineRun{sh: inner, src: inner.src, lang: "hcl", toks: toks}
		if v.dry && name.text != "program" {
			continue // a plan starts nothing else
		}
		switch name.text {
		case "program", "on_create", "credentials_helper":
			if value.kind == '[' {
				if list := r.strings(toks[i+3 : min(closing(toks, i+2, '[', ']'), len(toks))]); len(list) > 0 {
					r.run(list)
				}
			}
		case "command", "inline", "create_command", "destroy_command", "query", "user_data", "before_hook", "after_hook":
			if i+5 < len(toks) && value.kind == 's' && toks[i+3].text == "args" && toks[i+5].kind == '[' { // a program and its words
				r.run(append([]inlineToken{value}, r.strings(toks[i+6:min(closing(toks, i+5, '[', ']'), len(toks))])...))
				continue
			}
			sh.hclText(r, toks, i+2, v)
		}
	}
}

// hclText runs the text, the here-document or the list of texts at toks[i].
func (sh *shell) hclText(r *inlineRun, toks []inlineToken, i int, v *invocation) {
	at := &invocation{exe: v.exe, src: r.src, to: len(r.src.text), stdin: flow{known: true}}
	switch t := toks[i]; t.kind {
	case 's':
		r.shellText(t)
	case '[':
		for _, s := range r.strings(toks[i+1 : min(closing(toks, i, '[', ']'), len(toks))]) {
			r.shellText(s)
		}
	case '<':
		if body, ok := hereText(r.src.text[t.from:]); ok && sh.e.budget.spend(8+len(body)/4) {
			r.sh.interpret("shell", Word{Text: body, At: -1, Span: r.src.span, Taint: r.src.taint}, at, "configuration", nil)
		}
	}
}

// hereText is the body of the here-document that a text begins with: <<E, <<-E, <<~E.
func hereText(text string) (string, bool) {
	mark, rest, ok := strings.Cut(strings.TrimLeft(text, "<-~"), "\n")
	if word := strings.FieldsFunc(mark, func(c rune) bool { return strings.ContainsRune(" '\",;).", c) }); len(word) > 0 {
		mark = word[0]
	}
	if !ok || mark == "" {
		return "", false
	}
	var body []string
	for line := range strings.Lines(rest) {
		if strings.TrimSpace(line) == mark {
			return strings.Join(body, ""), true
		}
		body = append(body, line)
	}
	return strings.Join(body, ""), true
}

// configurationNode is configuration for the JSON form.
func (sh *shell) configurationNode(src *source, n *jsonNode, v *invocation, depth int) {
	if n == nil || depth > scan.MaxJSONDepth || !sh.e.budget.spend(1) {
		return
	}
	inner := sh.behalf(src, "configuration")
	for i, k := range n.kids {
		if n.kind == '{' && (n.keys[i] == "program" || n.keys[i] == "command" || n.keys[i] == "inline") {
			inner.startNode(inner.src, v, k)
		}
		sh.configurationNode(src, k, v, depth+1)
	}
}
