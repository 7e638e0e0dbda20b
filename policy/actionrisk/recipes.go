package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// puppet judges the resources of a manifest of Puppet: kind { title: name => value }.
func (sh *shell) puppet(src *source, v *invocation) {
	toks := sh.e.tokens(src.text, "php")
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].text == "generate" && toks[i+1].kind == '(' { // runs where the manifest is compiled
			r := &inlineRun{sh: sh.behalf(src, "generate"), src: src, lang: "php", toks: toks}
			if list := r.strings(r.arguments(i + 1)); len(list) > 0 {
				r.run(list)
			}
		}
		if toks[i].kind != 'i' || toks[i+1].kind != '{' || !sh.e.budget.spend(1) {
			continue
		}
		end := min(closing(toks, i+1, '{', '}'), len(toks))
		if !sh.e.budget.spend((end - i) / 16) {
			return
		}
		sh.puppetBodies(src, toks[i].text, toks[i+2:end], v)
	}
}

// puppetBodies are the titles and properties between the braces of one kind.
func (sh *shell) puppetBodies(src *source, kind string, toks []inlineToken, v *invocation) {
	inner := sh.behalf(src, kind)
	for at := 0; at < len(toks); {
		colon := at
		for depth := 0; colon < len(toks) && (toks[colon].kind != ':' || depth > 0); colon++ {
			switch toks[colon].kind {
			case '[', '{', '(':
				depth++
			case ']', '}', ')':
				depth--
			}
		}
		if colon >= len(toks) {
			return
		}
		r := &resource{kind: strings.TrimPrefix(kind, "::")}
		run := &inlineRun{sh: inner, src: src, lang: "php", toks: toks}
		titles := run.strings(toks[at:colon])
		end := colon + 1
		for end < len(toks) && toks[end].kind != ';' {
			end++
		}
		run.puppetProperties(r, toks[colon+1:end])
		for _, title := range titles {
			one := *r
			one.props = append(one.props[:len(one.props):len(one.props)], property{"title", []Word{run.word(title)}})
			inner.describe(&one, &invocation{exe: v.exe, src: inner.src, to: len(src.text), opts: v.opts, stdin: flow{known: true}})
		}
		at = end + 1
	}
}

// puppetProperties takes "name => value" pairs into a resource.
func (r *inlineRun) puppetProperties(to *resource, toks []inlineToken) {
	for i := 0; i+3 < len(toks); i++ {
		if toks[i].kind != 'i' || toks[i+1].kind != '=' || toks[i+2].kind != '>' {
			continue
		}
		name := toks[i].text
		switch name {
		case "ensure":
			name = "state"
		}
		to.add(name, r.values(toks, i+3)...)
	}
}

// values is the text, the bare word or the list of texts at toks[i].
func (r *inlineRun) values(toks []inlineToken, i int) []Word {
	var out []Word
	switch t := toks[i]; t.kind {
	case 's':
		out = append(out, r.word(t))
	case 'i':
		t.text = strings.TrimPrefix(t.text, ":")
		if strings.HasPrefix(t.text, "$") {
			t.text = string(scan.Hole)
		}
		out = append(out, r.word(t))
	case '[':
		for _, s := range toks[i+1 : min(closing(toks, i, '[', ']'), len(toks))] {
			if s.kind == 's' || s.kind == 'i' {
				s.text = strings.TrimPrefix(s.text, ":")
				out = append(out, r.word(s))
			}
		}
	case ':': // a symbol
		if i+1 < len(toks) {
			out = append(out, r.word(toks[i+1]))
		}
	}
	return out
}

// chef judges the resources of a recipe, kind 'title' do … end, and runs the rest as
// the Ruby it is.
func (sh *shell) chef(src *source, v *invocation) {
	sh.e.runInline(sh, src, "ruby")
	toks := sh.e.tokens(src.text, "ruby")
	inner := sh.behalf(src, "recipe")
	r := &inlineRun{sh: inner, src: src, lang: "ruby", toks: toks}
	for i := 0; i+1 < len(toks); i++ {
		if toks[i].kind != 'i' || strings.ContainsAny(toks[i].text, ".:") || !sh.e.budget.spend(1) {
			continue
		}
		at := i + 1
		if toks[at].kind == '(' {
			at++
		}
		if at >= len(toks) || toks[at].kind != 's' {
			continue
		}
		one := &resource{kind: toks[i].text}
		one.add("title", r.word(toks[at]))
		if at++; at < len(toks) && toks[at].kind == ')' {
			at++
		}
		if at < len(toks) && (toks[at].text == "do" || toks[at].kind == '{') {
			r.chefProperties(one, toks, at+1)
		}
		inner.describe(one, &invocation{exe: v.exe, src: inner.src, to: len(src.text), opts: v.opts, stdin: flow{known: true}})
	}
}

// chefProperties takes "name value" lines up to the end of the block.
func (r *inlineRun) chefProperties(to *resource, toks []inlineToken, i int) {
	for ; i+1 < len(toks) && toks[i].kind != '}' && toks[i].text != "end"; i++ {
		if toks[i].kind != 'i' {
			continue
		}
		name, at := toks[i].text, i+1
		switch {
		case toks[at].kind == '(' && at+1 < len(toks):
			at++
		case toks[at].kind == '<':
			if body, ok := hereText(r.src.text[toks[at].from:]); ok && r.sh.e.budget.spend(8+len(body)/4) {
				to.add(name, Word{Text: body, At: -1, Span: r.src.span})
				mark := len(body) + toks[at].from
				for i+1 < len(toks) && toks[i+1].from < mark {
					i++
				}
			}
			continue
		}
		if name == "action" {
			name = "state"
		}
		if list := r.values(toks, at); len(list) > 0 {
			to.add(name, list...)
			i = at
		}
	}
}

// states judges a state file of Salt: under each id the functions, "file.absent", and
// a list of their arguments.
func (sh *shell) states(src *source, v *invocation) {
	inner := sh.behalf(src, "state")
	p := &playbookRun{sh: sh, src: src, v: v}
	for _, n := range yamlDocuments(src.text, &sh.e.budget) {
		for i, state := range n.kids {
			if n.kind != '{' || !sh.e.budget.spend(2) {
				continue
			}
			id := Word{Text: n.keys[i], At: -1, Span: inner.src.span, Taint: src.taint}
			for j, args := range state.kids {
				if state.kind != '{' {
					continue
				}
				r := &resource{kind: state.keys[j]}
				p.properties(r, args, nil)
				for _, name := range [...]string{"name", "title", "1"} {
					if _, given := r.get("name"); !given || name != "name" {
						r.add(name, id)
					}
				}
				inner.describe(r, &invocation{exe: v.exe, src: inner.src, opts: v.opts, to: len(src.text), stdin: flow{known: true}})
			}
		}
	}
}

// runRecipe reads a description of machines that is a program text.
func runRecipe(outer *shell, src *source, lang string, v *invocation) flow {
	inner := *outer
	inner.src = src
	if !inner.describes(src) {
		return flow{}
	}
	switch lang {
	case "puppet":
		inner.puppet(src, v)
	case "chef":
		inner.chef(src, v)
	case "hcl":
		inner.configuration(src, v)
	}
	return flow{}
}
