package actionrisk

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// builtin runs what changes the shell itself.
func (sh *shell) builtin(v *invocation) (flow, bool) {
	e := sh.e
	sh.subscripts(v)
	switch v.exe {
	case "cd", "pushd", "chdir":
		sh.chdir(v)
		return flow{known: true}, true
	case "export", "declare", "typeset", "local", "readonly":
		if len(v.operands) == 0 && v.exe != "local" {
			e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
			return flow{taint: fromEnviron, via: v.exe}, true
		}
		for _, w := range v.argv[1:] {
			if name, _, ok := strings.Cut(w.Text, "="); ok {
				sh.set(name, w.tail(len(name)+1))
			}
		}
		return flow{}, len(v.operands) > 0
	case "alias":
		for _, w := range v.operands {
			if name, _, ok := strings.Cut(w.Text, "="); ok {
				if sh.aliases == nil {
					sh.aliases = map[string]Word{}
				}
				text := w.tail(len(name) + 1)
				if v.has("-s") { // zsh: of files whose name ends so
					name = "*." + name
				}
				sh.aliases[name] = text
			}
		}
		return flow{known: true}, true
	case "hash":
		if w, ok := wordAfter(v, "-p"); ok && len(v.operands) > 0 {
			if sh.aliases == nil {
				sh.aliases = map[string]Word{}
			}
			sh.aliases[v.operands[len(v.operands)-1].Text] = w
		}
		return flow{known: true}, true
	case "set":
		if len(v.argv) == 1 {
			e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
			return flow{taint: fromEnviron, via: v.exe}, true
		}
		sh.setParams(v)
		return flow{known: true}, true
	case "unset":
		for _, w := range v.operands {
			delete(sh.vars, w.Text)
			delete(sh.funcs, w.Text)
		}
		e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
		return flow{known: true}, true
	case "shift":
		n := 1
		if len(v.operands) > 0 {
			n, _ = strconv.Atoi(v.operands[0].Text)
		}
		if sh.params != nil {
			sh.params = sh.params[min(max(n, 0), len(sh.params)):]
		}
		return flow{known: true}, true
	case "exit", "return":
		e.left = true
		return flow{known: true}, true
	case "unalias", "shopt", "popd", "break", "continue":
		return flow{known: true}, true
	case "eval":
		if len(v.argv) > 1 {
			return sh.interpretHere(joinWords(v.argv[1:], sh.src), v, "eval"), true
		}
		return flow{known: true}, true
	case "trap":
		if len(v.operands) > 1 && v.operands[0].Text != "-" {
			sh.trap(v)
		}
		return flow{known: true}, true
	case "read", "mapfile", "readarray":
		sh.readsInput(v)
		sh.callbacks(v)
		return flow{known: true}, true
	case "compgen", "complete", "bind", "enable":
		sh.callbacks(v)
	case "history":
		if v.has("-s") && len(v.operands) > 0 {
			sh.set("!", joinWords(v.operands, sh.src))
		}
	case "fc":
		if last := sh.vars["!"]; len(last) == 1 && (v.has("-s") || v.has("-e")) {
			sh.interpretHere(last[0], v, "fc")
		}
	case "source", ".":
		if len(v.operands) == 0 && v.stdin.known { // fish reads its input
			sh.interpretHere(v.stdin.word, v, "source")
		}
		if len(v.operands) > 0 {
			f, ok := e.files[paths.FileKey(sh.cwd, v.operands[0].Text)]
			if fd, descr := descriptor(v.operands[0].Text); v.operands[0].Text == "/dev/stdin" || descr && (fd == "0" || !ok && v.stdin.known) {
				v.operands[0].Text, v.operands[0].At = "/dev/stdin", -1
				f, ok = v.stdin, true
			}
			if ok && f.known {
				f.word.Taint |= f.taint
				sh.interpretHere(f.word, v, "source")
			} else {
				e.unproven = true
			}
		}
		e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
		return flow{}, true
	}
	return flow{}, false
}

// trap runs the text at once, or, where it waits for the end and uses a variable
// that nothing has set yet, at the end, with the values of then.
func (sh *shell) trap(v *invocation) {
	e, text := sh.e, v.operands[0]
	waits := slices.ContainsFunc(v.operands[1:], func(w Word) bool { return w.Text == "EXIT" || w.Text == "0" })
	_, calls := sh.funcs[text.Text]
	if !waits || strings.IndexByte(text.Text, '$') < 0 && !calls || len(e.later) >= scan.MaxFiles {
		sh.interpretHere(text, v, "trap")
		return
	}
	then := sh.fork()
	src := sh.src
	e.later = append(e.later, func() {
		at := sh
		if e.left { // what is set behind an exit is never set
			at = then
		}
		at.src = src
		at.interpretHere(text, v, "trap")
	})
}

// interpretHere runs text in this shell itself, so that what it sets stays.
func (sh *shell) interpretHere(w Word, v *invocation, via string) flow {
	e := sh.e
	e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
	if strings.Trim(w.Text, " \n\t"+string(scan.Hole)) == "" {
		if w.Text == "" {
			return flow{known: true}
		}
		return sh.unknownText("shell", w, v)
	}
	src := sh.src.inside(w, via)
	if !w.known() {
		src.text, src.at = strings.ReplaceAll(w.Text, string(scan.Hole), "${_}"), -1
	}
	return sh.script(&src, v.stdin)
}

// setParams: "set -- a b" gives the shell its parameters.
func (sh *shell) setParams(v *invocation) {
	if v.after >= 0 {
		sh.params = v.operands[min(v.after, len(v.operands)):]
	}
}

func (sh *shell) chdir(v *invocation) {
	if len(v.operands) == 0 {
		sh.cwd = "~"
		return
	}
	w := v.operands[0]
	switch t := w.Text; {
	case !w.known():
		sh.cwd = string(scan.Hole)
	case strings.HasPrefix(t, "/") || strings.HasPrefix(t, "~"):
		sh.cwd = path.Clean(t)
	case t == "-":
		sh.cwd = ""
	default:
		at := sh.cwd
		if at == "" {
			at = sh.e.context.cwd
		}
		if at == "" {
			at = "."
		}
		sh.cwd = path.Join(at, t)
	}
}

// syntaxName tells whether a text can be the name of a variable.
func syntaxName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !scan.IsNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}
