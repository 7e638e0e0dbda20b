package actionrisk

import (
	"strings"
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
		switch name := calledBefore(text[:i]); {
		case deletesTree(name, text) || deletesTree(calledAfter(text[end+1:]), ""):
			e.carried(sh, src, i+1, end, "rm -rf "+quote(value), name)
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
	if starts || strings.Contains(text, "file delete") {
		e.runTcl(sh, src)
	}
}

// windowsLine: a command line for a command interpreter, or a program, of Windows.
func (e *engine) windowsLine(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name := strings.ToLower(base(first))
	return rest != "" && (windowsShell(name) != "" || e.other["program "+name] != nil)
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
		words = append(words, quote(text[i+1:end]))
		last = end
		next := strings.IndexAny(text[end+1:], "\"'`")
		if next < 0 || len(words) > 16 {
			break
		}
		between := strings.Trim(text[end+1:end+1+next], " \t\n,()[]{}:=>*")
		if between != "" && between != "c" && between != "args" && between != "list" && between != "Array" && between != "List" && between != "Seq" {
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
	switch name {
	case "rm_rf", "rm_rf!", "rmtree", "rm-rf", "delete-directory", "delete_directory", "deleteDirectory", "deleteRecursively", "deleteDir", "remove_dir_all", "removeDirectoryRecursive", "removeTree", "removePathForcibly", "removeItem", "del_dir_r", "delTree", "delete-directory/files":
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
	for i > 0 && (isNameByte(text[i-1]) || strings.IndexByte("-!/", text[i-1]) >= 0) {
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
		if !isNameByte(rest[i]) {
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
	e.eachLine(src.text, ";\n[]{}", func(from, to int) {
		line := strings.TrimLeft(src.text[from:to], " \t")
		if rest, ok := strings.CutPrefix(line, "file delete "); ok && strings.Contains(rest, "-force") {
			rest = strings.ReplaceAll(strings.ReplaceAll(rest, "-force", ""), "--", "")
			e.carried(sh, src, from, to, "rm -rf "+rest, "file delete")
		}
		for _, verb := range [...]string{"exec ", "spawn ", "system ", "send "} {
			if rest, ok := strings.CutPrefix(line, verb); ok {
				rest = strings.Trim(strings.TrimPrefix(rest, "-- "), `"`)
				rest = strings.TrimSuffix(strings.TrimSuffix(rest, `\n`), `\r`)
				if e.actsText(rest) {
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
