package judge

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// crontabSet reports whether a crontab is replaced with the input or a file.
func crontabSet(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Has("-l") || v.Has("-r") || v.Has("-e") {
		return act.Word{}, false
	}
	return act.Word{}, len(v.Operands) > 0 || v.Stdin.Via != "" || v.Stdin.Known || v.Stdin.Taint != 0
}

// localTool reports whether npx runs a tool that projects usually have as a dependency.
func localTool(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	return act.Word{}, len(it.Inv.Operands) == 0 || e.In("project-tools", it.Inv.Operands[0].Text)
}

func unpinnedSecond(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	if len(it.Inv.Operands) < 2 {
		return act.Word{}, false
	}
	w := it.Inv.Operands[1]
	t := strings.TrimPrefix(w.Text, "@")
	i := strings.LastIndexByte(t, '@')
	return w, !(i > 0 && i+1 < len(t) && t[i+1] >= '0' && t[i+1] <= '9' || strings.Contains(t, "=="))
}

func rootShell(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if len(v.Operands) > 0 || !toRoot(v) {
		return act.Word{}, false
	}
	return act.Word{}, v.Has("-i") || v.Has("-s") || v.Has("--login") || v.Has("--shell")
}

// toRoot reports whether sudo or a similar program changes to root, not to another user.
func toRoot(v *act.Invocation) bool {
	user, ok := v.Value("-u", "--user", "-U")
	return !ok || !user.Known() || user.Text == "root" || user.Text == "0" || user.Text == "#0"
}

// interactiveShell reports whether a shell has nothing to run, so that it reads commands from the
// terminal or a connection.
func interactiveShell(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	fed := v.Stdin.Known && v.Stdin.Word.Text != "" || v.Stdin.Taint&^act.FromStdin != 0 || v.Stdin.Via != "" ||
		slices.ContainsFunc(v.Redirs, func(r act.Redir) bool { return r.Op == "<" && !terminal(r.File) })
	return v.Argv[0], !fed && len(v.Operands) == 0 && !v.Has("-c") && !v.Has("-n") && !v.Has("--version") && !v.Has("--help")
}

// terminal reports whether a file is a user's terminal.
func terminal(w act.Word) bool {
	return w.Text == "/dev/tty" || strings.HasPrefix(w.Text, "/dev/pts/") || strings.Contains(w.Var, "tty")
}

// suRoot reports whether su changes to root without a command.
func suRoot(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Has("-c") || v.Has("--command") {
		return act.Word{}, false
	}
	for _, w := range v.Operands {
		if w.Text != "-" && w.Text != "root" {
			return act.Word{}, false
		}
	}
	return act.Word{}, true
}

// innerShell reports whether sudo runs a shell without a script.
func innerShell(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if len(v.Operands) == 0 || !toRoot(v) || v.Stdin.Taint != 0 || v.Stdin.Known && v.Stdin.Word.Text != "" {
		return act.Word{}, false
	}
	b := scan.Base(v.Operands[0].Text)
	if !slices.Contains(e.Groups.Get("shells"), b) {
		return act.Word{}, false
	}
	for _, w := range v.Operands[1:] {
		if w.Text != "-i" && w.Text != "-l" && w.Text != "-" {
			return act.Word{}, false
		}
	}
	return v.Operands[0], true
}

func sudoersFile(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	list := v.Operands
	switch v.Exe {
	case "cp", "mv", "install", "ln":
		list = v.Operands[max(0, len(v.Operands)-1):]
	}
	if onlyPrints(e, v) {
		return act.Word{}, false
	}
	return first(list, func(w act.Word) bool {
		return strings.HasPrefix(w.Text, "/etc/sudoers") || strings.HasPrefix(w.Text, "/private/etc/sudoers")
	})
}

func containsWord(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	return first(arguments(it), func(w act.Word) bool {
		return slices.ContainsFunc(strings.Split(w.Text, ","), func(part string) bool { return slices.Contains(args, part) })
	})
}

func accountRoot(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if v.Stdin.Known && strings.HasPrefix(v.Stdin.Word.Text, "root:") { // input of chpasswd
		return v.Stdin.Word, true
	}
	if v.Exe == "passwd" && (v.Has("-S") || v.Has("--status")) {
		return act.Word{}, false
	}
	if w, ok := v.Value("-u", "--uid"); ok && w.Text == "0" {
		return w, true
	}
	for _, w := range v.Operands {
		if w.Text == "root" {
			return w, true
		}
	}
	return act.Word{}, v.Exe == "passwd" && v.Root && len(v.Operands) == 0
}

func accountChange(_ *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	return act.Word{}, !v.Has("-S") && !v.Has("--status") && !(v.Exe == "dscl" && !v.Has("-create") && !v.Has("-delete") && !v.Has("-append") && !v.Has("-passwd"))
}

func optEmpty(_ *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	w, ok := it.Inv.Value(args...)
	return w, ok && w.Text == ""
}

// onlyPrints reports whether a filter such as sed prints its result instead of editing its files
// in place.
func onlyPrints(e *interp.Env, v *act.Invocation) bool {
	return e.In("filters-by-program", v.Exe) && !v.Has("-i") && !v.Has("--in-place")
}

// startupWrite reports whether a copying or editing program writes a file that runs automatically
// later.
func startupWrite(e *interp.Env, it *act.Item, _ []string) (act.Word, bool) {
	v := it.Inv
	if onlyPrints(e, v) {
		return act.Word{}, false
	}
	if w, ok := v.Value("-o", "--output", "-O", "--output-document"); ok && e.ClassOf(w, v.Cwd)&paths.IsStartup != 0 {
		return w, true
	}
	t := targets(it)
	switch v.Exe {
	case "tee", "sed":
		for _, w := range t {
			if e.ClassOf(w, v.Cwd)&paths.IsStartup != 0 {
				return w, true
			}
		}
	case "cp", "mv", "install", "ln":
		if len(t) > 1 {
			w := t[len(t)-1]
			c := e.ClassOf(w, v.Cwd) | e.ClassOf(act.Word{Text: w.Text + "/x"}, v.Cwd)&paths.IsStartup
			return w, c&paths.IsStartup != 0
		}
	}
	return act.Word{}, false
}

func authorizedWrite(e *interp.Env, it *act.Item, args []string) (act.Word, bool) {
	w, ok := startupWrite(e, it, args)
	return w, ok && strings.Contains(w.Text, "authorized_keys")
}
