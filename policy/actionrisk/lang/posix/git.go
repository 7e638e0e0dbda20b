package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// gitSettings judges the commands that Git runs because of settings on its command line or in its
// environment: aliases, pagers, editors, transports.
func gitSettings(sh *interp.Process, v *act.Invocation) {
	for _, setting := range slices.Concat(v.Values("-c"), v.Values("--config")) {
		if name, _, ok := strings.Cut(setting.Text, "="); ok && len(v.Operands) > 0 {
			gitSetting(sh, v, strings.ToLower(name), setting.Tail(len(name)+1))
		}
	}
	switch {
	case len(v.Operands) > 2 && v.Operands[0].Text == "config":
		gitConfig(sh, v)
	case len(v.Operands) > 2 && v.UnderAny([]string{"remote add"}) && (v.Has("--mirror") || v.Has("--mirror=push")):
		sh.Env.RemembersSetting([]act.Word{{Text: "remote." + v.Operands[2].Text + ".mirror"}, {Text: "true", At: -1, Span: v.Operands[2].Span}})
	case len(v.Operands) < 3 && v.Operand(0) == "push":
		pushSettings(sh.Env, v)
	}
	gitFolders(sh, v)
	gitEnvironment(sh, v)
}

// gitFolders judges the folders from which Git takes its programs and hooks.
func gitFolders(sh *interp.Process, v *act.Invocation) {
	if w, ok := v.Value("--exec-path"); ok && !strings.HasPrefix(w.Text, "/usr/") {
		sh.Env.See(act.ConfiguresRun, sh.Src, v.From, v.To, act.Printable(w.Text))
	}
	if w, ok := v.Value("--template"); ok && facts.WorldWritable(w.Text) {
		sh.Env.See(act.ConfiguresRun, sh.Src, v.From, v.To, act.Printable(w.Text))
	}
}

// gitConfig judges git config NAME VALUE, which sets a value for later commands.
func gitConfig(sh *interp.Process, v *act.Invocation) {
	name, value := strings.ToLower(v.Operands[1].Text), v.Operands[2]
	if strings.HasPrefix(name, "alias.") {
		sh.Interpret("shell", aliasText(value), v, "git alias", nil)
	}
	sh.Env.RemembersSetting(v.Operands[1:])
	if gitRuns(name) {
		gitProgram(sh, v, value)
	}
}

// aliasText returns the shell command for an alias of Git.
func aliasText(value act.Word) act.Word {
	if text, ok := strings.CutPrefix(value.Text, "!"); ok {
		value = value.Tail(1)
		value.Text = text
		return value
	}
	value.Text, value.At = "git "+value.Text, -1
	return value
}

// gitEnvironment judges environment variables that name a program for Git or contain settings.
func gitEnvironment(sh *interp.Process, v *act.Invocation) {
	key := act.Word{}
	for _, a := range v.Env {
		gitVariable(sh, v, a.Name, a.Value)
		switch {
		case strings.HasPrefix(a.Name, "GIT_CONFIG_KEY_"):
			key = a.Value
		case strings.HasPrefix(a.Name, "GIT_CONFIG_VALUE_"):
			gitSetting(sh, v, strings.ToLower(key.Text), a.Value)
		case a.Name == "GIT_CONFIG_PARAMETERS":
			for _, part := range scan.OptionWords(a.Value.Text) { // each part is 'name=value' or 'name'='value'
				name, value, _ := strings.Cut(part, "=")
				gitSetting(sh, v, strings.ToLower(name), act.Word{Text: value, At: -1, Span: a.Value.Span})
			}
		}
	}
	for _, name := range [...]string{"GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR"} {
		if w, ok := sh.Vars[name]; ok && len(w) == 1 {
			gitVariable(sh, v, name, w[0])
		}
	}
}

// pushSettings adds the refspec and the option --mirror that the settings of the remote give to a
// push without refspecs.
func pushSettings(e *interp.Env, v *act.Invocation) {
	remote := "origin"
	if len(v.Operands) > 1 {
		remote = v.Operands[1].Text
	} else if w, ok := e.GitSettingOf(v, "remote.pushdefault"); ok {
		remote = w.Text
	}
	if w, ok := e.GitSettingOf(v, "remote."+strings.ToLower(remote)+".push"); ok {
		if len(v.Operands) == 1 {
			v.Operands = append(v.Operands, act.Word{Text: remote, At: -1, Span: w.Span})
		}
		v.Operands = append(v.Operands, w)
	}
	if w, ok := e.GitSettingOf(v, "remote."+strings.ToLower(remote)+".mirror"); ok && !interp.GitOff(w.Text) {
		v.Opts = append(v.Opts, act.Option{Name: "--mirror"})
	}
}

func gitSetting(sh *interp.Process, v *act.Invocation, name string, value act.Word) {
	if alias, ok := strings.CutPrefix(name, "alias."); ok {
		if len(v.Operands) == 0 || strings.ToLower(v.Operands[0].Text) != alias || gitCommands.Has(alias) {
			return
		}
		value = aliasText(value)
		for _, w := range v.Argv[1:] {
			if w.Text != v.Operands[0].Text && !strings.HasPrefix(w.Text, "alias.") && w.Text != "-c" {
				value.Text, value.At = value.Text+" "+scan.Quote(w.Text), -1
			}
		}
		sh.Interpret("shell", value, v, "git alias", nil)
		return
	}
	if name == "core.sshcommand" {
		gitVariable(sh, v, "GIT_SSH_COMMAND", value)
		return
	}
	if gitRuns(name) {
		gitProgram(sh, v, value)
	}
}

// Git starts the value of these settings as a program. programSettings lists full names;
// programKeys lists last parts of names in the sections of programSections.
var (
	programSettings = scan.SetOf(`core.pager core.editor core.fsmonitor core.hookspath core.askpass core.gitproxy core.alternaterefscommand diff.external sequence.editor
		gpg.program credential.helper interactive.difffilter uploadpack.packobjectshook instaweb.httpd sendemail.smtpserver`)
	programSections = scan.SetOf("merge mergetool difftool diff filter browser man guitool trailer gpg credential remote")
	programKeys     = scan.SetOf("driver cmd command textconv clean smudge process path program helper uploadpack receivepack")
)

// gitRuns reports whether Git starts the value of the setting as a program.
func gitRuns(name string) bool {
	section, _, _ := strings.Cut(name, ".")
	return programSettings.Has(name) || section == "pager" || programSections.Has(section) && programKeys.Has(name[strings.LastIndexByte(name, '.')+1:])
}

// gitCommands lists commands of Git, which an alias cannot replace.
var gitCommands = scan.SetOf("add am archive bisect blame branch checkout cherry-pick clean clone commit config diff fetch gc grep init log ls-files merge mv notes pull push rebase reflog remote reset restore revert rm show stash status submodule switch tag worktree")

// gitNetwork lists the commands that start a transport.
var gitNetwork = scan.SetOf("fetch pull push clone ls-remote remote submodule archive")

func gitVariable(sh *interp.Process, v *act.Invocation, name string, value act.Word) {
	switch name {
	case "GIT_SSH_COMMAND", "GIT_SSH":
		if len(v.Operands) > 0 && gitNetwork.Has(v.Operands[0].Text) && !(v.Operands[0].Text == "remote" && len(v.Operands) == 1) {
			gitProgram(sh, v, value)
		}
	case "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "GIT_PROXY_COMMAND":
		gitProgram(sh, v, value)
	}
}

// gitProgram judges a program that Git would start. It reports a local file whose content is
// unknown.
func gitProgram(sh *interp.Process, v *act.Invocation, value act.Word) {
	if value.Text == "" || value.Text == "true" || value.Text == "cat" || value.Text == "false" {
		return
	}
	if slices.Contains(sh.Env.Groups.Get("credential-helpers"), value.Text) {
		return // these use a keyring or the tool of the Git host
	}
	if strings.HasPrefix(value.Text, "./") || strings.HasPrefix(value.Text, "/tmp/") || strings.HasPrefix(value.Text, "!") {
		sh.Env.See(act.ConfiguresRun, sh.Src, v.From, v.To, act.Printable(value.Text))
	}
	sh.Interpret("shell", value, v, "git setting", nil)
}

// hookVariables lists environment variables that contain a command. hookVariable adds names with
// endings such as _EDITOR. Git's own variables are judged with calls of Git.
var hookVariables = scan.SetOf("PS0 PS1 PS4 PAGER EDITOR VISUAL BROWSER PROMPT_COMMAND LESSOPEN LESSCLOSE ENV FCEDIT SVN_SSH RSYNC_CONNECT_PROG")

// hookVariable reports whether a variable, by its name, contains a command.
func hookVariable(name string) bool {
	return hookVariables.Has(name) || scan.HasAnySuffix(name, "PAGER", "_EDITOR", "_RSH", "_ASKPASS") && !strings.HasPrefix(name, "GIT_")
}

// variableRuns judges a variable whose value a program starts or loads.
func variableRuns(sh *interp.Process, v *act.Invocation, a act.Assign) {
	prompt := len(a.Name) == 3 && strings.HasPrefix(a.Name, "PS") // only substitutions in a prompt run
	if prompt && !scan.HasAny(a.Value.Text, "`", "$(") {
		return
	}
	if amounts.OpensPayments(a.Name, a.Value.Text) {
		sh.Env.See(act.DropsLimits, sh.Src, v.From, v.To, act.Printable(a.Name))
	}
	switch {
	case hookVariable(a.Name):
		if !loadsFile(sh, v, a.Name, a.Value, "shell") && strings.ContainsAny(a.Value.Text, " /$`") {
			sh.Interpret("shell", hookText(a.Value, prompt), v, a.Name, nil)
		}
	case preloads.Has(a.Name):
		if a.Value.Text != "" && !scan.HasAny(a.Value.Text, "jemalloc", "tcmalloc", "mimalloc") {
			sh.Env.See(act.LoadsLibrary, sh.Src, v.From, v.To, act.Printable(a.Value.Text))
		}
	default:
		variableActs(sh, v, a.Name, a.Value)
	}
}

// preloads lists variables that make every program load a library.
var preloads = scan.SetOf("LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES")

// hookText returns the part that runs of a variable that contains a command. In a prompt only the
// substitutions run.
func hookText(value act.Word, prompt bool) act.Word {
	text := strings.TrimPrefix(value.Text, "|")
	if prompt {
		text = ": \"" + strings.ReplaceAll(value.Text, `"`, `\"`) + "\""
	}
	if text != value.Text {
		value.Text, value.At = text, -1
	}
	return value
}

// hostAlias judges an alias that "gh alias set" or "glab alias set" created earlier in the
// command, and records the aliases that these create.
func hostAlias(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	e := sh.Env
	if !e.In("git-hosts", v.Exe) || len(v.Operands) == 0 {
		return act.Flow{}, false
	}
	if v.Operands[0].Text == "alias" {
		if len(v.Operands) > 3 && v.Operands[1].Text == "set" && len(e.HostAliases) < scan.MaxFiles {
			text := v.Operands[3]
			if v.Has("--shell") {
				text.Text, text.At = "!"+text.Text, -1
			}
			scan.Put(&e.HostAliases, v.Exe+" "+v.Operands[2].Text, text)
		}
		return act.Flow{}, false
	}
	text, ok := e.HostAliases[v.Exe+" "+v.Operands[0].Text]
	if !ok {
		return act.Flow{}, false
	}
	if shell, ok := strings.CutPrefix(text.Text, "!"); ok {
		text.Text, text.At = shell, -1
	} else {
		text.Text, text.At = v.Exe+" "+text.Text, -1
	}
	for _, w := range v.Operands[1:] {
		text.Text += " " + scan.Quote(w.Text)
	}
	return sh.Interpret("shell", text, v, v.Exe+" alias", nil), true
}
