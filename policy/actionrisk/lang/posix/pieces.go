package posix

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// scanTokens judges text that no parser accepts. It cuts the text at command separators and judges
// each piece as a simple command.
func scanTokens(e *interp.Env, src *act.Source) {
	text := src.Text
	if len(text) > scan.MaxText {
		text = text[:scan.MaxText]
	}
	pieces := 0
	for start := 0; start < len(text) && pieces < 64; {
		end := strings.IndexAny(text[start:], ";|&\n()`")
		if end < 0 {
			end = len(text) - start
		}
		piece := strings.Fields(text[start : start+end])
		if len(piece) > 0 {
			if next := start + end; next+1 < len(text) && (text[next] == '(' || text[next] == '`') {
				piece = append(piece, string(scan.Hole)) // the substitution adds unknown output to the word
			}
			pieces++
			scanPiece(e, src, start, start+end, piece)
		}
		start += end + 1
	}
}

func scanPiece(e *interp.Env, src *act.Source, from, to int, words []string) {
	span, _ := src.Where(from, to)
	at := *src
	at.Depth++
	sh := &interp.Process{Env: e, Src: &at}
	v := &act.Invocation{Src: &at, From: from, To: to}
	for i, w := range words {
		if i > 64 {
			break
		}
		if w = strings.Trim(w, `"'{}`); strings.HasPrefix(w, "$") {
			w = string(scan.Hole)
		}
		if w != "" {
			v.Argv = append(v.Argv, act.Word{Text: w, At: -1, Span: span})
		}
	}
	if len(v.Argv) > 0 && e.Program(scan.Base(v.Argv[0].Text)).Judged {
		sh.Run(v)
	}
}

// printsSecret reports whether there is a finding that the call prints a credential.
func printsSecret(e *interp.Env, v *act.Invocation) bool {
	for i := range e.Findings {
		f := &e.Findings[i]
		if s, _ := v.Src.Where(v.From, v.To); f.Span == s && printing(f.Rule.ID) {
			return true
		}
	}
	return false
}

// splitWords splits a text into words.
func splitWords(w act.Word) []act.Word {
	var out []act.Word
	for _, t := range scan.OptionWords(w.Text) {
		out = append(out, act.Word{Text: t, At: -1, Span: w.Span, Taint: w.Taint, Var: w.Var})
	}
	return out
}
