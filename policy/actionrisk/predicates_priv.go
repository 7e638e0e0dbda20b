package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// crontabSet: a crontab is replaced by its input or by a file.
func crontabSet(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.has("-l") || v.has("-r") || v.has("-e") {
		return Word{}, false
	}
	return Word{}, len(v.operands) > 0 || v.stdin.via != "" || v.stdin.known || v.stdin.taint != 0
}

// localTool: npx of what projects usually have among their own dependencies.
func localTool(_ *engine, it *item, _ []string) (Word, bool) {
	if len(it.inv.operands) == 0 {
		return Word{}, true
	}
	switch it.inv.operands[0].Text {
	case "tsc", "eslint", "prettier", "jest", "vitest", "mocha", "webpack", "vite", "next", "tsx", "ts-node", "playwright", "cypress", "prisma", "drizzle-kit", "turbo", "nx", "rimraf", "husky", "lint-staged", "tailwindcss", "biome", "stylelint", "nodemon", "rollup", "esbuild":
		return Word{}, true
	}
	return Word{}, false
}

func unpinnedSecond(_ *engine, it *item, _ []string) (Word, bool) {
	if len(it.inv.operands) < 2 {
		return Word{}, false
	}
	w := it.inv.operands[1]
	t := strings.TrimPrefix(w.Text, "@")
	i := strings.LastIndexByte(t, '@')
	return w, !(i > 0 && i+1 < len(t) && t[i+1] >= '0' && t[i+1] <= '9' || strings.Contains(t, "=="))
}

func rootShell(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) > 0 || !toRoot(v) {
		return Word{}, false
	}
	return Word{}, v.has("-i") || v.has("-s") || v.has("--login") || v.has("--shell")
}

// toRoot: sudo and its kind change to root, not to another user.
func toRoot(v *invocation) bool {
	user, ok := v.value("-u", "--user", "-U")
	return !ok || !user.known() || user.Text == "root" || user.Text == "0" || user.Text == "#0"
}

// interactiveShell: a shell that is given nothing to run asks the terminal, or
// whoever holds its other end, what to do.
func interactiveShell(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	fed := v.stdin.known && v.stdin.word.Text != "" || v.stdin.taint&^fromStdin != 0 || v.stdin.via != "" ||
		slices.ContainsFunc(v.redirs, func(r redir) bool { return r.op == "<" && !terminal(r.file) })
	return v.argv[0], !fed && len(v.operands) == 0 && !v.has("-c") && !v.has("-n") && !v.has("--version") && !v.has("--help")
}

// terminal: the file is the terminal of somebody.
func terminal(w Word) bool {
	return w.Text == "/dev/tty" || strings.HasPrefix(w.Text, "/dev/pts/") || strings.Contains(w.Var, "tty")
}

// suRoot: su without a command, to root.
func suRoot(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.has("-c") || v.has("--command") {
		return Word{}, false
	}
	for _, w := range v.operands {
		if w.Text != "-" && w.Text != "root" {
			return Word{}, false
		}
	}
	return Word{}, true
}

// innerShell: sudo with a bare shell behind it.
func innerShell(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if len(v.operands) == 0 || !toRoot(v) || v.stdin.taint != 0 || v.stdin.known && v.stdin.word.Text != "" {
		return Word{}, false
	}
	b := scan.Base(v.operands[0].Text)
	if !slices.Contains(e.groups["shells"], b) {
		return Word{}, false
	}
	for _, w := range v.operands[1:] {
		if w.Text != "-i" && w.Text != "-l" && w.Text != "-" {
			return Word{}, false
		}
	}
	return v.operands[0], true
}

func sudoersFile(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	list := v.operands
	switch v.exe {
	case "cp", "mv", "install", "ln":
		list = v.operands[max(0, len(v.operands)-1):]
	case "sed":
		if !v.has("-i") && !v.has("--in-place") {
			return Word{}, false
		}
	}
	for _, w := range list {
		if strings.HasPrefix(w.Text, "/etc/sudoers") || strings.HasPrefix(w.Text, "/private/etc/sudoers") {
			return w, true
		}
	}
	return Word{}, false
}

func containsWord(_ *engine, it *item, args []string) (Word, bool) {
	for _, w := range it.inv.argv[1:] {
		for _, part := range strings.Split(w.Text, ",") {
			if slices.Contains(args, part) {
				return w, true
			}
		}
	}
	return Word{}, false
}

func accountRoot(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.exe == "chpasswd" {
		return v.stdin.word, v.stdin.known && strings.HasPrefix(v.stdin.word.Text, "root:")
	}
	if v.exe == "passwd" && (v.has("-S") || v.has("--status")) {
		return Word{}, false
	}
	if w, ok := v.value("-u", "--uid"); ok && w.Text == "0" {
		return w, true
	}
	for _, w := range v.operands {
		if w.Text == "root" {
			return w, true
		}
	}
	return Word{}, v.exe == "passwd" && v.root && len(v.operands) == 0
}

func accountChange(_ *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	return Word{}, !v.has("-S") && !v.has("--status") && !(v.exe == "dscl" && !v.has("-create") && !v.has("-delete") && !v.has("-append") && !v.has("-passwd"))
}

func optEmpty(_ *engine, it *item, args []string) (Word, bool) {
	w, ok := it.inv.value(args...)
	return w, ok && w.Text == ""
}

// startupWrite: what a copying program writes runs by itself later.
func startupWrite(e *engine, it *item, _ []string) (Word, bool) {
	v := it.inv
	if v.exe == "sed" && !v.has("-i") && !v.has("--in-place") {
		return Word{}, false
	}
	if w, ok := v.value("-o", "--output", "-O", "--output-document"); ok && e.classOf(w, v.cwd)&paths.IsStartup != 0 {
		return w, true
	}
	t := targets(it)
	switch v.exe {
	case "tee", "sed":
		for _, w := range t {
			if e.classOf(w, v.cwd)&paths.IsStartup != 0 {
				return w, true
			}
		}
	case "cp", "mv", "install", "ln":
		if len(t) > 1 {
			w := t[len(t)-1]
			c := e.classOf(w, v.cwd) | e.classOf(Word{Text: w.Text + "/x"}, v.cwd)&paths.IsStartup
			return w, c&paths.IsStartup != 0
		}
	}
	return Word{}, false
}

func authorizedWrite(e *engine, it *item, args []string) (Word, bool) {
	w, ok := startupWrite(e, it, args)
	return w, ok && strings.Contains(w.Text, "authorized_keys")
}
