package posix

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// unwrap judges the commands that a wrapper runs, and reports whether there are any. w is a row of
// the table for this program.
func unwrap(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	if v.Dry && !w.Dry {
		return act.Flow{}, false
	}
	inner, skip := around(sh, w, v)
	also := alsoRuns(inner, w, v)
	if out, ok := optionTexts(inner, w, v); ok {
		return out, true
	}
	skip = facts.Assignments(w, v, skip)
	rest := v.Operands[min(skip, len(v.Operands)):]
	if carrier := sh.Env.Front.Carriers[w.Lang]; carrier != nil {
		carrier(inner, v, skip)
		return act.Flow{}, true
	}
	if out, ok, is := manyTexts(sh, inner, rest, w, v); is {
		return out, ok
	}
	if len(rest) > 0 {
		if out, ok, is := operandText(sh, inner, rest, w, v); is {
			return out, ok
		}
	}
	if w.Stdin {
		out, ok := fromInput(inner, w, v)
		return out, ok || also
	}
	return act.Flow{}, also
}

// manyTexts judges commands that a wrapper runs several times or in a special way: after words
// such as -exec, for each operand, for each part of the input, in an editor. The third result
// reports whether the row describes one of these.
func manyTexts(sh, inner *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) (out act.Flow, ok, is bool) {
	switch {
	case len(w.After) > 0:
		out, ok = afterWord(sh, inner, w, v)
	case w.Append && nothingGiven(v):
		out, ok = act.Flow{Known: true}, true
	case w.Each && len(rest) > 0 || w.Plus:
		out, ok = eachText(inner, rest, w, v)
	case w.Script && v.Exe == "npm":
		out, ok = npmScripts(inner, rest, w, v)
	case w.Edits != "":
		out, ok = edits(inner, w.Edits, v)
	case w.Parallel:
		out, ok = parallel(inner, rest, v), true
	default:
		return act.Flow{}, false, false
	}
	return out, ok, true
}

// operandText judges the operands as the row describes them: the words of a command, a text, a
// text in several words, or a file. The third result reports whether the row describes one of
// these.
func operandText(sh, inner *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) (out act.Flow, ok, is bool) {
	switch {
	case slices.ContainsFunc(w.Flag, v.Has):
		if len(rest) > 1 {
			inner.Zero, inner.Params = rest[1], rest[min(2, len(rest)):]
		}
		return inner.Interpret(w.Lang, rest[0], v, v.Exe+" "+w.Flag[0], inner.Params), true, true
	case w.Argv:
		return words(sh, inner, rest, w, v), true, true
	case w.Script:
		return inner.Interpret(w.Lang, rest[0], v, v.Exe, nil), true, true
	case w.Join:
		out, ok = pieces(sh, inner, rest, w, v)
		return out, ok, true
	case w.File && rest[0].Text != "-" && !v.Has("-s"):
		inner.Params = rest[1:]
		return file(inner, w, v, rest[0]), true, true
	}
	return act.Flow{}, false, false
}

// pieces judges words that the program joins to one text. It skips options after the host.
func pieces(sh, inner *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) (act.Flow, bool) {
	if behind := w.Host && strings.HasPrefix(rest[0].Text, "-"); behind {
		for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
			if slices.Contains(sh.Env.Program(v.Exe).Options.Values, rest[0].Text) {
				rest = rest[1:]
			}
			rest = rest[min(1, len(rest)):]
		}
		if len(rest) == 0 {
			return fromInput(inner, w, v)
		}
	} else if len(rest) > 1 && sh.Env.In("shells", scan.Base(rest[0].Text)) {
		argv(inner, rest, w, v) // also judge the words as they are, which is probably meant: joining them loses the quotes
	}
	return inner.Interpret(w.Lang, act.JoinWords(rest, sh.Src), v, v.Exe, nil), true
}

// alsoRuns judges the texts and files that a wrapper reads before it runs its command: its start
// file, the text of an option, files among its operands.
func alsoRuns(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (done bool) {
	for _, starts := range sh.Env.Front.Starts {
		starts(sh, w, v)
	}
	for i := range v.Opts {
		if o := &v.Opts[i]; o.Given && slices.Contains(w.Also, o.Name) {
			sh.Interpret(w.Lang, o.Value, v, v.Exe+" "+o.Name, nil)
			done = true
		}
	}
	for _, operand := range v.Operands {
		for _, pattern := range w.Files {
			if act.MatchWord(pattern, operand.Text) {
				if pattern == "@*" {
					operand.Text, operand.At = strings.TrimLeft(operand.Text, "@"), -1
				}
				file(sh, w, v, operand)
				done = true
			}
		}
	}
	return done
}

// nothingGiven reports whether xargs -r has no input, so that it runs nothing.
func nothingGiven(v *act.Invocation) bool {
	return v.Stdin.Known && strings.TrimSpace(v.Stdin.Word.Text) == "" && (v.Has("-r") || v.Has("--no-run-if-empty"))
}

// around returns the shell in which a wrapper runs its command, and the number of operands before
// the command.
func around(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (*interp.Process, int) {
	inner := *sh
	if w.Gone {
		inner.Vars, inner.Funcs, inner.Aliases, inner.Params = nil, nil, nil, nil
	} else if w.Lang == "shell" && len(v.Env) > 0 { // the call sets variables for the shell that it starts
		inner.Vars = maps.Clone(sh.Vars)
		for _, a := range v.Env {
			setVariable(&inner, a.Name, a.Value)
		}
	}
	if w.Root {
		inner.Root = asRoot(w, v)
	}
	skip := w.Skip + facts.Depth(w.Sub)
	if w.Remote {
		inner.Remote, inner.Cwd, inner.Root = true, "", false // root on this machine is not root on the other one
		if w.Host && skip > 0 {
			inner.Host = v.Operand(skip - 1)
			if skip <= len(v.Operands) && thisMachine(v.Operands[skip-1]) {
				inner.Remote, inner.Cwd = sh.Remote, "~"
			}
		}
	}
	return &inner, skip
}

// thisMachine reports whether the host of a remote shell is the local machine.
func thisMachine(host act.Word) bool {
	name := host.Text[strings.IndexByte(host.Text, '@')+1:]
	return hosts.LocalHost(strings.TrimPrefix(name, "ssh://")) || name == string(scan.Hole) && slices.Contains([]string{"HOSTNAME", "HOST", "$(hostname)"}, host.Var)
}

// asRoot reports whether a wrapper such as sudo names no other user than root.
func asRoot(w *facts.Wrapper, v *act.Invocation) bool {
	user, named := v.Value("-u", "--user", "-g")
	for i := 0; i < len(v.Operands) && w.Account && !named; i++ {
		user, named = v.Operands[i], v.Operands[i].Text != "-" && v.Operands[i].Known()
	}
	return !named || user.Text == "root" || user.Text == "0"
}

// optionTexts judges the texts and files in options.
func optionTexts(sh *interp.Process, w *facts.Wrapper, v *act.Invocation) (out act.Flow, done bool) {
	for i := range v.Opts {
		o := &v.Opts[i]
		if o.Given && slices.Contains(w.Options, o.Name) {
			if text, ok := facts.OptionText(o, w, v); ok {
				out, done = sh.Interpret(w.Lang, text, v, v.Exe+" "+o.Name, nil), true
			}
		}
		if o.Given && slices.Contains(w.FileOptions, o.Name) {
			if o.Value.Text == "-" || o.Value.Text == "/dev/stdin" {
				return fromInput(sh, w, v)
			}
			out, done = file(sh, w, v, o.Value), true
		}
	}
	return out, done
}

// words judges operands that are the words of a command.
func words(sh *interp.Process, inner *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) act.Flow {
	out := argv(inner, rest, w, v)
	otherReading(sh, inner, rest, w, v)
	switch v.Exe {
	case "builtin", "command", "time", "exec": // these run in the shell itself, so its state changes
		sh.Cwd, sh.Vars, sh.Funcs, sh.Aliases = inner.Cwd, inner.Vars, inner.Funcs, inner.Aliases
	}
	return out
}

// eachText judges each operand as a text, or only those that begin with "+".
func eachText(sh *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) (out act.Flow, done bool) {
	for _, text := range rest {
		if w.Plus {
			if !strings.HasPrefix(text.Text, "+") {
				continue
			}
			text = text.Tail(1)
		}
		out, done = sh.Interpret(w.Lang, text, v, v.Exe, nil), true
	}
	return out, done
}

// npmScripts judges the commands that npm pkg set writes into the scripts of a package.
func npmScripts(sh *interp.Process, rest []act.Word, w *facts.Wrapper, v *act.Invocation) (out act.Flow, done bool) {
	for _, pair := range rest {
		if name, _, ok := strings.Cut(pair.Text, "="); ok && strings.HasPrefix(name, "scripts.") {
			out, done = sh.Interpret(w.Lang, pair.Tail(len(name)+1), v, "npm script", nil), true
		}
	}
	return out, done
}
