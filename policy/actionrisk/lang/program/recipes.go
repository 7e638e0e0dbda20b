package program

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// puppet judges the resources of a Puppet manifest: kind { title: name => value }.
func puppet(sh *interp.Process, src *act.Source, v *act.Invocation) {
	toks := tokens.Tokens(sh.Env, src.Text, "php")
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].Text == "generate" && toks[i+1].Kind == '(' { // runs on the machine that compiles the manifest
			r := &inlineRun{sh: sh.Behalf(src, "generate"), src: src, lang: "php", toks: toks}
			if list := r.strings(r.arguments(i + 1)); len(list) > 0 {
				r.run(list)
			}
		}
		if toks[i].Kind != tokens.Name || toks[i+1].Kind != '{' || !sh.Env.Budget.Spend(1) {
			continue
		}
		end := closing(toks, i+1)
		if !sh.Env.Budget.Spend((end - i) / 16) {
			return
		}
		puppetBodies(sh, src, toks[i].Text, toks[i+2:end], v)
	}
}

// puppetBodies judges the resources of one kind, which are the titles and properties between its
// braces.
func puppetBodies(sh *interp.Process, src *act.Source, kind string, toks []tokens.Token, v *act.Invocation) {
	inner := sh.Behalf(src, kind)
	for at := 0; at < len(toks); {
		colon := at
		for depth := 0; colon < len(toks) && (toks[colon].Kind != ':' || depth > 0); colon++ {
			switch toks[colon].Kind {
			case '[', '{', '(':
				depth++
			case ']', '}', ')':
				depth--
			}
		}
		if colon >= len(toks) {
			return
		}
		r := &facts.Resource{Kind: strings.TrimPrefix(kind, "::")}
		run := &inlineRun{sh: inner, src: src, lang: "php", toks: toks}
		titles := run.strings(toks[at:colon])
		end := colon + 1
		for end < len(toks) && toks[end].Kind != ';' {
			end++
		}
		run.puppetProperties(r, toks[colon+1:end])
		for _, title := range titles {
			one := *r
			one.Props = append(one.Props[:len(one.Props):len(one.Props)], facts.Property{Name: "title", List: []act.Word{run.word(title)}})
			inner.Describe(&one, &act.Invocation{Exe: v.Exe, Src: inner.Src, To: len(src.Text), Opts: v.Opts, Stdin: act.Flow{Known: true}})
		}
		at = end + 1
	}
}

// puppetProperties adds "name => value" pairs to a resource.
func (r *inlineRun) puppetProperties(to *facts.Resource, toks []tokens.Token) {
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].Kind != tokens.Name || toks[i+1].Kind != '=' || toks[i+2].Kind != '>' {
			continue
		}
		name := toks[i].Text
		switch name {
		case "ensure":
			name = "state"
		}
		to.Add(name, r.values(toks, i+3)...)
	}
}

// values returns the string, the bare word or the list of strings at toks[i].
func (r *inlineRun) values(toks []tokens.Token, i int) []act.Word {
	if i >= len(toks) {
		return nil
	}
	var out []act.Word
	switch t := toks[i]; t.Kind {
	case tokens.String:
		out = append(out, r.word(t))
	case tokens.Name:
		t.Text = strings.TrimPrefix(t.Text, ":")
		if strings.HasPrefix(t.Text, "$") {
			t.Text = string(scan.Hole)
		}
		out = append(out, r.word(t))
	case '[':
		for _, s := range toks[i+1 : closing(toks, i)] {
			if s.Kind == tokens.String || s.Kind == tokens.Name {
				s.Text = strings.TrimPrefix(s.Text, ":")
				out = append(out, r.word(s))
			}
		}
	case ':': // the value is a symbol
		if i+1 < len(toks) {
			out = append(out, r.word(toks[i+1]))
		}
	}
	return out
}

// chef judges a Chef recipe: as a Ruby program, and its resources, written kind 'title' do …
// end.
func chef(sh *interp.Process, src *act.Source, v *act.Invocation) {
	runInline(sh.Env, sh, src, "ruby")
	inner := sh.Behalf(src, "recipe")
	r := &inlineRun{sh: inner, src: src, lang: "ruby", toks: tokens.Tokens(sh.Env, src.Text, "ruby")}
	for i := 0; i+1 < len(r.toks); i++ {
		if r.toks[i].Kind != tokens.Name || strings.ContainsAny(r.toks[i].Text, ".:") || !sh.Env.Budget.Spend(1) {
			continue
		}
		at := i + 1
		if r.toks[at].Kind == '(' {
			at++
		}
		if r.at(at, 0).Kind != tokens.String {
			continue
		}
		one := &facts.Resource{Kind: r.toks[i].Text}
		one.Add("title", r.word(r.toks[at]))
		if at++; r.at(at, 0).Kind == ')' {
			at++
		}
		if opens := r.at(at, 0); opens.Text == "do" || opens.Kind == '{' {
			r.chefProperties(one, at+1)
		}
		inner.Describe(one, &act.Invocation{Exe: v.Exe, Src: inner.Src, To: len(src.Text), Opts: v.Opts, Stdin: act.Flow{Known: true}})
	}
}

// chefProperties adds the "name value" lines of the block that begins at token i to a resource.
func (r *inlineRun) chefProperties(to *facts.Resource, i int) {
	for ; i+1 < len(r.toks) && r.toks[i].Kind != '}' && r.toks[i].Text != "end"; i++ {
		if r.toks[i].Kind != tokens.Name {
			continue
		}
		name, at := r.toks[i].Text, i+1
		switch r.toks[at].Kind {
		case '(':
			at++
		case '<':
			i = r.hereProperty(to, name, at)
			continue
		}
		if name == "action" {
			name = "state"
		}
		if list := r.values(r.toks, at); len(list) > 0 {
			to.Add(name, list...)
			i = at
		}
	}
}

// hereProperty adds a property whose value is the here-document at token i. It returns the index
// of the last token in the here-document.
func (r *inlineRun) hereProperty(to *facts.Resource, name string, i int) int {
	from := r.toks[i].From
	body, ok := hereText(r.src.Text[from:])
	if !ok || !r.sh.Env.Budget.Spend(8+len(body)/4) {
		return i - 1
	}
	to.Add(name, act.Word{Text: body, At: -1, Span: r.src.Span})
	for i--; i+1 < len(r.toks) && r.toks[i+1].From < from+len(body); {
		i++
	}
	return i
}

// ReadRecipe judges a program text that configures machines: Puppet, Chef or Terraform.
func ReadRecipe(outer *interp.Process, src *act.Source, lang string, v *act.Invocation) act.Flow {
	inner := outer.Reading(src)
	if !inner.Describes(src) {
		return act.Flow{}
	}
	switch lang {
	case "puppet":
		puppet(inner, src, v)
	case "chef":
		chef(inner, src, v)
	case "hcl":
		configuration(inner, src, v)
	}
	return act.Flow{}
}
