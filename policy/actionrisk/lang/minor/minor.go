// Package minor is the front-end for small languages that run commands, such as makefiles, editor
// commands and settings files. It also judges the strings of program texts in a language that has
// no front-end.
package minor

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// Each reader of this package finds the texts in its language that run as commands, and passes
// them to the reader of their language. It treats everything else as data.

// Read judges a text in one of the languages of readers. The result is always the empty flow.
func Read(outer *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	e := outer.Env
	e.Unproven = true
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText {
		e.TooDeep = true
		return act.Flow{}
	}
	if read := readers[lang]; read != nil && e.Budget.Spend(16+len(src.Text)/8) {
		read(outer.Reading(src))
	}
	return act.Flow{}
}

// readers maps the name of a language to the function that judges the text in sh.Src.
var readers = map[string]func(*interp.Process){
	"vim": runBang, "bang": runBang, "applescript": runScriptEditor, "elisp": runOther, "other": runOther, "sed": runSed,
	"m4": runM4, "nft": runNft, "make": func(sh *interp.Process) { runMake(sh, false) }, "just": func(sh *interp.Process) { runMake(sh, true) }, "cmake": runCMake, "settings": runSettings, "lines": runLines,
	"scripts": runScripts, "functions": runFunctions, "xml": runXML, "generate": runGenerate, "fzf": runChooser, "socat": runSocat, "zargs": runZargs,
	"percent": macros(macro{"%(", ")", "shell"}, macro{"%{lua:", "}", "lua"}),
	"tex":     macros(macro{"write18{", "}", "shell"}, macro{"directlua{", "}", "lua"}),
	"braces":  macros(macro{"run{", "}", "shell"}),
}

// macro is a call whose argument is a text in the language lang.
type macro struct{ open, close, lang string }

// macros returns a reader that judges the arguments of the macros in the list.
func macros(list ...macro) func(*interp.Process) {
	return func(sh *interp.Process) {
		for _, m := range list {
			for at := 0; sh.Env.Budget.Spend(1); {
				i := strings.Index(sh.Src.Text[at:], m.open)
				if i < 0 {
					break
				}
				from := at + i + len(m.open)
				at = from + matchingEnd(sh.Src.Text[from:], m.open[len(m.open)-1], m.close[0])
				sh.CarriedAs(m.lang, from, at, sh.Src.Text[from:at], m.lang)
			}
		}
	}
}

// matchingEnd returns the index of the bracket that closes the one opened just before the text, or
// the length of the text.
func matchingEnd(text string, open, shut byte) int {
	if open == ':' {
		open = '{'
	}
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// runChooser judges the commands in the preview and the key bindings of fzf.
func runChooser(sh *interp.Process) {
	text := strings.ReplaceAll(sh.Src.Text, "{}", string(scan.Hole))
	bound := false
	for _, verb := range [...]string{"execute(", "execute-silent(", "become(", "reload(", "transform(", "reload-sync("} {
		if i := strings.Index(text, verb); i >= 0 {
			from := i + len(verb)
			to := from + matchingEnd(text[from:], '(', ')')
			sh.Carried(from, to, text[from:to], "fzf")
			bound = true
		}
	}
	if key, rest, ok := strings.Cut(text, ":execute:"); ok && !bound {
		sh.Carried(len(key), len(sh.Src.Text), rest, "fzf")
	} else if !bound && !strings.Contains(text, ":") {
		sh.Carried(0, len(sh.Src.Text), text, "fzf")
	}
}

// runSocat judges the command in a socat address EXEC:…, SYSTEM:… or SHELL:…
func runSocat(sh *interp.Process) {
	kind, text, ok := strings.Cut(sh.Src.Text, ":")
	if kind = strings.ToUpper(kind); !ok || kind != "EXEC" && kind != "SYSTEM" && kind != "SHELL" {
		return
	}
	text = strings.Trim(text, `"'`)
	if i := strings.LastIndexAny(text, ","); i > 0 && strings.Trim(text[i+1:], "abcdefghijklmnopqrstuvwxyz=0123456789") == "" { // drop the options of the address
		text = text[:i]
	}
	if sh.Env.ActsText(text) {
		sh.Carried(len(kind)+1, len(sh.Src.Text), text, "socat")
	}
}

// runZargs judges the command of zargs, a function of zsh: zargs -- words -- command.
func runZargs(sh *interp.Process) {
	words, command, ok := strings.Cut(strings.TrimPrefix(sh.Src.Text, "-- "), " -- ")
	if ok {
		sh.Carried(0, len(sh.Src.Text), command+" "+words, "zargs")
	}
}

// bangPrefixes lists the texts that start a shell command in the command languages of editors,
// debuggers and file transfer programs.
var bangPrefixes = []string{"!", "\\!", "~!", "shell ", "platform shell ", "system ", "silent !", "silent! !", "exec !", "exe '!", "exec '!", "execute '!", "exe \"!", "execute \"!", "r !", "r!", "read !", "w !", "write !", "%!", "0r !", "0r!", "term ", "terminal ", "sh -c "}

// bangShells lists the editor commands that open a shell.
var bangShells = scan.SetOf("sh shell sh! term terminal !")

// bangLanguages maps a command of an editor or debugger to the language of the text that it runs.
var bangLanguages = map[string]string{"py": "python", "py3": "python", "pyx": "python", "python": "python", "python3": "python", "pythonx": "python", "script": "python",
	"lua": "lua", "ruby": "ruby", "rub": "ruby", "perl": "perl", "perldo": "perl", "luado": "lua", "pydo": "python", "py3do": "python"}

// bangRuns lists functions of editor languages that run their argument, bangDeletes those that
// delete the file it names, bangWrites commands that write a file.
var (
	bangRuns    = []string{"system(", "systemlist(", "os.execute(", "popen(", "jobstart(", "termopen(", "job_start(", "term_start(", "vim.fn.system(", "io.popen("}
	bangDeletes = []string{"delete(", "vim.fn.delete(", "os.remove(", "vim.fs.rm("}
	bangWrites  = []string{"w! ", "wq! ", "w ", "wq ", "saveas! ", "saveas ", "sav! ", "write! ", "writefile("}
)

// runBang judges the shell commands in a text for an editor, a debugger or a file transfer
// program: "!rm x", "shell rm x", ":call system('rm x')".
func runBang(sh *interp.Process) {
	sh.Env.EachLine(sh.Src.Text, ";\n", func(from, to int) {
		line := strings.TrimLeft(sh.Src.Text[from:to], " \t:%")
		if bangCall(sh, from, to, line) {
			return
		}
		if word, _, ok := strings.Cut(line, " "); ok && bangLanguages[word] != "" { // the program text may contain ";", so take the rest of the source
			start := to - len(line)
			sh.CarriedAs(bangLanguages[word], start, len(sh.Src.Text), strings.TrimSpace(sh.Src.Text[start+len(word):]), word)
			return
		}
		if bangShells.Has(line) {
			sh.Carried(from, to, "sh", line)
			return
		}
		if rest, prefix := bangText(line); rest != "" {
			sh.Carried(from, to, rest, strings.TrimSpace(prefix))
			return
		}
		if left, right, ok := strings.Cut(line, "|"); ok && strings.Trim(left, " abcdefghijklmnopqrstuvwxyz~/.") == "" { // "|" separates the commands of an editor
			if again := sh.Src.Inside(act.Word{Text: right, At: -1, Span: sh.Src.Span, Taint: sh.Src.Taint}, ""); again.Depth <= scan.MaxDepth {
				runBang(sh.Reading(&again))
			}
		}
	})
}

// bangText returns the shell command of a line that starts with one of bangPrefixes, and that
// prefix. It returns empty texts for other lines.
func bangText(line string) (text, prefix string) {
	for _, prefix := range bangPrefixes {
		if rest, ok := strings.CutPrefix(line, prefix); ok && rest != "" {
			if i := strings.IndexAny(prefix, "'\""); i >= 0 {
				rest = strings.TrimSuffix(rest, prefix[i:i+1])
			}
			return rest, prefix
		}
	}
	return "", ""
}

// bangCall reports whether the line is a call in the language of the editor, or a command that
// writes a file, and judges it.
func bangCall(sh *interp.Process, from, to int, line string) bool {
	for _, name := range slices.Concat(bangRuns, bangDeletes) {
		_, args, ok := strings.Cut(line, name)
		start := to - len(args)
		if start += strings.IndexAny(args+"'", "'\""); !ok || tokens.ClosingQuote(sh.Src.Text[:to], start) < 0 {
			continue
		}
		words, _ := wordsFrom(sh.Src, start, to)
		via := strings.TrimSuffix(name, "(")
		switch first := words[0]; {
		case slices.Contains(bangDeletes, name):
			op := act.DeleteFile
			if strings.Contains(args, "rf") {
				op = act.DeleteTree
			}
			sh.Emit(sh.Src, via, act.Effect{Op: op, On: words[:1], From: from, To: to})
		case strings.IndexByte(first.Text, ' ') >= 0:
			sh.Carried(from, to, first.Text, via)
		default:
			sh.Behalf(sh.Src, via).Start(words, &act.Invocation{From: from, To: to})
		}
		return true
	}
	return bangWrite(sh, from, to, line)
}

// bangWrite reports whether the line is an editor command that writes a file, and judges it.
func bangWrite(sh *interp.Process, from, to int, line string) bool {
	for _, verb := range bangWrites {
		name, ok := strings.CutPrefix(line, verb)
		if !ok || name == "" || name[0] == '!' {
			continue
		}
		if name = strings.Trim(strings.TrimSpace(name), `'")`); verb == "writefile(" {
			name = name[strings.LastIndexAny(name, `'"`)+1:]
		}
		if strings.ContainsAny(name, "/~") {
			sh.WritesTo(">", act.Word{Text: name, At: -1, Span: sh.Src.Span}, &act.Invocation{Src: sh.Src, From: from, To: to})
		}
		return true
	}
	return false
}

// runScriptEditor judges a text of macOS osascript in both languages, AppleScript and JavaScript
// for Automation.
func runScriptEditor(sh *interp.Process) {
	runAppleScript(sh)
	runAutomation(sh)
}

// runAppleScript judges the strings that an AppleScript passes to a shell or a terminal, or types
// as keys.
func runAppleScript(sh *interp.Process) {
	text := sh.Src.Text
	for _, phrase := range [...]string{"do shell script", "do script", "write text", "keystroke"} {
		for at := 0; ; {
			i := strings.Index(text[at:], phrase)
			if i < 0 || !sh.Env.Budget.Spend(1) {
				break
			}
			at += i + len(phrase)
			if j := strings.IndexByte(text[at:], '"'); j >= 0 {
				t := tokens.StringToken(sh.Env, text, at+j, "applescript")
				sh.Carried(t.From, t.To, t.Text, phrase)
			}
		}
	}
}

// runAutomation judges the strings that JavaScript for Automation passes to the shell.
func runAutomation(sh *interp.Process) {
	for _, verb := range [...]string{"doShellScript(", "doScript("} {
		if i := strings.Index(sh.Src.Text, verb); i >= 0 {
			if open := i + len(verb); open < len(sh.Src.Text) && tokens.ClosingQuote(sh.Src.Text, open) > 0 {
				end := tokens.ClosingQuote(sh.Src.Text, open)
				sh.Carried(open+1, end, sh.Src.Text[open+1:end], "doShellScript")
			}
		}
	}
}
