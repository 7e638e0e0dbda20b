package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// index is where a token stands, or -1.
func (r *inlineRun) index(t tokens.Token) int {
	i, ok := slices.BinarySearchFunc(r.toks, t.From, func(t tokens.Token, from int) int { return t.From - from })
	if !ok {
		return -1
	}
	return i
}

// onReceiver judges a method that does something to the path or command it is called
// on: Path("/srv").rmtree(), "rm -rf /srv".execute().
func (r *inlineRun) onReceiver(name tokens.Token, args []tokens.Token) bool {
	does := r.sh.Env.Named(facts.AsReceiver, strings.TrimSuffix(name.Text, "!"), r.lang)
	if does == nil {
		return false
	}
	kind := does.Does
	if kind == facts.RunsText && len(args) > 0 || kind != facts.WritesFile && slices.ContainsFunc(args, func(t tokens.Token) bool { return t.Kind == tokens.String }) {
		return false // the path is its argument
	}
	of, ok := r.receiver(name)
	if !ok || strings.Trim(of.Text, string(scan.Hole)) == "" {
		if strings.Contains(name.Text, ".") && kind.Deletes() {
			r.sweep()
		}
		return false
	}
	switch kind {
	case facts.DeletesTree:
		r.emit(act.DeleteTree, of)
	case facts.DeletesTreeIfTold:
		op := act.DeleteFile
		if slices.ContainsFunc(args, func(t tokens.Token) bool { return strings.Contains(t.Text, "recursive") || t.Text == "true" }) {
			op = act.DeleteTree
		}
		r.emit(op, of)
	case facts.DeletesFile:
		r.emit(act.DeleteFile, of)
	case facts.RunsText:
		r.shellText(of)
	case facts.ReadsFile:
		r.read(name, []tokens.Token{of})
	case facts.WritesFile:
		r.read(name, []tokens.Token{of, {Kind: tokens.String, Text: "w"}})
		r.keeps(of, args, r.strings(args))
	}
	return true
}

// receiver is the text that a method is called on, if it is a literal, a variable or
// the one argument of a constructor.
func (r *inlineRun) receiver(name tokens.Token) (tokens.Token, bool) {
	if first, _, dotted := strings.Cut(strings.TrimLeft(name.Text, "$@"), "."); dotted && first != "" {
		v, ok := r.vars[first]
		return v, ok
	} else if !dotted {
		return tokens.Token{}, false
	}
	for i := r.index(name) - 1; i >= 0; {
		switch t := r.toks[i]; t.Kind {
		case tokens.String:
			return r.filled(t), true
		case ']':
			list := r.strings(r.toks[opening(r.toks, i, '[', ']')+1 : i])
			return r.listed(list, " ", t), len(list) > 0
		case ')':
			open := opening(r.toks, i, '(', ')')
			if open+1 == i && open > 0 {
				if text, _, known := r.knownName(r.toks, open-1); known {
					return tokens.Token{Kind: tokens.String, Text: text, From: r.toks[open-1].From, To: t.To}, true
				}
			}
			if open+1 == i { // resolve(): what that is called on
				if i = open - 2; open < 2 || r.toks[open-1].Kind != tokens.Name || !strings.HasPrefix(r.toks[open-1].Text, ".") {
					return tokens.Token{}, false
				}
				continue
			}
			v := r.join(r.toks[open+1 : i])
			return v, v.To > 0
		default:
			return tokens.Token{}, false
		}
	}
	return tokens.Token{}, false
}

// opening is the index of the sign that the one at i closes, or 0.
func opening(toks []tokens.Token, i int, open, shut byte) int {
	if toks[i].Kind == shut && toks[i].Partner != 0 {
		if toks[i].Partner == tokens.Unpaired {
			return 0
		}
		return max(i+int(toks[i].Partner), 0)
	}
	depth := 0
	for ; i > 0; i-- {
		switch toks[i].Kind {
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
func (r *inlineRun) lists(t tokens.Token) bool {
	return t.Kind == tokens.Name && r.sh.Env.Named(facts.AsLister, t.Text, r.lang) != nil
}

// loads judges a call that runs a file or an address.
func (r *inlineRun) loads(name tokens.Token, args []tokens.Token, what tokens.Token) {
	e := r.sh.Env
	if scheme, host, _, ok := hosts.Split(what.Text); ok {
		if strings.HasPrefix(scheme, "http") || scheme == "ftp" {
			if !hosts.LocalHost(host) && !hosts.ModuleHost(host) {
				e.See(act.ProgramRuns, r.src, name.From, name.To, act.Printable(what.Text))
			}
		}
		return
	}
	if strings.IndexByte(what.Text, scan.Hole) >= 0 {
		r.unknown(name, args)
		return
	}
	r.module(name, what.Text)
}

// loadsEach judges each of the texts that a call which loads is given.
func (r *inlineRun) loadsEach(name tokens.Token, args, list []tokens.Token) {
	for _, what := range list {
		r.loads(name, args, what)
	}
}

// module runs a file that the command wrote and the text now loads by this name.
func (r *inlineRun) module(at tokens.Token, name string) {
	e := r.sh.Env
	f, ok := e.WrittenFile(r.sh, name)
	switch {
	case !ok:
	case f.Known && r.src.Depth < scan.MaxDepth && f.Word.Text != r.src.Text:
		src := r.src.Inside(f.Word, r.lang)
		runInline(e, r.sh, &src, r.lang)
	case f.Taint&act.FromNetwork != 0:
		e.See(act.RunsDownload, r.src, at.From, at.To, act.Printable(name))
	}
}

// saves notes the file that an address is saved to.
func (r *inlineRun) saves(list []tokens.Token) {
	if len(list) < 2 || !strings.Contains(list[0].Text, "://") && strings.IndexByte(list[0].Text, scan.Hole) < 0 {
		return
	}
	r.sh.Env.Remember(r.sh, r.word(list[1]), act.Flow{Taint: act.FromNetwork, Via: r.lang}, false)
}

// keeps notes what a call writes to a file, which may be run later.
func (r *inlineRun) keeps(file tokens.Token, args, content []tokens.Token) {
	f := act.Flow{Via: r.lang}
	r.origins()
	switch o := r.origin(args); {
	case len(content) > 0 && strings.IndexByte(content[0].Text, scan.Hole) < 0 && o == 0:
		f.Word, f.Known = r.word(content[0]), true
	case o&fetchedText != 0, len(content) == 0 && r.origin(r.toks)&fetchedText != 0:
		f.Taint = act.FromNetwork
	case o&builtText != 0:
		f.Taint = act.FromDecoder
	}
	if f.Known || f.Taint != 0 {
		r.sh.Env.Remember(r.sh, r.word(file), f, false)
	}
}

// keepsWritten notes what open(file, "w").write(…) writes.
func (r *inlineRun) keepsWritten(name, file tokens.Token) {
	i := r.index(name)
	if i < 0 || i+1 >= len(r.toks) || r.toks[i+1].Kind != '(' {
		return
	}
	end := closing(r.toks, i+1, '(', ')')
	for j := end + 1; j+1 < min(end+24, len(r.toks)); j++ { // at once, or by the name that it is given
		if t := r.toks[j]; t.Kind == tokens.Name && strings.HasSuffix(t.Text, ".write") && r.toks[j+1].Kind == '(' {
			args := r.arguments(j + 1)
			r.keeps(file, args, r.strings(args))
			return
		}
	}
}

// sweep: files of a listed folder are deleted one by one; the folder is what
// matters.
func (r *inlineRun) sweep() {
	if r.swept || !r.sh.Env.Budget.Spend(1+len(r.toks)/4) {
		return
	}
	r.swept = true
	if slices.ContainsFunc(r.toks, filters) { // not the folder as a whole
		return
	}
	var folder, pattern tokens.Token
	for i, t := range r.toks {
		if !r.lists(t) {
			continue
		}
		for _, s := range r.foldersOf(i) {
			switch plain := strings.Trim(strings.Trim(s.Text, "*/."), string(scan.Hole)); {
			case strings.IndexByte(s.Text, scan.Hole) >= 0 || s.Text == "":
			case strings.ContainsAny(s.Text, "*?[") && strings.Trim(s.Text[strings.LastIndexByte(s.Text, '/')+1:], "*.") != "":
				pattern = s
			case folder.To == 0 && (plain != "" || strings.HasPrefix(s.Text, "/") || s.Text == "."):
				folder = s
			}
		}
	}
	switch {
	case pattern.To > 0: // a filter
		r.emit(act.DeleteFile, pattern)
	case folder.To > 0:
		r.emit(act.DeleteTree, folder)
	}
}

// filters: the token names what asks how a file is called.
func filters(t tokens.Token) bool {
	return t.Kind == tokens.Name && slices.ContainsFunc(nameFilters, func(n string) bool { return strings.HasSuffix(t.Text, n) })
}

var nameFilters = []string{"endswith", "fnmatch", "endsWith", "end_with?", ".suffix", "startswith", ".match", "extname"}

// foldersOf are the folders that the lister at i is given, or called on.
func (r *inlineRun) foldersOf(i int) (list []tokens.Token) {
	switch r.at(i, 1).Kind {
	case '(':
		list = r.strings(r.arguments(i + 1))
	case tokens.String:
		list = r.toks[i+1 : i+2 : i+2]
	}
	if of, ok := r.receiver(r.toks[i]); ok && strings.Contains(r.toks[i].Text, ".") {
		list = append(list, of)
	}
	return list
}

// read judges a file that is opened: for writing as a redirection, else as cat.
func (r *inlineRun) read(name tokens.Token, list []tokens.Token) {
	e := r.sh.Env
	w := r.word(list[0])
	if len(list) > 1 && len(list[1].Text) <= 3 && strings.ContainsAny(list[1].Text, "wa") && strings.Trim(list[1].Text, "wabt+x") == "" {
		op := act.Overwrite
		if strings.ContainsRune(list[1].Text, 'a') {
			op = act.AppendTo
		}
		r.sh.Emit(r.src, r.lang, act.Effect{Op: op, On: []act.Word{w}, From: name.From, To: list[0].To})
		r.keepsWritten(name, list[0])
		return
	}
	if e.Credential(w, r.sh.Cwd) {
		r.secret = true
		r.emit(act.ReadFile, list[0])
	}
}
