package minor

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Settings files contain command lines as the values of keys: "run:", "command =", "ExecStart=".
// The file reads.json lists these keys. For YAML, TOML and INI files runSettings walks over the
// lines, for JSON files over the tree.

// openLine is a line that encloses the current line of the walk: a key with a smaller indent, or a
// section.
type openLine struct {
	indent  int    // indent of the line, in bytes; -1 for the head of a section
	key     string // key of the line, or name of the section
	section bool   // the keys below it are names of commands
	command bool   // the text below it is a command
}

// runSettings judges the values of a settings file that are command lines.
func runSettings(sh *interp.Process) {
	if strings.HasPrefix(strings.TrimSpace(sh.Src.Text), "{") {
		if root, _ := tree.JSON(sh.Src.Text); root != nil {
			settingsNode(sh, root, false)
			return
		}
	}
	var open []openLine
	goals := goalsOf(sh)
	sh.Env.EachLine(sh.Src.Text, "\n", func(from, to int) {
		line := sh.Src.Text[from:to]
		text := strings.TrimLeft(line, " \t")
		if text == "" || text[0] == '#' {
			return
		}
		if name, ok := sectionName(text); ok {
			open = []openLine{{indent: -1, key: name, section: sh.Env.CommandSections.Get(strings.ToLower(name))}}
			return
		}
		indent := len(line) - len(text)
		for strings.HasPrefix(text, "- ") {
			text = strings.TrimLeft(text[2:], " ")
			indent = max(indent, len(line)-len(text)-1)
		}
		for len(open) > 0 && open[len(open)-1].indent >= indent {
			open = open[:len(open)-1]
		}
		if len(goals) == 0 || len(open) < 2 || !open[0].section || goals[open[1].key] {
			open = settingLine(sh, open, openLine{indent: indent}, text, to)
		}
	})
}

// sectionName returns the last part of the name of a section, "b" for [a.b], and false if the line
// is not the head of a section.
func sectionName(text string) (string, bool) {
	text = strings.TrimSpace(text)
	if text[0] != '[' || text[len(text)-1] != ']' || strings.ContainsAny(text, ",\"'") {
		return "", false
	}
	name := strings.Trim(text, "[] ")
	return name[strings.LastIndexAny(name, ".:")+1:], true
}

// settingLine judges one line of a settings file. The parameter "open" lists the lines that
// enclose it; settingLine returns this list for the next line.
func settingLine(sh *interp.Process, open []openLine, s openLine, text string, to int) []openLine {
	above := openLine{}
	if len(open) > 0 {
		above = open[len(open)-1]
	}
	innerSettings(sh, text, to)
	key, value, ok := keyed(text)
	if !ok {
		if above.command {
			carriedValue(sh, to-len(text), to, text)
		}
		return open
	}
	s.key = key
	l := strings.ToLower(key)
	s.section = sh.Env.CommandSections.Get(l)
	s.command = sh.Env.CommandKeys.Get(l) || above.section || above.command && strings.Contains(text, "://") // the ":" is part of a URL
	if above.command && !s.command && strings.IndexByte(key, ' ') > 0 {
		value, s.command = text, true // a command line that contains a colon
	}
	switch strings.TrimRight(value, "-+") {
	case "", "|", ">":
		return append(open, s)
	}
	if s.command {
		carriedValue(sh, to-len(value), to, value)
	}
	return append(open, s)
}

// innerSettings judges quoted command lines that follow a key inside a line: {run: "x"},
// genrule(cmd = "x"), local-exec { command = "x" }.
func innerSettings(sh *interp.Process, text string, to int) {
	for i := 1; i < len(text) && sh.Env.Budget.Spend(1); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			return
		}
		if sh.Env.CommandKeys.Get(strings.ToLower(keyBefore(text[:i]))) {
			from := to - len(text) + i
			carriedValue(sh, from, from+end-i+1, text[i:end+1])
		}
		i = end
	}
}

// keyBefore returns the key in front of the ":" or "=" at the end of a text, or "" if the text
// ends otherwise.
func keyBefore(text string) string {
	text = strings.TrimRight(text, " [")
	if text == "" || strings.IndexByte(":=", text[len(text)-1]) < 0 {
		return ""
	}
	text = strings.TrimRight(text[:len(text)-1], " \"'")
	from := len(text)
	for from > 0 && (scan.IsNameByte(text[from-1]) || text[from-1] == '-' || text[from-1] == '.') {
		from--
	}
	return text[from:]
}

// keyed splits "key: value" and "key = value".
func keyed(text string) (key, value string, ok bool) {
	i := strings.IndexAny(text, ":=")
	if i < 1 || text[i] == ':' && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\t' {
		return "", "", false
	}
	return strings.Trim(strings.TrimSpace(text[:i]), `"'`), strings.TrimSpace(text[i+1:]), true
}

// carriedValue judges a value that is a command: a quoted string, bare text, or a list of words.
func carriedValue(sh *interp.Process, from, to int, value string) {
	value = strings.TrimRight(strings.TrimSpace(value), ",")
	if list, ok := strings.CutPrefix(value, "["); ok {
		var words []string
		for word := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			words = append(words, strings.Trim(strings.TrimSpace(word), `"'`))
		}
		if len(words) > 1 && strings.IndexByte(words[0], ' ') < 0 {
			sh.Behalf(sh.Src, "setting").Start(wordsAt(words, sh.Src.Word(from, to)), &act.Invocation{From: from, To: to})
			return
		}
		value = strings.Join(words, "\n")
	}
	if q := value[:min(1, len(value))]; q == `"` || q == "'" {
		end := tokens.ClosingQuote(value, 0)
		if end < 0 {
			end = len(value)
		}
		value = strings.ReplaceAll(value[1:end], `\`+q, q)
	}
	value = strings.TrimLeft(value, "@-+!") // systemd and make allow these signs before a command
	if value != "" {
		sh.Carried(from, to, value, "setting")
	}
}

// wordsAt returns words with these texts. They get the span and the taint of the word that
// contains them.
func wordsAt(texts []string, in act.Word) []act.Word {
	out := make([]act.Word, len(texts))
	for i, text := range texts {
		out[i] = act.Word{Text: text, At: -1, Span: in.Span, Taint: in.Taint, Glob: strings.ContainsAny(text, "*?")}
	}
	return out
}

// goalsOf returns the tasks that the command line names and the text defines, and the tasks that
// any task depends on. It returns nil if no command line is known.
func goalsOf(sh *interp.Process) map[string]bool {
	if sh.Carrier == nil {
		return nil
	}
	goals := map[string]bool{}
	for _, w := range append([]act.Word{{Text: "default"}}, sh.Carrier.Operands...) {
		if strings.Contains(sh.Src.Text, w.Text+":") {
			goals[w.Text] = true
		}
	}
	for _, mark := range [...]string{"task: ", "deps: [", "depends: ["} { // add every dependency in the text, whichever task needs it
		for rest := sh.Src.Text; ; {
			i := strings.Index(rest, mark)
			if i < 0 {
				break
			}
			rest = rest[i+len(mark):]
			line, _, _ := strings.Cut(rest, "\n")
			for name := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" ,[]{}\"'", r) }) {
				goals[name] = true
			}
		}
	}
	return goals
}

// settingsNode judges the command lines in a JSON tree. command is true if n itself is the value
// of a command key.
func settingsNode(sh *interp.Process, n *tree.Node, command bool) {
	if n == nil || !sh.Env.Budget.Spend(1) {
		return
	}
	switch {
	case n.Kind == '"' && command:
		sh.Carried(n.Start, n.End, n.Text, "setting")
	case command && commandWords(sh.Env, n):
		var words []act.Word
		for _, k := range n.Kids {
			words = append(words, interp.Piece(sh.Src, k))
		}
		sh.Behalf(sh.Src, "setting").Start(words, &act.Invocation{From: n.Start, To: n.End})
	default:
		for i, k := range n.Kids {
			key := strings.ToLower(n.KeysAt(i))
			named := sh.Env.CommandKeys.Get(key) || sh.Env.CommandSections.Get(key)
			settingsNode(sh, k, named || command && (n.Kind == '[' || k.Kind != '{'))
		}
	}
}

// commandWords reports whether the node is a list of strings that are the words of one command.
func commandWords(e *interp.Env, n *tree.Node) bool {
	return n.Kind == '[' && len(n.Kids) > 1 && tree.AllStrings(n) && e.Acts(n.Kids[0].Text)
}

// runLines judges the command in each line of the form "name: command".
func runLines(sh *interp.Process) {
	sh.Env.EachLine(sh.Src.Text, "\n", func(from, to int) {
		if _, value, ok := strings.Cut(sh.Src.Text[from:to], ":"); ok {
			sh.Carried(to-len(value), to, strings.TrimSpace(value), "setting")
		}
	})
}

// runScripts judges the scripts of a package.json or a similar file that the command line names,
// or that an installation runs automatically.
func runScripts(sh *interp.Process) {
	root, _ := tree.JSON(sh.Src.Text)
	scripts := root.Get("scripts", "tasks")
	if scripts == nil {
		return
	}
	for i, k := range scripts.Kids {
		if !runsScript(sh.Env, sh.Carrier, scripts.Keys[i]) {
			continue
		}
		if k.Kind == '{' {
			k = k.Get("command")
		}
		settingsNode(sh, k, true)
	}
}

// runsScript reports whether the command line runs the script with this name.
func runsScript(e *interp.Env, v *act.Invocation, script string) bool {
	named, installs := false, true
	for _, w := range v.Operands {
		switch w.Text {
		case "t", "tst":
			w.Text = "test"
		case "run", "run-script", "test", "start", "stop", "restart", "exec", "task", "x", "dlx":
			installs = false
		}
		named = named || w.Text == script || "pre"+w.Text == script || "post"+w.Text == script || w.Glob && paths.GlobMatch(w.Text, script) || !w.Known()
	}
	return named || installs && slices.Contains(e.Lifecycle, script)
}

// runCMake judges the programs that a CMake text runs and the files that it changes.
func runCMake(sh *interp.Process) {
	text := sh.Src.Text
	for at := 0; at < len(text) && sh.Env.Budget.Spend(1); {
		i := strings.IndexByte(text[at:], '(')
		if i < 0 {
			return
		}
		name := strings.ToLower(text[at+strings.LastIndexAny(text[at:at+i], " \t\n)#")+1 : at+i])
		from := at + i + 1
		to := at + i + tokens.Balanced(text[at+i:])
		if at = to + 1; to > len(text) {
			to = len(text)
		}
		words := cmakeWords(sh.Src.Word(min(from, to), to))
		switch {
		case name == "file" && len(words) > 1:
			if op, known := cmakeFile[words[0].Text]; known {
				if op == act.Overwrite || op == act.AppendTo { // the content follows the name
					words = words[:2]
				}
				sh.Emit(sh.Src, "cmake file", act.Effect{Op: op, On: words[1:], From: from, To: to})
			}
		case name == "exec_program" && len(words) > 0: // the second word may be a folder
			sh.Carried(from, to, act.JoinWords(words, sh.Src).Text, name)
		default:
			cmakeCommands(sh, sh.Src, from, to, words)
		}
	}
}

// cmakeFile maps the forms of file() that change files to their effects.
var cmakeFile = map[string]act.Op{"REMOVE_RECURSE": act.DeleteTree, "REMOVE": act.DeleteFileAnyway, "WRITE": act.Overwrite, "APPEND": act.AppendTo}

// cmakeCommands judges the command after each COMMAND, up to the next keyword.
func cmakeCommands(sh *interp.Process, src *act.Source, from, to int, words []act.Word) {
	for i, w := range words {
		if w.Text != "COMMAND" {
			continue
		}
		end := i + 1
		for end < len(words) && !cmakeKeyword(words[end].Text) {
			end++
		}
		sh.Behalf(src, "cmake").Start(words[i+1:end], &act.Invocation{From: from, To: to})
	}
}

// cmakeKeyword reports whether a word is a keyword in capitals, such as WORKING_DIRECTORY or
// COMMENT.
func cmakeKeyword(w string) bool {
	return len(w) > 3 && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// cmakeWords returns the arguments of a CMake command without their quotes. It expands the
// variables for the home and build folders; every other variable becomes an unknown part.
func cmakeWords(in act.Word) []act.Word {
	text := strings.NewReplacer("$ENV{HOME}", "~", "${CMAKE_COMMAND}", "cmake", "$ENV{", "${", "\n", " ",
		"${CMAKE_BINARY_DIR}", "build", "${CMAKE_CURRENT_BINARY_DIR}", "build", "${PROJECT_BINARY_DIR}", "build").Replace(in.Text)
	words := wordsAt(scan.OptionWords(text), in)
	for i := range words {
		w := &words[i]
		for at := strings.Index(w.Text, "${"); at >= 0; at = strings.Index(w.Text, "${") {
			name, rest, _ := strings.Cut(w.Text[at+2:], "}")
			w.Text, w.Var = w.Text[:at]+string(scan.Hole)+rest, name
		}
		if w.Lone = w.Text == string(scan.Hole); !w.Lone {
			w.Var = ""
		}
	}
	return words
}

// runFunctions judges a shell text such as a PKGBUILD, whose functions another program calls one
// by one.
func runFunctions(sh *interp.Process) {
	text := sh.Src.Text
	for line := range strings.Lines(sh.Src.Text) {
		if name, _, ok := strings.Cut(line, "()"); ok && act.SyntaxName(strings.TrimSpace(name)) {
			text += "\n" + strings.TrimSpace(name)
		}
	}
	sh.Carried(0, len(sh.Src.Text), text, "functions")
}

// runXML judges the programs that an XML build file starts: executable="rm" with its arguments,
// <executable>, Command="rm -rf x", and the strings of a property list.
func runXML(sh *interp.Process) {
	x := xmlWalk{sh: sh}
	text := sh.Src.Text
	for at := 0; at < len(text) && sh.Env.Budget.Spend(1); {
		open := strings.IndexByte(text[at:], '<')
		if open < 0 {
			break
		}
		from := at + open
		end := from + strings.IndexByte(text[from:]+">", '>')
		tag := text[from+1 : min(end, len(text))]
		at = min(end+1, len(text))
		content, _, _ := strings.Cut(text[at:], "<")
		x.content(tag, strings.TrimSpace(content), from)
		for _, key := range [...]string{"executable", "Command", "commandline", "value", "line", "file"} {
			if value, ok := attribute(tag, key); ok {
				x.named(key, value, from, at)
			}
		}
		switch strings.ToLower(tag) {
		case "/exec", "/configuration", "/execution", "/array", "/java":
			x.run(at)
		}
	}
	x.run(len(text))
}

// xmlWalk collects the words of one program. start is the position of the first word.
type xmlWalk struct {
	sh    *interp.Process
	words []string
	start int
}

// run judges the collected words as a command and clears them.
func (x *xmlWalk) run(to int) {
	if len(x.words) > 0 {
		x.sh.Carried(x.start, to, strings.Join(x.words, " "), "xml")
	}
	x.words = nil
}

// content collects the text of an element that names a program or an argument.
func (x *xmlWalk) content(tag, value string, from int) {
	if value == "" || strings.HasPrefix(tag, "/") {
		return
	}
	name, _, _ := strings.Cut(strings.Trim(tag, "/"), " ")
	switch strings.ToLower(name) {
	case "executable", "commandlineargs", "argument", "arg", "string":
		if len(x.words) == 0 {
			x.start = from
		}
		x.words = append(x.words, unquoteXML(value))
	}
}

// named handles an attribute of the tag at [from, to): it judges a whole command line, starts a
// new program, or collects an argument.
func (x *xmlWalk) named(key, value string, from, to int) {
	switch {
	case key == "Command":
		x.sh.Carried(from, to, value, "xml")
	case key == "executable":
		x.run(from)
		x.start, x.words = from, []string{value}
	case len(x.words) > 0:
		x.words = append(x.words, value)
	}
}

// attribute returns the value of an attribute of a tag, and false if the tag does not have it.
func attribute(tag, key string) (string, bool) {
	i := strings.Index(tag, " "+key+"=")
	if i < 0 || i+len(key)+2 >= len(tag) {
		return "", false
	}
	rest := tag[i+len(key)+2:]
	end := strings.IndexByte(rest[1:], rest[0])
	if end < 0 {
		return "", false
	}
	return unquoteXML(rest[1 : 1+end]), true
}

func unquoteXML(text string) string {
	return strings.NewReplacer("&quot;", `"`, "&apos;", "'", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}
