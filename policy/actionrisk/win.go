package actionrisk

import (
	"encoding/base64"
	"strings"
	"unicode/utf16"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// PowerShell (ps*.go) and cmd (cmd*.go) are read by small evaluators: what is known
// is computed, every branch is taken, and each command that would run is judged. One
// that a POSIX shell has too is judged as that (rules/windows.json), so that one table
// decides how bad it is: Remove-Item -Recurse C:\ is rm -rf C:\ there. The others are
// items of the kinds "cmdlet", "member" and "program" (rules/win.json, wintable.go).

// windowsShell is the language of a Windows command interpreter, "" if exe is none.
func windowsShell(exe string) string {
	switch strings.ToLower(strings.TrimSuffix(exe, ".exe")) {
	case "powershell", "pwsh", "powershell_ise":
		return "powershell"
	case "cmd":
		return "cmd"
	}
	return ""
}

// windows runs what an interpreter's arguments carry: -Command, -EncodedCommand
// and their abbreviations, /c, or text on the standard input.
func (sh *shell) windows(v *invocation, lang string) flow {
	e := sh.e
	e.ran = true
	out := flow{taint: v.stdin.taint}
	for i := 1; i < len(v.argv); i++ {
		name := strings.ToLower(v.argv[i].Text)
		if lang == "cmd" {
			if (strings.HasPrefix(name, "/c") || strings.HasPrefix(name, "/k") || strings.HasPrefix(name, "/r")) && i+1 < len(v.argv) {
				return sh.interpret(lang, joinWords(v.argv[i+1:], sh.src), v, v.exe+" "+name, nil)
			}
			continue
		}
		name = strings.Replace(strings.TrimPrefix(name, "-"), "/", "", 1)
		switch {
		case !strings.HasPrefix(v.argv[i].Text, "-") && !strings.HasPrefix(v.argv[i].Text, "/"):
			return sh.interpret(lang, joinWords(v.argv[i:], sh.src), v, v.exe, nil)
		case isPrefixOf(name, "encodedcommand", 1) || name == "ec":
			if i+1 < len(v.argv) {
				return sh.encodedCommand(v, v.argv[i+1])
			}
		case isPrefixOf(name, "command", 1):
			if i+1 < len(v.argv) && v.argv[i+1].Text != "-" {
				return sh.interpret(lang, joinWords(v.argv[i+1:], sh.src), v, v.exe+" -Command", nil)
			}
		case isPrefixOf(name, "executionpolicy", 2) || name == "ep" || isPrefixOf(name, "windowstyle", 1) || isPrefixOf(name, "version", 1) || isPrefixOf(name, "outputformat", 1) || isPrefixOf(name, "workingdirectory", 2):
			i++
		case isPrefixOf(name, "file", 1):
			e.unproven = true
			if i+1 < len(v.argv) {
				sh.scriptFile(v.argv[i+1], v)
			}
			return out
		}
	}
	if v.stdin.known && v.stdin.word.Text != "" {
		w := v.stdin.word
		w.Taint |= v.stdin.taint
		v.stdin = flow{known: true}
		return sh.interpret(lang, w, v, v.exe, nil)
	}
	if v.stdin.taint&fromNetwork != 0 {
		e.raise("rce.pipe-to-shell", sh.src, v.from, v.to, "")
	}
	e.unproven = true
	e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
	return out
}

// scriptFile runs a file of PowerShell that the command itself wrote or fetched.
func (sh *shell) scriptFile(file Word, v *invocation) {
	f, ok := sh.e.files[paths.FileKey(sh.cwd, strings.ReplaceAll(file.Text, `\`, "/"))]
	switch {
	case !ok:
	case f.taint&fromNetwork != 0:
		sh.e.raise("rce.download-exec", v.src, v.from, v.to, printable(file.Text))
	case f.known:
		f.word.Taint |= f.taint
		sh.interpret("powershell", f.word, v, v.exe+" -File", nil)
	}
}

// takenCmdlet judges an interpreter of Windows, or a PowerShell command met in another shell.
func takenCmdlet(sh *shell, v *invocation) (flow, bool) {
	if lang := windowsShell(v.exe); lang != "" {
		return sh.windows(v, lang), true
	}
	if !sh.e.knownCmdlet(strings.ToLower(v.exe)) || sh.src.depth >= scan.MaxDepth {
		return flow{}, false
	}
	src := *v.src
	if v.to > v.from && v.to <= len(src.text) && strings.Contains(src.text[v.from:v.to], v.exe) {
		if src.at >= 0 {
			src.at += v.from
		}
		src.text = src.text[v.from:v.to]
	} else {
		src.text, src.at = argvText(v), -1
	}
	src.depth++
	sh.read("powershell", &src, nil)
	return flow{taint: v.stdin.taint}, true
}

// knownCmdlet: a name by which only PowerShell knows something.
func (c *compiled) knownCmdlet(name string) bool {
	verb, noun, ok := strings.Cut(name, "-")
	if !ok {
		return name == "iex" || name == "irm" || name == "iwr"
	}
	return noun != "" && c.windows.verbs[verb] && (c.windows.cmdlets[name] != nil || c.other["cmdlet "+verb] && !c.exe[name] && c.tools[name] == nil && strings.IndexByte(noun, '-') < 0)
}

func isPrefixOf(s, whole string, least int) bool {
	return len(s) >= least && strings.HasPrefix(whole, s)
}

// encodedCommand runs base64 of UTF-16LE.
func (sh *shell) encodedCommand(v *invocation, w Word) flow {
	e := sh.e
	text, ok := decodeUTF16(w.Text)
	if !ok || e.decoded+len(text) > scan.MaxDecodedTotal {
		e.unproven = true
		e.raise("obf.dynamic-structure", sh.src, v.from, v.to, "")
		return flow{}
	}
	e.decoded += len(text)
	e.raise("obf.decode-exec", sh.src, v.from, v.to, "")
	w.Text, w.At, w.Taint = text, -1, w.Taint|fromDecoder
	return sh.interpret("powershell", w, v, v.exe+" -EncodedCommand", nil)
}

// decodeUTF16 decodes base64 of UTF-16LE text, or of plain bytes.
func decodeUTF16(s string) (string, bool) {
	if len(s) > 2*scan.MaxDecoded {
		return "", false
	}
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		if raw, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "=")); err != nil {
			return "", false
		}
	}
	if len(raw) >= 2 && raw[1] == 0 {
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
		}
		return string(utf16.Decode(units)), true
	}
	return string(raw), len(raw) > 0
}

// looksWindows is the router's cheap test; sure means that no other shell could
// run the text.
func (c *compiled) looksWindows(text string) (lang string, sure bool) {
	names := c.windows
	end := strings.IndexAny(text, " \t\r\n(){|;&,<>")
	if end < 0 {
		end = len(text)
	}
	first, rest := text[:end], text[end:]
	if strings.ContainsAny(first, "`^\"@") {
		first = strings.NewReplacer("`", "", "^", "", `"`, "", "@", "").Replace(first)
	}
	if strings.Contains(first, "\u2013") {
		first = strings.ReplaceAll(first, "\u2013", "-")
	}
	first = strings.ToLower(first)
	if i := strings.LastIndexByte(first, '\\'); i >= 0 {
		first = first[i+1:]
	}
	first = strings.TrimSuffix(first, ".exe")
	if verb, noun, ok := strings.Cut(first, "-"); ok {
		if names.verbs[verb] && noun != "" && strings.Trim(noun, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
			return "powershell", names.cmdlets[first] != nil || text[0] >= 'A' && text[0] <= 'Z' && strings.IndexByte(text[:end], '-') > 0
		}
	}
	if (names.programs[first] || c.other["program "+first] && strings.ContainsAny(rest, `\/%`)) && names.meantForWindows(first, strings.ToLower(rest)) {
		lang := c.windowsLanguage(first, text)
		return lang, names.Elsewhere[first] == nil && !c.exe[first] && (lang == "powershell" || !strings.ContainsAny(text, ";\n'")) && !looksShell(text)
	}
	if i := strings.IndexByte(first, '/'); i > 0 && names.internal[first[:i]] != nil { // del/s
		return "cmd", false
	}
	later := names.windowsLater(text)
	if lang, sure := c.looksExpression(text); lang != "" {
		return lang, sure || later == lang
	}
	return later, false
}

// windowsLater: a text that begins with a program of any system goes on as only
// PowerShell or cmd does.
func (t *windowsTable) windowsLater(text string) string {
	for _, s := range t.Marks {
		if strings.Contains(text, s) {
			return "powershell"
		}
	}
	if i := strings.IndexByte(text, '%'); i >= 0 && i+2 < len(text) && text[i+1] >= 'A' && text[i+1] <= 'Z' {
		if n := strings.IndexAny(text[i+1:], "% :"); n > 1 && text[i+1+n] != ' ' && strings.ContainsAny(text, `\&`) {
			return "cmd"
		}
	}
	return ""
}

// meantForWindows: the rest of the text tells what a name of many meanings means.
func (t *windowsTable) meantForWindows(first, rest string) bool {
	marks, ok := t.Elsewhere[first]
	if !ok {
		return true
	}
	for _, m := range marks {
		if strings.Contains(rest, m) {
			return true
		}
	}
	return false
}

// windowsLanguage tells cmd from PowerShell where nobody said which it is.
func (c *compiled) windowsLanguage(first, text string) string {
	names := c.windows
	alias, internal := names.Aliases[first] != "" || names.cmdlets[first] != nil, names.internal[first] != nil
	later := names.windowsLater(text)
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

// looksExpression: the text begins with a value, an assignment or a call of
// PowerShell, or with a variable of cmd.
func (c *compiled) looksExpression(text string) (string, bool) {
	switch {
	case text[0] == '[' && len(text) > 3 && text[1] != ' ' && text[1] != '[':
		if end := strings.IndexByte(text, ']'); end > 1 && strings.Trim(text[1:end], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._[]`") == "" {
			return "powershell", strings.TrimSpace(text[end+1:]) != ""
		}
	case strings.HasPrefix(text, "& (") || strings.HasPrefix(text, "&(") || strings.HasPrefix(text, "& '") || strings.HasPrefix(text, "& {") || strings.HasPrefix(text, "&{") || strings.HasPrefix(text, "& $") || strings.HasPrefix(text, "&$") || strings.HasPrefix(text, "& \"") || strings.HasPrefix(text, ". (") || strings.HasPrefix(text, ".(") || strings.HasPrefix(text, ". {") || strings.HasPrefix(text, ".{") || strings.HasPrefix(text, "@{") || strings.HasPrefix(text, "@'") || strings.HasPrefix(text, "@\"") || strings.HasPrefix(text, ". ([") || strings.HasPrefix(text, "-join"):
		return "powershell", true
	case text[0] == '(' && len(text) > 2:
		return c.looksGroup(text)
	case text[0] == '\'' || text[0] == '"' || text[0] >= '0' && text[0] <= '9':
		if end := quotedEnd(text, 0); text[0] < '0' && end+1 < len(text) && (text[end+1] == '[' || text[end+1] == '.' && strings.Contains(text[end:], "(")) {
			return "powershell", true
		}
		low := strings.ToLower(text)
		for _, s := range [...]string{"| iex", "|iex", "| invoke-expression", "|invoke-expression", "-join", "|%{", "| %{", "|%", "| % {", "| foreach", "-replace", "| out-file", "| set-content", "-split", "|&(", "| &", "|.(", "| ."} {
			if strings.Contains(low, s) {
				return "powershell", strings.Contains(low, "iex") || strings.Contains(low, "%{")
			}
		}
	case text[0] == '$' && len(text) > 3:
		return looksVariable(text)
	case text[0] == '>' && strings.Contains(text, "echo"):
		return "cmd", false
	case text[0] == '%' && len(text) > 3 && strings.IndexByte(text[1:], '%') > 0:
		return "cmd", true
	}
	return "", false
}

// looksGroup: what stands in a parenthesis is PowerShell, or commands of cmd.
func (c *compiled) looksGroup(text string) (string, bool) {
	inner := strings.TrimLeft(text, "( \t")
	if inner == "" {
		return "", false
	}
	if strings.IndexByte("$[@'\"", inner[0]) >= 0 {
		end := strings.LastIndexByte(text, ')')
		return "powershell", end > 0 && strings.HasPrefix(text[end+1:], ".") || strings.Contains(text, ").") || inner[0] == '['
	}
	lang, _ := c.looksWindows(inner)
	return lang, lang == "powershell" && strings.Contains(text, ").")
}

// looksVariable: a statement that begins with a variable of PowerShell.
func looksVariable(text string) (string, bool) {
	j := 1
	for j < len(text) && (scan.IsNameByte(text[j]) || strings.IndexByte(":{}`", text[j]) >= 0) {
		j++
	}
	rest := strings.TrimLeft(text[j:], " ")
	switch {
	case j == 1 || rest == "":
		return "", false
	case strings.HasPrefix(rest, "=") && (j < len(text) && text[j] == ' ' || strings.ContainsAny(text, " ;")) || strings.HasPrefix(rest, "+="):
		return "powershell", true
	case text[j-1] == '}' && !strings.Contains(text[:j], "env:") && !strings.HasPrefix(rest, "."):
		return "", false
	case strings.HasPrefix(rest, ".") && j < len(text) && text[j] == '.' && len(rest) > 1 && scan.IsNameByte(rest[1]), strings.HasPrefix(rest, "|"), strings.HasPrefix(rest, "["), strings.HasPrefix(rest, ","):
		return "powershell", strings.ContainsAny(rest, "(=") || strings.Contains(rest, "-Az") || rest[0] == '.' && rest[1] >= 'A' && rest[1] <= 'Z'
	}
	return "", false
}

// runWindows reads src as PowerShell (lang "powershell") or cmd ("cmd").
func runWindows(sh *shell, src *source, lang string, _ *invocation) flow {
	e := sh.e
	if strings.IndexByte(src.text, 0xE2) >= 0 { // dashes and quotes that PowerShell takes for its own
		if plain := typographic.Replace(src.text); plain != src.text {
			again := *src
			again.text, again.at = plain, -1
			src = &again
		}
	}
	if strings.IndexByte(src.text, scan.Hole) >= 0 { // what the shell around it filled in, and nobody knows
		again := *src
		again.at = -1
		again.text = strings.ReplaceAll(src.text, string(scan.Hole), map[string]string{"cmd": "%__%", "powershell": "$__"}[lang])
		src = &again
	}
	text := src.text
	if len(text) > scan.MaxText || scan.Nesting(text) > scan.MaxNesting || src.depth > scan.MaxDepth {
		e.tooDeep = true
		return flow{}
	}
	e.ran = true
	w := &winShell{e: e, src: src, vars: map[string]psValue{}, funcs: map[string]psValue{}, aliases: map[string]string{}, cmdText: text}
	w.sh = &shell{e: e, src: src}
	e.budget.spend(len(text) / 4)
	if lang == "cmd" {
		w.runCmd(text)
		return flow{}
	}
	r := psReader{w: w, text: text}
	r.statements(0)
	return flow{}
}

var typographic = strings.NewReplacer("\u2013", "-", "\u2014", "-", "\u2015", "-", "\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'", "\u201c", `"`, "\u201d", `"`, "\u201e", `"`)

// windowsState is what lasts from one text to the next.
type windowsState struct {
	env      map[string]psValue // environment variables set in PowerShell or cmd
	specials map[string]func(*winShell, *psCall) psValue
}

// state is made when it is first asked for.
func (w *winShell) state() *windowsState {
	if s, ok := w.e.kept["windows"].(*windowsState); ok {
		return s
	}
	s := &windowsState{env: map[string]psValue{}, specials: psSpecials()}
	if w.e.kept == nil {
		w.e.kept = map[string]any{}
	}
	w.e.kept["windows"] = s
	return s
}
