package posix

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// handOver removes the findings [from:to] that a secret is printed, if a later finding shows that
// it is passed to a program which stores it or authenticates with it: echo "$TOKEN" | docker login
// --password-stdin.
func handOver(e *interp.Env, from, to int) {
	if to >= len(e.Findings) {
		return
	}
	var around []string // the programs that start the whole pipeline, such as bash -c
	if i := slices.IndexFunc(e.Findings[from:to], func(f interp.Finding) bool { return printing(f.Rule.ID) }); i >= 0 {
		around = e.Findings[from+i].Via
	}
	i := slices.IndexFunc(e.Findings[to:], func(f interp.Finding) bool { return takesSecret(f, around) })
	if i < 0 {
		return
	}
	by, n := e.Findings[to+i].Span, 0
	e.Findings = append(e.Findings[:from:from], slices.DeleteFunc(slices.Clone(e.Findings[from:]), func(f interp.Finding) bool {
		n++
		return printing(f.Rule.ID) && (n <= to-from || f.Span == by)
	})...)
}

// takesSecret reports whether the finding is about a program that stores a secret or authenticates
// with it, and the pipeline itself starts this program. around lists the programs that start the
// whole pipeline, which do not count.
func takesSecret(f interp.Finding, around []string) bool {
	via := f.Via
	for len(via) > 0 && len(around) > 0 && via[0] == around[0] {
		via, around = via[1:], around[1:]
	}
	return (f.Rule.ID == act.KeepsSecret || f.Rule.ID == act.Authenticates) && !slices.ContainsFunc(via, func(via string) bool {
		return via != "sudo" && via != "doas" && via != "env" && via != "command" && via != "time" && via != "npx"
	})
}

// printing reports whether the rule is about a secret that is printed.
func printing(id string) bool {
	switch id {
	case act.PrintsStored, act.PrintsFile, act.PrintsNamed, act.PrintsEnvironment:
		return true
	}
	return false
}

// emptiesInput reports a redirection that empties the file that the same pipeline reads: jq . f >
// f. The shell opens the file before any program starts.
func emptiesInput(sh *interp.Process, s *syntax.Stmt, files []act.Redir) {
	for _, f := range files {
		if f.Op != ">" || !f.File.Known() || f.File.Glob || sh.Env.ClassOf(f.File, sh.Cwd)&(paths.IsNullDevice|paths.IsDevice) != 0 || strings.HasPrefix(f.File.Text, "/dev/") {
			continue
		}
		if readsFile(sh, s, sh.Env.Key(sh.Cwd, f.File.Text)) {
			sh.Env.See(act.EmptiesInput, sh.Src, int(s.Pos().Offset()), int(s.End().Offset()), act.Printable(f.File.Text))
		}
	}
}

// emptiesSource reports that the last program of a pipeline empties a file that an earlier one
// reads. tee opens its files as early as the shell opens redirections.
func emptiesSource(sh *interp.Process, c *syntax.BinaryCmd) {
	empties := func(name string) {
		if name != "" && !strings.HasPrefix(name, "/dev/") && readsFile(sh, c.X, sh.Env.Key(sh.Cwd, name)) {
			sh.Env.See(act.EmptiesInput, sh.Src, int(c.Pos().Offset()), int(c.End().Offset()), act.Printable(name))
		}
	}
	for _, r := range c.Y.Redirs {
		if r.Op == syntax.RdrOut && toStdout(r) {
			empties(plainWord(r.Word))
		}
	}
	if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 2 && call.Args[0].Lit() == "tee" {
		empties(plainWord(call.Args[1]))
	}
}

// readsFile reports whether a program of the pipeline reads the file, as an argument or as its
// input.
func readsFile(sh *interp.Process, s *syntax.Stmt, key string) bool {
	for _, r := range s.Redirs {
		if r.Op == syntax.RdrIn && sh.Env.Key(sh.Cwd, r.Word.Lit()) == key && r.Word.Lit() != "" {
			return true
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe && (readsFile(sh, c.X, key) || readsFile(sh, c.Y, key))
	case *syntax.CallExpr:
		if len(c.Args) < 2 || !sh.Env.Budget.Spend(len(c.Args)/2) || !sh.Env.In("readers", scan.Base(c.Args[0].Lit())) && !sh.Env.In("text-filters", scan.Base(c.Args[0].Lit())) {
			return false
		}
		return slices.ContainsFunc(c.Args[1:], func(w *syntax.Word) bool {
			text := plainWord(w)
			return text != "" && sh.Env.Key(sh.Cwd, text) == key
		})
	}
	return false
}

// plainWord returns the text of a word without expansions, quoted or not; otherwise "".
func plainWord(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	switch p := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		return p.Value
	case *syntax.DblQuoted:
		if len(p.Parts) == 1 {
			if lit, ok := p.Parts[0].(*syntax.Lit); ok {
				return lit.Value
			}
		}
	}
	return w.Lit()
}
