package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// configuration judges a Terraform configuration that the command itself wrote and that is planned
// or applied: programs that a plan already starts (data "external"), programs that only applying
// starts (provisioners), and files that it writes.
func configuration(sh *interp.Process, src *act.Source, v *act.Invocation) {
	text := src.Text
	if strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") { // the configuration is in the JSON form
		for _, n := range tree.YAML(text, &sh.Env.Budget) {
			configurationNode(sh, src, n, v, 0)
		}
		return
	}
	inner := sh.Behalf(src, "configuration")
	r := &inlineRun{sh: inner, src: inner.Src, lang: "hcl", toks: tokens.Tokens(sh.Env, text, "hcl")}
	for i := 0; i+2 < len(r.toks); i++ {
		if name := r.toks[i]; name.Kind == tokens.Name && r.toks[i+1].Kind == '=' && (!v.Dry || name.Text == "program") { // of these settings, a plan only starts "program"
			r.setting(name.Text, i+2, v)
		}
	}
}

// setting judges the setting name, whose value begins at token i.
func (r *inlineRun) setting(name string, i int, v *act.Invocation) {
	value := r.toks[i]
	switch name {
	case "program", "on_create", "credentials_helper":
		if value.Kind == '[' {
			if list := r.strings(r.toks[i+1 : closing(r.toks, i)]); len(list) > 0 {
				r.run(list)
			}
		}
	case "command", "inline", "create_command", "destroy_command", "query", "user_data", "before_hook", "after_hook":
		if value.Kind == tokens.String && r.at(i, 1).Text == "args" && r.at(i, 3).Kind == '[' { // the value is a program, and its arguments follow
			r.run(append([]tokens.Token{value}, r.strings(r.toks[i+4:closing(r.toks, i+3)])...))
			return
		}
		hclText(r, i, v)
	}
}

// hclText judges the string, here-document or list of strings at token i as shell commands.
func hclText(r *inlineRun, i int, v *act.Invocation) {
	at := &act.Invocation{Exe: v.Exe, Src: r.src, To: len(r.src.Text), Stdin: act.Flow{Known: true}}
	switch t := r.toks[i]; t.Kind {
	case tokens.String:
		r.shellText(t)
	case '[':
		for _, s := range r.strings(r.toks[i+1 : closing(r.toks, i)]) {
			r.shellText(s)
		}
	case '<':
		if body, ok := hereText(r.src.Text[t.From:]); ok && r.sh.Env.Budget.Spend(8+len(body)/4) {
			r.sh.Interpret("shell", act.Word{Text: body, At: -1, Span: r.src.Span, Taint: r.src.Taint}, at, "configuration", nil)
		}
	}
}

// hereText returns the body of the here-document at the start of a text: <<E, <<-E, <<~E.
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

// configurationNode judges a configuration in the JSON form.
func configurationNode(sh *interp.Process, src *act.Source, n *tree.Node, v *act.Invocation, depth int) {
	if n == nil || depth > scan.MaxJSONDepth || !sh.Env.Budget.Spend(1) {
		return
	}
	inner := sh.Behalf(src, "configuration")
	for i, k := range n.Kids {
		if n.Kind == '{' && (n.Keys[i] == "program" || n.Keys[i] == "command" || n.Keys[i] == "inline") {
			inner.StartNode(inner.Src, v, k)
		}
		configurationNode(sh, src, k, v, depth+1)
	}
}
