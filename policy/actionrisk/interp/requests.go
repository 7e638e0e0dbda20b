package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// RequestLine splits "DELETE https://host/path" and "POST /path"; nil if it is none.
func RequestLine(text string) []string {
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

// RunHTTPLine judges an HTTP request line as the client call it stands for.
func (e *Env) RunHTTPLine(src *act.Source, line []string) {
	url, body, _ := strings.Cut(line[1], " ")
	argv := []act.Word{{Text: "curl", At: -1, Span: src.Span}, {Text: "-X", At: -1, Span: src.Span},
		{Text: line[0], At: -1, Span: src.Span}, {Text: url, At: -1, Span: src.Span}}
	if body = strings.TrimSpace(body); body != "" {
		argv = append(argv, act.Word{Text: "-d", At: -1, Span: src.Span}, act.Word{Text: body, At: -1, Span: src.Span})
	}
	sh := &Process{Env: e, Src: src}
	sh.Run(&act.Invocation{Src: src, Argv: argv, To: len(src.Text)})
}
