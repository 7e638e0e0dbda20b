package windows

import (
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Predicates test commands of PowerShell (kind "cmdlet", named by their
// verb), members of .NET types (kind "member") and programs (kind "program").
var Predicates = map[string]interp.Predicate{
	"noun":  nounIs,   // the noun of the command, or the type of the object; "*" stands for anything
	"param": paramIs,  // a parameter is given, or "name=value" with that value
	"arg":   argIs,    // a value, of a parameter or without one, is so
	"from":  fromIs,   // what is piped in is the output of that command
	"bulk":  bulk,     // it is about all or many things: piped, a list, a pattern
	"whole": whole,    // all that a listing gives is piped in
	"line":  lineIs,   // words that follow each other, in any case
	"given": givenAny, // at least that many values are given
}

func callOf(it *act.Item) *psCall {
	c, _ := it.Fact.(*psCall)
	return c
}

func nounIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	c := callOf(it)
	if c == nil {
		return act.Word{}, false
	}
	for _, a := range args {
		if a == c.noun || strings.IndexByte(a, '*') >= 0 && paths.GlobMatch(a, c.noun) {
			return c.about(), true
		}
	}
	return act.Word{}, false
}

func paramIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	c := callOf(it)
	if c == nil {
		return act.Word{}, false
	}
	for _, a := range args {
		name, value, valued := strings.Cut(a, "=")
		for i := range c.params {
			p := &c.params[i]
			if p.name != name && (len(p.name) < 2 || !strings.HasPrefix(name, p.name)) {
				continue
			}
			if !valued && (p.value.kind != psText || !strings.EqualFold(p.value.text, "false")) || valued && p.is(value) {
				return c.about(), true
			}
		}
	}
	return act.Word{}, false
}

func argIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	c := callOf(it)
	if c == nil {
		p, _ := it.Fact.(*facts.ProgramFact)
		if p == nil {
			return act.Word{}, false
		}
		return facts.TextLike(p.Whole, args)
	}
	for _, v := range append(c.values(), c.input.items...) { // what is piped in was named before
		if w, ok := facts.TextLike(v.deepTexts(), args); ok {
			return w, true
		}
	}
	return act.Word{}, false
}

func fromIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	c := callOf(it)
	if c == nil {
		return act.Word{}, false
	}
	for _, v := range append([]psValue{c.input}, c.values()...) {
		if v.kind == psObject && slices.ContainsFunc(args, func(a string) bool { return paths.GlobMatch(a, v.text) }) {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

func bulk(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	c := callOf(it)
	if c == nil {
		return act.Word{}, false
	}
	if c.piped {
		return act.Word{}, true
	}
	for _, v := range c.values() {
		if v.kind == psList && len(v.items) > 1 || strings.Contains(v.str(), "*") || v.output {
			return act.Word{}, true
		}
	}
	return act.Word{}, false
}

func whole(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	c := callOf(it)
	return act.Word{}, c != nil && c.piped && c.input.kind == psObject && len(c.input.keys) == 0
}

func givenAny(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	c := callOf(it)
	return act.Word{}, c != nil && (len(c.args) > 0 || len(c.params) > 0 || c.piped)
}

// lineIs: the words follow each other somewhere in the command. A word of the
// table may hold "*", which is any text, or be \*, which is a "*"; backslashes are
// written "/".
func lineIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	p, _ := it.Fact.(*facts.ProgramFact)
	if p == nil {
		return act.Word{}, false
	}
	words := p.Words
	for _, a := range args {
		want := strings.Fields(a)
		for i := range words {
			if i+len(want) > len(words) {
				break
			}
			n := 0
			for n < len(want) && (want[n] == words[i+n] || want[n] == `\*` && words[i+n] == "*" || strings.IndexByte(want[n], '*') >= 0 && paths.GlobMatch(want[n], words[i+n])) {
				n++
			}
			if n == len(want) {
				return act.Word{Text: words[i+n-1]}, true
			}
		}
	}
	return act.Word{}, false
}

// Program judges a program of Windows by its words, in whatever shell it is
// started: names and options are the same in any case there.
func Program(sh *interp.Process, v *act.Invocation) bool {
	e, name := sh.Env, strings.ToLower(v.Exe)
	carries, judged := e.Windows.ByCarrier[name], e.Other["program "+name] != nil
	if len(e.Files) > 0 && slices.Contains(e.Windows.Loaders, name) {
		load(sh, v)
	}
	if len(carries) == 0 && !judged {
		return false
	}
	f := &facts.ProgramFact{}
	for _, w := range v.Argv[1:] {
		low := strings.ToLower(strings.ReplaceAll(w.Text, `\`, "/"))
		f.Whole, f.Words = append(f.Whole, low), append(f.Words, strings.Fields(low)...)
	}
	if slices.Contains(f.Words, "/?") || !e.Budget.Spend(4*len(f.Words)) {
		return false
	}
	for _, c := range carries {
		carry(sh, c, v)
	}
	return judged && e.Match(&act.Item{Kind: "program", Name: name, Src: v.Src, From: v.From, To: v.To, Fact: f, Words: strings.Join(f.Words, " ")})
}

// load: a program that runs or installs the files it is given; one of them was
// written or fetched by the command itself.
func load(sh *interp.Process, v *act.Invocation) {
	for _, w := range v.Argv[1:] {
		name, _, _ := strings.Cut(strings.ReplaceAll(w.Text, `\`, "/"), ",")
		f, ok := sh.Env.Files[paths.FileKey(sh.Cwd, name)]
		switch {
		case !ok:
		case f.Taint&(act.FromNetwork|act.FromDecoder) != 0:
			sh.Env.See(act.RunsDownload, v.Src, v.From, v.To, act.Printable(name))
		case f.Known && scriptSuffixes[strings.ToLower(path.Ext(name))] != "":
			src := sh.Src.Inside(f.Word, v.Exe)
			src.At = -1
			runLanguage(sh.Env, sh, &src, scriptSuffixes[strings.ToLower(path.Ext(name))])
		}
	}
}

// carry runs what a program of Windows is told to start, and remembers what it fetches.
func carry(sh *interp.Process, c *facts.WinCarrier, v *act.Invocation) {
	for i := 1; i < len(v.Argv); i++ {
		low := strings.ToLower(v.Argv[i].Text)
		if low == "" {
			continue
		}
		name, value, joined := strings.Cut(low, ":")
		switch {
		case slices.Contains(c.Options, low) && i+1 < len(v.Argv):
			runCarried(sh, c, v.Argv[i+1:i+2], v)
		case joined && slices.Contains(c.Options, name) && value != "":
			runCarried(sh, c, []act.Word{v.Argv[i].Tail(len(name) + 1)}, v)
		case slices.Contains(c.After, low):
			runCarried(sh, c, v.Argv[i+1:], v)
			return
		case c.Rest && strings.IndexByte(`/-@\`, low[0]) < 0:
			runCarried(sh, c, v.Argv[i:], v)
			return
		case c.Fetch && strings.Contains(low, "://"):
			to := act.Word{Text: low[strings.LastIndexByte(low, '/')+1:]}
			for _, next := range v.Argv[i+1:] {
				if t := next.Text; t != "" && t[0] != '/' && t[0] != '-' {
					to = next
				}
			}
			to.Text = strings.ReplaceAll(to.Text, `\`, "/")
			sh.Env.Remember(sh, to, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
			return
		case slices.Contains(c.Decode, low), slices.Contains(c.Encode, low):
			remade(sh, v, i, slices.Contains(c.Decode, low))
			return
		case c.Named != "" && strings.Contains(low, c.Named):
			w := v.Argv[i].Tail(strings.Index(low, c.Named) + len(c.Named))
			w.Text, w.At = strings.Trim(w.Text, `"'};`), -1
			runCarried(sh, c, []act.Word{w}, v)
		}
	}
}

// remade: the last word is a file made of the one behind the option at i.
func remade(sh *interp.Process, v *act.Invocation, i int, hidden bool) {
	if i+1 >= len(v.Argv) {
		return
	}
	from, to := v.Argv[i+1], v.Argv[len(v.Argv)-1]
	from.Text, to.Text = strings.ReplaceAll(from.Text, `\`, "/"), strings.ReplaceAll(to.Text, `\`, "/")
	f := act.Flow{Taint: sh.Env.ReadFile(sh, from).Taint &^ act.FromStdin, Via: v.Exe}
	if hidden {
		f.Taint |= act.FromDecoder
	}
	sh.Env.Remember(sh, to, f, false)
}

// runCarried runs words that are a command line.
func runCarried(sh *interp.Process, c *facts.WinCarrier, line []act.Word, v *act.Invocation) {
	if len(line) == 0 || sh.Suspects >= scan.MaxSuspects {
		return
	}
	lang := c.Lang
	if lang == "" {
		lang = "cmd"
	}
	w := line[0]
	if len(line) > 1 {
		parts := make([]string, len(line))
		for i, one := range line {
			if parts[i] = one.Text; strings.Contains(one.Text, " ") {
				parts[i] = `"` + one.Text + `"`
			}
			w.Taint |= one.Taint
		}
		w.Text, w.At = strings.Join(parts, " "), -1
	}
	inner := *sh
	inner.Suspects++
	inner.Interpret(lang, w, v, v.Exe, nil)
}
