package windows

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// The command language of cmd: "&", "|" and parentheses outside of quotes part
// commands, "^" escapes, %NAME% and !NAME! are replaced in the text before it is
// cut into words.

// cmdReader reads one text.
type cmdReader struct {
	w    *winShell
	text string
	i    int
	deep int // parentheses open
}

// cmdCall is one command as written.
type cmdCall struct {
	text     string
	from, to int
	next     byte // what ends it: '|', '&' …
}

// runCmd runs a text of cmd.
func (w *winShell) runCmd(text string) {
	r := cmdReader{w: w, text: text}
	in := act.Flow{}
	for w.e.Budget.Spend(4) {
		c, ok := r.command()
		if !ok {
			return
		}
		out := w.cmdCommand(c, in)
		if in = (act.Flow{}); c.next == '|' {
			in = out
		}
	}
}

// command is the next command of the text, as written.
func (r *cmdReader) command() (cmdCall, bool) {
	for r.i < len(r.text) && strings.IndexByte(" \t\r\n&|@;,=)", r.text[r.i]) >= 0 {
		if r.text[r.i] == ')' {
			r.deep = max(r.deep-1, 0)
		}
		r.i++
	}
	if r.i >= len(r.text) {
		return cmdCall{}, false
	}
	if r.text[r.i] == '(' {
		r.i++
		r.deep++
		return cmdCall{from: r.i, to: r.i}, true
	}
	c := cmdCall{from: r.i}
	low := strings.ToLower(r.text[r.i:min(r.i+4, len(r.text))])
	if low == "for " || strings.HasPrefix(low, "if ") { // its body is part of it
		c.to = r.lineEnd()
	} else {
		c.to = r.simpleEnd()
	}
	c.text = r.text[c.from:c.to]
	if r.i = c.to; r.i < len(r.text) {
		if c.next = r.text[r.i]; c.next == '|' && r.i+1 < len(r.text) && r.text[r.i+1] == '|' {
			c.next = '&'
			r.i++
		}
		if c.next == ')' {
			r.deep = max(r.deep-1, 0)
		}
		r.i++
	}
	return c, true
}

// simpleEnd is where the command at i ends.
func (r *cmdReader) simpleEnd() int {
	quoted := false
	for j := r.i; j < len(r.text); j++ {
		switch c := r.text[j]; {
		case c == '"':
			quoted = !quoted
		case c == '^' && !quoted:
			j++
		case c == '\n':
			return j
		case quoted:
		case c == '&' && j > 0 && (r.text[j-1] == '>' || r.text[j-1] == '<'): // 2>&1
		case c == '&' || c == '|' || c == ')' && r.deep > 0:
			return j
		}
	}
	return len(r.text)
}

// lineEnd is where the line at i ends, parentheses and quotes aside.
func (r *cmdReader) lineEnd() int {
	quoted, open := false, 0
	for j := r.i; j < len(r.text); j++ {
		switch c := r.text[j]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '^':
			j++
		case c == '(':
			open++
		case c == ')':
			if open--; open < 0 && r.deep > 0 {
				return j
			}
		case c == '\n' && open <= 0:
			return j
		}
	}
	return len(r.text)
}

// cmdCommand runs one command and gives what it prints.
func (w *winShell) cmdCommand(c cmdCall, in act.Flow) act.Flow {
	e := w.e
	text := strings.TrimSpace(c.text)
	if text == "" {
		return act.Flow{}
	}
	if e.Invocations++; e.Invocations > scan.MaxInvocations || !e.Budget.Spend(16) {
		e.TooDeep = true
		return act.Flow{}
	}
	low := strings.ToLower(text)
	switch {
	case strings.HasPrefix(low, "rem ") || low == "rem" || strings.HasPrefix(low, ":"):
		return act.Flow{Known: true}
	case strings.HasPrefix(low, "for "):
		w.cmdFor(text)
		return act.Flow{}
	case strings.HasPrefix(low, "if "):
		w.cmdIf(text)
		return act.Flow{}
	}
	expanded := w.cmdExpand(text)
	if expanded != text && strings.ContainsAny(expanded, "&|") && !strings.ContainsAny(text, "&|") && w.running < scan.MaxDepth {
		w.running++
		w.runCmd(expanded)
		w.running--
		return act.Flow{}
	}
	call, args, files := w.cmdWords(expanded)
	if len(args) == 0 {
		return act.Flow{}
	}
	pc := &psCall{name: call, from: c.from, to: c.to}
	if len(w.src.Text) != len(w.cmdText) {
		pc.from, pc.to = 0, len(w.src.Text)
	}
	for _, f := range files {
		if f.Op == "<" {
			in = e.ReadFile(w.sh, f.File)
		}
	}
	out := w.cmdRun(pc, args, expanded, in)
	for _, f := range files {
		if f.Op != "<" && !strings.EqualFold(f.File.Text, "nul") && f.File.Text != "" && f.File.Text[0] != '&' {
			at := *w.src
			w.sh.Src = &at
			w.sh.Write(f, out)
		}
	}
	return out
}

// cmdWords cuts a command into its name, its words and its redirections.
func (w *winShell) cmdWords(text string) (string, []act.Word, []act.Redir) {
	var args []act.Word
	var files []act.Redir
	op := ""
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\t' || len(args) <= 1 && op == "" && (c == ',' || c == ';' || c == '='):
			i++
			continue
		case c == '>' || c == '<':
			op = string(c)
			if i++; i < len(text) && text[i] == '>' {
				op, i = ">>", i+1
			}
			if i < len(text) && text[i] == '&' {
				op, i = "", min(i+2, len(text))
			}
			continue
		case c >= '0' && c <= '9' && i+1 < len(text) && (text[i+1] == '>' || text[i+1] == '<') && (i == 0 || text[i-1] == ' '):
			i++
			continue
		}
		word, next := cmdWord(text, i, len(args) == 0 && op == "")
		if i = next; op != "" {
			files = append(files, act.Redir{Op: op, File: w.argWord(word, 0)})
			op = ""
			continue
		}
		args = append(args, act.Word{Text: word, At: -1, Glob: strings.ContainsAny(word, "*?")})
	}
	if len(args) == 0 {
		return "", nil, files
	}
	return args[0].Text, args, files
}

// cmdWord reads a word at i. The name of a command also ends where an option
// begins: del/s, cd\.
func cmdWord(text string, i int, name bool) (string, int) {
	var b strings.Builder
	quoted := false
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			continue
		case quoted:
		case c == '^' && i+1 < len(text):
			i++
			if text[i] != '\n' && text[i] != '\r' {
				b.WriteByte(text[i])
			}
			continue
		case strings.IndexByte(" \t><", c) >= 0, name && strings.IndexByte(",;=(", c) >= 0:
			return b.String(), i
		case name && c == '/' && b.Len() > 0 && !strings.ContainsAny(b.String(), `:/\.`):
			return b.String(), i
		case name && (c == '\\' || c == '.') && strings.EqualFold(b.String(), "cd"), name && c == '.' && strings.EqualFold(b.String(), "echo"):
			return b.String(), i
		}
		b.WriteByte(c)
	}
	return b.String(), i
}

// cmdExpand replaces variables: %A%, !A!, %A:~1,2%, %A:x=y%.
func (w *winShell) cmdExpand(text string) string {
	if !strings.ContainsAny(text, "%!") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < scan.MaxText; i++ {
		c := text[i]
		if c == '%' && i+1 < len(text) && text[i+1] == '%' { // %%i of a loop in a file
			i++
			if i+1 < len(text) && (scan.IsNameByte(text[i+1]) || text[i+1] == '~') {
				i--
				text = text[:i] + text[i+1:]
			}
		}
		if c == '%' || c == '!' {
			if v, n := w.cmdVariable(text[i:], c); n > 0 {
				b.WriteString(v)
				i += n - 1
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// cmdVariable reads one variable and gives its value and its length as written.
func (w *winShell) cmdVariable(text string, mark byte) (string, int) {
	end := strings.IndexByte(text[1:], mark)
	if end > 0 && !strings.ContainsAny(text[1:1+end], "\n\"&|<>") {
		if v, ok := w.cmdNamed(text[1:1+end], mark); ok {
			return v, end + 2
		}
	}
	if mark != '%' {
		return "", 0
	}
	return w.cmdParameter(text)
}

// cmdNamed is the value of what stands between two marks: a name, and what of its value.
func (w *winShell) cmdNamed(inner string, mark byte) (string, bool) {
	name, rest, cut := strings.Cut(inner, ":")
	if name == "" || mark != '%' && strings.Contains(name, " ") {
		return "", false
	}
	v, ok := w.cmdValue(name)
	if !ok {
		if strings.ContainsAny(name, " ~") || !scan.IsNameByte(name[0]) || len(name) < 2 {
			return "", false
		}
		v = string(scan.Hole)
	}
	if cut {
		v = cmdSlice(v, rest)
	}
	return v, true
}

// cmdParameter is the value of %i, %~fi or %1.
func (w *winShell) cmdParameter(text string) (string, int) {
	j := 1
	if j < len(text) && text[j] == '~' {
		for j++; j < len(text) && strings.IndexByte("fdpnxsatz", text[j]) >= 0; j++ {
		}
		if j < len(text) && (text[j] >= '0' && text[j] <= '9') {
			return ".", j + 1
		}
		if text[j-1] != '~' && (j >= len(text) || !scan.IsNameByte(text[j])) {
			j--
		}
	}
	if j >= len(text) || !scan.IsNameByte(text[j]) {
		return "", 0
	}
	if v, ok := w.vars["%"+text[j:j+1]]; ok {
		return v.str(), j + 1
	}
	if alone := j+1 >= len(text) || !scan.IsNameByte(text[j+1]); alone && text[j] >= '0' && text[j] <= '9' {
		return string(scan.Hole), j + 1
	}
	return "", 0
}

// cmdValue is the value of a variable of cmd.
func (w *winShell) cmdValue(name string) (string, bool) {
	name = strings.ToLower(name)
	if v, ok := w.state().env[name]; ok {
		return v.str(), true
	}
	if v, ok := w.e.Windows.Env[name]; ok {
		return strings.ReplaceAll(v, "/", `\`), true
	}
	switch name {
	case "cd", "__cd__":
		return ".", true
	case "random", "time", "date", "errorlevel":
		return string(scan.Hole), true
	}
	return "", false
}

// cmdSlice is %V:~start,length% and %V:from=to%.
func cmdSlice(v, how string) string {
	rest, ok := strings.CutPrefix(how, "~")
	if !ok {
		from, to, ok := strings.Cut(how, "=")
		if !ok || from == "" {
			return v
		}
		if from[0] == '*' {
			if i := strings.Index(strings.ToLower(v), strings.ToLower(from[1:])); i >= 0 {
				return to + v[i+len(from)-1:]
			}
			return v
		}
		return scan.ReplaceFold(v, from, to)
	}
	if strings.IndexByte(v, scan.Hole) >= 0 {
		return string(scan.Hole)
	}
	var places []int
	for place := range strings.SplitSeq(rest, ",") {
		n, ok := psString(place).int()
		if !ok {
			return string(scan.Hole)
		}
		places = append(places, n)
	}
	return scan.Substring(v, places[0], places[1:]...)
}

// cmdFor runs the body of a loop, for the values that are known or once.
func (w *winShell) cmdFor(text string) {
	open := strings.IndexByte(text, '(')
	low := strings.ToLower(text)
	do := -1
	if open >= 0 {
		end := matchingParen(text, open)
		if i := strings.Index(low[min(end, len(low)):], "do"); i >= 0 {
			do = min(end, len(low)) + i
		}
	}
	if do < 0 || w.running >= scan.MaxDepth {
		return
	}
	head, list, body := low[:open], strings.TrimSpace(text[open+1:matchingParen(text, open)]), text[do+2:]
	name := ""
	if i := strings.LastIndexByte(head, '%'); i >= 0 && i+1 < len(head) {
		name = text[i+1 : i+2]
	}
	values := w.cmdForValues(head, list)
	w.running++
	for i, v := range values {
		if i > 0 && !w.round() {
			break
		}
		for n, one := range v.list() { // tokens=1,2 fill %a, %b
			if name != "" {
				w.vars["%"+string(name[0]+byte(n%26))] = one
			}
		}
		w.runCmd(strings.TrimSpace(body))
	}
	w.running--
}

// matchingParen is where the parenthesis at i is closed.
func matchingParen(text string, i int) int {
	open, quote := 0, byte(0)
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"':
			quote = c
		case c == '(':
			open++
		case c == ')':
			if open--; open == 0 {
				return i
			}
		}
	}
	return len(text)
}

// cmdForValues are the values of a loop: words, lines of text, what a command
// prints, files below a folder.
func (w *winShell) cmdForValues(head, list string) []psValue {
	unknown := psUnknown(0)
	unknown.output = true
	if !strings.Contains(head, "/f") {
		var out []psValue
		folder := "."
		if i := strings.Index(head, "/r"); i >= 0 {
			if f := strings.Fields(head[i+2:]); len(f) > 0 && f[0][0] != '%' {
				folder = strings.Trim(f[0], `"`)
			}
		}
		for _, t := range strings.FieldsFunc(w.cmdExpand(list), func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '\t' }) {
			if t = strings.Trim(t, `"`); folder != "." && !strings.Contains(t, `\`) {
				t = folder + `\` + t
			}
			out = append(out, psString(t))
		}
		if strings.Contains(head, "/l") || len(out) == 0 {
			return []psValue{unknown}
		}
		return out
	}
	text, known := "", false
	switch {
	case len(list) > 1 && (list[0] == '\'' || list[0] == '`'):
		out := w.cmdOutput(strings.Trim(list, "'`"))
		if text, known = out.Word.Text, out.Known; !known {
			unknown.taint = out.Taint
		}
	case len(list) > 1 && list[0] == '"' && !strings.Contains(head, "usebackq"):
		text, known = strings.Trim(w.cmdExpand(list), `"`), true
	default:
		f := w.e.ReadFile(w.sh, w.argWord(strings.Trim(list, `"`), 0))
		if text, known = f.Word.Text, f.Known; !known {
			unknown.taint = f.Taint
		}
	}
	if !known || strings.TrimSpace(text) == "" {
		return []psValue{psListOf([]psValue{unknown, unknown, unknown})}
	}
	return cmdTokens(head, text)
}

// cmdTokens parts lines by "tokens=… delims=…".
func cmdTokens(head, text string) []psValue {
	delims, tokens := " \t", "1"
	if _, rest, ok := strings.Cut(head, "delims="); ok {
		rest, _, _ = strings.Cut(rest, `"`)
		delims = rest
		if i := strings.Index(rest, " tokens="); i >= 0 {
			delims = rest[:i]
		}
	}
	if _, rest, ok := strings.Cut(head, "tokens="); ok {
		tokens, _, _ = strings.Cut(strings.TrimRight(rest, `"`), " ")
		tokens, _, _ = strings.Cut(tokens, `"`)
	}
	var out []psValue
	for line := range strings.SplitSeq(text, "\n") {
		parts := []string{line}
		if delims != "" {
			parts = strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(delims, r) })
		}
		var chosen []psValue
		for t := range strings.SplitSeq(tokens, ",") {
			if n, ok := psString(t).int(); ok && n >= 1 && n <= len(parts) {
				chosen = append(chosen, psString(parts[n-1]))
			} else if strings.HasSuffix(t, "*") {
				chosen = append(chosen, psString(line))
			}
		}
		if len(chosen) > 0 && len(out) < scan.MaxLoop {
			out = append(out, psListOf(chosen))
		}
	}
	return out
}

// cmdOutput runs a command for what it prints.
func (w *winShell) cmdOutput(text string) act.Flow {
	r := cmdReader{w: w, text: strings.ReplaceAll(text, "^", "")}
	in, out := act.Flow{}, act.Flow{}
	for w.e.Budget.Spend(4) {
		c, ok := r.command()
		if !ok {
			break
		}
		out = w.cmdCommand(c, in)
		in = act.Flow{}
		if c.next == '|' {
			in = out
		}
	}
	return out
}

// cmdIf runs both branches.
func (w *winShell) cmdIf(text string) {
	rest := strings.TrimSpace(text[2:])
	for _, word := range [...]string{"/i ", "not ", "/i "} {
		if len(rest) > len(word) && strings.EqualFold(rest[:len(word)], word) {
			rest = strings.TrimSpace(rest[len(word):])
		}
	}
	first, next := cmdWord(rest, 0, false)
	rest = strings.TrimSpace(rest[next:])
	switch strings.ToLower(first) {
	case "exist", "defined", "errorlevel", "cmdextversion":
		_, next = cmdWord(rest, 0, false)
		rest = rest[next:]
	default:
		if !strings.Contains(first, "==") { // a == b, a equ b
			_, next = cmdWord(rest, 0, false)
			rest = strings.TrimSpace(rest[next:])
			_, next = cmdWord(rest, 0, false)
			rest = rest[next:]
		} else if strings.HasSuffix(first, "==") {
			_, next = cmdWord(rest, 0, false)
			rest = rest[next:]
		}
	}
	if w.running >= scan.MaxDepth {
		return
	}
	w.running++
	w.runCmd(strings.ReplaceAll(scan.ReplaceFold(rest, ") else ", ") & "), ")else", ") & "))
	w.running--
}
