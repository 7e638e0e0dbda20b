package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Small languages in which other programs are told what to run: makefiles, settings,
// editors' commands, resources of configuration tools, macros of rpm and TeX, key
// bindings of a chooser. Each function finds the texts that run and hands
// them on; what else stands there is data.

// runOddLanguage judges a text of such a language and tells whether there is one of
// that name.
func runOddLanguage(sh *shell, src *source, lang string, _ *invocation) flow {
	e := sh.e
	e.unproven = true
	if src.depth > scan.MaxDepth || len(src.text) > scan.MaxText {
		e.tooDeep = true
		return flow{}
	}
	if !e.budget.spend(16 + len(src.text)/8) {
		return flow{}
	}
	switch lang {
	case "vim", "bang":
		e.runBang(sh, src)
	case "applescript":
		e.runAppleScript(sh, src)
		e.runAutomation(sh, src)
	case "elisp", "other":
		e.runOther(sh, src)
	case "sed":
		e.runSed(sh, src)
	case "m4":
		e.runM4(sh, src)
	case "nft":
		e.runNft(sh, src)
	case "make", "just":
		e.runMake(sh, src, lang == "just")
	case "cmake":
		e.runCMake(sh, src)
	case "settings":
		e.runSettings(sh, src)
	case "lines":
		e.runLines(sh, src)
	case "scripts":
		e.runScripts(sh, src)
	case "functions":
		e.runFunctions(sh, src)
	case "xml":
		e.runXML(sh, src)
	case "generate":
		e.runGenerate(sh, src)
	case "percent":
		e.runMacros(sh, src, macro{"%(", ")", "shell"}, macro{"%{lua:", "}", "lua"})
	case "tex":
		e.runMacros(sh, src, macro{"write18{", "}", "shell"}, macro{"directlua{", "}", "lua"})
	case "braces":
		e.runMacros(sh, src, macro{"run{", "}", "shell"})
	case "fzf":
		e.runChooser(sh, src)
	case "socat":
		e.runSocat(sh, src)
	case "zargs":
		e.runZargs(sh, src)
	}
	return flow{}
}

// macro is a call whose argument is a text of a language.
type macro struct{ open, close, lang string }

// runMacros runs the arguments of macros.
func (e *engine) runMacros(sh *shell, src *source, macros ...macro) {
	for _, m := range macros {
		for at := 0; e.budget.spend(1); {
			i := strings.Index(src.text[at:], m.open)
			if i < 0 {
				break
			}
			from := at + i + len(m.open)
			to := from + matchingEnd(src.text[from:], m.open[len(m.open)-1], m.close[0])
			e.carriedAs(sh, src, from, to, src.text[from:to], m.lang, m.lang)
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
func (e *engine) carriedAs(sh *shell, src *source, from, to int, text, lang, via string) {
	if lang == "shell" {
		e.carried(sh, src, from, to, text, via)
		return
	}
	span, _ := src.where(from, to)
	inner := *sh
	inner.src = src
	inner.interpret(lang, Word{Text: text, Span: span, At: -1}, &invocation{exe: via, src: src, from: from, to: to, stdin: flow{known: true}}, via, nil)
}

// runChooser runs what a chooser's preview and key bindings run.
func (e *engine) runChooser(sh *shell, src *source) {
	text := strings.ReplaceAll(src.text, "{}", string(scan.Hole))
	bound := false
	for _, verb := range [...]string{"execute(", "execute-silent(", "become(", "reload(", "transform(", "reload-sync("} {
		if i := strings.Index(text, verb); i >= 0 {
			from := i + len(verb)
			to := from + matchingEnd(text[from:], '(', ')')
			e.carried(sh, src, from, to, text[from:to], "fzf")
			bound = true
		}
	}
	if key, rest, ok := strings.Cut(text, ":execute:"); ok && !bound {
		e.carried(sh, src, len(key), len(src.text), rest, "fzf")
	} else if !bound && !strings.Contains(text, ":") {
		e.carried(sh, src, 0, len(src.text), text, "fzf")
	}
}

// runSocat runs the program of an address EXEC:… or SYSTEM:…
func (e *engine) runSocat(sh *shell, src *source) {
	kind, text, ok := strings.Cut(src.text, ":")
	if kind = strings.ToUpper(kind); !ok || kind != "EXEC" && kind != "SYSTEM" && kind != "SHELL" {
		return
	}
	text = strings.Trim(text, `"'`)
	if i := strings.LastIndexAny(text, ","); i > 0 && strings.Trim(text[i+1:], "abcdefghijklmnopqrstuvwxyz=0123456789") == "" { // options of the address
		text = text[:i]
	}
	if e.actsText(text) {
		e.carried(sh, src, len(kind)+1, len(src.text), text, "socat")
	}
}

// runZargs: zsh's zargs -- words -- command.
func (e *engine) runZargs(sh *shell, src *source) {
	words, command, ok := strings.Cut(strings.TrimPrefix(src.text, "-- "), " -- ")
	if ok {
		e.carried(sh, src, 0, len(src.text), command+" "+words, "zargs")
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
func (e *engine) runBang(sh *shell, src *source) {
	e.eachLine(src.text, ";\n", func(from, to int) {
		line := strings.TrimLeft(src.text[from:to], " \t:%")
		if word, _, ok := strings.Cut(line, " "); ok && bangLanguages[word] != "" { // its text may hold ";" itself
			rest := src.text[to-len(line)+len(word):]
			if e.bangCall(sh, src, from, to, line) {
				return
			}
			e.carriedAs(sh, src, to-len(line), len(src.text), strings.TrimSpace(rest), bangLanguages[word], word)
			return
		}
		if e.bangCall(sh, src, from, to, line) {
			return
		}
		if bangShells[line] {
			e.carried(sh, src, from, to, "sh", line)
			return
		}
		for _, prefix := range bangPrefixes {
			if rest, ok := strings.CutPrefix(line, prefix); ok && rest != "" {
				if i := strings.IndexAny(prefix, "'\""); i >= 0 {
					rest = strings.TrimSuffix(rest, prefix[i:i+1])
				}
				e.carried(sh, src, from, to, rest, strings.TrimSpace(prefix))
				return
			}
		}
		if left, _, ok := strings.Cut(line, "|"); ok && strings.Trim(left, " abcdefghijklmnopqrstuvwxyz~/.") == "" { // one command of an editor after the other
			again := src.inside(Word{Text: line[len(left)+1:], At: -1, Span: src.span, Taint: src.taint}, "")
			if again.depth <= scan.MaxDepth {
				e.runBang(sh, &again)
			}
		}
	})
}

// bangCall judges a call of the editor's own language, or a command that writes a
// file, and tells whether the line was one.
func (e *engine) bangCall(sh *shell, src *source, from, to int, line string) bool {
	for _, list := range [...]struct {
		names   []string
		command string
	}{{bangRuns, ""}, {bangDeletes, "rm -rf "}} {
		for _, name := range list.names {
			i := strings.Index(line, name)
			if i < 0 {
				continue
			}
			args := line[i+len(name):]
			j := strings.IndexAny(args, "'\"")
			if j < 0 || closingQuote(args, j) < 0 {
				continue
			}
			text, _ := wordsFrom(args, j)
			if inside := args[j+1 : closingQuote(args, j)]; list.command != "" || strings.IndexByte(inside, ' ') >= 0 {
				text = inside
			}
			if list.command != "" && !strings.Contains(args, "rf") {
				list.command = "rm "
			}
			e.carried(sh, src, from, to, list.command+text, strings.TrimSuffix(name, "("))
			return true
		}
	}
	for _, verb := range bangWrites {
		if name, ok := strings.CutPrefix(line, verb); ok && name != "" && name[0] != '!' {
			w := Word{Text: strings.Trim(strings.TrimSpace(name), `'")`), At: -1, Span: src.span}
			if i := max(strings.LastIndexByte(w.Text, '\''), strings.LastIndexByte(w.Text, '"')); verb == "writefile(" && i >= 0 {
				w.Text = w.Text[i+1:]
			}
			if strings.ContainsAny(w.Text, "/~") {
				sh.writesTo(">", w, &invocation{src: src, from: from, to: to})
			}
			return true
		}
	}
	return false
}

// runAppleScript runs the texts of "do shell script" and "do script".
func (e *engine) runAppleScript(sh *shell, src *source) {
	text := src.text
	phrase := "do shell script"
	if !strings.Contains(text, phrase) {
		phrase = "do script"
	}
	for i := strings.Index(text, phrase); i >= 0; {
		rest := text[i+len(phrase):]
		if j := strings.IndexByte(rest, '"'); j >= 0 {
			t := stringToken(text, i+len(phrase)+j, "applescript")
			e.carried(sh, src, t.from, t.to, t.text, phrase)
		}
		k := strings.Index(rest, phrase)
		if k < 0 {
			return
		}
		i += len(phrase) + k
	}
}

// runAutomation runs what JavaScript for Automation hands to the shell.
func (e *engine) runAutomation(sh *shell, src *source) {
	for _, verb := range [...]string{"doShellScript(", "doScript("} {
		if i := strings.Index(src.text, verb); i >= 0 {
			if open := i + len(verb); open < len(src.text) && closingQuote(src.text, open) > 0 {
				end := closingQuote(src.text, open)
				e.carried(sh, src, open+1, end, src.text[open+1:end], "doShellScript")
			}
		}
	}
}
