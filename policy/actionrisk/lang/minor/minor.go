// Package minor is the front-end of small languages that run commands, and of texts in a
// language without a front-end of its own: Makefiles, editors' commands, files of settings, and
// the strings of any other program.
package minor

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// Small languages in which other programs are told what to run: makefiles, settings,
// editors' commands, resources of configuration tools, macros of rpm and TeX, key
// bindings of a chooser. Each function finds the texts that run and hands
// them on; what else is given is data.

// Read judges a text of such a language.
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

// readers are the languages; each reads the source of the process.
var readers = map[string]func(*interp.Process){
	"vim": runBang, "bang": runBang, "applescript": runScriptEditor, "elisp": runOther, "other": runOther, "sed": runSed,
	"m4": runM4, "nft": runNft, "make": func(sh *interp.Process) { runMake(sh, false) }, "just": func(sh *interp.Process) { runMake(sh, true) }, "cmake": runCMake, "settings": runSettings, "lines": runLines,
	"scripts": runScripts, "functions": runFunctions, "xml": runXML, "generate": runGenerate, "fzf": runChooser, "socat": runSocat, "zargs": runZargs,
	"percent": macros(macro{"%(", ")", "shell"}, macro{"%{lua:", "}", "lua"}),
	"tex":     macros(macro{"write18{", "}", "shell"}, macro{"directlua{", "}", "lua"}),
	"braces":  macros(macro{"run{", "}", "shell"}),
}

// macro is a call whose argument is a text of a language.
type macro struct{ open, close, lang string }

// macros run the arguments of macros.
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

// matchingEnd is where the bracket closes that was open before the text.
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

// runChooser runs what a chooser's preview and key bindings run.
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

// runSocat runs the program of an address EXEC:… or SYSTEM:…
func runSocat(sh *interp.Process) {
	kind, text, ok := strings.Cut(sh.Src.Text, ":")
	if kind = strings.ToUpper(kind); !ok || kind != "EXEC" && kind != "SYSTEM" && kind != "SHELL" {
		return
	}
	text = strings.Trim(text, `"'`)
	if i := strings.LastIndexAny(text, ","); i > 0 && strings.Trim(text[i+1:], "abcdefghijklmnopqrstuvwxyz=0123456789") == "" { // options of the address
		text = text[:i]
	}
	if sh.Env.ActsText(text) {
		sh.Carried(len(kind)+1, len(sh.Src.Text), text, "socat")
	}
}

// runZargs: zsh's zargs -- words -- command.
func runZargs(sh *interp.Process) {
	words, command, ok := strings.Cut(strings.TrimPrefix(sh.Src.Text, "-- "), " -- ")
	if ok {
		sh.Carried(0, len(sh.Src.Text), command+" "+words, "zargs")
	}
}

// bangPrefixes are before a shell command in the command languages of editors,
// debuggers and file transfer programs.
var bangPrefixes = []string{"!", "\\!", "~!", "shell ", "platform shell ", "system ", "silent !", "silent! !", "exec !", "exe '!", "exec '!", "execute '!", "exe \"!", "execute \"!", "r !", "r!", "read !", "w !", "write !", "%!", "0r !", "0r!", "term ", "terminal ", "sh -c "}

// bangShells are the commands of an editor that open a shell.
var bangShells = scan.SetOf("sh shell sh! term terminal !")

// bangLanguages are the commands of an editor or debugger that run another language.
var bangLanguages = map[string]string{"py": "python", "py3": "python", "pyx": "python", "python": "python", "python3": "python", "pythonx": "python", "script": "python",
	"lua": "lua", "ruby": "ruby", "rub": "ruby", "perl": "perl", "perldo": "perl", "luado": "lua", "pydo": "python", "py3do": "python"}

// bangRuns are the functions of such a language that run their argument; bangDeletes
// delete it.
var (
	bangRuns    = []string{"system(", "systemlist(", "os.execute(", "popen(", "jobstart(", "termopen(", "job_start(", "term_start(", "vim.fn.system(", "io.popen("}
	bangDeletes = []string{"delete(", "vim.fn.delete(", "os.remove(", "vim.fs.rm("}
	bangWrites  = []string{"w! ", "wq! ", "w ", "wq ", "saveas! ", "saveas ", "sav! ", "write! ", "writefile("}
)

// runBang runs what the command language of an editor, a debugger or a file
// transfer program hands to the shell: "!rm x", "shell rm x", ":call system('rm x')".
func runBang(sh *interp.Process) {
	sh.Env.EachLine(sh.Src.Text, ";\n", func(from, to int) {
		line := strings.TrimLeft(sh.Src.Text[from:to], " \t:%")
		if bangCall(sh, from, to, line) {
			return
		}
		if word, _, ok := strings.Cut(line, " "); ok && bangLanguages[word] != "" { // its text may hold ";" itself
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
		if left, right, ok := strings.Cut(line, "|"); ok && strings.Trim(left, " abcdefghijklmnopqrstuvwxyz~/.") == "" { // one command of an editor after the other
			if again := sh.Src.Inside(act.Word{Text: right, At: -1, Span: sh.Src.Span, Taint: sh.Src.Taint}, ""); again.Depth <= scan.MaxDepth {
				runBang(sh.Reading(&again))
			}
		}
	})
}

// bangText is the shell command of a line that begins so, and how it begins.
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

// bangCall judges a call of the editor's own language, or a command that writes a
// file, and tells whether the line was one.
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

// bangWrite is that of a command that writes a file.
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

// runScriptEditor runs both languages of that program of macOS.
func runScriptEditor(sh *interp.Process) {
	runAppleScript(sh)
	runAutomation(sh)
}

// runAppleScript runs the texts that a shell, a terminal or a keyboard is given.
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

// runAutomation runs what JavaScript for Automation hands to the shell.
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
