package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// index is where a token stands, or -1.
func (r *inlineRun) index(t inlineToken) int {
	i, ok := slices.BinarySearchFunc(r.toks, t.from, func(t inlineToken, from int) int { return t.from - from })
	if !ok {
		return -1
	}
	return i
}

// onReceiver judges a method that does something to the path or command it is called
// on: Path("/srv").rmtree(), "rm -rf /srv".execute().
func (r *inlineRun) onReceiver(name inlineToken, args []inlineToken) bool {
	does, ok := named(ruleset().code.receivers, strings.TrimSuffix(name.text, "!"), r.lang)
	if !ok {
		return false
	}
	kind := does.does
	if kind == 's' && len(args) > 0 || kind != 'w' && slices.ContainsFunc(args, func(t inlineToken) bool { return t.kind == 's' }) {
		return false // the path is its argument
	}
	of, ok := r.receiver(name)
	if !ok || strings.Trim(of.text, string(scan.Hole)) == "" {
		if strings.Contains(name.text, ".") && (kind == 'd' || kind == 'u' || kind == 'D') {
			r.sweep()
		}
		return false
	}
	if kind == 'D' {
		kind = 'u'
		if slices.ContainsFunc(args, func(t inlineToken) bool { return strings.Contains(t.text, "recursive") || t.text == "true" }) {
			kind = 'd'
		}
	}
	switch kind {
	case 'd':
		r.run([]inlineToken{{text: "rm"}, {text: "-rf"}, of})
	case 'u':
		r.run([]inlineToken{{text: "rm"}, of})
	case 's':
		r.shellText(of)
	case 'r':
		r.read(name, []inlineToken{of})
	case 'w':
		r.read(name, []inlineToken{of, {kind: 's', text: "w"}})
		r.keeps(of, args, r.strings(args))
	}
	return true
}

// receiver is the text that a method is called on, if it is a literal, a variable or
// the one argument of a constructor.
func (r *inlineRun) receiver(name inlineToken) (inlineToken, bool) {
	if first, _, dotted := strings.Cut(strings.TrimLeft(name.text, "$@"), "."); dotted && first != "" {
		v, ok := r.vars[first]
		return v, ok
	} else if !dotted {
		return inlineToken{}, false
	}
	for i := r.index(name) - 1; i >= 0; {
		switch t := r.toks[i]; t.kind {
		case 's':
			return r.filled(t), true
		case ']':
			list := r.strings(r.toks[opening(r.toks, i, '[', ']')+1 : i])
			return r.listed(list, " ", t), len(list) > 0
		case ')':
			open := opening(r.toks, i, '(', ')')
			if open+1 == i && open > 0 {
				if text, _, known := r.knownName(r.toks, open-1); known {
					return inlineToken{kind: 's', text: text, from: r.toks[open-1].from, to: t.to}, true
				}
			}
			if open+1 == i { // resolve(): what that is called on
				if i = open - 2; open < 2 || r.toks[open-1].kind != 'i' || !strings.HasPrefix(r.toks[open-1].text, ".") {
					return inlineToken{}, false
				}
				continue
			}
			v := r.join(r.toks[open+1 : i])
			return v, v.to > 0
		default:
			return inlineToken{}, false
		}
	}
	return inlineToken{}, false
}

// opening is the index of the sign that the one at i closes, or 0.
func opening(toks []inlineToken, i int, open, shut byte) int {
	if toks[i].kind == shut && toks[i].partner != 0 {
		if toks[i].partner == unpaired {
			return 0
		}
		return max(i+int(toks[i].partner), 0)
	}
	depth := 0
	for ; i > 0; i-- {
		switch toks[i].kind {
		case shut:
			depth++
		case open:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// lists: the token names what gives the files of a folder.
func (r *inlineRun) lists(t inlineToken) bool {
	if t.kind != 'i' {
		return false
	}
	_, ok := named(ruleset().code.listers, t.text, r.lang)
	return ok
}

// loads judges a call that runs a file or an address.
func (r *inlineRun) loads(name inlineToken, args []inlineToken, what inlineToken) {
	e := r.sh.e
	if scheme, host, _, ok := urlOf(what.text); ok {
		if strings.HasPrefix(scheme, "http") || scheme == "ftp" {
			if !localHost(host) && !moduleHost(host) {
				e.raise("rce.inline-exec", r.src, name.from, name.to, printable(what.text))
			}
		}
		return
	}
	if strings.IndexByte(what.text, scan.Hole) >= 0 {
		r.unknown(name, args)
		return
	}
	r.module(name, what.text)
}

// loadsEach judges each of the texts that a call which loads is given.
func (r *inlineRun) loadsEach(name inlineToken, args, list []inlineToken) {
	for _, what := range list {
		r.loads(name, args, what)
	}
}

// module runs a file that the command wrote and the text now loads by this name.
func (r *inlineRun) module(at inlineToken, name string) {
	e := r.sh.e
	f, ok := e.writtenFile(r.sh, name)
	switch {
	case !ok:
	case f.known && r.src.depth < scan.MaxDepth && f.word.Text != r.src.text:
		src := r.src.inside(f.word, r.lang)
		e.runInline(r.sh, &src, r.lang)
	case f.taint&fromNetwork != 0:
		e.raise("rce.download-exec", r.src, at.from, at.to, printable(name))
	}
}

// writtenFile is the file that the command wrote under a name, or under the name of
// the module that it holds.
func (e *engine) writtenFile(sh *shell, name string) (flow, bool) {
	if len(e.files) == 0 {
		return flow{}, false
	}
	for _, suffix := range [...]string{"", ".py", "/__main__.py", "/__init__.py", ".js", ".mjs", ".cjs", ".ts", "/index.js", ".rb", ".pm", ".pl", ".lua", ".jl"} {
		if f, ok := e.files[paths.FileKey(sh.cwd, name+suffix)]; ok {
			return f, true
		}
	}
	return flow{}, false
}

// moduleHost: programs of its language import modules from there as from a registry.
func moduleHost(host string) bool {
	switch host {
	case "deno.land", "jsr.io", "esm.sh", "cdn.skypack.dev", "unpkg.com", "cdn.jsdelivr.net", "esm.run", "ga.jspm.io":
		return true
	}
	return false
}

// saves notes the file that an address is saved to.
func (r *inlineRun) saves(list []inlineToken) {
	if len(list) < 2 || !strings.Contains(list[0].text, "://") && strings.IndexByte(list[0].text, scan.Hole) < 0 {
		return
	}
	r.sh.e.remember(r.sh, r.word(list[1]), flow{taint: fromNetwork, via: r.lang}, false)
}

// keeps notes what a call writes to a file, which may be run later.
func (r *inlineRun) keeps(file inlineToken, args, content []inlineToken) {
	f := flow{via: r.lang}
	r.origins()
	switch o := r.origin(args); {
	case len(content) > 0 && strings.IndexByte(content[0].text, scan.Hole) < 0 && o == 0:
		f.word, f.known = r.word(content[0]), true
	case o&fetchedText != 0, len(content) == 0 && r.origin(r.toks)&fetchedText != 0:
		f.taint = fromNetwork
	case o&builtText != 0:
		f.taint = fromDecoder
	}
	if f.known || f.taint != 0 {
		r.sh.e.remember(r.sh, r.word(file), f, false)
	}
}

// keepsWritten notes what open(file, "w").write(…) writes.
func (r *inlineRun) keepsWritten(name, file inlineToken) {
	i := r.index(name)
	if i < 0 || i+1 >= len(r.toks) || r.toks[i+1].kind != '(' {
		return
	}
	end := closing(r.toks, i+1, '(', ')')
	for j := end + 1; j+1 < min(end+24, len(r.toks)); j++ { // at once, or by the name that it is given
		if t := r.toks[j]; t.kind == 'i' && strings.HasSuffix(t.text, ".write") && r.toks[j+1].kind == '(' {
			args := r.arguments(j + 1)
			r.keeps(file, args, r.strings(args))
			return
		}
	}
}

// sweep: files of a listed folder are deleted one by one; the folder is what
// matters.
func (r *inlineRun) sweep() {
	if r.swept || !r.sh.e.budget.spend(1+len(r.toks)/4) {
		return
	}
	r.swept = true
	for _, t := range r.toks { // a filter: not the folder as a whole
		for _, n := range [...]string{"endswith", "fnmatch", "endsWith", "end_with?", ".suffix", "startswith", ".match", "extname"} {
			if t.kind == 'i' && strings.HasSuffix(t.text, n) {
				return
			}
		}
	}
	var folder, pattern inlineToken
	for i, t := range r.toks {
		if !r.lists(t) {
			continue
		}
		var list []inlineToken
		if i+1 < len(r.toks) && r.toks[i+1].kind == '(' {
			list = r.strings(r.arguments(i + 1))
		} else if i+1 < len(r.toks) && r.toks[i+1].kind == 's' {
			list = r.toks[i+1 : i+2]
		}
		if of, ok := r.receiver(t); ok && strings.Contains(t.text, ".") {
			list = append(list, of)
		}
		for _, s := range list {
			switch plain := strings.Trim(strings.Trim(s.text, "*/."), string(scan.Hole)); {
			case strings.IndexByte(s.text, scan.Hole) >= 0 || s.text == "":
			case strings.ContainsAny(s.text, "*?[") && strings.Trim(s.text[strings.LastIndexByte(s.text, '/')+1:], "*.") != "":
				pattern = s
			case folder.to == 0 && (plain != "" || strings.HasPrefix(s.text, "/") || s.text == "."):
				folder = s
			}
		}
	}
	switch {
	case pattern.to > 0: // a filter
		r.run([]inlineToken{{text: "rm"}, pattern})
	case folder.to > 0:
		r.run([]inlineToken{{text: "rm"}, {text: "-rf"}, folder})
	}
}

// read judges a file that is opened: for writing as a redirection, else as cat.
func (r *inlineRun) read(name inlineToken, list []inlineToken) {
	e := r.sh.e
	w := r.word(list[0])
	if len(list) > 1 && len(list[1].text) <= 3 && strings.ContainsAny(list[1].text, "wa") && strings.Trim(list[1].text, "wabt+x") == "" {
		op := ">"
		if strings.ContainsRune(list[1].text, 'a') {
			op = ">>"
		}
		v := &invocation{exe: op, operands: []Word{w}, argv: []Word{{Text: op}, w}, after: -1, cwd: r.sh.cwd, src: r.src, from: name.from, to: list[0].to, stdin: flow{taint: fromStdin}}
		e.match(&item{kind: kindRedir, name: op, inv: v, src: r.src, from: name.from, to: list[0].to})
		r.keepsWritten(name, list[0])
		return
	}
	if c := e.classOf(w, r.sh.cwd); c&paths.IsCredential != 0 && c&paths.IsPublic == 0 {
		r.secret = true
		r.run([]inlineToken{{text: "cat"}, list[0]})
	}
}
