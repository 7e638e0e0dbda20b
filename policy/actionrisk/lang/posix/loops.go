package posix

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// loop judges the body of a for loop once for each known value.
func loop(sh *interp.Process, c *syntax.ForClause, in act.Flow) act.Flow {
	if counting, ok := c.Loop.(*syntax.CStyleLoop); ok {
		if alwaysTrue(counting.Cond) {
			spawns(sh, c.Do, c)
		}
		nested(sh, c.Loop)
		return statements(sh, c.Do, in)
	}
	iter := c.Loop.(*syntax.WordIter)
	var values []act.Word
	if !sh.Env.Budget.Spend(4 * len(iter.Items)) {
		return act.Flow{}
	}
	for _, w := range iter.Items {
		values = fields(sh, w, values)
	}
	if len(values) == 0 {
		values = []act.Word{{Text: string(scan.Hole), At: -1, Span: spanOf(sh, c), Var: iter.Name.Value}}
	}
	var out act.Flow
	for i, v := range values {
		v.Lone = v.Lone && !v.Glob
		sh.Env.Rounds++
		last := i == scan.MaxLoop || sh.Env.Rounds > scan.MaxRounds
		if last {
			sh.Env.Doubt("loops run over more values than are looked at")
		}
		setVariable(sh, iter.Name.Value, v)
		out = interp.Join(out, statements(sh, c.Do, in))
		if last || sh.Env.Budget.Spent {
			break
		}
	}
	return out
}

// alwaysTrue reports whether there is no condition, or it is a number other than 0.
func alwaysTrue(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return x == nil || ok && w.Lit() != "" && strings.Trim(w.Lit(), "0123456789") == "" && w.Lit() != "0"
}

// endless reports whether the condition of a while or until loop never ends it: true, :, [[ 1 ]],
// ((1)), [ 1 ], or, for until, the negation of one of these.
func endless(s *syntax.Stmt, until bool) bool {
	constant, holds := false, true
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		constant, holds = constantCall(c.Args)
	case *syntax.TestClause:
		w, ok := c.X.(*syntax.Word)
		constant = ok && w.Lit() != ""
	case *syntax.ArithmCmd:
		w, ok := c.X.(*syntax.Word)
		constant, holds = ok && w.Lit() != "", !ok || w.Lit() != "0"
	}
	return constant && (holds != s.Negated) != until
}

// constantCall reports whether a command is a constant condition, and its value: true, :, false,
// and a test of one literal word, which is true.
func constantCall(words []*syntax.Word) (constant, holds bool) {
	if len(words) == 0 {
		return false, false
	}
	switch name := scan.Base(words[0].Lit()); name {
	case "true", ":", "false":
		return len(words) == 1, name != "false"
	case "test":
		return len(words) == 2 && words[1].Lit() != "", true
	case "[":
		return len(words) == 3 && words[1].Lit() != "", true
	}
	return false, false
}

// spawns reports an endless loop that starts background processes and waits for none of them.
func spawns(sh *interp.Process, body []*syntax.Stmt, n syntax.Node) {
	if left, _ := leaves(body); left {
		sh.Env.See(act.StartsForEver, sh.Src, int(n.Pos().Offset()), int(n.End().Offset()), "")
	}
}

// leaves reports whether a background process still runs after the statements, and whether the
// statements leave the loop.
func leaves(list []*syntax.Stmt) (left, ends bool) {
	for _, s := range list {
		if left, ends = leavesBehind(s, left); ends {
			return false, true
		}
	}
	return left, false
}

// leavesBehind is leaves for one statement. before means that a background process already runs
// before it.
func leavesBehind(s *syntax.Stmt, before bool) (left, ends bool) {
	left = before
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return callLeaves(c, s.Background, before)
	case *syntax.Block:
		left, ends = leaves(c.Stmts)
	case *syntax.Subshell:
		left, _ = leaves(c.Stmts)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			inner, _ := leaves(c.Then)
			left = left || inner
		}
	}
	return before || left || s.Background, ends && !s.Background
}

// callLeaves is leavesBehind for one call.
func callLeaves(c *syntax.CallExpr, background, before bool) (left, ends bool) {
	if background || len(c.Args) == 0 {
		return before || background, false
	}
	switch c.Args[0].Lit() {
	case "wait", "sleep", "read":
		return false, false
	case "break", "exit", "return":
		return false, true
	}
	return before, false
}

// declare records a function. It reports a function that calls itself in a pipe or in the
// background, which is a fork bomb.
func declare(sh *interp.Process, c *syntax.FuncDecl) {
	if c.Name == nil {
		return
	}
	scan.Put(&sh.Funcs, c.Name.Value, interp.Function{Body: c.Body, Src: sh.Src})
	var around []bool // for each enclosing node, whether it is a pipe or runs in the background
	calls := false
	syntax.Walk(c.Body, func(n syntax.Node) bool {
		splits := false
		switch n := n.(type) {
		case nil:
			around = around[:len(around)-1]
			return true
		case *syntax.CallExpr:
			calls = calls || len(n.Args) > 0 && n.Args[0].Lit() == c.Name.Value && slices.Contains(around, true)
		case *syntax.BinaryCmd:
			splits = n.Op == syntax.Pipe
		case *syntax.Stmt:
			splits = n.Background
		}
		around = append(around, splits)
		return true
	})
	if calls {
		sh.Env.See(act.CallsItself, sh.Src, int(c.Pos().Offset()), int(c.End().Offset()), "")
	}
}

// otherValues judges a call again for each further possible value of its variables.
func otherValues(sh *interp.Process, c *syntax.CallExpr, v *act.Invocation) {
	others := sh.Others
	sh.Others = nil
	defer func() { sh.Others = others }()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		used := false
		for _, w := range c.Args {
			used = used || uses(w, name)
		}
		if !used {
			continue
		}
		now := sh.Vars[name]
		for _, value := range others[name] {
			again := *v
			again.Argv = nil
			sh.Vars[name] = []act.Word{value}
			for _, w := range c.Args {
				again.Argv = fields(sh, w, again.Argv)
			}
			if len(again.Argv) > 0 {
				sh.Fork().Run(&again)
			}
		}
		sh.Vars[name] = now
	}
}

// otherAssign records further possible values of a variable whose new value uses a variable with
// such values.
func otherAssign(sh *interp.Process, a *syntax.Assign) {
	others := sh.Others
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if name == a.Name.Value || !uses(a.Value, name) {
			continue
		}
		now := sh.Vars[name]
		for _, value := range others[name] {
			sh.Vars[name] = []act.Word{value}
			also(sh, a.Name.Value, wordText(sh, a.Value))
		}
		sh.Vars[name] = now
	}
}

// uses reports whether a word expands the variable.
func uses(w *syntax.Word, name string) bool {
	used := false
	syntax.Walk(w, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		used = used || ok && p.Param != nil && p.Param.Value == name
		return !used
	})
	return used
}

// maybe records the current values of variables as further possible values, because the
// assignments may not happen.
func maybe(sh *interp.Process, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || len(sh.Vars[a.Name.Value]) != 1 {
			continue
		}
		also(sh, a.Name.Value, sh.Vars[a.Name.Value][0])
	}
}

// nested judges the command substitutions inside a node that only tests a condition and runs no
// command itself.
func nested(sh *interp.Process, n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			statements(sh.Fork(), n.Stmts, act.Flow{})
			return false
		case *syntax.ProcSubst:
			statements(sh.Fork(), n.Stmts, act.Flow{})
			return false
		case *syntax.SglQuoted:
			subscripts(sh, &act.Invocation{Exe: "let", Src: sh.Src, From: int(n.Pos().Offset()), To: int(n.End().Offset()),
				Argv: []act.Word{{Text: "test"}, {Text: n.Value, At: -1, Span: spanOf(sh, n)}}})
		case *syntax.Lit:
			if len(sh.Vars) > 0 {
				inArithmetic(sh, n.Value, n)
			}
		}
		return true
	})
}
