package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// awkPipe judges awk's two pipes: what stands before "| getline" is a command, and so
// is what stands behind any other, which, if it is a shell, runs what is printed.
func (r *inlineRun) awkPipe(i int) {
	if i+1 >= len(r.toks) || r.toks[i+1].kind == '|' || i > 0 && r.toks[i-1].kind == '|' {
		return
	}
	right := i + 1
	if r.toks[right].kind == '&' && right+1 < len(r.toks) {
		right++
	}
	left := r.awkPrinted(i)
	if r.toks[right].text == "getline" {
		if left.to > 0 && left.text != string(scan.Hole) {
			r.shellText(left)
		}
		return
	}
	end := right
	for end < min(len(r.toks), right+64) && strings.IndexByte(";{})", r.toks[end].kind) < 0 && (end == right || !strings.Contains(r.src.text[r.toks[end-1].to:r.toks[end].from], "\n")) {
		end++
	}
	if !r.sh.e.budget.spend(1 + (end-right)/2) {
		return
	}
	command := r.join(r.toks[right:end])
	if command.to == 0 {
		return
	}
	if words := strings.Fields(command.text); len(words) > 0 && slices.Contains(r.sh.e.groups["shells"], scan.Base(words[0])) {
		if left.to > 0 && strings.Trim(left.text, string(scan.Hole)+" ") != "" {
			r.shellText(left)
		}
		if !left.exact || strings.IndexByte(left.text, scan.Hole) >= 0 { // made of what it reads
			r.sh.e.raise("obf.dynamic-structure", r.src, r.toks[i].from, r.toks[i].to, "")
		}
	}
	if command.text != string(scan.Hole) {
		r.shellText(command)
	}
}

// awkPrinted is the text that stands before a pipe or a file: what awk prints there.
func (r *inlineRun) awkPrinted(i int) inlineToken {
	from := i
	for from > max(0, i-64) && strings.IndexByte(";{}(", r.toks[from-1].kind) < 0 && !awkWords[r.toks[from-1].text] && !strings.Contains(r.src.text[r.toks[from-1].to:r.toks[from].from], "\n") {
		from--
	}
	if !r.sh.e.budget.spend(1 + (i-from)/2) {
		return inlineToken{}
	}
	left := r.join(r.toks[from:i])
	if from > 0 && r.toks[from-1].text == "printf" {
		if text, ok := r.sprintf(r.toks[from:i]); ok {
			left.text, left.exact = text, false
		}
	}
	return left
}

// awkWords stand before what awk prints.
var awkWords = scan.SetOf("print printf while if else do return")
