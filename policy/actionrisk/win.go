package actionrisk

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf16"
)

// PowerShell and cmd text is cut into commands by a small tokenizer and each
// command is judged as the POSIX command that does the same, so that one table
// decides how bad it is: Remove-Item -Recurse C:\ is rm -rf C:\ there.

// winCommand is one command of a pipeline: its words, and whether the output
// of the one before it is its input.
type winCommand struct {
	words      []Word
	piped      bool
	from, to   int
	redirected string // file after >
}

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
			return out
		}
	}
	if v.stdin.known && v.stdin.word.Text != "" {
		w := v.stdin.word
		w.Taint |= v.stdin.taint
		v.stdin = flow{known: true}
		return sh.interpret(lang, w, v, v.exe, nil)
	}
	e.unproven = true
	e.match(&item{kind: kindExe, name: v.exe, inv: v, src: v.src, from: v.from, to: v.to})
	return out
}

// cmdlets are the commands of PowerShell that do harm; in the text of another
// shell they are still judged for what they are.
var cmdlets = setOf("remove-item format-volume clear-disk initialize-disk remove-partition stop-computer restart-computer invoke-expression set-mppreference remove-itemproperty clear-content set-content clear-eventlog set-netfirewallprofile stop-process invoke-sqlcmd iex")

// cmdlet judges a PowerShell command met in another shell.
func (sh *shell) cmdlet(v *invocation) (flow, bool) {
	if strings.IndexByte(v.exe, '-') < 0 && v.exe != "iex" || !cmdlets[strings.ToLower(v.exe)] || sh.src.depth >= maxDepth {
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
	sh.e.runWindows(&src, "powershell")
	return flow{taint: v.stdin.taint}, true
}

func isPrefixOf(s, whole string, least int) bool {
	return len(s) >= least && strings.HasPrefix(whole, s)
}

// encodedCommand runs base64 of UTF-16LE.
func (sh *shell) encodedCommand(v *invocation, w Word) flow {
	e := sh.e
	text, ok := decodeUTF16(w.Text)
	if !ok || e.decoded+len(text) > maxDecodedTotal {
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
	if len(s) > 2*maxDecoded {
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

// cmdletVerbs begin the names of PowerShell's commands.
var cmdletVerbs = setOf("remove stop clear format set get new invoke start restart disable enable initialize out copy move rename add uninstall install test select where foreach import export write resize unregister register suspend dismount reset revoke grant send limit convertto convertfrom")

// cmdCommands are commands of Windows that name nothing elsewhere, and what
// their arguments must hold where they do.
var cmdCommands = map[string]string{"del": "", "erase": " /", "rd": " /", "rmdir": " /", "format": ":", "reg": " ", "vssadmin": "", "wmic": "", "bcdedit": "",

	"wbadmin": "", "schtasks": "", "taskkill": "", "icacls": "", "takeown": "", "cipher": " /", "diskpart": "", "fsutil": "", "iex": "", "iwr": "", "irm": "",
	"powershell": "", "pwsh": "", "wevtutil": "", "netsh": "", "net": " /", "sc": " ", "robocopy": "/", "copy": "", "ri": " -", "gci": "", "attrib": "", "rem": ""}

// looksWindows is the router's cheap test.
func looksWindows(text string) bool {
	end := strings.IndexAny(text, " \t\r\n(|;")
	if end < 0 {
		end = len(text)
	}
	first, rest := text[:end], strings.ToLower(text[end:])
	if strings.ContainsAny(first, "`^\"") {
		first = strings.NewReplacer("`", "", "^", "", `"`, "").Replace(first)
	}
	first = strings.ToLower(strings.TrimSuffix(first, ".exe"))
	if verb, noun, ok := strings.Cut(first, "-"); ok {
		return cmdletVerbs[verb] && noun != "" && strings.Trim(noun, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
	}
	if mark, ok := cmdCommands[first]; ok {
		return strings.Contains(rest, mark) && first != "net" || first == "net" && (strings.Contains(rest, " user") || strings.Contains(rest, " localgroup") || strings.Contains(rest, " stop"))
	}
	switch {
	case strings.HasPrefix(text, "[System") || strings.HasPrefix(text, "[system") || strings.HasPrefix(text, "[IO.") || strings.HasPrefix(text, "[Text.") || strings.HasPrefix(text, "[Convert]"):
		return true
	case strings.HasPrefix(text, "(New-Object") || strings.HasPrefix(text, "& (") || strings.HasPrefix(text, "&(") || strings.HasPrefix(text, "& '") || strings.HasPrefix(text, "& {"):
		return true
	case text[0] == '$' && len(text) > 3:
		name, after, ok := strings.Cut(text, "=")
		return ok && !strings.ContainsAny(strings.TrimSpace(name[1:]), " (){}'\"") && strings.TrimSpace(after) != "" && strings.Contains(name+after, " ")
	}
	return false
}

// runWindows reads src as PowerShell (lang "powershell") or cmd ("cmd").
func (e *engine) runWindows(src *source, lang string) {
	text := src.text
	if len(text) > maxText || nesting(text) > maxNesting || src.depth > maxDepth {
		e.tooDeep = true
		return
	}
	e.ran = true
	w := winShell{e: e, src: src, cmd: lang == "cmd" || isCmdText(text), vars: map[string]string{}}
	e.budget.spend(len(text) / 4)
	w.expressions()
	commands := w.commands()
	for i := range commands {
		w.run(commands, i)
	}
}

// isCmdText tells cmd from PowerShell where nobody said which it is.
func isCmdText(text string) bool {
	first, rest, _ := strings.Cut(text, " ")
	first = strings.ToLower(strings.ReplaceAll(first, "^", ""))
	return slices.Contains([]string{"del", "erase", "rd", "rmdir", "format", "reg", "net", "sc", "copy"}, first) && strings.Contains(rest, "/") || strings.Contains(text, "^")
}

type winShell struct {
	e    *engine
	src  *source
	cmd  bool
	vars map[string]string
}

// expressions finds what the tokenizer cannot see: downloads that are run, and
// .NET calls that delete or decode.
func (w *winShell) expressions() {
	low := strings.ToLower(strings.NewReplacer("`", "", "^", "").Replace(w.src.text))
	runs := strings.Contains(low, "iex") || strings.Contains(low, "invoke-expression") || strings.Contains(low, "[scriptblock]::create") || strings.Contains(low, ".invokescript(")
	loads := false
	for _, s := range [...]string{"downloadstring", "iwr ", "irm ", "invoke-webrequest", "invoke-restmethod", "downloaddata", "curl ", "wget ", "start-bitstransfer"} {
		loads = loads || strings.Contains(low, s)
	}
	end := len(w.src.text)
	if runs && loads {
		w.e.raise("rce.pipe-to-shell", w.src, 0, end, "")
	}
	if at := strings.Index(low, "frombase64string("); at >= 0 {
		if text, ok := decodeUTF16(quotedAfter(w.src.text, at)); ok && runs {
			w.e.raise("obf.decode-exec", w.src, 0, end, "")
			inner := source{text: text, at: -1, via: append(append([]string(nil), w.src.via...), "FromBase64String"), depth: w.src.depth + 1, layers: w.src.layers + 1, taint: fromDecoder}
			inner.span, _ = w.src.where(0, end)
			w.e.runWindows(&inner, "powershell")
		}
	}
	if at := strings.Index(low, "::delete("); at >= 0 && (strings.Contains(low, "io.directory]") || strings.Contains(low, "io.file]")) {
		path := quotedAfter(w.src.text, at)
		w.posix(0, end, Word{Text: path, At: -1}, "rm", "-rf", path)
	}
}

// quotedAfter is the content of the first quoted text behind index at.
func quotedAfter(text string, at int) string {
	n := strings.IndexAny(text[min(at, len(text)):], `'"`)
	if n < 0 {
		return ""
	}
	open := at + n
	end := strings.IndexByte(text[open+1:], text[open])
	if end < 0 {
		return text[open+1:]
	}
	return text[open+1 : open+1+end]
}

// commands cuts the text at separators outside quotes. Braces and parentheses
// separate too: what stands in a block may run.
func (w *winShell) commands() []winCommand {
	text := w.src.text
	var out []winCommand
	cur := winCommand{}
	flush := func(at int, piped bool) {
		if len(cur.words) > 0 && len(out) < maxInvocations && !w.assigns(&cur) {
			cur.to = at
			out = append(out, cur)
		}
		cur = winCommand{piped: piped, from: at + 1}
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#' && !w.cmd && (i == 0 || text[i-1] <= ' '):
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '<' && strings.HasPrefix(text[i:], "<#") && !w.cmd:
			n := strings.Index(text[i:], "#>")
			if n < 0 {
				n = len(text) - i - 2
			}
			i += n + 2
		case c == '|' && i+1 < len(text) && text[i+1] != '|':
			flush(i, true)
			i++
		case c == ';' || c == '\n' || c == '|' || c == '&' && (w.cmd || i+1 < len(text) && text[i+1] == '&'):
			flush(i, false)
			i++
		case c == '(' && len(cur.words) == 0 || c == '(' && len(cur.words) == 1 && (cur.words[0].Text == "&" || cur.words[0].Text == "."):
			if word, next, ok := w.built(i); ok {
				cur.words, i = append(cur.words, word), next
				continue
			}
			flush(i, false)
			i++
		case c == '{' || c == '}' || c == '(' || c == ')':
			piped := len(out) > 0 && c == '{' && (cur.piped || len(cur.words) > 0)
			flush(i, piped)
			i++
		case c == '>':
			i++
			for i < len(text) && (text[i] == '>' || text[i] == ' ') {
				i++
			}
			var word Word
			word, i = w.word(i)
			cur.redirected = word.Text
		default:
			if len(cur.words) == 0 {
				cur.from = i
			}
			start := i
			var word Word
			if word, i = w.word(i); i == start { // a sign that begins no word
				i++
			}
			if word.Text != "" || word.Quoted {
				cur.words = append(cur.words, word)
			}
		}
	}
	flush(len(text), false)
	return out
}

// built evaluates a parenthesis that only builds text: 'a'+'b' or
// '{1}{0}' -f 'b','a'.
func (w *winShell) built(i int) (Word, int, bool) {
	text := w.src.text
	var parts []string
	format, j := false, i+1
	for j < len(text) && text[j] != ')' {
		switch c := text[j]; {
		case c == '\'' || c == '"':
			part := quotedAfter(text, j)
			parts = append(parts, part)
			j += len(part) + 2
		case c == ' ' || c == '+' || c == ',':
			j++
		case strings.HasPrefix(strings.ToLower(text[j:]), "-f ") || strings.HasPrefix(strings.ToLower(text[j:]), "-f'"):
			format = true
			j += 2
		default:
			return Word{}, i, false
		}
	}
	if len(parts) == 0 {
		return Word{}, i, false
	}
	value := strings.Join(parts, "")
	if format {
		value = parts[0]
		for n, part := range parts[1:] {
			value = strings.ReplaceAll(value, "{"+string(rune('0'+n%10))+"}", part)
		}
	}
	end := min(j+1, len(text))
	return w.finish(i, end, value, true), end, true
}

// word reads one word at i: quotes, ` and ^ escapes, literal variables, and
// 'a'+'b' joined.
func (w *winShell) word(i int) (Word, int) {
	text := w.src.text
	start := i
	var b strings.Builder
	quoted := false
	for i < len(text) {
		c := text[i]
		switch {
		case c == '\'' || c == '"':
			quoted = true
			j := i + 1
			for j < len(text) && text[j] != c {
				if text[j] == '`' && c == '"' && j+1 < len(text) {
					j++
				}
				b.WriteByte(text[j])
				j++
			}
			i = j + 1
			if rest := strings.TrimLeft(text[min(i, len(text)):], " "); strings.HasPrefix(rest, "+") && !w.cmd { // 'Rem' + 'ove-Item'
				next := strings.TrimLeft(rest[1:], " ")
				if next != "" && (next[0] == '\'' || next[0] == '"') {
					i = len(text) - len(next)
				}
			}
			continue
		case c == '`' && !w.cmd && i+1 < len(text), c == '^' && w.cmd && i+1 < len(text):
			i++
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		case strings.IndexByte(" \t\r\n;|(){}<>", c) >= 0 || c == '&' && i > start && w.cmd:
			return w.finish(start, i, b.String(), quoted), i
		default:
			b.WriteByte(c)
		}
		i++
	}
	return w.finish(start, i, b.String(), quoted), max(i, start+1)
}

func (w *winShell) finish(start, end int, text string, quoted bool) Word {
	end = min(end, len(w.src.text))
	span, _ := w.src.where(start, end)
	word := Word{Text: text, Span: span, At: -1, Quoted: quoted}
	if w.src.at >= 0 && !quoted && w.src.text[start:end] == text {
		word.At = w.src.at + start
	}
	if name, ok := strings.CutPrefix(text, "$"); ok && !w.cmd {
		word.Text = w.variable(strings.ToLower(strings.Trim(name, "{}")), text)
	} else if name, tail, ok := strings.Cut(strings.TrimPrefix(text, "%"), "%"); ok && name != "" && text[0] == '%' && (tail == "" || tail[0] == '\\' || tail[0] == '/') {
		word.Text = w.variable("env:"+strings.ToLower(name)+strings.ReplaceAll(tail, "/", `\`), text)
	}
	return word
}

// variable is the value of a known variable; the others become a hole.
func (w *winShell) variable(name, text string) string {
	name, tail, found := strings.Cut(name, `\`)
	if found {
		tail = "/" + strings.ReplaceAll(tail, `\`, "/")
	}
	switch name {
	case "home", "env:userprofile", "env:homepath", "profile":
		return "~" + tail
	case "env:appdata", "env:localappdata":
		return "~/AppData" + tail
	case "env:systemdrive":
		return "C:/" + strings.TrimPrefix(tail, "/")
	case "env:systemroot", "env:windir", "env:programfiles", "pshome", "env:programdata":
		return "C:/Windows" + tail
	case "env:temp", "env:tmp":
		return "C:/Temp/x" + tail
	case "true", "false", "null":
		return name
	case "_", "psitem":
		return "$_"
	case "pwd", "psscriptroot":
		return "." + tail
	}
	if v, ok := w.vars[name]; ok {
		return v + tail
	}
	if strings.HasPrefix(name, "_.") || strings.HasPrefix(name, "psitem.") {
		return "$_"
	}
	if strings.ContainsAny(text, "=") {
		return text
	}
	return string(hole) + tail
}

// assigns remembers $x = 'literal'.
func (w *winShell) assigns(c *winCommand) bool {
	if len(c.words) != 3 || c.words[1].Text != "=" || len(c.words[2].Text) > maxValue || c.words[2].Text == string(hole) {
		return false
	}
	name, _, _ := strings.Cut(w.src.text[c.from:], "=")
	name = strings.ToLower(strings.TrimSpace(name))
	if !strings.HasPrefix(name, "$") || strings.ContainsAny(name, ".[ ") {
		return false
	}
	w.vars[name[1:]] = c.words[2].Text
	return true
}

// splitWindows parts options (-Name, /x) from arguments; lists are cut at commas.
func splitWindows(words []Word) (map[string]bool, []Word) {
	opts := map[string]bool{}
	var args []Word
	for _, word := range words {
		t := word.Text
		if !word.Quoted && len(t) > 1 && (t[0] == '-' || t[0] == '/' && len(t) <= 8 && !strings.Contains(t[1:], "/")) {
			name, _, _ := strings.Cut(strings.ToLower(t), ":")
			opts[name] = true
			continue
		}
		if strings.Contains(t, ",") && !word.Quoted {
			for part := range strings.SplitSeq(t, ",") {
				if part != "" {
					p := word
					p.Text, p.At = part, -1
					args = append(args, p)
				}
			}
			continue
		}
		args = append(args, word)
	}
	return opts, args
}
