package program

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tokens"
)

// awkSign judges a pipe or an output redirection of awk at token i.
func (r *inlineRun) awkSign(i int) {
	switch {
	case r.lang != "awk":
	case r.toks[i].Kind == '|':
		r.awkPipe(i)
	case r.at(i, 1).Kind == tokens.String:
		r.awkWrites(i)
	}
}

// awkPipe judges a pipe of awk. The text before "| getline" is a command that runs. The text after
// any other pipe is a command that reads what is printed; if it is a shell, it runs that text.
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

// awkRuns judges a command, if any part of it is known.
func (r *inlineRun) awkRuns(command tokens.Token) {
	if command.To > 0 && command.Text != string(scan.Hole) {
		r.shellText(command)
	}
}

// awkFeeds judges text that is printed to a shell.
func (r *inlineRun) awkFeeds(printed, at tokens.Token) {
	if printed.To > 0 && strings.Trim(printed.Text, string(scan.Hole)+" ") != "" {
		r.shellText(printed)
	}
	if !printed.Exact || strings.IndexByte(printed.Text, scan.Hole) >= 0 { // the printed text depends on the input
		r.sh.Env.See(act.RunsUnknownText, r.src, at.From, at.To, "")
	}
}

// awkCommandEnd returns the index of the token after the command that begins at token i, or i if
// the budget is spent.
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

// awkWrites judges print "text" > "file". The ">" is token i.
func (r *inlineRun) awkWrites(i int) {
	file := r.toks[i+1]
	r.read(r.toks[i], []tokens.Token{file, {Kind: tokens.String, Text: "w"}})
	if left := r.awkPrinted(i); left.To > 0 && strings.IndexByte(left.Text, scan.Hole) < 0 {
		r.sh.Env.Remember(r.sh, r.word(file), act.Flow{Word: r.word(left), Known: true}, false)
	}
}

// awkPrinted returns the text that awk prints to the pipe or file at token i.
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

// awkWords lists keywords that can precede the printed text.
var awkWords = scan.SetOf("print printf while if else do return")
