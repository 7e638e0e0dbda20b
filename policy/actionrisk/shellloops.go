package actionrisk

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// loop runs the body once for each known value.
func (sh *shell) loop(c *syntax.ForClause, in flow) flow {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		if c2, ok := c.Loop.(*syntax.CStyleLoop); ok && c2.Cond == nil {
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
	if len(values) > maxLoop {
		sh.e.doubt("a loop runs over more values than are looked at")
		values = values[:maxLoop]
	}
	if len(values) == 0 {
		values = []Word{{Text: string(hole), At: -1, Span: sh.spanOf(c), Var: iter.Name.Value}}
	}
	var out flow
	for _, v := range values {
		if v.Glob {
			v.Lone = false
		}
		if sh.e.rounds++; sh.e.rounds > maxRounds {
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

// endless: true, : and [[ 1 ]] never end a loop.
func endless(c syntax.Command) bool {
	switch c := c.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 1 {
			b := base(c.Args[0].Lit())
			return b == "true" || b == ":"
		}
	case *syntax.TestClause:
		_, ok := c.X.(*syntax.Word)
		return ok
	case *syntax.ArithmCmd:
		_, ok := c.X.(*syntax.Word)
		return ok
	}
	return false
}

// spawns: an endless loop that starts processes in the background and waits for
// none of them.
func (sh *shell) spawns(body []*syntax.Stmt, n syntax.Node) {
	starts := false
	for _, s := range body {
		if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 && !s.Background {
			switch c.Args[0].Lit() {
			case "wait", "sleep", "break", "read", "exit", "return":
				return
			}
		}
		starts = starts || s.Background
	}
	if starts {
		sh.e.raise("shell.proc.spawn-loop", sh.src, int(n.Pos().Offset()), int(n.End().Offset()), "")
	}
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
		}
		return true
	})
}
