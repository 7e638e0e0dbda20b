package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// scanTokens is the last resort for text that no parser takes: it is cut at
// command separators and each piece is judged as if it were a simple command.
func (e *engine) scanTokens(src *source) {
	text := src.text
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
				piece = append(piece, string(scan.Hole)) // what a substitution prints
			}
			pieces++
			e.scanPiece(src, start, start+end, piece)
		}
		start += end + 1
	}
}

func (e *engine) scanPiece(src *source, from, to int, words []string) {
	span, _ := src.where(from, to)
	at := *src
	at.depth++
	sh := &shell{e: e, src: &at}
	v := &invocation{src: &at, from: from, to: to}
	for i, w := range words {
		if i > 64 {
			break
		}
		if w = strings.Trim(w, `"'{}`); strings.HasPrefix(w, "$") {
			w = string(scan.Hole)
		}
		if w != "" {
			v.argv = append(v.argv, Word{Text: w, At: -1, Span: span})
		}
	}
	if len(v.argv) > 0 && e.exe[scan.Base(v.argv[0].Text)] {
		sh.run(v)
	}
}

// printsSecret: commands whose output is a credential.
func (e *engine) printsSecret(v *invocation) bool {
	for i := range e.findings {
		f := &e.findings[i]
		if s, _ := v.src.where(v.from, v.to); f.Span == s {
			switch f.Rule.ID {
			case "secret.read-store", "secret.read-file", "secret.print-named", "secret.print-env":
				return true
			}
		}
	}
	return false
}
