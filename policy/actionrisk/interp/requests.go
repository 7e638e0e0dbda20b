package interp

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// Request is one request over HTTP.
type Request struct{ Method, Address, Body string }

// Made tells whether it says what is asked for, and of whom.
func (r Request) Made() bool {
	switch r.Method {
	case "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE":
		return strings.HasPrefix(r.Address, "http://") || strings.HasPrefix(r.Address, "https://") || strings.HasPrefix(r.Address, "/")
	}
	return false
}

// RequestLine reads "DELETE https://host/path" and "POST /path BODY".
func RequestLine(text string) (Request, bool) {
	method, rest, _ := strings.Cut(text, " ")
	address, body, _ := strings.Cut(strings.TrimSpace(rest), " ")
	r := Request{method, address, strings.TrimSpace(body)}
	return r, r.Made() && !strings.Contains(rest, " | ") // LWP's GET, in a pipe
}

// RunRequest judges a request that src asks for as the client's call that makes it.
func (e *Env) RunRequest(src *act.Source, r Request) {
	words := []string{"curl", "-X", r.Method, r.Address}
	if r.Body != "" {
		words = append(words, "-d", r.Body)
	}
	(&Process{Env: e, Src: src}).Run(&act.Invocation{Src: src, Argv: WordsAt(src, words), To: len(src.Text)})
}

// WordsAt are texts as words that are where src is.
func WordsAt(src *act.Source, texts []string) []act.Word {
	words := make([]act.Word, len(texts))
	for i, t := range texts {
		words[i] = act.Word{Text: t, At: -1, Span: src.Span, Taint: src.Taint}
	}
	return words
}
