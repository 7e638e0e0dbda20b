package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// gitSettings runs what Git itself would run because of a setting given on its
// command line or in its environment: aliases, pagers, editors, transports.
func (sh *shell) gitSettings(v *invocation) {
	for i := range v.opts {
		o := &v.opts[i]
		if (o.name == "-c" || o.name == "--config") && o.given {
			if name, _, ok := strings.Cut(o.value.Text, "="); ok && len(v.operands) > 0 {
				sh.gitSetting(v, strings.ToLower(name), o.value.tail(len(name)+1))
			}
		}
	}
	if len(v.operands) > 2 && v.operands[0].Text == "config" && strings.HasPrefix(strings.ToLower(v.operands[1].Text), "alias.") {
		value := v.operands[2]
		if text, ok := strings.CutPrefix(value.Text, "!"); ok {
			value = value.tail(1)
			value.Text = text
		} else {
			value.Text, value.At = "git "+value.Text, -1
		}
		sh.interpret("shell", value, v, "git alias", nil)
	}
	if len(v.operands) > 2 && v.operands[0].Text == "config" {
		sh.e.remembersSetting(v.operands[1:])
	}
	if len(v.operands) > 2 && v.operands[0].Text == "remote" && v.operands[1].Text == "add" && (v.has("--mirror") || v.has("--mirror=push")) {
		sh.e.remembersSetting([]Word{{Text: "remote." + v.operands[2].Text + ".mirror"}, {Text: "true", At: -1, Span: v.operands[2].Span}})
	}
	if len(v.operands) > 2 && v.operands[0].Text == "config" && gitRuns(strings.ToLower(v.operands[1].Text)) {
		sh.gitProgram(v, v.operands[2])
	}
	if len(v.operands) > 0 && len(v.operands) < 3 && v.operands[0].Text == "push" {
		sh.e.pushSettings(v)
	}
	if w, ok := v.value("--exec-path"); ok && !strings.HasPrefix(w.Text, "/usr/") {
		sh.e.raise("git.config.run", sh.src, v.from, v.to, printable(w.Text))
	}
	if w, ok := v.value("--template"); ok && worldWritable(w.Text) {
		sh.e.raise("git.config.run", sh.src, v.from, v.to, printable(w.Text))
	}
	key := Word{}
	for _, a := range v.env {
		sh.gitVariable(v, a.name, a.value)
		switch {
		case strings.HasPrefix(a.name, "GIT_CONFIG_KEY_"):
			key = a.value
		case strings.HasPrefix(a.name, "GIT_CONFIG_VALUE_"):
			sh.gitSetting(v, strings.ToLower(key.Text), a.value)
		case a.name == "GIT_CONFIG_PARAMETERS":
			for _, part := range strings.Fields(a.value.Text) {
				if name, value, ok := strings.Cut(strings.Trim(part, "'"), "="); ok {
					sh.gitSetting(v, strings.ToLower(strings.Trim(name, "'")), Word{Text: strings.Trim(value, "'"), At: -1, Span: a.value.Span})
				}
			}
		}
	}
	for _, name := range [...]string{"GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR"} {
		if w, ok := sh.vars[name]; ok && len(w) == 1 {
			sh.gitVariable(v, name, w[0])
		}
	}
}

// pushSettings: what a push without refspecs pushes, by the settings of its remote.
func (e *engine) pushSettings(v *invocation) {
	remote := "origin"
	if len(v.operands) > 1 {
		remote = v.operands[1].Text
	} else if w, ok := e.gitSettingOf(v, "remote.pushdefault"); ok {
		remote = w.Text
	}
	if w, ok := e.gitSettingOf(v, "remote."+strings.ToLower(remote)+".push"); ok {
		if len(v.operands) == 1 {
			v.operands = append(v.operands, Word{Text: remote, At: -1, Span: w.Span})
		}
		v.operands = append(v.operands, w)
	}
	if w, ok := e.gitSettingOf(v, "remote."+strings.ToLower(remote)+".mirror"); ok && !gitOff(w.Text) {
		v.opts = append(v.opts, option{name: "--mirror"})
	}
}

func (sh *shell) gitSetting(v *invocation, name string, value Word) {
	if alias, ok := strings.CutPrefix(name, "alias."); ok {
		if len(v.operands) == 0 || strings.ToLower(v.operands[0].Text) != alias || gitCommands[alias] {
			return
		}
		if text, ok := strings.CutPrefix(value.Text, "!"); ok {
			value = value.tail(1)
			value.Text = text
		} else {
			value.Text, value.At = "git "+value.Text, -1
		}
		for _, w := range v.argv[1:] {
			if w.Text != v.operands[0].Text && !strings.HasPrefix(w.Text, "alias.") && w.Text != "-c" {
				value.Text, value.At = value.Text+" "+scan.Quote(w.Text), -1
			}
		}
		sh.interpret("shell", value, v, "git alias", nil)
		return
	}
	if name == "core.sshcommand" {
		sh.gitVariable(v, "GIT_SSH_COMMAND", value)
		return
	}
	if gitRuns(name) {
		sh.gitProgram(v, value)
	}
}

// gitRuns: a setting whose value Git starts as a program.
func gitRuns(name string) bool {
	switch name {
	case "core.pager", "core.editor", "core.fsmonitor", "core.hookspath", "core.askpass", "core.gitproxy", "core.alternaterefscommand", "diff.external", "sequence.editor",
		"gpg.program", "credential.helper", "interactive.difffilter", "uploadpack.packobjectshook", "instaweb.httpd", "sendemail.smtpserver":
		return true
	}
	section, _, _ := strings.Cut(name, ".")
	switch last := name[strings.LastIndexByte(name, '.')+1:]; section {
	case "pager":
		return true
	case "merge", "mergetool", "difftool", "diff", "filter", "browser", "man", "guitool", "trailer", "gpg", "credential", "remote":
		switch last {
		case "driver", "cmd", "command", "textconv", "clean", "smudge", "process", "path", "program", "helper", "uploadpack", "receivepack":
			return true
		}
	}
	return false
}

// gitCommands cannot be replaced by aliases.
var gitCommands = scan.SetOf("add am archive bisect blame branch checkout cherry-pick clean clone commit config diff fetch gc grep init log ls-files merge mv notes pull push rebase reflog remote reset restore revert rm show stash status submodule switch tag worktree")

// gitNetwork are the commands that start a transport.
var gitNetwork = scan.SetOf("fetch pull push clone ls-remote remote submodule archive")

func (sh *shell) gitVariable(v *invocation, name string, value Word) {
	switch name {
	case "GIT_SSH_COMMAND", "GIT_SSH":
		if len(v.operands) > 0 && gitNetwork[v.operands[0].Text] && !(v.operands[0].Text == "remote" && len(v.operands) == 1) {
			sh.gitProgram(v, value)
		}
	case "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND":
		sh.gitProgram(v, value)
	}
}

// gitProgram is a program that Git would start. A local file that nobody knows
// is a finding of its own.
func (sh *shell) gitProgram(v *invocation, value Word) {
	if value.Text == "" || value.Text == "true" || value.Text == "cat" || value.Text == "false" {
		return
	}
	if strings.HasPrefix(value.Text, "./") || strings.HasPrefix(value.Text, "/tmp/") || strings.HasPrefix(value.Text, "!") {
		sh.e.raise("git.config.run", sh.src, v.from, v.to, printable(value.Text))
	}
	sh.interpret("shell", value, v, "git setting", nil)
}

// hookVariable: a variable that holds a command, by its name: RSYNC_RSH,
// KUBE_EDITOR, SYSTEMD_PAGER, SSH_ASKPASS.
func hookVariable(name string) bool {
	switch name {
	case "PS0", "PS1", "PAGER", "EDITOR", "VISUAL", "BROWSER", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE", "BASH_ENV", "ENV", "PS4", "FCEDIT", "SVN_SSH", "RSYNC_CONNECT_PROG":
		return true
	}
	for _, suffix := range [...]string{"PAGER", "_EDITOR", "_RSH", "_ASKPASS"} {
		if strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, "GIT_") {
			return true
		}
	}
	return false
}

// variableRuns: variables whose value a program starts or loads.
func (sh *shell) variableRuns(v *invocation, a assign) {
	if len(a.name) == 3 && a.name[:2] == "PS" && !strings.ContainsAny(a.value.Text, "`") && !strings.Contains(a.value.Text, "$(") {
		return // a prompt
	}
	if opensPayments(a.name, a.value.Text) {
		sh.e.raise("x402.policy-off", sh.src, v.from, v.to, printable(a.name))
	}
	switch hook := hookVariable(a.name); {
	case hook:
		if f, ok := sh.fileOrInput(v, a.value); ok {
			if f.taint&fromNetwork != 0 {
				sh.e.raise("rce.download-exec", sh.src, v.from, v.to, printable(a.value.Text))
			}
			if f.known {
				f.word.Taint |= f.taint
				sh.interpret("shell", f.word, v, a.name, nil)
			}
			return
		}
		if strings.ContainsAny(a.value.Text, " /$`") {
			text := a.value
			if len(a.name) == 3 && strings.HasPrefix(a.name, "PS") { // a prompt: only what stands in substitutions runs
				text.Text, text.At = ": \""+strings.ReplaceAll(text.Text, `"`, `\"`)+"\"", -1
			}
			text.Text = strings.TrimPrefix(text.Text, "|")
			if text.Text != a.value.Text {
				text.At = -1
			}
			sh.interpret("shell", text, v, a.name, nil)
		}
	case a.name == "LD_PRELOAD" || a.name == "LD_AUDIT" || a.name == "DYLD_INSERT_LIBRARIES":
		if a.value.Text != "" && !strings.Contains(a.value.Text, "jemalloc") && !strings.Contains(a.value.Text, "tcmalloc") && !strings.Contains(a.value.Text, "mimalloc") {
			sh.e.raise("rce.library-preload", sh.src, v.from, v.to, printable(a.value.Text))
		}
	default:
		sh.variableActs(v, a.name, a.value)
	}
}

// hostAlias runs an alias that "gh alias set" or "glab alias set" made before, and
// notes those that it makes.
func (sh *shell) hostAlias(v *invocation) (flow, bool) {
	e := sh.e
	if v.exe != "gh" && v.exe != "glab" || len(v.operands) == 0 {
		return flow{}, false
	}
	if v.operands[0].Text == "alias" {
		if len(v.operands) > 3 && v.operands[1].Text == "set" && len(e.hostAliases) < scan.MaxFiles {
			if e.hostAliases == nil {
				e.hostAliases = map[string]Word{}
			}
			text := v.operands[3]
			if v.has("--shell") {
				text.Text, text.At = "!"+text.Text, -1
			}
			e.hostAliases[v.exe+" "+v.operands[2].Text] = text
		}
		return flow{}, false
	}
	text, ok := e.hostAliases[v.exe+" "+v.operands[0].Text]
	if !ok {
		return flow{}, false
	}
	if shell, ok := strings.CutPrefix(text.Text, "!"); ok {
		text.Text, text.At = shell, -1
	} else {
		text.Text, text.At = v.exe+" "+text.Text, -1
	}
	for _, w := range v.operands[1:] {
		text.Text += " " + scan.Quote(w.Text)
	}
	return sh.interpret("shell", text, v, v.exe+" alias", nil), true
}
