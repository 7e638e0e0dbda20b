package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// awkSign judges a pipe or a file of awk.
func (r *inlineRun) awkSign(i int) {
	switch {
	case r.lang != "awk":
	case r.toks[i].Kind == '|':
		r.awkPipe(i)
	case r.at(i, 1).Kind == tokens.String:
		r.awkWrites(i)
	}
}

// awkPipe judges awk's two pipes: what is before "| getline" is a command, and so
// is what is after any other, which, if it is a shell, runs what is printed.
func (r *inlineRun) awkPipe(i int) {
	right := i + 1
	if next := r.at(i, 1).Kind; next == 0 || next == '|' || i > 0 && r.toks[i-1].Kind == '|' {
		return
	} else if next == '&' && right+1 < len(r.toks) {
		right++
	}
	left := r.awkPrinted(i)
	if r.toks[right].Text == "getline" {
		r.awkRuns(left)
		return
	}
	command := r.join(r.toks[right:r.awkCommandEnd(right)])
	if words := strings.Fields(command.Text); len(words) > 0 && slices.Contains(r.sh.Env.Groups.Get("shells"), scan.Base(words[0])) {
		r.awkFeeds(left, r.toks[i])
	}
	r.awkRuns(command)
}

// awkRuns runs a command, if anything is known of it.
func (r *inlineRun) awkRuns(command tokens.Token) {
	if command.To > 0 && command.Text != string(scan.Hole) {
		r.shellText(command)
	}
}

// awkFeeds judges what is printed to a shell.
func (r *inlineRun) awkFeeds(printed, at tokens.Token) {
	if printed.To > 0 && strings.Trim(printed.Text, string(scan.Hole)+" ") != "" {
		r.shellText(printed)
	}
	if !printed.Exact || strings.IndexByte(printed.Text, scan.Hole) >= 0 { // made of what it reads
		r.sh.Env.See(act.RunsUnknownText, r.src, at.From, at.To, "")
	}
}

// awkCommandEnd is where the command ends that begins at i; i itself where the budget does.
func (r *inlineRun) awkCommandEnd(i int) int {
	end := i
	for end < min(len(r.toks), i+64) && strings.IndexByte(";{})", r.toks[end].Kind) < 0 && (end == i || !strings.Contains(r.src.Text[r.toks[end-1].To:r.toks[end].From], "\n")) {
		end++
	}
	if !r.sh.Env.Budget.Spend(1 + (end-i)/2) {
		return i
	}
	return end
}

// awkWrites judges print "text" > "file", whose sign is at i.
func (r *inlineRun) awkWrites(i int) {
	file := r.toks[i+1]
	r.read(r.toks[i], []tokens.Token{file, {Kind: tokens.String, Text: "w"}})
	if left := r.awkPrinted(i); left.To > 0 && strings.IndexByte(left.Text, scan.Hole) < 0 {
		r.sh.Env.Remember(r.sh, r.word(file), act.Flow{Word: r.word(left), Known: true}, false)
	}
}

// awkPrinted is the text that is before a pipe or a file: what awk prints there.
func (r *inlineRun) awkPrinted(i int) tokens.Token {
	from := i
	for from > max(0, i-64) && strings.IndexByte(";{}(", r.toks[from-1].Kind) < 0 && !awkWords.Has(r.toks[from-1].Text) && !strings.Contains(r.src.Text[r.toks[from-1].To:r.toks[from].From], "\n") {
		from--
	}
	if !r.sh.Env.Budget.Spend(1 + (i-from)/2) {
		return tokens.Token{}
	}
	left := r.join(r.toks[from:i])
	if from > 0 && r.toks[from-1].Text == "printf" {
		if text, ok := r.sprintf(r.toks[from:i]); ok {
			left.Text, left.Exact = text, false
		}
	}
	return left
}

// awkWords are before what awk prints.
var awkWords = scan.SetOf("print printf while if else do return")
