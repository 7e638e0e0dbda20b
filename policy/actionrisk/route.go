package actionrisk

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/amounts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/lang/payment"
	"github.com/countersign/countersign/policy/actionrisk/lang/posix"
	"github.com/countersign/countersign/policy/actionrisk/lang/program"
	"github.com/countersign/countersign/policy/actionrisk/lang/toolcall"
	"github.com/countersign/countersign/policy/actionrisk/lang/windows"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/stores"
)

// top selects the language of the submitted command and reads it. If the command contains
// deceptive characters, it also reads the text without them. The findings of both are kept.
func top(e *interp.Env, whole act.Source) string {
	text := whole.Text
	if folded, changed := sniff(e, &whole); changed {
		defer func() {
			again := act.Source{Text: folded, At: -1, Span: act.Span{Start: 0, End: len(text)}, Via: []string{"unicode"}}
			route(e, &again)
		}()
	}
	return route(e, &whole)
}

// route reads a text whose language is not stated, and returns the name of the language in which
// it was read.
func route(e *interp.Env, src *act.Source) string {
	text := strings.TrimLeft(src.Text, " \t\r\n\ufeff\u00a0")
	if src.Depth > scan.MaxDepth || !e.Budget.Spend(1) {
		e.TooDeep = true
		return "unknown"
	}
	if text == "" {
		return "empty"
	}
	if toolcall.JSON(e, src) {
		posix.Further(e, src)
		return "json"
	}
	name, program, shell := languageOf(e, src, text)
	if !shell {
		if name != "powershell" {
			posix.Further(e, src)
		}
		return name
	}
	if r, ok := interp.RequestLine(text); ok {
		e.RunRequest(src, r)
		return "http"
	}
	posix.Script(&interp.Process{Env: e}, src, act.Flow{})
	if name != "" {
		return name
	}
	if len(e.Findings) == 0 && instructs(e, text) {
		e.See(act.Instruction, src, 0, len(src.Text), "")
	}
	if program {
		return "program"
	}
	return "shell"
}

// languageOf reads a text in each language, other than the shell's, that it may be written in, and
// returns the name of the language. ran is true if the text may be a program. shell is true if it
// may also be a shell command.
func languageOf(e *interp.Env, src *act.Source, text string) (name string, ran, shell bool) {
	surelySQL := stores.LooksSQL(text)
	if surelySQL || stores.LaterSQL(text) {
		e.Ran, name = true, "sql"
		e.Read("sql", src, nil)
	}
	name = cmp.Or(asMoney(e, src, text), name)
	lang, sure := windows.Looks(e.Set, text)
	if name == "sql" && surelySQL && !sure {
		lang = "" // select, insert and where are also aliases in PowerShell
	}
	if lang != "" {
		e.Ran, name = true, "powershell"
		e.Read(lang, src, nil)
	}
	ran, certain := program.Sniff(e, src)
	if certain {
		name = "program"
	}
	return name, ran, !sure && (name == "" || lang != "" || act.LooksShell(text) || !surelySQL && name == "sql")
}

// asMoney reads a text as a call of a contract, or as a sentence that moves money or calls a tool.
// It returns "call", "action" or "".
func asMoney(e *interp.Env, src *act.Source, text string) (name string) {
	if amounts.LooksCall(text) && payment.Calls(e, src) {
		name = "call"
	}
	if amounts.LooksPhrase(text) && (toolcall.Phrase(e, src) || payment.RunPhrase(e, src)) {
		name = "action"
	}
	return name
}

// instructs reports whether a text is a sentence that asks for an action, not a command: it begins
// with a verb, and has short words that commands do not have.
func instructs(e *interp.Env, text string) bool {
	words := strings.Fields(strings.ToLower(strings.TrimSpace(text)))
	if len(words) < 3 || len(words) > 60 {
		return false
	}
	object := slices.Contains(e.Groups.Get("instruction-verbs"), words[0])
	if !object && !slices.Contains(e.Groups.Get("instruction-verbs-of"), words[0]) {
		return false
	}
	small := 0
	for _, w := range words[1:] {
		if w[0] == '-' || w[0] == '/' || strings.ContainsAny(w, "=|&<>$`{}*") {
			return false
		}
		if slices.Contains(e.Groups.Get("instruction-words"), w) {
			small++
		}
		object = object || slices.Contains(e.Groups.Get("instruction-objects"), w)
	}
	return small > 0 && object
}
