package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// top routes the submitted command to its languages: by its first significant
// token. Where two readings are possible both are taken and the higher counts,
// because findings of both are kept.
func (e *engine) top(whole source) string {
	text := whole.text
	if folded, changed := e.sniff(&whole); changed {
		defer func() {
			again := source{text: folded, at: -1, span: Span{0, len(text)}, via: []string{"unicode"}}
			e.route(&again)
		}()
	}
	return e.route(&whole)
}

// route reads one text whose language is not said.
func (e *engine) route(src *source) string {
	text := strings.TrimLeft(src.text, " \t\r\n\ufeff\u00a0")
	if src.depth > scan.MaxDepth || !e.budget.spend(1) {
		e.tooDeep = true
		return "unknown"
	}
	if text == "" {
		return "empty"
	}
	if (text[0] == '{' || text[0] == '[') && !strings.HasPrefix(text, "[ ") && !strings.HasPrefix(text, "[[ ") && !strings.HasPrefix(text, "{ ") && !isGroup(text) || strings.HasPrefix(text, "{ \"") || strings.HasPrefix(text, "[ {") || strings.HasPrefix(text, "[ \"") && strings.HasSuffix(strings.TrimSpace(text), "\"]") {
		if e.runJSON(src) {
			return "json"
		}
	}
	name, doubtful := "", false
	if doubtful = !looksSQL(text); !doubtful || laterSQL(text) {
		e.ran, name = true, "sql"
		e.read("sql", src, nil)
	}
	if looksCall(text) && e.runCalls(src) {
		name = "call"
	}
	if looksPhrase(text) && (e.runToolPhrase(src) || e.runPhrase(src)) {
		name = "action"
	}
	lang, sure := e.looksWindows(text)
	if name == "sql" && !doubtful && !sure {
		lang = "" // select, insert and where are aliases there
	}
	if lang != "" {
		e.ran, name = true, "powershell"
		e.read(lang, src, nil)
	}
	program, certain := e.runProgram(src)
	if certain {
		name = "program"
	}
	if sure || name != "" && lang == "" && !looksShell(text) && !(doubtful && name == "sql") {
		return name
	}
	if h := httpLine(text); h != nil {
		e.runHTTPLine(src, h)
		return "http"
	}
	(&shell{e: e}).script(src, flow{})
	switch {
	case name == "" && program:
		name = "program"
	case name == "":
		name = "shell"
	}
	return name
}

// looksShell: text of another language may still hold shell syntax that would
// run if it were pasted into a shell.
func looksShell(text string) bool {
	return strings.Contains(text, "$(") || strings.ContainsRune(text, '`') && !strings.ContainsAny(text, ";") ||
		strings.Contains(text, "&&") || strings.Contains(text, "||") && !strings.Contains(text, "'||'")
}

// httpLine splits "DELETE https://host/path" and "POST /path"; nil if it is none.
func httpLine(text string) []string {
	method, rest, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(rest, " | ") { // LWP's GET, in a pipe
		return nil
	}
	switch method {
	case "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE":
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") || strings.HasPrefix(rest, "/") {
			return []string{method, rest}
		}
	}
	return nil
}

// runHTTPLine judges an HTTP request line as the client call it stands for.
func (e *engine) runHTTPLine(src *source, line []string) {
	url, body, _ := strings.Cut(line[1], " ")
	argv := []Word{{Text: "curl", At: -1, Span: src.span}, {Text: "-X", At: -1, Span: src.span},
		{Text: line[0], At: -1, Span: src.span}, {Text: url, At: -1, Span: src.span}}
	if body = strings.TrimSpace(body); body != "" {
		argv = append(argv, Word{Text: "-d", At: -1, Span: src.span}, Word{Text: body, At: -1, Span: src.span})
	}
	sh := &shell{e: e, src: src}
	sh.run(&invocation{src: src, argv: argv, to: len(src.text)})
}

// isGroup: "{" at the end of a line, and no JSON behind it, opens a group of commands.
func isGroup(text string) bool {
	rest := strings.TrimLeft(text[1:], " \t\r\n")
	if rest != "" && rest[0] == '"' { // a key has a colon behind it, a command has not
		_, after, ok := strings.Cut(rest[1:], "\"")
		return text[0] == '{' && ok && !strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), ":")
	}
	return text[0] == '{' && rest != text[1:] && rest != "" && rest[0] != '}'
}
