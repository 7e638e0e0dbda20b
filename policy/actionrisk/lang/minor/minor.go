// Package minor is the front-end of small languages that run commands, and of texts in a
// language that nobody here reads: Makefiles, editors' commands, files of settings, and
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
// them on; what else stands there is data.

// Read judges a text of such a language and tells whether there is one of
// that name.
func Read(sh *interp.Process, src *act.Source, lang string, _ *act.Invocation) act.Flow {
	e := sh.Env
	e.Unproven = true
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText {
		e.TooDeep = true
		return act.Flow{}
	}
	if !e.Budget.Spend(16 + len(src.Text)/8) {
		return act.Flow{}
	}
	switch lang {
	case "vim", "bang":
		runBang(e, sh, src)
	case "applescript":
		runAppleScript(e, sh, src)
		runAutomation(e, sh, src)
	case "elisp", "other":
		runOther(e, sh, src)
	case "sed":
		runSed(e, sh, src)
	case "m4":
		runM4(e, sh, src)
	case "nft":
		runNft(e, sh, src)
	case "make", "just":
		runMake(e, sh, src, lang == "just")
	case "cmake":
		runCMake(e, sh, src)
	case "settings":
		runSettings(e, sh, src)
	case "lines":
		runLines(e, sh, src)
	case "scripts":
		runScripts(e, sh, src)
	case "functions":
		runFunctions(e, sh, src)
	case "xml":
		runXML(e, sh, src)
	case "generate":
		runGenerate(e, sh, src)
	case "percent":
		runMacros(e, sh, src, macro{"%(", ")", "shell"}, macro{"%{lua:", "}", "lua"})
	case "tex":
		runMacros(e, sh, src, macro{"write18{", "}", "shell"}, macro{"directlua{", "}", "lua"})
	case "braces":
		runMacros(e, sh, src, macro{"run{", "}", "shell"})
	case "fzf":
		runChooser(e, sh, src)
	case "socat":
		runSocat(e, sh, src)
	case "zargs":
		runZargs(e, sh, src)
	}
	return act.Flow{}
}

// macro is a call whose argument is a text of a language.
type macro struct{ open, close, lang string }

// runMacros runs the arguments of macros.
func runMacros(e *interp.Env, sh *interp.Process, src *act.Source, macros ...macro) {
	for _, m := range macros {
		for at := 0; e.Budget.Spend(1); {
			i := strings.Index(src.Text[at:], m.open)
			if i < 0 {
				break
			}
			from := at + i + len(m.open)
			to := from + matchingEnd(src.Text[from:], m.open[len(m.open)-1], m.close[0])
			carriedAs(e, sh, src, from, to, src.Text[from:to], m.lang, m.lang)
			at = to
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

// carriedAs is carried for any language.
func carriedAs(e *interp.Env, sh *interp.Process, src *act.Source, from, to int, text, lang, via string) {
	if lang == "shell" {
		e.Carried(sh, src, from, to, text, via)
		return
	}
	span, _ := src.Where(from, to)
	inner := *sh
	inner.Src = src
	inner.Interpret(lang, act.Word{Text: text, Span: span, At: -1}, &act.Invocation{Exe: via, Src: src, From: from, To: to, Stdin: act.Flow{Known: true}}, via, nil)
}

// runChooser runs what a chooser's preview and key bindings run.
func runChooser(e *interp.Env, sh *interp.Process, src *act.Source) {
	text := strings.ReplaceAll(src.Text, "{}", string(scan.Hole))
	bound := false
	for _, verb := range [...]string{"execute(", "execute-silent(", "become(", "reload(", "transform(", "reload-sync("} {
		if i := strings.Index(text, verb); i >= 0 {
			from := i + len(verb)
			to := from + matchingEnd(text[from:], '(', ')')
			e.Carried(sh, src, from, to, text[from:to], "fzf")
			bound = true
		}
	}
	if key, rest, ok := strings.Cut(text, ":execute:"); ok && !bound {
		e.Carried(sh, src, len(key), len(src.Text), rest, "fzf")
	} else if !bound && !strings.Contains(text, ":") {
		e.Carried(sh, src, 0, len(src.Text), text, "fzf")
	}
}

// runSocat runs the program of an address EXEC:… or SYSTEM:…
func runSocat(e *interp.Env, sh *interp.Process, src *act.Source) {
	kind, text, ok := strings.Cut(src.Text, ":")
	if kind = strings.ToUpper(kind); !ok || kind != "EXEC" && kind != "SYSTEM" && kind != "SHELL" {
		return
	}
	text = strings.Trim(text, `"'`)
	if i := strings.LastIndexAny(text, ","); i > 0 && strings.Trim(text[i+1:], "abcdefghijklmnopqrstuvwxyz=0123456789") == "" { // options of the address
		text = text[:i]
	}
	if e.ActsText(text) {
		e.Carried(sh, src, len(kind)+1, len(src.Text), text, "socat")
	}
}

// runZargs: zsh's zargs -- words -- command.
func runZargs(e *interp.Env, sh *interp.Process, src *act.Source) {
	words, command, ok := strings.Cut(strings.TrimPrefix(src.Text, "-- "), " -- ")
	if ok {
		e.Carried(sh, src, 0, len(src.Text), command+" "+words, "zargs")
	}
}

// bangPrefixes stand before a shell command in the command languages of editors,
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
func runBang(e *interp.Env, sh *interp.Process, src *act.Source) {
	e.EachLine(src.Text, ";\n", func(from, to int) {
		line := strings.TrimLeft(src.Text[from:to], " \t:%")
		if word, _, ok := strings.Cut(line, " "); ok && bangLanguages[word] != "" { // its text may hold ";" itself
			rest := src.Text[to-len(line)+len(word):]
			if bangCall(e, sh, src, from, to, line) {
				return
			}
			carriedAs(e, sh, src, to-len(line), len(src.Text), strings.TrimSpace(rest), bangLanguages[word], word)
			return
		}
		if bangCall(e, sh, src, from, to, line) {
			return
		}
		if bangShells[line] {
			e.Carried(sh, src, from, to, "sh", line)
			return
		}
		for _, prefix := range bangPrefixes {
			if rest, ok := strings.CutPrefix(line, prefix); ok && rest != "" {
				if i := strings.IndexAny(prefix, "'\""); i >= 0 {
					rest = strings.TrimSuffix(rest, prefix[i:i+1])
				}
				e.Carried(sh, src, from, to, rest, strings.TrimSpace(prefix))
				return
			}
		}
		if left, _, ok := strings.Cut(line, "|"); ok && strings.Trim(left, " abcdefghijklmnopqrstuvwxyz~/.") == "" { // one command of an editor after the other
			again := src.Inside(act.Word{Text: line[len(left)+1:], At: -1, Span: src.Span, Taint: src.Taint}, "")
			if again.Depth <= scan.MaxDepth {
				runBang(e, sh, &again)
			}
		}
	})
}

// bangCall judges a call of the editor's own language, or a command that writes a
// file, and tells whether the line was one.
func bangCall(e *interp.Env, sh *interp.Process, src *act.Source, from, to int, line string) bool {
	for _, name := range slices.Concat(bangRuns, bangDeletes) {
		_, args, ok := strings.Cut(line, name)
		start := to - len(args)
		if start += strings.IndexAny(args+"'", "'\""); !ok || tokens.ClosingQuote(src.Text[:to], start) < 0 {
			continue
		}
		words, _ := wordsFrom(src, start, to)
		via := strings.TrimSuffix(name, "(")
		switch first := words[0]; {
		case slices.Contains(bangDeletes, name):
			op := act.DeleteFile
			if strings.Contains(args, "rf") {
				op = act.DeleteTree
			}
			sh.Emit(src, via, act.Effect{Op: op, On: words[:1], From: from, To: to})
		case strings.IndexByte(first.Text, ' ') >= 0:
			e.Carried(sh, src, from, to, first.Text, via)
		default:
			sh.Behalf(src, via).Start(words, &act.Invocation{From: from, To: to})
		}
		return true
	}
	for _, verb := range bangWrites {
		if name, ok := strings.CutPrefix(line, verb); ok && name != "" && name[0] != '!' {
			w := act.Word{Text: strings.Trim(strings.TrimSpace(name), `'")`), At: -1, Span: src.Span}
			if i := max(strings.LastIndexByte(w.Text, '\''), strings.LastIndexByte(w.Text, '"')); verb == "writefile(" && i >= 0 {
				w.Text = w.Text[i+1:]
			}
			if strings.ContainsAny(w.Text, "/~") {
				sh.WritesTo(">", w, &act.Invocation{Src: src, From: from, To: to})
			}
			return true
		}
	}
	return false
}

// runAppleScript runs the texts of "do shell script" and "do script".
func runAppleScript(e *interp.Env, sh *interp.Process, src *act.Source) {
	text := src.Text
	phrase := "do shell script"
	if !strings.Contains(text, phrase) {
		phrase = "do script"
	}
	for i := strings.Index(text, phrase); i >= 0; {
		rest := text[i+len(phrase):]
		if j := strings.IndexByte(rest, '"'); j >= 0 {
			t := tokens.StringToken(e, text, i+len(phrase)+j, "applescript")
			e.Carried(sh, src, t.From, t.To, t.Text, phrase)
		}
		k := strings.Index(rest, phrase)
		if k < 0 {
			return
		}
		i += len(phrase) + k
	}
}

// runAutomation runs what JavaScript for Automation hands to the shell.
func runAutomation(e *interp.Env, sh *interp.Process, src *act.Source) {
	for _, verb := range [...]string{"doShellScript(", "doScript("} {
		if i := strings.Index(src.Text, verb); i >= 0 {
			if open := i + len(verb); open < len(src.Text) && tokens.ClosingQuote(src.Text, open) > 0 {
				end := tokens.ClosingQuote(src.Text, open)
				e.Carried(sh, src, open+1, end, src.Text[open+1:end], "doShellScript")
			}
		}
	}
}
