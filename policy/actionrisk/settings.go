package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Files of settings hold command lines as the values of keys: "run:", "command =",
// "ExecStart=". Which keys those are stands in reads.json; the files are YAML, TOML,
// INI or JSON, and one walk over lines and one over trees do for all of them.

// openLine is where the walk over the lines stands.
type openLine struct {
	indent  int    // of the line
	key     string // last key of this indent
	section bool   // what stands deeper is a command by name
	command bool   // what stands deeper is a command
}

// runSettings runs the values of a text of settings that are command lines.
func (e *engine) runSettings(sh *shell, src *source) {
	if text := strings.TrimSpace(src.text); strings.HasPrefix(text, "{") {
		if root, _ := parseJSON(src.text); root != nil {
			e.settingsNode(sh, src, root, false)
			return
		}
	}
	var open []openLine
	goals := e.goalsOf(sh, src)
	e.eachLine(src.text, "\n", func(from, to int) {
		line := src.text[from:to]
		text := strings.TrimLeft(line, " \t")
		indent := len(line) - len(text)
		if text == "" || text[0] == '#' {
			return
		}
		if strings.HasPrefix(text, "[") && strings.HasSuffix(strings.TrimSpace(text), "]") && !strings.ContainsAny(text, ",\"'") {
			name := strings.Trim(strings.TrimSpace(text), "[] ")
			last := name[strings.LastIndexAny(name, ".:")+1:]
			open = []openLine{{indent: -1, key: last, section: e.commandSections[strings.ToLower(last)]}}
			return
		}
		for strings.HasPrefix(text, "- ") {
			text = strings.TrimLeft(text[2:], " ")
			indent = max(indent, len(line)-len(text)-1)
		}
		for len(open) > 0 && open[len(open)-1].indent >= indent {
			open = open[:len(open)-1]
		}
		if len(goals) > 0 && len(open) > 1 && open[0].section && !goals[open[1].key] {
			return
		}
		open = e.settingLine(sh, src, open, openLine{indent: indent}, text, to)
	})
}

// settingLine judges one line; it gives the lines that are open behind it.
func (e *engine) settingLine(sh *shell, src *source, open []openLine, s openLine, text string, to int) []openLine {
	above := openLine{}
	if len(open) > 0 {
		above = open[len(open)-1]
	}
	e.innerSettings(sh, src, text, to)
	key, value, ok := keyed(text)
	if !ok {
		if above.command {
			e.carriedValue(sh, src, to-len(text), to, text)
		}
		return open
	}
	s.key = key
	l := strings.ToLower(key)
	s.section = e.commandSections[l]
	s.command = e.commandKeys[l] || above.section || above.command && strings.Contains(text, "://") // an URL's colon
	if above.command && !s.command && strings.IndexByte(key, ' ') > 0 {
		value, s.command = text, true // a command line with a colon in it
	}
	switch strings.TrimRight(value, "-+") {
	case "", "|", ">":
		return append(open, s)
	}
	if s.command {
		e.carriedValue(sh, src, to-len(value), to, value)
	}
	return append(open, s)
}

// innerSettings runs the quoted command lines that stand behind a key within a line:
// {run: "x"}, genrule(cmd = "x"), local-exec { command = "x" }.
func (e *engine) innerSettings(sh *shell, src *source, text string, to int) {
	for i := 1; i < len(text) && e.budget.spend(1); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := closingQuote(text, i)
		if end < 0 {
			return
		}
		if before := strings.TrimRight(text[:i], " ["); before != "" && strings.IndexByte(":=", before[len(before)-1]) >= 0 {
			before = strings.TrimRight(before[:len(before)-1], " \"'")
			j := len(before)
			for j > 0 && (scan.IsNameByte(before[j-1]) || before[j-1] == '-' || before[j-1] == '.') {
				j--
			}
			if j > 0 && e.commandKeys[strings.ToLower(before[j:])] {
				from := to - len(text) + i
				e.carriedValue(sh, src, from, from+end-i+1, text[i:end+1])
			}
		}
		i = end
	}
}

// keyed splits "key: value" and "key = value".
func keyed(text string) (key, value string, ok bool) {
	i := strings.IndexAny(text, ":=")
	if i < 1 || text[i] == ':' && i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\t' {
		return "", "", false
	}
	return strings.Trim(strings.TrimSpace(text[:i]), `"'`), strings.TrimSpace(text[i+1:]), true
}

// carriedValue runs a value: a string, bare text, or a list of words.
func (e *engine) carriedValue(sh *shell, src *source, from, to int, value string) {
	value = strings.TrimRight(strings.TrimSpace(value), ",")
	if list, ok := strings.CutPrefix(value, "["); ok {
		var words []string
		for word := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			words = append(words, strings.Trim(strings.TrimSpace(word), `"'`))
		}
		if len(words) > 1 && strings.IndexByte(words[0], ' ') < 0 {
			for i := range words {
				words[i] = scan.Quote(words[i])
			}
			value = strings.Join(words, " ")
		} else {
			value = strings.Join(words, "\n")
		}
	}
	if q := value[:min(1, len(value))]; q == `"` || q == "'" {
		end := closingQuote(value, 0)
		if end < 0 {
			end = len(value)
		}
		value = strings.ReplaceAll(value[1:end], `\`+q, q)
	}
	value = strings.TrimLeft(value, "@-+!") // systemd's and make's marks
	if value != "" {
		e.carried(sh, src, from, to, value, "setting")
	}
}

// goalsOf are the tasks that the command line names, and those that they need, if the
// text has tasks of these names.
func (e *engine) goalsOf(sh *shell, src *source) map[string]bool {
	if sh.carrier == nil {
		return nil
	}
	goals := map[string]bool{}
	for _, w := range append([]Word{{Text: "default"}}, sh.carrier.operands...) {
		if strings.Contains(src.text, w.Text+":") {
			goals[w.Text] = true
		}
	}
	for _, mark := range [...]string{"task: ", "deps: [", "depends: ["} { // what they need is not followed exactly
		for rest := src.text; ; {
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

// settingsNode runs the command lines of a tree.
func (e *engine) settingsNode(sh *shell, src *source, n *jsonNode, command bool) {
	if n == nil || !e.budget.spend(1) {
		return
	}
	switch {
	case n.kind == '"' && command:
		e.carried(sh, src, n.start, n.end, n.text, "setting")
	case n.kind == '[' && command && len(n.kids) > 1 && allStrings(n) && e.acts(n.kids[0].text):
		words := make([]string, len(n.kids))
		for i, k := range n.kids {
			words[i] = scan.Quote(k.text)
		}
		e.carried(sh, src, n.start, n.end, strings.Join(words, " "), "setting")
	default:
		for i, k := range n.kids {
			key := ""
			if i < len(n.keys) {
				key = strings.ToLower(n.keys[i])
			}
			e.settingsNode(sh, src, k, command && n.kind == '[' || e.commandKeys[key] || e.commandSections[key] || command && k.kind != '{')
		}
	}
}

// runLines runs each line of the form "name: command".
func (e *engine) runLines(sh *shell, src *source) {
	e.eachLine(src.text, "\n", func(from, to int) {
		if _, value, ok := strings.Cut(src.text[from:to], ":"); ok {
			e.carried(sh, src, to-len(value), to, strings.TrimSpace(value), "setting")
		}
	})
}

// runScripts runs the scripts of a package.json or its like that the command line
// names, and those that an installation runs by itself.
func (e *engine) runScripts(sh *shell, src *source) {
	root, _ := parseJSON(src.text)
	scripts := root.get("scripts", "tasks")
	if scripts == nil {
		return
	}
	for i, k := range scripts.kids {
		if !e.runsScript(sh.carrier, scripts.keys[i]) {
			continue
		}
		if k.kind == '{' {
			k = k.get("command")
		}
		e.settingsNode(sh, src, k, true)
	}
}

// runsScript: the command line runs the script of this name.
func (e *engine) runsScript(v *invocation, script string) bool {
	named, installs := false, true
	for _, w := range v.operands {
		switch w.Text {
		case "t", "tst":
			w.Text = "test"
		case "run", "run-script", "test", "start", "stop", "restart", "exec", "task", "x", "dlx":
			installs = false
		}
		named = named || w.Text == script || "pre"+w.Text == script || "post"+w.Text == script || w.Glob && paths.GlobMatch(w.Text, script) || !w.known()
	}
	return named || installs && slices.Contains(e.lifecycle, script)
}

// runCMake runs the commands of a CMake text.
func (e *engine) runCMake(sh *shell, src *source) {
	text := src.text
	for at := 0; at < len(text) && e.budget.spend(1); {
		i := strings.IndexByte(text[at:], '(')
		if i < 0 {
			return
		}
		name := strings.ToLower(text[at+strings.LastIndexAny(text[at:at+i], " \t\n)#")+1 : at+i])
		from := at + i + 1
		to := at + i + balanced(text[at+i:])
		if at = to + 1; to > len(text) {
			to = len(text)
		}
		words := cmakeWords(text[min(from, to):to])
		switch {
		case name == "file" && len(words) > 1 && (words[0] == "REMOVE_RECURSE" || words[0] == "REMOVE"):
			flag := map[string]string{"REMOVE_RECURSE": "rm -rf ", "REMOVE": "rm -f "}[words[0]]
			e.carried(sh, src, from, to, flag+cmakeCommand(words[1:]), "cmake file")
		case name == "file" && len(words) > 2 && (words[0] == "WRITE" || words[0] == "APPEND"):
			e.carried(sh, src, from, to, "printf x > "+cmakeCommand(words[1:2]), "cmake file")
		case name == "exec_program" && len(words) > 0:
			e.carried(sh, src, from, to, strings.Join(words, " "), name)
		default:
			e.cmakeCommands(sh, src, from, to, words)
		}
	}
}

// cmakeCommands runs what follows each COMMAND, up to the next key word.
func (e *engine) cmakeCommands(sh *shell, src *source, from, to int, words []string) {
	for i, w := range words {
		if w != "COMMAND" {
			continue
		}
		end := i + 1
		for end < len(words) && !cmakeKeyword(words[end]) {
			end++
		}
		if end > i+1 {
			e.carried(sh, src, from, to, cmakeCommand(words[i+1:end]), "cmake")
		}
	}
}

// cmakeKeyword: a word in capitals names what follows: WORKING_DIRECTORY, COMMENT.
func cmakeKeyword(w string) bool {
	return len(w) > 3 && strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// cmakeWords are the arguments of a command, without their quotes; the home folder is
// known, other variables become the shell's.
func cmakeWords(text string) []string {
	return scan.OptionWords(strings.NewReplacer("$ENV{HOME}", "~", "${CMAKE_COMMAND}", "cmake", "$ENV{", "${", "\n", " ",
		"${CMAKE_BINARY_DIR}", "build", "${CMAKE_CURRENT_BINARY_DIR}", "build", "${PROJECT_BINARY_DIR}", "build").Replace(text))
}

// cmakeCommand joins words for a shell, quoted but for the variables in them.
func cmakeCommand(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if strings.Contains(w, "${") || strings.ContainsAny(w, "*?") && !strings.ContainsAny(w, " '\"") {
			out[i] = w
		} else {
			out[i] = scan.Quote(w)
		}
	}
	return strings.Join(out, " ")
}

// shebang is the language of a text by its "#!" line, else that of the shell.
func (e *engine) shebang(line string) string {
	lang := "shell"
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return lang
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return lang
	}
	name := scan.Base(words[0])
	if name == "env" && len(words) > 1 {
		name = scan.Base(words[len(words)-1])
	}
	for _, w := range e.wrappers[name] {
		if w.File && w.Lang != "" {
			lang = w.Lang
		}
	}
	return lang
}

// runFunctions runs a text of functions that its reader calls one by one: a PKGBUILD.
func (e *engine) runFunctions(sh *shell, src *source) {
	text := src.text
	for line := range strings.Lines(src.text) {
		if name, _, ok := strings.Cut(line, "()"); ok && syntaxName(strings.TrimSpace(name)) {
			text += "\n" + strings.TrimSpace(name)
		}
	}
	e.carried(sh, src, 0, len(src.text), text, "functions")
}

// runXML runs the programs that a build in XML starts: executable="rm" with its
// arguments, <executable>, Command="rm -rf x", the strings of a property list.
func (e *engine) runXML(sh *shell, src *source) {
	var words []string
	start := 0
	run := func(to int) {
		if len(words) > 0 {
			e.carried(sh, src, start, to, strings.Join(words, " "), "xml")
		}
		words = nil
	}
	text := src.text
	for at := 0; at < len(text) && e.budget.spend(1); {
		open := strings.IndexByte(text[at:], '<')
		if open < 0 {
			break
		}
		from := at + open
		end := from + strings.IndexByte(text[from:]+">", '>')
		tag := text[from+1 : min(end, len(text))]
		at = min(end+1, len(text))
		content := text[at : at+strings.IndexByte(text[at:]+"<", '<')]
		name, _, _ := strings.Cut(strings.Trim(tag, "/"), " ")
		switch strings.ToLower(name) {
		case "executable", "commandlineargs", "argument", "arg", "string":
			if value := strings.TrimSpace(content); value != "" && tag[0] != '/' {
				if len(words) == 0 {
					start = from
				}
				words = append(words, unquoteXML(value))
			}
		}
		for _, key := range [...]string{"executable", "Command", "commandline", "value", "line", "file"} {
			value, ok := attribute(tag, key)
			switch {
			case !ok:
			case key == "Command":
				e.carried(sh, src, from, at, value, "xml")
			case key == "executable":
				run(from)
				start, words = from, []string{value}
			case len(words) > 0:
				words = append(words, value)
			}
		}
		switch strings.ToLower(tag) {
		case "/exec", "/configuration", "/execution", "/array", "/java":
			run(at)
		}
	}
	run(len(text))
}

// attribute is the value of an attribute of a tag.
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
