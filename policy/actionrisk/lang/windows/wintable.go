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

// Predicates holds the predicates for commands of PowerShell (kind "cmdlet", named by their verb),
// members of .NET types (kind "member") and programs (kind "program").
var Predicates = map[string]interp.Predicate{
	"noun":  ofCall(nounIs),   // the noun of the command, or the type of the object; "*" matches any text
	"param": ofCall(paramIs),  // the parameter is given, or for "name=value" has this value
	"arg":   argIs,            // an argument, with or without a parameter name, has this value
	"from":  ofCall(fromIs),   // the input or an argument is the output of this command
	"bulk":  ofCall(bulk),     // the command acts on many objects: a pipe, a list, a pattern or an unknown output
	"whole": ofCall(whole),    // the input is a whole listing, without a filter
	"line":  lineIs,           // these words follow each other, in any case of letters
	"given": ofCall(givenAny), // the command has an argument or an input
}

func nounIs(c *psCall, args []string) (act.Word, bool) {
	for _, a := range args {
		if a == c.noun || strings.IndexByte(a, '*') >= 0 && paths.GlobMatch(a, c.noun) {
			return c.about(), true
		}
	}
	return act.Word{}, false
}

func paramIs(c *psCall, args []string) (act.Word, bool) {
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
	switch f := it.Fact.(type) {
	case *facts.ProgramFact:
		return facts.TextLike(f.Whole, args)
	case *psCall:
		for _, v := range append(f.values(), f.input.items...) { // an item of the piped input may name an object, such as a file, that an earlier command returned
			if w, ok := facts.TextLike(v.deepTexts(), args); ok {
				return w, true
			}
		}
	}
	return act.Word{}, false
}

func fromIs(c *psCall, args []string) (act.Word, bool) {
	return act.Word{}, slices.ContainsFunc(append([]psValue{c.input}, c.values()...), func(v psValue) bool {
		return v.kind == psObject && slices.ContainsFunc(args, func(a string) bool { return paths.GlobMatch(a, v.text) })
	})
}

func bulk(c *psCall, _ []string) (act.Word, bool) {
	return act.Word{}, c.piped || slices.ContainsFunc(c.values(), func(v psValue) bool {
		return v.kind == psList && len(v.items) > 1 || strings.Contains(v.str(), "*") || v.output
	})
}

func whole(c *psCall, _ []string) (act.Word, bool) {
	return act.Word{}, c.piped && c.input.kind == psObject && len(c.input.keys) == 0
}

func givenAny(c *psCall, _ []string) (act.Word, bool) {
	return act.Word{}, len(c.args) > 0 || len(c.params) > 0 || c.piped
}

// lineIs reports whether the words follow each other in the command. In a word of the table, "*"
// matches any text and \* matches a "*". Backslashes are written as "/".
func lineIs(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	p, ok := it.Fact.(*facts.ProgramFact)
	for _, a := range args {
		want := strings.Fields(a)
		for i := 0; ok && i+len(want) <= len(p.Words); i++ {
			n := 0
			for n < len(want) && wordLike(want[n], p.Words[i+n]) {
				n++
			}
			if n == len(want) {
				return act.Word{Text: p.Words[i+n-1]}, true
			}
		}
	}
	return act.Word{}, false
}

// wordLike reports whether a word matches a word of the table.
func wordLike(want, word string) bool {
	return want == word || want == `\*` && word == "*" || strings.IndexByte(want, '*') >= 0 && paths.GlobMatch(want, word)
}

// Program judges a Windows program by its words, in whatever shell it starts, and reports whether
// a rule matched. The case of names and options does not matter.
func Program(sh *interp.Process, v *act.Invocation) bool {
	e, name := sh.Env, strings.ToLower(v.Exe)
	carries, judged := e.Windows.ByCarrier.Get(name), e.Other.Get("program "+name) != nil
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

// load judges a program that runs or installs files, if the command itself wrote or downloaded
// such a file.
func load(sh *interp.Process, v *act.Invocation) {
	for _, w := range v.Argv[1:] {
		name, _, _ := strings.Cut(strings.ReplaceAll(w.Text, `\`, "/"), ",")
		f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, name)]
		switch {
		case !ok:
		case f.Taint&(act.FromNetwork|act.FromDecoder) != 0:
			sh.Env.See(act.RunsDownload, v.Src, v.From, v.To, act.Printable(name))
		case f.Known && scriptSuffixes[strings.ToLower(path.Ext(name))] != "":
			src := sh.Src.Inside(f.Word, v.Exe)
			src.At = -1
			runLanguage(sh, &src, scriptSuffixes[strings.ToLower(path.Ext(name))])
		}
	}
}

// carry judges the commands that a Windows program starts, and records the files that it downloads
// or decodes.
func carry(sh *interp.Process, c *facts.WinCarrier, v *act.Invocation) {
	for i := 1; i < len(v.Argv); i++ {
		low := strings.ToLower(v.Argv[i].Text)
		name, value, _ := strings.Cut(low, ":")
		switch {
		case low == "":
		case slices.Contains(c.Options, low) && i+1 < len(v.Argv):
			runCarried(sh, c, v.Argv[i+1:i+2], v)
		case value != "" && slices.Contains(c.Options, name):
			runCarried(sh, c, []act.Word{v.Argv[i].Tail(len(name) + 1)}, v)
		case slices.Contains(c.After, low):
			runCarried(sh, c, v.Argv[i+1:], v)
			return
		case c.Rest && strings.IndexByte(`/-@\`, low[0]) < 0:
			runCarried(sh, c, v.Argv[i:], v)
			return
		case c.Fetch && strings.Contains(low, "://"):
			fetched(sh, v, low, v.Argv[i+1:])
			return
		case slices.Contains(c.Decode, low) || slices.Contains(c.Encode, low):
			remade(sh, v, i, slices.Contains(c.Decode, low))
			return
		case c.Named != "" && strings.Contains(low, c.Named):
			w := v.Argv[i].Tail(strings.Index(low, c.Named) + len(c.Named))
			w.Text, w.At = strings.Trim(w.Text, `"'};`), -1
			runCarried(sh, c, []act.Word{w}, v)
		}
	}
}

// fetched records the file to which an address is saved: the last word in rest that is not an
// option, or else the last part of the address.
func fetched(sh *interp.Process, v *act.Invocation, address string, rest []act.Word) {
	to := act.Word{Text: address[strings.LastIndexByte(address, '/')+1:]}
	for _, next := range rest {
		if t := next.Text; t != "" && t[0] != '/' && t[0] != '-' {
			to = next
		}
	}
	to.Text = strings.ReplaceAll(to.Text, `\`, "/")
	sh.Env.Remember(sh, to, act.Flow{Taint: act.FromNetwork, Via: v.Exe}, false)
}

// remade records that the last word is a file made from the file after the option at i. hidden
// means that it was decoded.
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

// runCarried judges words that are a command line.
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

// ofCall returns a predicate that tests commands and members, and is false for other items.
func ofCall(test func(c *psCall, args []string) (act.Word, bool)) interp.Predicate {
	return func(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
		if c, ok := it.Fact.(*psCall); ok {
			return test(c, args)
		}
		return act.Word{}, false
	}
}
