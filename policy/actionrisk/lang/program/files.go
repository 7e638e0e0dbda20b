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

// index returns the index of a token, or -1.
func (r *inlineRun) index(t tokens.Token) int {
	i, ok := slices.BinarySearchFunc(r.toks, t.From, func(t tokens.Token, from int) int { return t.From - from })
	if !ok {
		return -1
	}
	return i
}

// onReceiver judges a method that acts on the path or command it is called on:
// Path("/srv").rmtree(), "rm -rf /srv".execute(). It returns false if the receiver is not known.
func (r *inlineRun) onReceiver(name tokens.Token, args []tokens.Token) bool {
	does := r.sh.Env.Named(facts.AsReceiver, strings.TrimSuffix(name.Text, "!"), r.lang)
	if does == nil {
		return false
	}
	kind := does.Does
	if kind == facts.RunsText && len(args) > 0 || kind != facts.WritesFile && slices.ContainsFunc(args, func(t tokens.Token) bool { return t.Kind == tokens.String }) {
		return false // the path is an argument, not the receiver
	}
	of, ok := r.receiver(name)
	if !ok || strings.Trim(of.Text, string(scan.Hole)) == "" {
		if strings.Contains(name.Text, ".") && kind.Deletes() {
			r.sweep()
		}
		return false
	}
	r.doesTo(kind, name, of, args)
	return true
}

// doesTo judges the effect of a method of this kind on the text it is called on.
func (r *inlineRun) doesTo(kind facts.Doing, name, of tokens.Token, args []tokens.Token) {
	told := slices.ContainsFunc(args, func(t tokens.Token) bool { return strings.Contains(t.Text, "recursive") || t.Text == "true" })
	switch {
	case kind == facts.DeletesTree, kind == facts.DeletesTreeIfTold && told:
		r.emit(act.DeleteTree, of)
	case kind.Deletes():
		r.emit(act.DeleteFile, of)
	case kind == facts.RunsText:
		r.shellText(of)
	case kind == facts.ReadsFile:
		r.read(name, []tokens.Token{of})
	case kind == facts.WritesFile:
		r.read(name, []tokens.Token{of, {Kind: tokens.String, Text: "w"}})
		r.keeps(of, args, r.strings(args))
	}
}

// receiver returns the text that a method is called on, and false if it is not known.
func (r *inlineRun) receiver(name tokens.Token) (tokens.Token, bool) {
	first, rest, dotted := strings.Cut(strings.TrimLeft(name.Text, "$@"), ".")
	if !dotted {
		return tokens.Token{}, false
	}
	of, ok := r.vars[first]
	if first == "" {
		of, ok = r.endsAt(r.index(name) - 1)
	}
	if last := strings.LastIndexByte(rest, '.'); ok && last > 0 { // for example p.parent.unlink()
		if text, _, known := r.method(of, tokens.Token{Kind: tokens.Name, Text: "." + rest[:last]}, nil, 0); known {
			of.Text, of.Exact = text, false
		}
	}
	return of, ok
}

// endsAt returns the text of the expression that ends with token i: a string, a list, a
// constructor with one argument, or a method called on one of these.
func (r *inlineRun) endsAt(i int) (tokens.Token, bool) {
	if i < 0 {
		return tokens.Token{}, false
	}
	switch t := r.toks[i]; t.Kind {
	case tokens.String:
		return r.filled(t), true
	case ']':
		if at := opening(r.toks, i) - 1; at >= 0 && r.indexes(r.toks[at]) { // for example Path("a").parents[0]
			v, next, ok := r.value(r.toks[:i+1], r.chainStart(at))
			return v, ok && next == i+1
		}
		list := r.strings(r.toks[opening(r.toks, i)+1 : i])
		return r.listed(list, " ", t), len(list) > 0
	case ')':
		return r.callEndsAt(i)
	}
	return tokens.Token{}, false
}

// callEndsAt is endsAt for an expression that ends with ")".
func (r *inlineRun) callEndsAt(i int) (tokens.Token, bool) {
	open := opening(r.toks, i)
	method, empty := open > 1 && isMethod(r.toks, open-1), open+1 == i
	if method && !empty {
		if v, next, ok := r.value(r.toks[:i+1], r.chainStart(open-1)); ok && next == i+1 { // for example Path("a").joinpath("b")
			return v, true
		}
	}
	if !empty {
		v := r.join(r.toks[open+1 : i])
		return v, v.To > 0
	}
	if text, _, known := r.knownName(r.toks, max(open-1, 0)); known {
		return tokens.Token{Kind: tokens.String, Text: text, From: r.toks[open-1].From, To: r.toks[i].To}, true
	}
	if !method {
		return tokens.Token{}, false
	}
	return r.endsAt(open - 2) // for resolve() the text is that of the receiver
}

// chainStart returns the index of the first token of the expression on which the method at token i
// is called.
func (r *inlineRun) chainStart(i int) int {
	for i > 0 && r.toks[i].Text[0] == '.' {
		i--
		if k := r.toks[i].Kind; k == ')' || k == ']' {
			i = opening(r.toks, i)
			if i == 0 || r.toks[i-1].Kind != tokens.Name {
				return i
			}
			i--
		}
	}
	return i
}

// opening returns the index of the bracket that token i closes, or 0.
func opening(toks []tokens.Token, i int) int {
	if toks[i].Partner >= 0 { // the token is not a bracket, or not closed
		return 0
	}
	return max(i+int(toks[i].Partner), 0)
}

// lists reports whether the token is the name of a function that lists the files of a folder.
func (r *inlineRun) lists(t tokens.Token) bool {
	return t.Kind == tokens.Name && r.sh.Env.Named(facts.AsLister, t.Text, r.lang) != nil
}

// loads judges a call that runs a program text from a file or a URL.
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

// module judges a file that the command itself wrote and the program text loads by this name.
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

// saves records that a call downloads a URL to a file.
func (r *inlineRun) saves(list []tokens.Token) {
	if len(list) < 2 || !strings.Contains(list[0].Text, "://") && strings.IndexByte(list[0].Text, scan.Hole) < 0 {
		return
	}
	r.sh.Env.Remember(r.sh, r.word(list[1]), act.Flow{Taint: act.FromNetwork, Via: r.lang}, false)
}

// keeps records the text that a call writes to a file, because the command may run the file later.
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

// keepsWritten records the text that open(file, "w").write(…) writes.
func (r *inlineRun) keepsWritten(name, file tokens.Token) {
	i := r.index(name)
	if i < 0 || i+1 >= len(r.toks) || r.toks[i+1].Kind != '(' {
		return
	}
	end := closing(r.toks, i+1)
	for j := end + 1; j+1 < min(end+24, len(r.toks)); j++ { // the method "write" is called directly on the result, or on a variable
		if t := r.toks[j]; t.Kind == tokens.Name && strings.HasSuffix(t.Text, ".write") && r.toks[j+1].Kind == '(' {
			args := r.arguments(j + 1)
			r.keeps(file, args, r.strings(args))
			return
		}
	}
}

// sweep judges a loop that deletes the listed files of a folder one by one, as a deletion of the
// folder or of a pattern.
func (r *inlineRun) sweep() {
	if r.swept || !r.sh.Env.Budget.Spend(1+len(r.toks)/4) {
		return
	}
	r.swept = true
	if slices.ContainsFunc(r.toks, filters) { // the loop skips some files
		return
	}
	switch folder, pattern := r.listing(); {
	case pattern.To > 0:
		r.emit(act.DeleteFile, pattern)
	case folder.To > 0:
		r.emit(act.DeleteTree, folder)
	}
}

// listing returns the first folder that the program text lists as a whole, and the last pattern
// with which it lists some files of a folder.
func (r *inlineRun) listing() (folder, pattern tokens.Token) {
	for i, t := range r.toks {
		if !r.lists(t) {
			continue
		}
		for _, s := range r.foldersOf(i) {
			switch {
			case strings.IndexByte(s.Text, scan.Hole) >= 0 || s.Text == "":
			case isFilter(s.Text):
				pattern = s
			case folder.To == 0 && isFolder(s.Text):
				folder = s
			}
		}
	}
	return folder, pattern
}

// isFolder reports whether the text contains more than the characters of a pattern for all files.
func isFolder(text string) bool {
	return text == "." || text[0] == '/' || strings.Trim(text, "*/.") != ""
}

// isFilter reports whether the pattern matches only some files of a folder.
func isFilter(pattern string) bool {
	return strings.ContainsAny(pattern, "*?[") && strings.Trim(pattern[strings.LastIndexByte(pattern, '/')+1:], "*.") != ""
}

// filters reports whether the token is the name of a function that tests the name of a file.
func filters(t tokens.Token) bool {
	return t.Kind == tokens.Name && scan.HasAnySuffix(t.Text, nameFilters...)
}

var nameFilters = []string{"endswith", "fnmatch", "endsWith", "end_with?", ".suffix", "startswith", ".match", "extname"}

// foldersOf returns the folders that the listing function at token i has as arguments or receiver.
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

// read judges the opening of a file: as a redirection if the mode is for writing, and otherwise as
// reading.
func (r *inlineRun) read(name tokens.Token, list []tokens.Token) {
	if len(list) > 1 && len(list[1].Text) <= 3 && strings.ContainsAny(list[1].Text, "wa") && strings.Trim(list[1].Text, "wabt+x") == "" {
		op := act.Overwrite
		if strings.ContainsRune(list[1].Text, 'a') {
			op = act.AppendTo
		}
		r.sh.Emit(r.src, r.lang, act.Effect{Op: op, On: []act.Word{r.word(list[0])}, From: name.From, To: list[0].To})
		r.keepsWritten(name, list[0])
		return
	}
	r.readSecrets(list[:1])
}
