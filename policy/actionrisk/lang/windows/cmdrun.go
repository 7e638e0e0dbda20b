package windows

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// cmdRun judges one command of cmd and returns its output. args are its words; text is the command
// as expanded text.
func (w *winShell) cmdRun(c *psCall, args []act.Word, text string, in act.Flow) act.Flow {
	if strings.IndexByte(scan.Base(args[0].Text), scan.Hole) >= 0 {
		w.e.Unproven = true
		w.see(act.RunsUnknownProgram, c)
		return act.Flow{}
	}
	name := strings.ToLower(scan.Base(strings.TrimPrefix(args[0].Text, "@")))
	rest := strings.TrimLeft(text[min(len(text), len(args[0].Text)):], "@")
	switch name {
	case "echo":
		return w.cmdEcho(text)
	case "set":
		return w.cmdSet(rest, in)
	case "cd", "chdir", "pushd":
		if dirs := notOptions(args[1:]); len(dirs) > 0 {
			w.posix(c, append(words("cd"), w.argWord(dirs[0].Text, 0)), act.Flow{})
		}
		return act.Flow{Known: true}
	case "call", "start":
		return w.cmdStarts(c, args, text, in)
	case "forfiles":
		w.forFiles(args)
	}
	return w.cmdProgram(c, name, args, in)
}

// cmdStarts judges the command that call or start runs.
func (w *winShell) cmdStarts(c *psCall, args []act.Word, text string, in act.Flow) act.Flow {
	if strings.EqualFold(args[0].Text, "call") {
		if len(args) > 1 && !strings.HasPrefix(args[1].Text, ":") {
			return w.cmdRun(c, args[1:], strings.TrimSpace(text[len(args[0].Text):]), in)
		}
	} else if inner := afterStart(args, text); len(inner) > 0 {
		return w.cmdRun(c, inner, inner[0].Text, in)
	}
	return act.Flow{}
}

// cmdProgram judges a program, or a command that is built into cmd.
func (w *winShell) cmdProgram(c *psCall, name string, args []act.Word, in act.Flow) act.Flow {
	if w.e.Other.Get("program "+name) != nil {
		w.sh.Src = w.src
		Program(w.sh, &act.Invocation{Src: w.src, From: c.from, To: c.to, Exe: name, Argv: args})
	}
	if spec := w.e.Windows.ByInternal.Get(name); spec != nil && (len(spec.Run) > 0 || !w.e.Program(name).Judged) {
		return w.cmdInternal(c, spec, args, in)
	}
	args[0].Text = strings.TrimPrefix(args[0].Text, "@")
	return w.start(c, args, in)
}

// cmdEcho returns the output of echo.
func (w *winShell) cmdEcho(text string) act.Flow {
	at := max(strings.Index(strings.ToLower(text), "echo"), 0) // a redirection may precede "echo"
	text = text[min(at+len("echo"), len(text)):]
	if text != "" {
		text = text[1:]
	}
	quoted := false
	for i := 0; i < len(text); i++ { // the text ends at a redirection
		if text[i] == '"' {
			quoted = !quoted
		}
		if text[i] == '>' && !quoted && (i == 0 || text[i-1] != '^') {
			text = strings.TrimRight(text[:i], " 12")
			break
		}
	}
	word := act.Word{Text: strings.ReplaceAll(strings.TrimRight(text, " "), "^", ""), At: -1, Span: w.wholeSpan()}
	return act.Flow{Known: word.Known(), Word: word, Line: true}
}

// cmdSet evaluates set NAME=value. With /p, set prints the prompt and reads the value from the
// input.
func (w *winShell) cmdSet(text string, in act.Flow) act.Flow {
	text = strings.TrimSpace(text)
	low := strings.ToLower(text)
	switch {
	case strings.HasPrefix(low, "/p"):
		name, prompt, _ := strings.Cut(strings.TrimSpace(text[2:]), "=")
		v := psUnknown(in.Taint)
		if in.Known {
			v = psString(in.Word.Text)
		}
		w.setEnvironment(strings.Trim(name, `" `), v)
		prompt, _, _ = strings.Cut(strings.TrimLeft(prompt, `"`), `"`)
		return act.Flow{Known: true, Word: act.Word{Text: prompt, At: -1, Span: w.wholeSpan()}}
	case strings.HasPrefix(low, "/a"):
		return act.Flow{Known: true}
	}
	name, value, ok := strings.Cut(strings.Trim(text, `"`), "=")
	if !ok {
		return act.Flow{}
	}
	if strings.HasPrefix(text, `"`) {
		value, _, _ = strings.Cut(value, `"`)
	}
	w.setEnvironment(strings.TrimSpace(name), psString(strings.ReplaceAll(value, "^", "")))
	return act.Flow{Known: true}
}

func notOptions(args []act.Word) []act.Word {
	var out []act.Word
	for _, a := range args {
		if !isSlashOption(a.Text) {
			out = append(out, a)
		}
	}
	return out
}

// isSlashOption reports whether a word consists of options of cmd: /s, /q:x, /s/q, /-y.
func isSlashOption(t string) bool {
	if len(t) < 2 || t[0] != '/' {
		return false
	}
	for option := range strings.SplitSeq(t[1:], "/") {
		option, _, _ = strings.Cut(option, ":")
		switch {
		case len(option) == 1 || option == "-y" || len(option) < 5 && option != "" && option[0]|32 == 'a': // for example /ah
		case len(option) > 1 && longSlashOptions.Has(strings.ToLower(option)):
		default:
			return false
		}
	}
	return true
}

// longSlashOptions lists options of cmd commands with more than one letter.
var longSlashOptions = scan.SetOf("min max wait high low normal realtime abovenormal belownormal shared separate affinity node quiet tm tg is it exclude fs")

// afterStart returns the command that start runs, without the title and options of start.
func afterStart(args []act.Word, text string) []act.Word {
	rest := args[1:]
	if i := strings.IndexByte(text, '"'); i >= 0 && len(rest) > 1 && strings.TrimSpace(text[min(len(args[0].Text), i):i]) == "" {
		rest = rest[1:]
	}
	for len(rest) > 0 && isSlashOption(rest[0].Text) {
		if strings.EqualFold(rest[0].Text, "/d") && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) > 1 && rest[0].Text == "" {
		rest = rest[1:]
	}
	return rest
}

// forFiles judges the command that forfiles runs for each file of a folder.
func (w *winShell) forFiles(args []act.Word) {
	folder, mask, command := ".", "*", ""
	for i := 1; i+1 < len(args); i++ {
		switch strings.ToLower(args[i].Text) {
		case "/p", "-p":
			folder = args[i+1].Text
		case "/m", "-m":
			mask = args[i+1].Text
		case "/c", "-c":
			command = strings.ReplaceAll(args[i+1].Text, "0x22", `"`)
		}
	}
	limited := mask != "*" && mask != "*.*"
	for _, a := range args {
		limited = limited || strings.EqualFold(a.Text, "/d")
	}
	file := folder + `\*`
	if limited { // the pattern selects only some files
		file = folder + `\filtered*` + strings.TrimLeft(mask, "*")
	}
	for _, name := range [...]string{"@path", "@file", "@fname", "@relpath"} {
		command = scan.ReplaceFold(command, name, file)
	}
	if command != "" && w.running < scan.MaxDepth {
		w.running++
		w.runCmd(command)
		w.running--
	}
}

// cmdInternal judges a command that is built into cmd, or a program that the table describes in
// the same way.
func (w *winShell) cmdInternal(c *psCall, spec *facts.Cmdlet, args []act.Word, in act.Flow) act.Flow {
	var paths []psValue
	for _, a := range args[1:] {
		for part := range strings.FieldsFuncSeq(a.Text, func(r rune) bool { return r == ',' || r == ';' }) {
			if !isSlashOption(part) {
				paths = append(paths, psString(part))
				continue
			}
			for option := range strings.SplitSeq(strings.ToLower(part[1:]), "/") {
				option, _, _ = strings.Cut(option, ":")
				c.params = append(c.params, psParam{name: "/" + option})
			}
		}
	}
	if slices.ContainsFunc(spec.Off, c.on) {
		return act.Flow{Known: true}
	}
	for i, p := range paths {
		if before := strings.TrimSuffix(strings.TrimSuffix(p.text, "*.*"), "*"); before != p.text && c.on("/s") { // del /s C:\*.* empties the drive
			paths[i].text = cmp.Or(before, "*")
		}
	}
	c.params = append(c.params, psParam{name: "path", value: psListOf(paths), has: true})
	argv := w.template(c, spec.Run)
	if len(argv) == 0 {
		return act.Flow{}
	}
	return w.posix(c, argv, in)
}
