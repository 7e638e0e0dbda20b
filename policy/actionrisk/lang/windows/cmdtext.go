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
		r.close(r.text[r.i])
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
	c := cmdCall{from: r.i, to: r.end()}
	c.text = r.text[c.from:c.to]
	if r.i = c.to; r.i < len(r.text) {
		c.next = r.text[r.i]
		r.close(c.next)
		if strings.HasPrefix(r.text[r.i:], "||") {
			c.next = '&'
			r.i++
		}
		r.i++
	}
	return c, true
}

// close notes a parenthesis that is closed.
func (r *cmdReader) close(c byte) {
	if c == ')' {
		r.deep = max(r.deep-1, 0)
	}
}

// end is where the command at i ends; the bodies of for and if are part of it.
func (r *cmdReader) end() int {
	low := strings.ToLower(r.text[r.i:min(r.i+4, len(r.text))])
	long := low == "for " || strings.HasPrefix(low, "if ")
	quoted, open := false, 0
	for j := r.i; j < len(r.text); j++ {
		switch c := r.text[j]; {
		case c == '"':
			quoted = !quoted
		case quoted && (c != '\n' || long):
		case c == '^':
			j++
		case long && c == '(':
			open++
		case long && c == ')' && open > 0:
			open--
		case open <= 0 && r.ends(j, long):
			return j
		}
	}
	return len(r.text)
}

// ends: the byte at j is after a command; of a long one, which goes to the end of its
// line, only that or a bracket does, and of no other 2>&1.
func (r *cmdReader) ends(j int, long bool) bool {
	switch r.text[j] {
	case '\n':
		return true
	case ')':
		return r.deep > 0
	case '|':
		return !long
	case '&':
		return !long && (j == 0 || strings.IndexByte("<>", r.text[j-1]) < 0)
	}
	return false
}

// cmdCommand runs one command and gives what it prints.
func (w *winShell) cmdCommand(c cmdCall, in act.Flow) act.Flow {
	text := strings.TrimSpace(c.text)
	if text == "" {
		return act.Flow{}
	}
	if !w.mayRun(16) {
		return act.Flow{}
	}
	switch first, _, _ := strings.Cut(strings.ToLower(text), " "); {
	case first == "rem" || text[0] == ':':
		return act.Flow{Known: true}
	case first == "for":
		w.cmdFor(text)
		return act.Flow{}
	case first == "if":
		w.cmdIf(text)
		return act.Flow{}
	}
	expanded := w.cmdExpand(text)
	if strings.ContainsAny(expanded, "&|") && !strings.ContainsAny(text, "&|") {
		w.cmdInside(expanded)
		return act.Flow{}
	}
	args, files := w.cmdWords(expanded)
	if len(args) == 0 {
		return act.Flow{}
	}
	pc := &psCall{name: args[0].Text, from: c.from, to: c.to}
	if len(w.src.Text) != len(w.cmdText) {
		pc.from, pc.to = 0, len(w.src.Text)
	}
	for _, f := range files {
		if f.Op == "<" {
			in = w.e.ReadFile(w.sh, f.File)
		}
	}
	out := w.cmdRun(pc, args, expanded, in)
	w.cmdWrite(files, out)
	return out
}

// cmdWrite writes what a command prints to its files.
func (w *winShell) cmdWrite(files []act.Redir, out act.Flow) {
	for _, f := range files {
		if name := f.File.Text; f.Op != "<" && name != "" && name[0] != '&' && name != "/dev/null" {
			at := *w.src
			w.sh.Src = &at
			w.sh.Write(f, out)
		}
	}
}

// cmdInside runs a text of cmd inside of another, as deep as there is room for.
func (w *winShell) cmdInside(text string) {
	if w.running < scan.MaxDepth {
		w.running++
		w.runCmd(text)
		w.running--
	}
}

// cmdWords cuts a command into its words and its redirections.
func (w *winShell) cmdWords(text string) (args []act.Word, files []act.Redir) {
	op := ""
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\t' || len(args) <= 1 && op == "" && strings.IndexByte(",;=", c) >= 0:
			i++
		case c == '>' || c == '<':
			op, i = redirection(text, i)
		case isDigit(c) && i+1 < len(text) && strings.IndexByte("<>", text[i+1]) >= 0 && (i == 0 || text[i-1] == ' '):
			i++ // which output
		default:
			word, next := cmdWord(text, i, len(args) == 0 && op == "")
			if i = next; op == "" {
				args = append(args, act.Word{Text: word, At: -1, Glob: strings.ContainsAny(word, "*?")})
				continue
			}
			files = append(files, act.Redir{Op: op, File: w.argWord(word, 0)})
			op = ""
		}
	}
	return args, files
}

// redirection is the sign of one at i, and the index after it; of one to another output
// the sign is none.
func redirection(text string, i int) (string, int) {
	op := text[i : i+1]
	if i++; i < len(text) && text[i] == '>' {
		op, i = ">>", i+1
	}
	if i < len(text) && text[i] == '&' {
		return "", min(i+2, len(text))
	}
	return op, i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// cmdWord reads a word at i. The name of a command also ends where an option
// begins: del/s, cd\.
func cmdWord(text string, i int, name bool) (string, int) {
	var b strings.Builder
	quoted := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
			continue
		case quoted:
		case c == '^' && i+1 < len(text):
			if i++; text[i] == '\n' || text[i] == '\r' {
				continue
			}
		case strings.IndexByte(" \t><", c) >= 0, name && endsName(b.String(), c):
			return b.String(), i
		}
		b.WriteByte(text[i])
	}
	return b.String(), i
}

// endsName: the name of a command, of which so much is read, ends with this byte.
func endsName(name string, c byte) bool {
	switch c {
	case ',', ';', '=', '(':
		return true
	case '/':
		return name != "" && !strings.ContainsAny(name, `:/\.`)
	case '\\':
		return strings.EqualFold(name, "cd")
	case '.':
		return strings.EqualFold(name, "cd") || strings.EqualFold(name, "echo")
	}
	return false
}

// cmdExpand replaces variables: %A%, !A!, %A:~1,2%, %A:x=y%.
func (w *winShell) cmdExpand(text string) string {
	if !strings.ContainsAny(text, "%!") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text) && b.Len() < scan.MaxText; i++ {
		if strings.HasPrefix(text[i:], "%%") { // %%i of a loop in a file
			i++
		}
		if c := text[i]; c == '%' || c == '!' {
			if v, n := w.cmdVariable(text[i:], c); n > 0 {
				b.WriteString(v)
				i += n - 1
				continue
			}
		}
		b.WriteByte(text[i])
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

// cmdNamed is the value of what is between two marks: a name, and what of its value.
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
	j, how := 1, strings.HasPrefix(text, "%~")
	if how {
		rest := strings.TrimLeft(text[2:], "fdpnxsatz")
		if j = len(text) - len(rest); rest != "" && isDigit(rest[0]) {
			return ".", j + 1
		}
		if j > 2 && (rest == "" || !scan.IsNameByte(rest[0])) {
			j-- // the last of the letters is the name
		}
	}
	if j >= len(text) || !scan.IsNameByte(text[j]) {
		return "", 0
	}
	if v, ok := w.vars["%"+text[j:j+1]]; ok {
		return v.str(), j + 1
	}
	if alone := j+1 >= len(text) || !scan.IsNameByte(text[j+1]); alone && isDigit(text[j]) {
		return string(scan.Hole), j + 1
	}
	return "", 0
}

// cmdValue is the value of a variable of cmd.
func (w *winShell) cmdValue(name string) (string, bool) {
	if v, ok := w.sh.Vars[w.variable(name)]; ok && len(v) == 1 {
		return v[0].Text, true
	}
	name = strings.ToLower(name)
	if v := w.e.Windows.Env.Get(name); v != "" {
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
	if open < 0 {
		return
	}
	low, end := strings.ToLower(text), matchingParen(text, open)
	do := strings.Index(low[min(end, len(low)):], "do")
	if do < 0 || w.running >= scan.MaxDepth {
		return
	}
	head, list, body := low[:open], strings.TrimSpace(text[open+1:end]), strings.TrimSpace(text[end+do+2:])
	name := byte(0)
	if i := strings.LastIndexByte(head, '%'); i >= 0 && i+1 < len(head) {
		name = text[i+1]
	}
	values := w.cmdForWords(head, list)
	if strings.Contains(head, "/f") {
		values = w.cmdForLines(head, list)
	}
	for i, v := range values {
		if i > 0 && !w.round() {
			break
		}
		for n, one := range v.list() { // tokens=1,2 fill %a, %b
			if name != 0 {
				w.vars["%"+string(name+byte(n%26))] = one
			}
		}
		w.cmdInside(body)
	}
}

// unknownOutput is the unknown values that a loop goes through.
func unknownOutput(t act.Taint) psValue {
	v := psUnknown(t)
	v.output = true
	return v
}

// cmdForWords are the values of a loop through words, or files below a folder.
func (w *winShell) cmdForWords(head, list string) (out []psValue) {
	folder := ""
	if _, rest, ok := strings.Cut(head, "/r"); ok {
		if f := strings.Fields(rest); len(f) > 0 && f[0][0] != '%' && f[0] != "." {
			folder = strings.Trim(f[0], `"`) + `\`
		}
	}
	for _, t := range strings.FieldsFunc(w.cmdExpand(list), func(r rune) bool { return strings.ContainsRune(" ,;\t", r) }) {
		if t = strings.Trim(t, `"`); !strings.Contains(t, `\`) {
			t = folder + t
		}
		out = append(out, psString(t))
	}
	if strings.Contains(head, "/l") || len(out) == 0 {
		return []psValue{unknownOutput(0)}
	}
	return out
}

// cmdForLines are the values of a loop through the lines of a text, of what a command
// prints, or of a file.
func (w *winShell) cmdForLines(head, list string) []psValue {
	var f act.Flow
	switch {
	case len(list) > 1 && (list[0] == '\'' || list[0] == '`'):
		f = w.cmdOutput(strings.Trim(list, "'`"))
	case len(list) > 1 && list[0] == '"' && !strings.Contains(head, "usebackq"):
		f = act.Flow{Known: true, Word: act.Word{Text: strings.Trim(w.cmdExpand(list), `"`)}}
	default:
		f = w.e.ReadFile(w.sh, w.argWord(strings.Trim(list, `"`), 0))
	}
	if !f.Known || strings.TrimSpace(f.Word.Text) == "" {
		if f.Known {
			f.Taint = 0
		}
		v := unknownOutput(f.Taint)
		return []psValue{psListOf([]psValue{v, v, v})}
	}
	return cmdTokens(head, f.Word.Text)
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

// cmdTokens parts lines by "tokens=… delims=…".
func cmdTokens(head, text string) []psValue {
	delims, tokens := " \t", "1"
	if _, rest, ok := strings.Cut(head, "delims="); ok {
		delims, _, _ = strings.Cut(rest, `"`)
		delims, _, _ = strings.Cut(delims, " tokens=")
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
		if chosen := chooseTokens(tokens, parts, line); len(chosen) > 0 && len(out) < scan.MaxLoop {
			out = append(out, psListOf(chosen))
		}
	}
	return out
}

// chooseTokens are those parts of a line that "1,3" or "*" name.
func chooseTokens(tokens string, parts []string, line string) (chosen []psValue) {
	for t := range strings.SplitSeq(tokens, ",") {
		if n, ok := psString(t).int(); ok && n >= 1 && n <= len(parts) {
			chosen = append(chosen, psString(parts[n-1]))
		} else if strings.HasSuffix(t, "*") {
			chosen = append(chosen, psString(line))
		}
	}
	return chosen
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
	first, rest := nextWord(rest)
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(first) {
	case "exist", "defined", "errorlevel", "cmdextversion":
		_, rest = nextWord(rest)
	default:
		if !strings.Contains(first, "==") { // a == b, a equ b
			_, rest = nextWord(rest)
			_, rest = nextWord(rest)
		} else if strings.HasSuffix(first, "==") {
			_, rest = nextWord(rest)
		}
	}
	w.cmdInside(strings.ReplaceAll(scan.ReplaceFold(rest, ") else ", ") & "), ")else", ") & "))
}

// nextWord is the word that a text begins with, and what is after it.
func nextWord(text string) (string, string) {
	text = strings.TrimSpace(text)
	word, next := cmdWord(text, 0, false)
	return word, text[next:]
}
