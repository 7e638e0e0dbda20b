package windows

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// These rules of cmd matter here: "&", "|" and parentheses outside quotes separate commands, "^"
// escapes, and %NAME% and !NAME! are replaced before the text is split into words.

// cmdReader splits a text of cmd into commands.
type cmdReader struct {
	w    *winShell
	text string
	i    int
	deep int // number of open parentheses
}

// cmdCall is one command as written.
type cmdCall struct {
	text     string
	from, to int
	next     byte // the byte that ends it: '|', '&' …
}

// runCmd judges the commands of a cmd text.
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

// command returns the next command of the text, and false at the end.
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

// close updates the number of open parentheses after the byte c.
func (r *cmdReader) close(c byte) {
	if c == ')' {
		r.deep = max(r.deep-1, 0)
	}
}

// end returns the end of the command at i. A for or if includes its body.
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

// ends reports whether the byte at j ends a command. long means a for or if, which only a line end
// or ")" ends. The "&" of 2>&1 does not end a command.
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

// cmdCommand judges one command and returns its output.
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

// cmdWrite writes the output of a command to the files of its redirections.
func (w *winShell) cmdWrite(files []act.Redir, out act.Flow) {
	for _, f := range files {
		if name := f.File.Text; f.Op != "<" && name != "" && name[0] != '&' && name != "/dev/null" {
			at := *w.src
			w.sh.Src = &at
			w.sh.Write(f, out)
		}
	}
}

// cmdInside judges a cmd text inside another one, up to the nesting limit.
func (w *winShell) cmdInside(text string) {
	if w.running < scan.MaxDepth {
		w.running++
		w.runCmd(text)
		w.running--
	}
}

// cmdWords splits a command into its words and its redirections.
func (w *winShell) cmdWords(text string) (args []act.Word, files []act.Redir) {
	op := ""
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\t' || len(args) <= 1 && op == "" && strings.IndexByte(",;=", c) >= 0:
			i++
		case c == '>' || c == '<':
			op, i = redirection(text, i)
		case isDigit(c) && i+1 < len(text) && strings.IndexByte("<>", text[i+1]) >= 0 && (i == 0 || text[i-1] == ' '):
			i++ // skip the number of the redirected output
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

// redirection returns the operator of the redirection at i, and the index after it. The operator is
// "" if it redirects to another output, as in >&1.
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

// cmdWord reads the word at i. name means that it is the name of a command, which also ends where
// an option begins: del/s, cd\.
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

// endsName reports whether the byte c ends the name of a command. name is the part before c.
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
		if strings.HasPrefix(text[i:], "%%") { // in a batch file, %%i is a loop variable
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

// cmdVariable returns the value of the variable at the start of the text, and its length as
// written. The length is 0 if there is no variable.
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

// cmdNamed returns the value for the text between two marks: the name of a variable, with or
// without a substring or replacement.
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

// cmdParameter returns the value of %i, %~fi or %1, and its length as written.
func (w *winShell) cmdParameter(text string) (string, int) {
	j, how := 1, strings.HasPrefix(text, "%~")
	if how {
		rest := strings.TrimLeft(text[2:], "fdpnxsatz")
		if j = len(text) - len(rest); rest != "" && isDigit(rest[0]) {
			return ".", j + 1
		}
		if j > 2 && (rest == "" || !scan.IsNameByte(rest[0])) {
			j-- // the last letter is the name
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

// cmdValue returns the value of a variable, and false if it is not set. The value may be unknown.
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

// cmdSlice evaluates %V:~start,length% and %V:from=to%. how is the text after the ":".
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

// cmdFor judges the body of a for loop, once for each known value, or once with an unknown value.
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
		for n, one := range v.list() { // tokens=1,2 sets %a and %b
			if name != 0 {
				w.vars["%"+string(name+byte(n%26))] = one
			}
		}
		w.cmdInside(body)
	}
}

// unknownOutput returns an unknown value that is the output of a command.
func unknownOutput(t act.Taint) psValue {
	v := psUnknown(t)
	v.output = true
	return v
}

// cmdForWords returns the values of a for loop over words, or over files below a folder.
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

// cmdForLines returns the values of a for /f loop over the lines of a text, of a command's output,
// or of a file.
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

// matchingParen returns the index of the parenthesis that closes the one at i, or the length of
// the text.
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

// cmdTokens splits each line of the text by the options "tokens=… delims=…" of for /f.
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

// chooseTokens returns the parts of a line that tokens selects, as in "1,3". "*" selects the whole
// line.
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

// cmdOutput judges a text of cmd and returns the output of its last command.
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

// cmdIf judges both branches of an if, because the condition is not evaluated.
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
		if !strings.Contains(first, "==") { // the condition has the form a == b or a equ b
			_, rest = nextWord(rest)
			_, rest = nextWord(rest)
		} else if strings.HasSuffix(first, "==") {
			_, rest = nextWord(rest)
		}
	}
	w.cmdInside(strings.ReplaceAll(scan.ReplaceFold(rest, ") else ", ") & "), ")else", ") & "))
}

// nextWord returns the first word of a text, and the text after it.
func nextWord(text string) (string, string) {
	text = strings.TrimSpace(text)
	word, next := cmdWord(text, 0, false)
	return word, text[next:]
}
