package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// starts judges a call that starts a program, with a text for a shell or with a list of words.
func (r *inlineRun) starts(kind facts.Doing, name tokens.Token, args, list []tokens.Token) {
	e := r.sh.Env
	first := list[0].Text
	if r.origin(args)&builtText != 0 && (len(list) == 1 || kind == facts.RunsText) && first != string(scan.Hole) && decodesAny(args) {
		e.See(act.RunsDecoded, r.src, name.From, name.To, "")
	}
	if slices.Contains(e.Groups.Get("shells"), scan.Base(first)) {
		if r.feeds = true; r.unknown(name, args) {
			return
		}
		r.feedsInput(args)
	}
	if e.In("languages-with-chains", r.lang) {
		list = r.chained(name, list)
	}
	switch {
	case strings.Trim(first, string(scan.Hole)) == "" && !slices.ContainsFunc(list, forces): // the text does not show which program starts
		r.startsUnknown(name, args)
	case len(list) > 1 && r.takesWords(kind, args, first):
		r.run(list)
	default:
		r.shellText(list[0])
	}
}

// takesWords reports whether the call takes the words of a command and not a text for a shell.
func (r *inlineRun) takesWords(kind facts.Doing, args []tokens.Token, first string) bool {
	if kind == facts.RunsWords && r.lang == "csharp" {
		return true
	}
	return strings.IndexByte(first, ' ') < 0 && (args[0].Kind != tokens.String || kind != facts.RunsText || r.lang == "perl" || r.lang == "ruby")
}

// feedsInput judges the text that a started shell gets as its input.
func (r *inlineRun) feedsInput(args []tokens.Token) {
	for i, t := range args {
		if i+2 >= len(args) || !inputArguments.Has(t.Text) || args[i+1].Kind != '=' && args[i+1].Kind != ':' {
			continue
		}
		if text := r.join(args[i+2:]); text.To > 0 && strings.IndexByte(text.Text, scan.Hole) < 0 {
			r.shellText(text)
		}
	}
}

// startsUnknown judges a call that starts an unknown program.
func (r *inlineRun) startsUnknown(name tokens.Token, args []tokens.Token) {
	e, last, n := r.sh.Env, args[len(args)-1], len(r.src.Text)
	raw := r.src.Text[min(max(args[0].From, 0), n):min(max(last.To, 0), n)]
	if len(args) > 1 && e.ActsText(raw) { // the arguments are the words of a command without quotes
		r.shellText(tokens.Token{Kind: tokens.String, Text: raw, From: args[0].From, To: last.To})
		return
	}
	if !r.unknown(name, args) && (r.lang == "awk" || r.fromInput()) {
		e.See(act.RunsUnknownText, r.src, name.From, name.To, "")
	}
	e.Doubt("a program text runs a command that is not known")
}

// forces reports whether the word is an option that deletes trees or overrides a refusal.
func forces(t tokens.Token) bool {
	switch t.Text {
	case "-rf", "-fr", "-Rf", "--force", "-f", "--hard", "-R", "-r", "--no-preserve-root", "--recursive":
		return true
	}
	return false
}

// inputArguments lists names of arguments that contain the input of a started program.
var inputArguments = scan.SetOf("input stdin_data stdin")

// decodesAny reports whether a function that decodes a text is among the tokens.
func decodesAny(toks []tokens.Token) bool {
	return slices.ContainsFunc(toks, func(t tokens.Token) bool {
		return t.Kind == tokens.Name && (strings.HasSuffix(t.Text, "Buffer.from") || scan.HasAny(t.Text, decoderNames...))
	})
}

// chained adds the arguments that later calls or one string give to a started program:
// Command::new("rm").arg("-rf"), Process.Start("rm", "-rf /").
func (r *inlineRun) chained(name tokens.Token, list []tokens.Token) []tokens.Token {
	if len(list) > 1 && r.lang != "csharp" {
		return list
	}
	if len(list) == 2 { // one string contains all arguments
		return append(list[:1:1], optionWords(list[1])...)
	}
	if !r.sh.Env.Budget.Spend(1 + len(r.toks)/4) {
		return list
	}
	for i, t := range r.toks {
		if t.From < name.From || !r.addsWords(i) {
			continue
		}
		inner := r.arguments(i + 1)
		if len(inner) > 0 && inner[0].Kind == '&' {
			inner = inner[1:]
		}
		list = append(list, r.strings(inner)...)
	}
	return list
}

// addsWords reports whether token i is a call that adds arguments to a program.
func (r *inlineRun) addsWords(i int) bool {
	t := r.toks[i]
	last := t.Text[strings.LastIndexByte(t.Text, '.')+1:]
	return t.Kind == tokens.Name && (last == "arg" || last == "args") && r.at(i, 1).Kind == '('
}

// optionWords returns the words of a string, each as a token.
func optionWords(t tokens.Token) (list []tokens.Token) {
	for _, word := range scan.OptionWords(t.Text) {
		list = append(list, tokens.Token{Kind: tokens.String, Text: word, From: t.From, To: t.To})
	}
	return list
}

// startedBy judges a program that properties of an object name: p.launchPath = "/bin/rm",
// p.arguments = ["-rf", "/"]. Token i is the property with the program.
func (r *inlineRun) startedBy(i int) {
	exe := r.join(r.toks[i+2 : r.statement(i)])
	if exe.To == 0 {
		return
	}
	list := []tokens.Token{exe}
	for j := i; j < len(r.toks); j++ {
		t := r.toks[j]
		if t.Kind != tokens.Name || r.at(j, 1).Kind != '=' || !strings.EqualFold(t.Text[strings.LastIndexByte(t.Text, '.')+1:], "arguments") {
			continue
		}
		for _, w := range r.strings(r.toks[j+2 : r.statement(j)]) {
			if r.lang == "csharp" {
				list = append(list, optionWords(w)...)
			} else {
				list = append(list, w)
			}
		}
	}
	r.run(list)
}

// alternatives returns both values of a conditional argument: A if C else B, C ? A : B. ok is
// false if the argument is not conditional.
func alternatives(args []tokens.Token) (one, other []tokens.Token, ok bool) {
	mark := -1
	for i, t := range outside(args) {
		switch {
		case t.Kind == ',':
			return nil, nil, false
		case i == 0 || i+1 == len(args):
		case mark < 0:
			if isWord(t, "if") || t.Kind == '?' {
				mark = i
			}
		case isWord(t, "else") && args[mark].Kind == tokens.Name:
			return args[:mark], args[i+1:], true
		case t.Kind == ':' && i > mark+1 && args[mark].Kind == '?':
			return args[mark+1 : i], args[i+1:], true
		}
	}
	return nil, nil, false
}

// isWord reports whether the token is a name that equals the word.
func isWord(t tokens.Token, word string) bool { return t.Kind == tokens.Name && t.Text == word }
