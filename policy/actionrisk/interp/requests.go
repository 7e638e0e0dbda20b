package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// Request is one HTTP request.
type Request struct{ Method, Address, Body string }

// Made reports whether the request has a known method and an address.
func (r Request) Made() bool {
	switch r.Method {
	case "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE":
		return strings.HasPrefix(r.Address, "http://") || strings.HasPrefix(r.Address, "https://") || strings.HasPrefix(r.Address, "/")
	}
	return false
}

// RequestLine parses "DELETE https://host/path" or "POST /path BODY".
func RequestLine(text string) (Request, bool) {
	method, rest, _ := strings.Cut(text, " ")
	address, body, _ := strings.Cut(strings.TrimSpace(rest), " ")
	r := Request{method, address, strings.TrimSpace(body)}
	return r, r.Made() && !strings.Contains(rest, " | ") // " | " means that GET is LWP's program, in a pipe
}

// RunRequest judges a request as the call of curl that sends it.
func (e *Env) RunRequest(src *act.Source, r Request) {
	words := []string{"curl", "-X", r.Method, r.Address}
	if r.Body != "" {
		words = append(words, "-d", r.Body)
	}
	(&Process{Env: e, Src: src}).Run(&act.Invocation{Src: src, Argv: WordsAt(src, words), To: len(src.Text)})
}

// WordsAt returns texts as words with the range of src.
func WordsAt(src *act.Source, texts []string) []act.Word {
	words := make([]act.Word, len(texts))
	for i, t := range texts {
		words[i] = act.Word{Text: t, At: -1, Span: src.Span, Taint: src.Taint}
	}
	return words
}
