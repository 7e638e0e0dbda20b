package posix

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// variableActs judges the commands that programs run because of a variable.
func variableActs(sh *interp.Process, v *act.Invocation, name string, value act.Word) {
	e := sh.Env
	is := e.VariableOf(name)
	if is == nil || value.Text == "" || !e.Budget.Spend(4) {
		return
	}
	if is.Loads && facts.WorldWritable(value.Text) {
		e.See(act.LoadsLibrary, sh.Src, v.From, v.To, act.Printable(value.Text))
	}
	switch {
	case is.Start && strings.ContainsAny(value.Text, "`$"): // the shell expands the value when it starts
		sh.Interpret("shell", hookText(value, true), v, name, nil)
	case is.Start && !loadsFile(sh, v, name, value, is.File):
		if value.Known() && strings.IndexByte(value.Text, '/') >= 0 && !strings.HasPrefix(value.Text, "~/") && value.Text != "/dev/null" && !facts.StandardDirectory(value.Text+"/x") {
			e.See(act.LoadsLibrary, sh.Src, v.From, v.To, act.Printable(value.Text))
		}
	case is.File != "":
		loadsFile(sh, v, name, value, is.File)
	case is.Lang == "function":
		_, body, _ := strings.Cut(value.Text, "{") // the value has the form () { …; }
		value.Text, value.At = "{"+body, -1
		sh.Interpret("shell", value, v, name, nil)
	case is.Lang == "shell" && !strings.ContainsAny(value.Text, " /$`\t"):
		// only the name of a program, as in CC=clang
	case is.Lang != "":
		sh.Interpret(is.Lang, value, v, name, nil)
	case len(is.As) > 0:
		of := *v
		of.Exe, of.Argv, of.Src = name, []act.Word{{Text: name, At: -1, Span: value.Span}}, sh.Src
		sh.Plain(is.As, variableWords(is.Assign, is.Whole, name, value), &of)
	}
}

// variableWords returns the words that the equivalent command gets for a variable.
func variableWords(assign, whole bool, name string, value act.Word) []act.Word {
	switch {
	case assign:
		value.Text, value.At = name+"="+value.Text, -1
	case !whole:
		return splitWords(value)
	}
	return []act.Word{value}
}

// readOrInput returns the content of a file, or the input of the program if the name means that.
func readOrInput(sh *interp.Process, v *act.Invocation, name act.Word) act.Flow {
	if name.Text == "-" || name.Text == "/dev/stdin" {
		return v.Stdin
	}
	return sh.Env.ReadFile(sh, name)
}

// fileOrInput returns the content of a file that the command itself wrote, or the input of the
// program if the name means that. It returns false for other files.
func fileOrInput(sh *interp.Process, v *act.Invocation, name act.Word) (act.Flow, bool) {
	if fd, ok := act.Descriptor(name.Text); name.Text == "/dev/stdin" || ok && fd == "0" {
		return v.Stdin, true
	}
	f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, name.Text)]
	return f, ok
}

// loadsFile judges the file that a variable names and that runs when a program starts. It returns
// false if the command itself did not write the file.
func loadsFile(sh *interp.Process, v *act.Invocation, name string, value act.Word, lang string) bool {
	sh.Env.Want(sh, value.Text)
	f, ok := fileOrInput(sh, v, value)
	if f.Taint&act.FromNetwork != 0 {
		sh.Env.See(act.RunsDownload, sh.Src, v.From, v.To, act.Printable(value.Text))
	}
	if f.Known {
		f.Word.Taint |= f.Taint
		sh.Interpret(lang, f.Word, v, name, nil)
	}
	return ok
}

// configured judges text in a file that a program reads as its settings.
func configured(e *interp.Env, sh *interp.Process, name string, f act.Flow) {
	if f.Word.Text == "" || !f.Known && !act.PartlyKnown(f.Word) || len(f.Word.Text) > scan.MaxDecoded || f.Word.Glob {
		return
	}
	for i := range e.Configs {
		c := &e.Configs[i]
		for _, pattern := range c.File {
			if strings.HasSuffix(pattern, "*") && paths.GlobMatch(pattern, name) || strings.HasSuffix(name, strings.TrimLeft(pattern, "*")) && pattern[0] == '*' {
				config(sh, c, f.Word)
				return
			}
		}
	}
}

// config judges the commands that a settings file makes its program run.
func config(sh *interp.Process, c *facts.ConfigFile, text act.Word) {
	v := &act.Invocation{Exe: "config", Src: sh.Src, Argv: []act.Word{text}}
	if c.Lang != "" {
		sh.Interpret(c.Lang, text, v, "config", nil)
		return
	}
	if len(c.As) > 0 {
		sh.Plain(c.As, settingsAsOptions(text), v)
		return
	}
	for line := range strings.Lines(text.Text) {
		if !sh.Env.Budget.Spend(1 + len(c.Keys)) {
			return
		}
		for _, key := range c.Keys {
			configKey(sh, v, key, strings.TrimSpace(line), text)
		}
	}
}

// configKey judges the value that a line of a settings file gives to a key.
func configKey(sh *interp.Process, v *act.Invocation, key, line string, text act.Word) {
	_, value, _ := strings.Cut(line, "=")
	if alias, ok := strings.CutPrefix(strings.TrimSpace(value), "!"); ok && key == "=!" { // an alias of Git whose "!" starts a shell command
		text.Text, text.At = alias, -1
		sh.Interpret("shell", text, v, "alias", nil)
	}
	rest, ok := cutFold(line, key)
	trimmed := strings.TrimLeft(rest, " \t=:+\"'")
	if !ok || trimmed == rest && key != "|" {
		return
	}
	text.Text, text.At = strings.TrimRight(trimmed, "\"'"), -1
	if facts.WorldWritable(text.Text) && !strings.ContainsAny(text.Text, " \t") {
		sh.Env.See(act.LoadsLibrary, sh.Src, 0, len(sh.Src.Text), act.Printable(text.Text))
	}
	text.Text = strings.NewReplacer("%%", "%", "%h", "host", "%p", "22", "%r", "user").Replace(text.Text)
	sh.Interpret("shell", text, v, key, nil)
}

// options judges a program with the options in a file or in its input.
func options(sh *interp.Process, v *act.Invocation, words []act.Word) {
	for _, w := range words {
		if f := readOrInput(sh, v, w); f.Known || act.PartlyKnown(f.Word) {
			more := settingsAsOptions(f.Word)
			for i := range more {
				more[i].Taint |= f.Taint
			}
			sh.Plain([]string{v.Exe}, more, v)
		}
	}
}

// Configures judges text that is written into a settings file.
func Configures(sh *interp.Process, file act.Word, f act.Flow) {
	if file.Known() && file.Text != "/dev/null" {
		configured(sh.Env, sh, sh.Env.Key(sh.Cwd, file.Text), f)
	}
}

// cutFold is strings.CutPrefix that ignores case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// settingsAsOptions converts the lines of a file such as .curlrc, "name = value" or "name value",
// to options.
func settingsAsOptions(text act.Word) []act.Word {
	var out []act.Word
	for line := range strings.Lines(text.Text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || len(out) >= scan.MaxLoop {
			continue
		}
		name, value := line, ""
		if i := strings.IndexAny(line, " \t=:"); i > 0 {
			name, value = line[:i], strings.Trim(line[i:], " \t=:")
		}
		if value = strings.Trim(value, `"'`); !strings.HasPrefix(name, "-") {
			name = "--" + strings.ReplaceAll(name, "_", "-")
		}
		out = append(out, act.Word{Text: name, At: -1, Span: text.Span})
		if value != "" {
			out = append(out, act.Word{Text: value, At: -1, Span: text.Span, Taint: text.Taint, Var: text.Var})
		}
	}
	return out
}
