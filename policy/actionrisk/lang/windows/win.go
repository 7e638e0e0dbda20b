// Package windows is the front-end for PowerShell (ps*.go) and cmd (cmd*.go). It contains small
// evaluators that compute known values, follow every branch and judge each command that would run.
// A command that has a POSIX equivalent is judged as that command (rules/windows.json), so that
// both have the same severity: Remove-Item -Recurse C:\ is judged as rm -rf C:\. Other commands
// are items of the kinds "cmdlet", "member" and "program" (rules/win.json, wintable.go).
package windows

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// windows judges a call of PowerShell or cmd: the text in its arguments (-Command, -EncodedCommand
// and their abbreviations, /c), or on the standard input.
func windows(sh *interp.Process, v *act.Invocation, lang string) act.Flow {
	e := sh.Env
	e.Ran = true
	carried := powershellArguments
	if lang == "cmd" {
		carried = cmdArguments
	}
	if out, ok := carried(sh, v); ok {
		return out
	}
	if v.Stdin.Known && v.Stdin.Word.Text != "" {
		w := v.Stdin.Word
		w.Taint |= v.Stdin.Taint
		v.Stdin = act.Flow{Known: true}
		return sh.Interpret(lang, w, v, v.Exe, nil)
	}
	if v.Stdin.Taint&act.FromNetwork != 0 {
		e.See(act.RunsNetworkText, sh.Src, v.From, v.To, "")
	}
	e.Unproven = true
	e.Match(&act.Item{Kind: act.KindExe, Name: v.Exe, Inv: v, Src: v.Src, From: v.From, To: v.To})
	return act.Flow{Taint: v.Stdin.Taint}
}

// cmdArguments judges the text after /c, /k or /r. It returns false if there is none.
func cmdArguments(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	for i := 1; i+1 < len(v.Argv); i++ {
		name := strings.ToLower(v.Argv[i].Text)
		if len(name) > 1 && name[0] == '/' && strings.IndexByte("ckr", name[1]) >= 0 {
			return sh.Interpret("cmd", act.JoinWords(v.Argv[i+1:], sh.Src), v, v.Exe+" "+name, nil), true
		}
	}
	return act.Flow{}, false
}

// powershellArguments judges the command, the encoded command or the file in the arguments of
// PowerShell. It returns false if there is none.
func powershellArguments(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	for i := 1; i < len(v.Argv); i++ {
		written, rest := v.Argv[i].Text, v.Argv[i+1:]
		if !strings.HasPrefix(written, "-") && !strings.HasPrefix(written, "/") {
			return sh.Interpret("powershell", act.JoinWords(v.Argv[i:], sh.Src), v, v.Exe, nil), true
		}
		switch powershellParameter(written) {
		case "":
		case "encodedcommand", "ec":
			if len(rest) > 0 {
				return encodedCommand(sh, v, rest[0]), true
			}
		case "command":
			if len(rest) > 0 && rest[0].Text != "-" {
				return sh.Interpret("powershell", act.JoinWords(rest, sh.Src), v, v.Exe+" -Command", nil), true
			}
		case "file":
			sh.Env.Unproven = true
			if len(rest) > 0 {
				scriptFile(sh, rest[0], v)
			}
			return act.Flow{Taint: v.Stdin.Taint}, true
		default: // the next word is the value of the parameter
			i++
		}
	}
	return act.Flow{}, false
}

// scriptFile judges a PowerShell file that the command itself wrote or downloaded.
func scriptFile(sh *interp.Process, file act.Word, v *act.Invocation) {
	f, ok := sh.Env.Files[sh.Env.Key(sh.Cwd, strings.ReplaceAll(file.Text, `\`, "/"))]
	switch {
	case !ok:
	case f.Taint&act.FromNetwork != 0:
		sh.Env.See(act.RunsDownload, v.Src, v.From, v.To, act.Printable(file.Text))
	case f.Known:
		f.Word.Taint |= f.Taint
		sh.Interpret("powershell", f.Word, v, v.Exe+" -File", nil)
	}
}

// Takes judges a call of PowerShell or cmd, or of a cmdlet in a text for another shell. It returns
// false for other calls.
func Takes(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	if lang := act.WindowsShell(v.Exe); lang != "" {
		return windows(sh, v, lang), true
	}
	if !knownCmdlet(sh.Env.Set, strings.ToLower(v.Exe)) || sh.Src.Depth >= scan.MaxDepth {
		return act.Flow{}, false
	}
	src := *v.Src
	if v.To > v.From && v.To <= len(src.Text) && strings.Contains(src.Text[v.From:v.To], v.Exe) {
		if src.At >= 0 {
			src.At += v.From
		}
		src.Text = src.Text[v.From:v.To]
	} else {
		src.Text, src.At = act.ArgvText(v), -1
	}
	src.Depth++
	sh.Read("powershell", &src, nil)
	return act.Flow{Taint: v.Stdin.Taint}, true
}

// knownCmdlet reports whether only PowerShell has a command with this name.
func knownCmdlet(c *facts.Set, name string) bool {
	verb, noun, ok := strings.Cut(name, "-")
	if !ok {
		return name == "iex" || name == "irm" || name == "iwr"
	}
	return noun != "" && c.Windows.IsVerb.Get(verb) && (c.Windows.ByCmdlet.Get(name) != nil || c.Other.Get("cmdlet "+verb) != nil && !c.Program(name).Judged && c.Program(name).Options == nil && strings.IndexByte(noun, '-') < 0)
}

// encodedCommand judges a command that is encoded as base64 of UTF-16LE.
func encodedCommand(sh *interp.Process, v *act.Invocation, w act.Word) act.Flow {
	e := sh.Env
	text, ok := e.Make("text64", w.Text)
	if !ok {
		e.Unproven = true
		e.See(act.RunsUnknownText, sh.Src, v.From, v.To, "")
		return act.Flow{}
	}
	e.See(act.RunsDecoded, sh.Src, v.From, v.To, "")
	w.Text, w.At, w.Taint = text, -1, w.Taint|act.FromDecoder
	return sh.Interpret("powershell", w, v, v.Exe+" -EncodedCommand", nil)
}

// Looks returns the language of a text for PowerShell or cmd, or "". It is a cheap test. sure
// means that no other shell could run the text.
func Looks(c *facts.Set, text string) (lang string, sure bool) {
	end := strings.IndexAny(text, " \t\r\n(){|;&,<>")
	if end < 0 {
		end = len(text)
	}
	first, rest := plainName(text[:end]), text[end:]
	if isCmdlet(c, first) {
		return "powershell", c.Windows.ByCmdlet.Get(first) != nil || scan.Upper(text[0]) && strings.IndexByte(text[:end], '-') > 0
	}
	if (c.Windows.Elsewhere.Get(first) != nil || !c.Windows.IsProgram.Get(first)) && onlyPOSIX(c, text) {
		return "", false
	}
	if startsProgram(c, first, rest) {
		lang := windowsLanguage(c, first, text)
		return lang, c.Windows.Elsewhere.Get(first) == nil && !c.Program(first).Judged && (lang == "powershell" || !strings.ContainsAny(text, ";\n'")) && !act.LooksShell(text)
	}
	if i := strings.IndexByte(first, '/'); i > 0 && c.Windows.ByInternal.Get(first[:i]) != nil { // for example del/s
		return "cmd", false
	}
	later := windowsLater(&c.Windows, text)
	if lang, sure := looksExpression(c, text); lang != "" {
		return lang, sure || later == lang
	}
	return later, false
}

// onlyPOSIX reports whether a text is for a POSIX shell: it has POSIX grammar, and it contains no
// path with a drive, no variable of cmd and no cmdlet.
func onlyPOSIX(c *facts.Set, text string) bool {
	return saysPOSIX(text) && windowsLater(&c.Windows, text) == "" && !strings.Contains(text, `:\`) &&
		!slices.ContainsFunc(strings.FieldsFunc(text, betweenWords), func(w string) bool {
			return c.Windows.ByCmdlet.Get(strings.ToLower(w)) != nil && strings.IndexByte(w, '-') > 0
		})
}

func betweenWords(r rune) bool { return strings.ContainsRune(" \t\n;|&(){}'\"", r) }

// saysPOSIX reports whether the text uses grammar that only a POSIX shell has, or redirects to
// /dev/null.
func saysPOSIX(text string) bool {
	if strings.Contains(text, ">/dev/null") || strings.Contains(text, "> /dev/null") || scan.HasAnyPrefix(text, "if ! ", "if [ ", "if [[ ", "while ! ", "while [ ", "until ") {
		return true
	}
	if option, ok := strings.CutPrefix(text, "set "); ok && len(option) > 1 && (option[0] == '-' || option[0] == '+') {
		return true
	}
	for i := 0; i < len(text); i++ {
		if text[i] != ';' && text[i] != '\n' {
			continue
		}
		for i+1 < len(text) && strings.IndexByte(" \t\n", text[i+1]) >= 0 {
			i++
		}
		word := text[i+1:]
		if end := strings.IndexFunc(word, betweenWords); end >= 0 {
			word = word[:end]
		}
		switch word {
		case "then", "fi", "do", "done", "esac", "elif":
			return true
		}
	}
	return false
}

// isCmdlet reports whether the name is a verb of PowerShell and a noun.
func isCmdlet(c *facts.Set, first string) bool {
	verb, noun, _ := strings.Cut(first, "-")
	return noun != "" && c.Windows.IsVerb.Get(verb) && strings.Trim(noun, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// plainName returns the name of a command in lower case, without its folder, the extension ".exe",
// and characters that only hide the name.
func plainName(first string) string {
	if strings.ContainsAny(first, "`^\"@\u2013") {
		first = hidingSigns.Replace(first)
	}
	first = strings.ToLower(first)
	return strings.TrimSuffix(first[strings.LastIndexByte(first, '\\')+1:], ".exe")
}

var hidingSigns = strings.NewReplacer("`", "", "^", "", `"`, "", "@", "", "\u2013", "-")

// startsProgram reports whether the text begins with a program of Windows. If the name also exists
// on other systems, the rest of the text decides.
func startsProgram(c *facts.Set, first, rest string) bool {
	if !c.Windows.IsProgram.Get(first) && (c.Other.Get("program "+first) == nil || !strings.ContainsAny(rest, `\/%`)) {
		return false
	}
	return meantForWindows(&c.Windows, first, strings.ToLower(rest))
}

// windowsLater returns the language of a text that contains syntax of PowerShell or of cmd after
// its first word, or "".
func windowsLater(t *facts.WindowsTable, text string) string {
	if scan.HasAny(text, t.Marks...) {
		return "powershell"
	}
	if i := strings.IndexByte(text, '%'); i >= 0 && i+2 < len(text) && text[i+1] >= 'A' && text[i+1] <= 'Z' {
		if n := strings.IndexAny(text[i+1:], "% :"); n > 1 && text[i+1+n] != ' ' && strings.ContainsAny(text, `\&`) {
			return "cmd"
		}
	}
	return ""
}

// meantForWindows reports whether a name means the Windows program. If other systems have a
// program with this name, the rest of the text decides.
func meantForWindows(t *facts.WindowsTable, first, rest string) bool {
	marks := t.Elsewhere.Get(first)
	return marks == nil || scan.HasAny(rest, marks...)
}

// windowsLanguage returns "cmd" or "powershell" for a text that does not name its shell.
func windowsLanguage(c *facts.Set, first, text string) string {
	names := &c.Windows
	alias, internal := names.Aliases.Get(first) != "" || names.ByCmdlet.Get(first) != nil, names.ByInternal.Get(first) != nil
	later := windowsLater(names, text)
	switch {
	case later == "cmd":
		return later
	case alias && !internal, later != "":
		return "powershell"
	case internal && !(alias && strings.Contains(text, " -") && !strings.ContainsAny(text, "/^%&")):
		return "cmd"
	case strings.ContainsAny(text, "$`{") && !strings.ContainsAny(text, "%^"), strings.Contains(text, ";") && !strings.Contains(text, "&"), internal:
		return "powershell"
	}
	return "cmd"
}

// beginsPowerShell lists beginnings that only a PowerShell text has.
var beginsPowerShell = []string{"& (", "&(", "& '", "& {", "&{", "& $", "&$", "& \"", ". (", ".(", ". {", ".{", "@{", "@'", "@\"", "-join"}

// pipesValue lists operators and stages of PowerShell that may follow a value.
var pipesValue = [...]string{"| iex", "|iex", "| invoke-expression", "|invoke-expression", "-join", "|%{", "| %{", "|%", "| % {", "| foreach", "-replace", "| out-file", "| set-content", "-split", "|&(", "| &", "|.(", "| ."}

// looksExpression returns the language of a text that begins with a value, an assignment or a call
// of PowerShell, or with a variable of cmd. The second result means that no other shell could run
// the text.
func looksExpression(c *facts.Set, text string) (string, bool) {
	if scan.HasAnyPrefix(text, beginsPowerShell...) {
		return "powershell", true
	}
	switch first := text[0]; {
	case first == '[':
		return looksType(text)
	case first == '(':
		return looksGroup(c, text)
	case strings.IndexByte("'\"0123456789", first) >= 0:
		return looksValue(text)
	case first == '$':
		return looksVariable(text)
	case first == '>' && strings.Contains(text, "echo"):
		return "cmd", false
	case first == '%' && len(text) > 3 && strings.IndexByte(text[1:], '%') > 0:
		return "cmd", true
	}
	return "", false
}

// looksType recognizes a .NET type in brackets, followed by more text.
func looksType(text string) (string, bool) {
	if len(text) < 4 || text[1] == ' ' || text[1] == '[' {
		return "", false
	}
	end := strings.IndexByte(text, ']')
	if end > 1 && strings.Trim(text[1:end], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._[]`") == "" {
		return "powershell", strings.TrimSpace(text[end+1:]) != ""
	}
	return "", false
}

// looksValue recognizes a text or number that is followed by a member, an operator or a pipeline.
func looksValue(text string) (string, bool) {
	if end := quotedEnd(text, 0); text[0] < '0' && end+1 < len(text) && (text[end+1] == '[' || text[end+1] == '.' && strings.Contains(text[end:], "(")) {
		return "powershell", true
	}
	low := strings.ToLower(text)
	for _, s := range pipesValue {
		if strings.Contains(low, s) {
			return "powershell", strings.Contains(low, "iex") || strings.Contains(low, "%{")
		}
	}
	return "", false
}

// looksGroup recognizes PowerShell or cmd commands in parentheses.
func looksGroup(c *facts.Set, text string) (string, bool) {
	inner := strings.TrimLeft(text, "( \t")
	if inner == "" || len(text) < 3 {
		return "", false
	}
	if strings.IndexByte("$[@'\"", inner[0]) >= 0 {
		end := strings.LastIndexByte(text, ')')
		return "powershell", end > 0 && strings.HasPrefix(text[end+1:], ".") || strings.Contains(text, ").") || inner[0] == '['
	}
	lang, _ := Looks(c, inner)
	return lang, lang == "powershell" && strings.Contains(text, ").")
}

// looksVariable recognizes a statement that begins with a PowerShell variable.
func looksVariable(text string) (string, bool) {
	name := text[:len(text)-len(strings.TrimLeftFunc(text[1:], inVariable))]
	rest := strings.TrimLeft(text[len(name):], " ")
	if name == "$" || rest == "" || len(text) < 4 {
		return "", false
	}
	member := strings.HasPrefix(text[len(name):], ".") && len(rest) > 1 && scan.IsNameByte(rest[1])
	switch {
	case rest[0] == '=' && strings.ContainsAny(text, " ;"), strings.HasPrefix(rest, "+="):
		return "powershell", true
	case strings.HasSuffix(name, "}") && !strings.Contains(name, "env:") && rest[0] != '.': // may be a variable of a POSIX shell
	case member, strings.IndexByte("|[,", rest[0]) >= 0:
		return "powershell", strings.ContainsAny(rest, "(=") || strings.Contains(rest, "-Az") || member && scan.Upper(rest[1])
	}
	return "", false
}

// inVariable reports whether a byte can be part of the name of a PowerShell variable.
func inVariable(c rune) bool {
	return c < 0x80 && (scan.IsNameByte(byte(c)) || strings.IndexByte(":{}`", byte(c)) >= 0)
}

// Read judges src as PowerShell (lang "powershell") or cmd ("cmd"), in a separate process.
// Variables that it sets do not change those of sh.
func Read(sh *interp.Process, src *act.Source, lang string, v *act.Invocation) act.Flow {
	environment := maps.Clone(sh.Vars)
	if environment == nil {
		environment = map[string][]act.Word{}
	}
	if v != nil { // apply the assignments NAME=value before the command
		for _, a := range v.Env {
			environment[a.Name] = []act.Word{a.Value}
		}
	}
	return run(sh.Env, src, lang, environment)
}

// run judges src in a process with these environment variables. It changes the map.
func run(e *interp.Env, src *act.Source, lang string, environment map[string][]act.Word) act.Flow {
	if strings.IndexByte(src.Text, 0xE2) >= 0 { // PowerShell accepts typographic dashes and quotes
		if plain := typographic.Replace(src.Text); plain != src.Text {
			again := *src
			again.Text, again.At = plain, -1
			src = &again
		}
	}
	if strings.IndexByte(src.Text, scan.Hole) >= 0 { // the enclosing shell left unknown parts
		again := *src
		again.At = -1
		again.Text = strings.ReplaceAll(src.Text, string(scan.Hole), map[string]string{"cmd": "%__%", "powershell": "$__"}[lang])
		src = &again
	}
	text := src.Text
	if len(text) > scan.MaxText || scan.Nesting(text) > scan.MaxNesting || src.Depth > scan.MaxDepth {
		e.TooDeep = true
		return act.Flow{}
	}
	e.Ran = true
	e.Budget.Spend(len(text) / 4)
	w := &winShell{e: e, src: src, vars: map[string]psValue{}, funcs: map[string]psValue{}, aliases: map[string]string{}, cmdText: text}
	w.sh = &interp.Process{Env: e, Src: src, Vars: environment}
	if lang == "cmd" {
		w.runCmd(text)
		return act.Flow{}
	}
	r := psReader{w: w, text: text}
	r.statements(0)
	return act.Flow{}
}

var typographic = strings.NewReplacer("\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'", "\u201c", `"`, "\u201d", `"`, "\u201e", `"`)

// powershellParameters lists the parameters of the program PowerShell, each with the smallest
// number of letters that identifies it. The first match counts.
var powershellParameters = []struct {
	name  string
	least int
}{{"encodedcommand", 1}, {"ec", 2}, {"command", 1}, {"ep", 2}, {"executionpolicy", 2}, {"windowstyle", 1}, {"version", 1}, {"outputformat", 1}, {"workingdirectory", 2}, {"file", 1}}

// powershellParameter returns the full name of a parameter of the program PowerShell, or "".
func powershellParameter(written string) string {
	name := strings.Replace(strings.TrimPrefix(strings.ToLower(written), "-"), "/", "", 1)
	for _, p := range powershellParameters {
		if len(name) >= p.least && strings.HasPrefix(p.name, name) {
			return p.name
		}
	}
	return ""
}
