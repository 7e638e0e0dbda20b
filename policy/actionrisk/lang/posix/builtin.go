package posix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// builtin handles a call that changes the state of the shell itself. It returns false if the call
// must also be judged like any other.
func builtin(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	subscripts(sh, v)
	switch v.Exe {
	case "cd", "pushd", "chdir":
		to := act.Word{Text: "~", At: -1}
		if len(v.Operands) > 0 {
			to = v.Operands[0]
		}
		sh.Enter(to)
	case "export", "declare", "typeset", "local", "readonly":
		exported(sh, v)
		return act.Flow{}, len(v.Operands) > 0
	case "alias", "hash":
		aliases(sh, v)
	case "set":
		setParams(sh, v)
		return act.Flow{Known: true}, len(v.Argv) > 1
	case "unset":
		for _, w := range v.Operands {
			delete(sh.Vars, w.Text)
			delete(sh.Funcs, w.Text)
		}
		matchCall(sh, v)
	case "shift":
		shift(sh, v)
	case "exit", "return":
		sh.Env.Left = true
	case "unalias", "shopt", "popd", "break", "continue":
	default:
		return runsText(sh, v)
	}
	return act.Flow{Known: true}, true
}

// runsText handles builtins that run a text, a file or their input.
func runsText(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	switch v.Exe {
	case "eval":
		if len(v.Argv) > 1 {
			return interpretHere(sh, act.JoinWords(v.Argv[1:], sh.Src), v, "eval"), true
		}
	case "trap":
		if len(v.Operands) > 1 && v.Operands[0].Text != "-" {
			trap(sh, v)
		}
	case "read", "mapfile", "readarray":
		readsInput(sh, v)
		callbacks(sh, v)
	case "source", ".":
		sourced(sh, v)
		return act.Flow{}, true
	default:
		callbacks(sh, v)
		history(sh, v)
		return act.Flow{}, false
	}
	return act.Flow{Known: true}, true
}

// history handles history -s, which adds a command to the history, and fc, which runs the last one
// again.
func history(sh *interp.Process, v *act.Invocation) {
	switch v.Exe {
	case "history":
		if v.Has("-s") && len(v.Operands) > 0 {
			setVariable(sh, "!", act.JoinWords(v.Operands, sh.Src))
		}
	case "fc":
		if last := sh.Vars["!"]; len(last) == 1 && (v.Has("-s") || v.Has("-e")) {
			interpretHere(sh, last[0], v, "fc")
		}
	}
}

// exported sets the variables in NAME=value words, and judges the programs that such variables
// make other programs run.
func exported(sh *interp.Process, v *act.Invocation) {
	for _, w := range v.Argv[1:] {
		if name, _, ok := strings.Cut(w.Text, "="); ok {
			setVariable(sh, name, w.Tail(len(name)+1))
			variableRuns(sh, v, act.Assign{Name: name, Value: w.Tail(len(name) + 1)})
		}
	}
}

// matchCall judges a call by the rule tables, and reports whether a rule matched.
func matchCall(sh *interp.Process, v *act.Invocation) bool {
	return sh.Env.Match(&act.Item{Kind: act.KindExe, Name: v.Exe, Inv: v, Src: v.Src, From: v.From, To: v.To})
}

// aliases records the aliases that alias sets, and the names that "hash -p file name" gives to
// files.
func aliases(sh *interp.Process, v *act.Invocation) {
	if w, ok := act.WordAfter(v, "-p"); ok && v.Exe == "hash" && len(v.Operands) > 0 {
		setAlias(sh, v.Operands[len(v.Operands)-1].Text, w)
	}
	for _, w := range v.Operands {
		if name, _, ok := strings.Cut(w.Text, "="); ok {
			text := w.Tail(len(name) + 1)
			if v.Has("-s") { // zsh runs the alias for files with this extension
				name = "*." + name
			}
			setAlias(sh, name, text)
		}
	}
}

// setAlias makes name an alias of the text.
func setAlias(sh *interp.Process, name string, text act.Word) {
	scan.Put(&sh.Aliases, name, text)
}

// shift removes the first parameters of the shell.
func shift(sh *interp.Process, v *act.Invocation) {
	n := 1
	if len(v.Operands) > 0 {
		n, _ = strconv.Atoi(v.Operands[0].Text)
	}
	if sh.Params != nil {
		sh.Params = sh.Params[min(max(n, 0), len(sh.Params)):]
	}
}

// sourced judges a file that source runs in this shell, if its text is known, or the input of
// source in fish.
func sourced(sh *interp.Process, v *act.Invocation) {
	if len(v.Operands) == 0 && v.Stdin.Known {
		interpretHere(sh, v.Stdin.Word, v, "source")
	}
	if len(v.Operands) > 0 {
		sh.Env.Want(sh, v.Operands[0].Text)
		f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, v.Operands[0].Text)]
		name := v.Operands[0]
		if !ok && name.Glob {
			f, ok = sh.Env.WrittenFile(sh, name.Text)
		}
		sh.Env.Sourced = sh.Env.Sourced || !ok && name.Known() && name.Taint == 0 && sh.Env.ClassOf(name, sh.Cwd)&(paths.IsTemp|paths.IsOutside|paths.IsDynamic) == 0
		if fd, descr := act.Descriptor(v.Operands[0].Text); v.Operands[0].Text == "/dev/stdin" || descr && (fd == "0" || !ok && v.Stdin.Known) {
			v.Operands[0].Text, v.Operands[0].At = "/dev/stdin", -1
			f, ok = v.Stdin, true
		}
		if ok && f.Known {
			f.Word.Taint |= f.Taint
			interpretHere(sh, f.Word, v, "source")
		} else {
			sh.Env.Unproven = true
		}
	}
	matchCall(sh, v)
}

// trap judges the text of a trap at once. If the trap is for the exit of the shell and its text
// uses variables or functions, it is judged at the end, with the variables set until then.
func trap(sh *interp.Process, v *act.Invocation) {
	e, text := sh.Env, v.Operands[0]
	waits := slices.ContainsFunc(v.Operands[1:], func(w act.Word) bool { return w.Text == "EXIT" || w.Text == "0" })
	_, calls := sh.Funcs[text.Text]
	if !waits || strings.IndexByte(text.Text, '$') < 0 && !calls || len(e.Later) >= scan.MaxFiles {
		interpretHere(sh, text, v, "trap")
		return
	}
	then := sh.Fork()
	src := sh.Src
	e.Later = append(e.Later, func() {
		at := sh
		if e.Left { // assignments after an exit do not happen
			at = then
		}
		at.Src = src
		interpretHere(at, text, v, "trap")
	})
}

// interpretHere judges text that runs in this shell itself, so that the variables it sets remain
// set.
func interpretHere(sh *interp.Process, w act.Word, v *act.Invocation, via string) act.Flow {
	matchCall(sh, v)
	if strings.Trim(w.Text, " \n\t"+string(scan.Hole)) == "" {
		if w.Text == "" {
			return act.Flow{Known: true}
		}
		return sh.UnknownText("shell", w, v)
	}
	src := sh.Src.Inside(w, via)
	if !w.Known() {
		src.Text, src.At = strings.ReplaceAll(w.Text, string(scan.Hole), "${_}"), -1
	}
	return Script(sh, &src, v.Stdin)
}

// setParams handles "set -- a b", which sets the parameters of the shell.
func setParams(sh *interp.Process, v *act.Invocation) {
	if v.After >= 0 {
		sh.Params = v.Operands[min(v.After, len(v.Operands)):]
	}
}
