package actionrisk

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// loop runs the body once for each known value.
func (sh *shell) loop(c *syntax.ForClause, in flow) flow {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		if c2, ok := c.Loop.(*syntax.CStyleLoop); ok && alwaysTrue(c2.Cond) {
			sh.spawns(c.Do, c)
		}
		sh.nested(c.Loop)
		return sh.stmts(c.Do, in)
	}
	var values []Word
	if !sh.e.budget.spend(4 * len(iter.Items)) {
		return flow{}
	}
	for _, w := range iter.Items {
		values = sh.fields(w, values)
	}
	if len(values) > scan.MaxLoop {
		sh.e.doubt("a loop runs over more values than are looked at")
		values = values[:scan.MaxLoop]
	}
	if len(values) == 0 {
		values = []Word{{Text: string(scan.Hole), At: -1, Span: sh.spanOf(c), Var: iter.Name.Value}}
	}
	var out flow
	for _, v := range values {
		if v.Glob {
			v.Lone = false
		}
		if sh.e.rounds++; sh.e.rounds > scan.MaxRounds {
			sh.e.doubt("loops run over more values than are looked at")
			sh.set(iter.Name.Value, v)
			return join(out, sh.stmts(c.Do, in))
		}
		sh.set(iter.Name.Value, v)
		out = join(out, sh.stmts(c.Do, in))
		if sh.e.budget.spent {
			break
		}
	}
	return out
}

// alwaysTrue: no condition, or a number other than 0.
func alwaysTrue(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return x == nil || ok && w.Lit() != "" && strings.Trim(w.Lit(), "0123456789") == "" && w.Lit() != "0"
}

// endless: a condition that never ends its loop: true, :, [[ 1 ]], ((1)), [ 1 ], and
// its negation in front of until.
func endless(s *syntax.Stmt, until bool) bool {
	constant, holds := false, true
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		switch name := scan.Base(c.Args[0].Lit()); {
		case len(c.Args) == 1 && (name == "true" || name == ":" || name == "false"):
			constant, holds = true, name != "false"
		case name == "[" || name == "test": // one literal word is true
			constant = len(c.Args) == 3-strings.Count("test", name) && len(c.Args) > 1 && c.Args[1].Lit() != ""
		}
	case *syntax.TestClause:
		w, ok := c.X.(*syntax.Word)
		constant = ok && w.Lit() != ""
	case *syntax.ArithmCmd:
		w, ok := c.X.(*syntax.Word)
		constant, holds = ok && w.Lit() != "", !ok || w.Lit() != "0"
	}
	return constant && (holds != s.Negated) != until
}

// spawns: an endless loop that starts processes in the background and waits for
// none of them.
func (sh *shell) spawns(body []*syntax.Stmt, n syntax.Node) {
	if left, _ := leaves(body); left {
		sh.e.raise("shell.proc.spawn-loop", sh.src, int(n.Pos().Offset()), int(n.End().Offset()), "")
	}
}

// leaves tells whether a list of statements ends with a process of its own still
// running that nothing behind it waits for, and whether it leaves the loop.
func leaves(list []*syntax.Stmt) (left, ends bool) {
	for _, s := range list {
		if s.Background {
			left = true
			continue
		}
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			if len(c.Args) == 0 {
				continue
			}
			switch c.Args[0].Lit() {
			case "wait", "sleep", "read":
				left = false
			case "break", "exit", "return":
				return false, true
			}
		case *syntax.Block:
			inner, out := leaves(c.Stmts)
			if left = left || inner; out {
				return false, true
			}
		case *syntax.Subshell:
			inner, _ := leaves(c.Stmts)
			left = left || inner
		case *syntax.IfClause:
			for ; c != nil; c = c.Else {
				inner, _ := leaves(c.Then)
				left = left || inner
			}
		}
	}
	return left, false
}

// declare remembers a function; one that pipes into itself is a fork bomb.
func (sh *shell) declare(c *syntax.FuncDecl) {
	if c.Name == nil {
		return
	}
	if sh.funcs == nil {
		sh.funcs = map[string]function{}
	}
	sh.funcs[c.Name.Value] = function{c.Body, sh.src}
	calls, splits := 0, false
	syntax.Walk(c.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == c.Name.Value {
				calls++
			}
		case *syntax.BinaryCmd:
			splits = splits || n.Op == syntax.Pipe
		case *syntax.Stmt:
			splits = splits || n.Background
		}
		return true
	})
	if calls > 0 && splits {
		sh.e.raise("shell.proc.fork-bomb", sh.src, int(c.Pos().Offset()), int(c.End().Offset()), "")
	}
}

// otherValues runs a call with the further values that its variables may have.
func (sh *shell) otherValues(c *syntax.CallExpr, v *invocation) {
	others := sh.others
	sh.others = nil
	defer func() { sh.others = others }()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		used := false
		for _, w := range c.Args {
			used = used || uses(w, name)
		}
		if !used {
			continue
		}
		now := sh.vars[name]
		for _, value := range others[name] {
			again := *v
			again.argv = nil
			sh.vars[name] = []Word{value}
			for _, w := range c.Args {
				again.argv = sh.fields(w, again.argv)
			}
			if len(again.argv) > 0 {
				sh.fork().run(&again)
			}
		}
		sh.vars[name] = now
	}
}

// otherAssign: a variable made of one with further values has further values too.
func (sh *shell) otherAssign(a *syntax.Assign) {
	others := sh.others
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if name == a.Name.Value || !uses(a.Value, name) {
			continue
		}
		now := sh.vars[name]
		for _, value := range others[name] {
			sh.vars[name] = []Word{value}
			sh.also(a.Name.Value, sh.text(a.Value))
		}
		sh.vars[name] = now
	}
}

// uses tells whether a word expands a variable.
func uses(w *syntax.Word, name string) bool {
	used := false
	syntax.Walk(w, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		used = used || ok && p.Param != nil && p.Param.Value == name
		return !used
	})
	return used
}

// maybe notes the values that variables keep if an assignment does not happen.
func (sh *shell) maybe(list []*syntax.Assign) {
	for _, a := range list {
		if a.Name == nil || len(sh.vars[a.Name.Value]) != 1 {
			continue
		}
		sh.also(a.Name.Value, sh.vars[a.Name.Value][0])
	}
}

// nested runs the substitutions inside a node that is itself only a test.
func (sh *shell) nested(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			sh.fork().stmts(n.Stmts, flow{})
			return false
		case *syntax.ProcSubst:
			sh.fork().stmts(n.Stmts, flow{})
			return false
		case *syntax.SglQuoted:
			sh.subscripts(&invocation{exe: "let", src: sh.src, from: int(n.Pos().Offset()), to: int(n.End().Offset()),
				argv: []Word{{Text: "test"}, {Text: n.Value, At: -1, Span: sh.spanOf(n)}}})
		case *syntax.Lit:
			if len(sh.vars) > 0 {
				sh.inArithmetic(n.Value, n)
			}
		}
		return true
	})
}
