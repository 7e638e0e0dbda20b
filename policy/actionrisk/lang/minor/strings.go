package minor

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// This file judges program texts in languages that have no scanner: R, Julia, Tcl, Elixir, Erlang,
// Groovy, Scala, Scheme and others. In a text that starts programs, a string that is a command
// line is judged as if it ran. A path that is passed to a function that deletes trees is judged as
// deleted. The rest is unknown, and the verdict reports that.

// runOther judges a program text in a language that has no scanner.
func runOther(sh *interp.Process) {
	sh.Env.Doubt("a program text in a language that is not known")
	sh.Env.Loose = true
	sh.Env.See(act.UnknownDialect, sh.Src, 0, len(sh.Src.Text), "")
	text := sh.Src.Text
	if !sh.Env.Budget.Spend(1 + len(text)/8) {
		return
	}
	starts, feeds := startsPrograms(text), feedsShell(sh.Env, text)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '"' && c != '\'' && c != '`' {
			continue
		}
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			continue // the sign is an apostrophe, or the quote operator of a Lisp
		}
		i = runString(sh, i, end, starts, feeds)
	}
	sendsSecret(sh)
	if starts || strings.Contains(text, "file delete") || strings.Contains(text, "geturl") {
		runTcl(sh)
	}
}

// listNames lists names that may precede the brackets of a list.
var listNames = scan.SetOf("c args list Array List Seq")

// runString judges the string between the quotes at i and end. It returns the index of the last
// quote that it has read, which may end a later string. starts is true if the text starts
// programs, feeds if one of them is a shell that gets the output of another program.
func runString(sh *interp.Process, i, end int, starts, feeds bool) int {
	e, text := sh.Env, sh.Src.Text
	value, name := text[i+1:end], tokens.CalledBefore(text[:i])
	if pathFunctions.Has(name) {
		name = tokens.CalledBefore(text[:strings.LastIndex(text[:i], name)])
	}
	switch {
	case deletesTree(name, text):
		sh.Emit(sh.Src, name, act.Effect{Op: act.DeleteTree, On: []act.Word{sh.Src.Word(i+1, end)}, From: i + 1, To: end})
	case !starts:
	case feeds && scan.HasAnyPrefix(value, "echo ", "printf "):
		sh.Carried(i+1, end, value+" | sh", "program text")
	case e.ActsText(value) || windowsLine(e, value):
		sh.Carried(i+1, end, value, "program text")
	case value != "" && e.Acts(value):
		if words, last := wordsFrom(sh.Src, i, len(text)); last > end {
			sh.Behalf(sh.Src, "program text").Start(words, &act.Invocation{From: i + 1, To: last})
			return last
		}
	}
	return end
}

// pathFunctions lists functions that convert a path to another path. The enclosing call then
// decides what happens to the path.
var pathFunctions = scan.SetOf("expand-file-name file-name-as-directory file-truename concat path-expand normalizePath path.expand abspath expanduser joinpath")

// windowsLine reports whether the text is a command line that starts with a Windows shell or
// program.
func windowsLine(e *interp.Env, text string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name := strings.ToLower(scan.Base(first))
	return rest != "" && (act.WindowsShell(name) != "" || e.Other.Get("program "+name) != nil)
}

// feedsShell reports whether a string of the text is the bare name of a shell. Such a shell
// probably runs the output of another program.
func feedsShell(e *interp.Env, text string) bool {
	for _, shell := range e.Groups.Get("shells") {
		for _, quote := range [...]string{`"`, "'", "`"} {
			if strings.Contains(text, quote+shell+quote) {
				return true
			}
		}
	}
	return false
}

// wordsFrom returns the strings of one list or call, from position i to limit: "rm", c("-rf",
// "/"). It also returns the index of the last quote.
func wordsFrom(src *act.Source, i, limit int) (words []act.Word, last int) {
	text, last := src.Text[:limit], i
	for {
		end := tokens.ClosingQuote(text, i)
		if end < 0 {
			return words, last
		}
		words, last = append(words, src.Word(i+1, end)), end
		next := strings.IndexAny(text[end+1:], "\"'`")
		if next < 0 || len(words) > 16 {
			return words, last
		}
		between := strings.Trim(text[end+1:end+1+next], " \t\n,()[]{}:=>*|;")
		if !listNames.Has(between) && strings.Trim(strings.ReplaceAll(between, "nil", ""), " ") != "" {
			return words, last
		}
		i = end + 1 + next
	}
}

// startsPrograms reports whether the text contains the name of a function that starts programs.
func startsPrograms(text string) bool {
	return scan.HasAny(strings.ToLower(text), "system", "exec", "spawn", "popen", "process", "shell", "cmd", "run", "subprocess", "open3", ".ffi(")
}

// deletesTree reports whether the function deletes a folder with its content, by the last part of
// its name.
func deletesTree(name, text string) bool {
	if i := strings.LastIndexByte(name, '/'); i >= 0 && name != "delete-directory/files" { // for example fs/delete-tree of Clojure
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

// runTcl judges commands that Tcl and Expect start with words instead of strings.
func runTcl(sh *interp.Process) {
	client := "" // the program that spawn started last, which receives the text of send
	sh.Env.EachLine(sh.Src.Text, ";\n[]{}", func(from, to int) {
		line := strings.TrimLeft(sh.Src.Text[from:to], " \t")
		if rest, ok := strings.CutPrefix(line, "file delete "); ok && strings.Contains(rest, "-force") {
			rest = strings.ReplaceAll(strings.ReplaceAll(rest, "-force", ""), "--", "")
			sh.Carried(from, to, "rm -rf "+rest, "file delete") // a shell can parse these words, too
		}
		if scan.HasAnyPrefix(line, "eval", "source", "uplevel") && strings.Contains(sh.Src.Text, "geturl") {
			sh.Env.See(act.ProgramRuns, sh.Src, from, to, "")
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "spawn":
			first, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(rest, "-- "), `"`), " ")
			client = scan.Base(first)
		case "exec", "system", "send":
		default:
			return
		}
		rest = strings.Trim(strings.TrimPrefix(rest, "-- "), `"`)
		tclText(sh, client, verb, strings.TrimSuffix(strings.TrimSuffix(rest, `\n`), `\r`), from, to)
	})
}

// tclText judges a text that Tcl starts as a command, or sends to a program. client is the name of
// that program.
func tclText(sh *interp.Process, client, verb, text string, from, to int) {
	if sh.Env.ReadsStatements(client) && stores.LooksSQL(text) && sh.Src.Depth < scan.MaxDepth {
		inner := *sh.Src
		inner.Text, inner.At, inner.Depth = text, -1, sh.Src.Depth+1
		inner.Span, _ = sh.Src.Where(from, to)
		sh.Env.Read("sql", &inner, &act.Invocation{Exe: client, Cwd: sh.Cwd, Src: sh.Src})
	} else if sh.Env.ActsText(text) {
		sh.Carried(from, to, text, verb)
	}
}

// runSed judges the shell commands of a sed script: "1e command", the flag e of the command s, and
// e without a command, which runs the input.
func runSed(sh *interp.Process) {
	sh.Env.Unproven = sh.Env.Unproven && strings.ContainsAny(sh.Src.Text, "ew")
	text := sh.Src.Text
	for at := 0; at < len(text); {
		end := min(at+strings.IndexAny(text[at:]+";", ";\n"), len(text))
		line := strings.TrimLeft(text[at:end], "0123456789$, \t!{")
		from := end - len(line)
		switch {
		case line == "e" && sh.Carrier != nil: // runs each line of the input
			runsInput(sh, from)
		case strings.HasPrefix(line, "e "):
			sh.Carried(from+2, end, line[2:], "sed e")
		default:
			if made, ok := substitutes(line); ok {
				sh.Carried(from, end, made, "sed s///e")
			}
		}
		at = end + 1
	}
}

// substitutes returns the command that s/x/y/e runs: the replacement text, with an unknown part
// for "&". It returns false for other sed commands.
func substitutes(line string) (string, bool) {
	if len(line) < 4 || line[0] != 's' || scan.IsNameByte(line[1]) || line[1] == ' ' {
		return "", false
	}
	sign := line[1:2]
	parts := strings.Split(strings.ReplaceAll(line, "\\"+sign, "\x01"), sign)
	if len(parts) != 4 || !strings.ContainsRune(parts[3], 'e') || strings.Trim(parts[3], "egiIpmM0123456789") != "" {
		return "", false
	}
	return strings.NewReplacer("&", string(scan.Hole), "\x01", sign).Replace(parts[2]), true
}

// ReadStrings judges the strings of a program text in any language.
func ReadStrings(sh *interp.Process, src *act.Source, _ string, _ *act.Invocation) act.Flow {
	runOther(sh.Reading(src))
	return act.Flow{}
}
