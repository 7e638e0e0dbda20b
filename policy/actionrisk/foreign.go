package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Program texts of languages that have no scanner here: R, Julia, Tcl, Elixir,
// Erlang, Groovy, Scala, Scheme and the rest. What they share is enough: a string
// that is a command line, in a text that starts programs, runs; a path given to a
// function that deletes trees is deleted. Everything else stays unknown, and the
// verdict says so.

// runOther judges a program text of such a language.
func (e *engine) runOther(sh *shell, src *source) {
	e.doubt("a program text in a language that is not known")
	e.loose = true
	e.raise("parse.dialect-unknown", src, 0, len(src.text), "")
	text := src.text
	if !e.budget.spend(1 + len(text)/8) {
		return
	}
	starts, feeds := startsPrograms(text), e.feedsShell(text)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '"' && c != '\'' && c != '`' {
			continue
		}
		end := closingQuote(text, i)
		if end < 0 {
			continue // an apostrophe, or the quote of a Lisp
		}
		value := text[i+1 : end]
		name := calledBefore(text[:i])
		if pathFunctions[name] {
			name = calledBefore(text[:strings.LastIndex(text[:i], name)])
		}
		switch {
		case deletesTree(name, text) || deletesTree(calledAfter(text[end+1:]), ""):
			e.carried(sh, src, i+1, end, "rm -rf "+scan.Quote(value), name)
		case starts && feeds && (strings.HasPrefix(value, "echo ") || strings.HasPrefix(value, "printf ")):
			e.carried(sh, src, i+1, end, value+" | sh", "program text")
		case starts && (e.actsText(value) || e.windowsLine(value)):
			e.carried(sh, src, i+1, end, value, "program text")
		case starts && e.acts(value) && value != "":
			if command, last := wordsFrom(text, i); last > end {
				e.carried(sh, src, i+1, last, command, "program text")
				end = last
			}
		}
		i = end
	}
	e.sendsSecret(src)
	e.deletesHome(sh, src)
	if starts || strings.Contains(text, "file delete") || strings.Contains(text, "geturl") {
		e.runTcl(sh, src)
	}
}

// pathFunctions make a path of a path; what is done is done to what they give.
var pathFunctions = scan.SetOf("expand-file-name file-name-as-directory file-truename concat path-expand normalizePath path.expand abspath expanduser joinpath")

// windowsLine: a command line for a command interpreter, or a program, of Windows.
func (e *engine) windowsLine(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name := strings.ToLower(scan.Base(first))
	return rest != "" && (windowsShell(name) != "" || e.other["program "+name])
}

// feedsShell: a string of the text is the bare name of a shell, which then reads what
// another one prints.
func (e *engine) feedsShell(text string) bool {
	for _, shell := range e.groups["shells"] {
		for _, quote := range [...]string{`"`, "'", "`"} {
			if strings.Contains(text, quote+shell+quote) {
				return true
			}
		}
	}
	return false
}

// wordsFrom joins the strings from i on that stand in one list or call: "rm", c("-rf",
// "/"). It gives the place of the last quote as well.
func wordsFrom(text string, i int) (string, int) {
	var words []string
	last := i
	for {
		end := closingQuote(text, i)
		if end < 0 {
			break
		}
		words = append(words, scan.Quote(text[i+1:end]))
		last = end
		next := strings.IndexAny(text[end+1:], "\"'`")
		if next < 0 || len(words) > 16 {
			break
		}
		between := strings.Trim(text[end+1:end+1+next], " \t\n,()[]{}:=>*|;")
		if between != "" && between != "c" && between != "args" && between != "list" && between != "Array" && between != "List" && strings.Trim(strings.ReplaceAll(between, "nil", ""), " ") != "" && between != "Seq" {
			break
		}
		i = end + 1 + next
	}
	return strings.Join(words, " "), last
}

// startsPrograms: a name of what starts programs stands in the text.
func startsPrograms(text string) bool {
	l := strings.ToLower(text)
	for _, n := range [...]string{"system", "exec", "spawn", "popen", "process", "shell", "cmd", "run", "subprocess", "open3", ".ffi("} {
		if strings.Contains(l, n) {
			return true
		}
	}
	return false
}

// deletesTree: functions that delete a folder and what is in it, by the last part
// of their name.
func deletesTree(name, text string) bool {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && name != "delete-directory/files" { // Clojure: fs/delete-tree
		name = name[i+1:]
	}
	switch name {
	case "rm_rf", "rm_rf!", "rmtree", "rm-rf", "delete-directory", "delete_directory", "deleteDirectory", "deleteRecursively", "deleteDir", "remove_dir_all", "removeDirectoryRecursive", "removeTree", "removePathForcibly", "removeItem", "del_dir_r", "delTree", "delete-directory/files", "delete-tree":
		return true
	case "Delete", "DeleteDirectory":
		return strings.Contains(text, "Directory")
	case "DeleteFolder", "deleteFolder", "deletefolder":
		return true
	case "rm", "rmdir", "unlink", "remove", "delete":
		l := strings.ToLower(text)
		return strings.Contains(l, "recursive") || strings.Contains(l, "force=true") || strings.Contains(l, "'s'")
	}
	return false
}

// calledBefore is the last part of the name that stands before an argument.
func calledBefore(text string) string {
	text = strings.TrimRight(text, " \t([,")
	if label, ok := strings.CutSuffix(text, ":"); ok { // removeItem(atPath: "x")
		text = strings.TrimRight(strings.TrimRight(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), " \t([,")
	}
	i := len(text)
	for i > 0 && (scan.IsNameByte(text[i-1]) || strings.IndexByte("-!/", text[i-1]) >= 0) {
		i--
	}
	return text[i:]
}

// calledAfter is the method called on what the argument makes: File("x").deleteDir().
func calledAfter(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t)"), ".")
	if !ok {
		return ""
	}
	for i := 0; i < len(rest); i++ {
		if !scan.IsNameByte(rest[i]) {
			return rest[:i]
		}
	}
	return rest
}

// closingQuote is where the string that opens at i ends on its line, or -1.
func closingQuote(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case '\n':
			if text[i] == '\'' {
				return -1
			}
		case text[i]:
			return j
		}
	}
	return -1
}

// runTcl runs the commands that Tcl and Expect start by words without quotes.
func (e *engine) runTcl(sh *shell, src *source) {
	client := "" // the program that text is sent to
	e.eachLine(src.text, ";\n[]{}", func(from, to int) {
		line := strings.TrimLeft(src.text[from:to], " \t")
		if rest, ok := strings.CutPrefix(line, "file delete "); ok && strings.Contains(rest, "-force") {
			rest = strings.ReplaceAll(strings.ReplaceAll(rest, "-force", ""), "--", "")
			e.carried(sh, src, from, to, "rm -rf "+rest, "file delete")
		}
		if (strings.HasPrefix(line, "eval") || strings.HasPrefix(line, "source") || strings.HasPrefix(line, "uplevel")) && strings.Contains(src.text, "geturl") {
			e.raise("rce.inline-exec", src, from, to, "")
		}
		for _, verb := range [...]string{"exec ", "spawn ", "system ", "send "} {
			if rest, ok := strings.CutPrefix(line, verb); ok {
				rest = strings.Trim(strings.TrimPrefix(rest, "-- "), `"`)
				rest = strings.TrimSuffix(strings.TrimSuffix(rest, `\n`), `\r`)
				if verb == "spawn " {
					first, _, _ := strings.Cut(rest, " ")
					client = scan.Base(first)
				}
				if e.readsStatements(client) && looksSQL(rest) && src.depth < scan.MaxDepth {
					inner := *src
					inner.text, inner.at, inner.depth = rest, -1, src.depth+1
					inner.span, _ = src.where(from, to)
					e.read("sql", &inner, &invocation{exe: client, cwd: sh.cwd, src: src})
				} else if e.actsText(rest) {
					e.carried(sh, src, from, to, rest, strings.TrimSpace(verb))
				}
			}
		}
	})
}

// eachLine calls f with the bounds of each piece between two of the separators.
func (e *engine) eachLine(text, separators string, f func(from, to int)) {
	for from := 0; from < len(text); {
		to := len(text)
		if i := strings.IndexAny(text[from:], separators); i >= 0 {
			to = from + i
		}
		if to > from && e.budget.spend(1) {
			f(from, to)
		}
		from = to + 1
	}
}

// carried interprets text[from:to] of a source as shell.
func (e *engine) carried(sh *shell, src *source, from, to int, text, via string) {
	span, _ := src.where(from, to)
	w := Word{Text: text, Span: span, At: -1}
	if src.at >= 0 && text == src.text[from:to] {
		w.At = span.Start
	}
	inner := *sh
	inner.src = src
	inner.interpret("shell", w, &invocation{exe: via, src: src, from: from, to: to, stdin: flow{known: true}}, via, nil)
}

// runSed looks for the two ways in which sed runs commands: "1e command" and
// the flag e of s.
func (e *engine) runSed(sh *shell, src *source) {
	e.unproven = e.unproven && strings.ContainsAny(src.text, "ew")
	text := src.text
	for at := 0; at < len(text); {
		end := at + strings.IndexAny(text[at:]+";", ";\n")
		line := strings.TrimLeft(text[at:min(end, len(text))], "0123456789$, \t!{")
		from := min(end, len(text)) - len(line)
		switch {
		case line == "e" && sh.carrier != nil: // runs what it reads
			e.runsInput(sh, src, from)
		case strings.HasPrefix(line, "e "):
			e.carried(sh, src, from+2, min(end, len(text)), line[2:], "sed e")
		case len(line) > 3 && line[0] == 's' && !scan.IsNameByte(line[1]) && line[1] != ' ':
			parts := strings.Split(strings.ReplaceAll(line, "\\"+line[1:2], "\x01"), line[1:2])
			if len(parts) == 4 && strings.ContainsRune(parts[3], 'e') && strings.Trim(parts[3], "egiIpmM0123456789") == "" {
				e.carried(sh, src, from, min(end, len(text)), strings.ReplaceAll(strings.ReplaceAll(parts[2], "&", string(scan.Hole)), "\x01", line[1:2]), "sed s///e")
			}
		}
		at = end + 1
	}
}

// readStrings judges what the strings of a text say, whatever its language.
func readStrings(sh *shell, src *source, _ string, _ *invocation) flow {
	sh.e.runOther(sh, src)
	return flow{}
}
