// Package posix is the front-end of shells and of programs called by words: it follows a
// script with what is known of variables, files and pipes, and judges each call that
// would run. The one meaning of a program, whichever language calls it, is here.
package posix

import (
	"maps"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// parserPair is a shell parser, one for zsh, and a lenient twin. A parser is not safe
// for two goroutines, so they are pooled.
type parserPair struct{ strict, zsh, lenient *syntax.Parser }

func newParser() *parserPair {
	return &parserPair{
		strict:  syntax.NewParser(syntax.Variant(syntax.LangBash)),
		zsh:     syntax.NewParser(syntax.Variant(syntax.LangZsh)),
		lenient: syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.RecoverErrors(5)),
	}
}

func parseShell(text string) interp.Parsed {
	p := pool.Get().(*parserPair)
	defer pool.Put(p)
	f, err := p.strict.Parse(strings.NewReader(text), "")
	if err == nil {
		return interp.Parsed{Stmts: f.Stmts, Whole: true}
	}
	if f, err = p.zsh.Parse(strings.NewReader(text), ""); err == nil {
		return interp.Parsed{Stmts: f.Stmts, Zsh: true}
	}
	if f, err = p.lenient.Parse(strings.NewReader(text), ""); err == nil && f != nil {
		return interp.Parsed{Stmts: f.Stmts}
	}
	return interp.Parsed{}
}

// parse is parseShell for texts that may come again: a loop's, a file's that runs
// itself.
func parse(e *interp.Env, text string) interp.Parsed {
	p, ok := e.Texts[text]
	if ok {
		return p
	}
	p = parseShell(text)
	if e.Texts == nil {
		e.Texts = map[string]interp.Parsed{}
	}
	if len(e.Texts) < scan.MaxTexts {
		e.Texts[text] = p
	}
	return p
}

// Script runs a whole text as a shell program.
func Script(sh *interp.Process, src *act.Source, in act.Flow) act.Flow {
	e := sh.Env
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText || scan.Nesting(src.Text) > scan.MaxNesting || !e.Budget.Spend(1+len(src.Text)/4) {
		e.TooDeep = true
		scanTokens(e, src)
		return act.Flow{}
	}
	p := parse(e, src.Text)
	outer := sh.Src
	sh.Src = src
	defer func() { sh.Src = outer }()
	out := statements(sh, p.Stmts, in)
	if !p.Whole && !(p.Zsh && sh.Zsh) { // without zsh around it, it may as well be no shell text at all
		e.Unparsed = true
		e.Unproven = true
		e.Doubt("a part of the command could not be parsed")
		e.See(act.Unparsed, src, 0, len(src.Text), "")
		scanTokens(e, src)
	}
	return out
}

func statements(sh *interp.Process, list []*syntax.Stmt, in act.Flow) act.Flow {
	var out act.Flow
	for i, s := range list {
		f := stmt(sh, s, in)
		if i == 0 {
			out = f
			continue
		}
		out = interp.Join(out, f)
	}
	return out
}

func stmt(sh *interp.Process, s *syntax.Stmt, in act.Flow) act.Flow {
	if s == nil || sh.Env.Invocations > scan.MaxInvocations || !sh.Env.Budget.Spend(2) {
		return act.Flow{}
	}
	sh.Env.Background = sh.Env.Background || s.Background
	var files []act.Redir
	quiet := false
	made := make([]act.Redir, len(s.Redirs)) // the file of each, if it names one
	for i, r := range s.Redirs {
		before := len(files)
		if in, files, quiet = redirect(sh, r, in, files, quiet); len(files) > before {
			made[i] = files[len(files)-1]
		}
	}
	if opens(sh, s, made) {
		return act.Flow{Known: true}
	}
	if s.Background {
		apart(sh, s)
		behind := sh.Behind
		sh.Behind = true
		defer func() { sh.Behind = behind }()
	}
	out := command(sh, s.Cmd, in, files, s)
	for _, f := range files {
		if f.Op != "<" {
			sh.WriteAt(f, out, int(s.Pos().Offset()), int(s.End().Offset()))
		}
	}
	if quiet {
		return act.Flow{Known: true}
	}
	return out
}

// opens: exec without a command keeps its redirections open under their
// descriptors.
func opens(sh *interp.Process, s *syntax.Stmt, made []act.Redir) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 1 || c.Args[0].Lit() != "exec" || len(s.Redirs) == 0 {
		return false
	}
	sh.Env.Ran = true
	if sh.Fds = maps.Clone(sh.Fds); sh.Fds == nil { // a subshell's are its own
		sh.Fds = map[string]act.Redir{}
	}
	for i, r := range s.Redirs {
		name, chosen := "1", false
		if r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut || r.Op == syntax.DplIn || r.Op == syntax.WordHdoc || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			name = "0"
		}
		if r.N != nil {
			name = strings.Trim(r.N.Value, "{}")
			chosen = strings.HasPrefix(r.N.Value, "{")
		}
		var f act.Redir
		switch {
		case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc:
			text := act.Word{}
			if r.Hdoc != nil {
				text = body(sh, r.Hdoc)
			} else {
				text = wordText(sh, r.Word)
			}
			f = act.Redir{Op: "<", File: act.Word{Text: "/dev/fd/" + name, At: -1}}
			sh.Env.Remember(sh, f.File, known(text), false)
		case r.Op == syntax.DplOut && strings.HasPrefix(r.Word.Lit(), "-"):
			if chosen {
				name = "fd-" + name
			}
			delete(sh.Fds, name)
			continue
		case made[i].Op != "":
			f = made[i]
		default: // a copy of what this very line has opened
			if f = sh.Fds[strings.TrimSuffix(r.Word.Lit(), "-")]; f.Op == "" {
				continue
			}
		}
		if chosen { // {name}: the shell chooses a number and keeps it there
			setVariable(sh, name, act.Word{Text: "fd-" + name, At: -1})
			name = "fd-" + name
		}
		if len(sh.Fds) < 2*scan.MaxFiles {
			sh.Fds[name] = f
		}
	}
	return true
}

// redirect reads one redirection: what it makes of stdin, the files it names,
// and whether output no longer reaches the pipe.
func redirect(sh *interp.Process, r *syntax.Redirect, in act.Flow, files []act.Redir, quiet bool) (act.Flow, []act.Redir, bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return act.Flow{Known: true}, files, quiet
		}
		return known(body(sh, r.Hdoc)), files, quiet
	case syntax.WordHdoc:
		w := wordText(sh, r.Word)
		return act.Flow{Word: w, Known: w.Known(), Taint: w.Taint}, files, quiet
	case syntax.DplIn, syntax.DplOut:
		w := wordText(sh, r.Word)
		if strings.HasPrefix(w.Text, "/") {
			files = append(files, act.Redir{Op: ">", File: w})
		}
		if f, ok := sh.Fds[strings.TrimSuffix(w.Text, "-")]; ok {
			if r.Op == syntax.DplIn && f.Op == "<" {
				return sh.Env.ReadFile(sh, f.File), append(files, f), quiet
			}
			return in, append(files, act.Redir{Op: ">", File: f.File}), quiet || toStdout(r)
		}
		return in, files, quiet
	case syntax.RdrIn, syntax.RdrInOut:
		w := wordText(sh, r.Word)
		return sh.Env.ReadFile(sh, w), append(files, act.Redir{Op: "<", File: w}), quiet
	case syntax.AppOut, syntax.AppAll, syntax.AppClob, syntax.AppAllClob:
		return in, append(files, act.Redir{Op: ">>", File: wordText(sh, r.Word)}), quiet || toStdout(r)
	}
	return in, append(files, act.Redir{Op: ">", File: wordText(sh, r.Word)}), quiet || toStdout(r)
}

func toStdout(r *syntax.Redirect) bool { return r.N == nil || r.N.Value == "1" }

func known(w act.Word) act.Flow { return act.Flow{Word: w, Known: w.Known(), Taint: w.Taint} }

// command runs one command of any kind with the given input.
func command(sh *interp.Process, c syntax.Command, in act.Flow, files []act.Redir, s *syntax.Stmt) act.Flow {
	switch c := c.(type) {
	case nil:
		sh.Env.Ran = true
		if len(files) > 0 && files[0].Op == "<" {
			return in // $(<file) is the file
		}
		return act.Flow{Known: true}
	case *syntax.CallExpr:
		return call(sh, c, in, files)
	case *syntax.BinaryCmd:
		return binary(sh, c, in)
	case *syntax.Block:
		return statements(sh, c.Stmts, in)
	case *syntax.Subshell:
		return statements(sh.Fork(), c.Stmts, in)
	case *syntax.IfClause:
		return conditional(sh, c, in)
	case *syntax.WhileClause:
		return while(sh, c, in)
	case *syntax.ForClause:
		return loop(sh, c, in)
	case *syntax.CaseClause:
		wordText(sh, c.Word)
		var ways []func() act.Flow
		for _, it := range c.Items {
			ways = append(ways, func() act.Flow { return statements(sh, it.Stmts, in) })
		}
		return branches(sh, ways, false)
	case *syntax.FuncDecl:
		declare(sh, c)
	case *syntax.DeclClause:
		if out, ok := declaration(sh, c); ok {
			return out
		}
	case *syntax.TimeClause:
		return stmt(sh, c.Stmt, in)
	case *syntax.CoprocClause:
		return coprocess(sh, c, in)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		nested(sh, c)
	}
	sh.Env.Ran = true
	return act.Flow{Known: true}
}

// conditional runs every branch of an if, behind the conditions that lead to it.
func conditional(sh *interp.Process, c *syntax.IfClause, in act.Flow) act.Flow {
	var ways []func() act.Flow
	all := false
	for ; c != nil; c = c.Else {
		statements(sh, c.Cond, in)
		then := c.Then
		ways = append(ways, func() act.Flow { return statements(sh, then, in) })
		all = len(c.Cond) == 0
	}
	return branches(sh, ways, all)
}

// while runs a loop once, or for each line that it reads.
func while(sh *interp.Process, c *syntax.WhileClause, in act.Flow) act.Flow {
	if len(c.Cond) == 1 && endless(c.Cond[0], c.Until) {
		spawns(sh, c.Do, c)
	}
	if lines, ok := readsLines(sh, c, in); ok {
		for _, line := range lines[:len(lines)-1] {
			if sh.Env.Rounds++; sh.Env.Rounds > scan.MaxRounds {
				break
			}
			one := in
			one.Word.Text, one.Word.At = line, -1
			statements(sh, c.Cond, one)
			statements(sh, c.Do, in)
		}
		in.Word.Text, in.Word.At = lines[len(lines)-1], -1
	}
	statements(sh, c.Cond, in)
	return statements(sh, c.Do, in)
}

// declaration sets what declare, export and their kind set, and tells whether it lists
// variables instead.
func declaration(sh *interp.Process, c *syntax.DeclClause) (act.Flow, bool) {
	for _, a := range c.Args {
		hide(sh, c, a)
		assign(sh, a)
		hooks(sh, a, int(c.Pos().Offset()), int(c.End().Offset()))
		exports(sh, c, a)
		if a.Name != nil && asNumber(c) {
			inArithmetic(sh, a.Name.Value, c)
		}
	}
	refers(sh, c.Args)
	shows(sh, c)
	return act.Flow{Taint: act.FromEnviron, Via: c.Variant.Value}, listsVariables(c)
}

// coprocess runs beside the rest; what it prints and what it reads are files whose
// descriptors stand in an array.
func coprocess(sh *interp.Process, c *syntax.CoprocClause, in act.Flow) act.Flow {
	name := "COPROC"
	if c.Name != nil {
		name = wordText(sh, c.Name).Text
	}
	out := stmt(sh.Fork(), c.Stmt, in)
	prints, reads := act.Word{Text: "/dev/fd/of-" + name, At: -1}, act.Word{Text: "/dev/fd/to-" + name, At: -1}
	sh.Env.Remember(sh, prints, out, false)
	if sh.Env.Sinks == nil {
		sh.Env.Sinks = map[string]interp.Sink{}
	}
	if len(sh.Env.Sinks) < scan.MaxFiles {
		sh.Env.Sinks[reads.Text] = sink(sh.Fork(), []*syntax.Stmt{c.Stmt})
	}
	if sh.Fds = maps.Clone(sh.Fds); sh.Fds == nil {
		sh.Fds = map[string]act.Redir{}
	}
	sh.Fds["of-"+name], sh.Fds["to-"+name] = act.Redir{Op: "<", File: prints}, act.Redir{Op: ">", File: reads}
	setAll(sh, name, []act.Word{{Text: "of-" + name, At: -1}, {Text: "to-" + name, At: -1}})
	return act.Flow{Known: true}
}

func binary(sh *interp.Process, c *syntax.BinaryCmd, in act.Flow) act.Flow {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		apart(sh, c.X)
		out := stmt(sh, c.X, in)
		apart(sh, c.Y)
		sh.Env.Segment++
		return stmt(sh, c.Y, out)
	}
	out := stmt(sh, c.X, in)
	sh.Env.Segment++
	if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 0 {
		maybe(sh, call.Assigns)
	}
	return interp.Join(out, stmt(sh, c.Y, in))
}

// apart: assignments of their own in a pipe or in the background happen in another
// process; the values before them stay possible.
func apart(sh *interp.Process, s *syntax.Stmt) {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 0 {
		maybe(sh, call.Assigns)
	}
}

func assign(sh *interp.Process, a *syntax.Assign) {
	switch {
	case a.Naked || a.Name == nil:
		if a.Value != nil {
			v := &act.Invocation{Exe: "declare", Src: sh.Src, From: int(a.Pos().Offset()), To: int(a.End().Offset()), Argv: []act.Word{{Text: "declare"}, wordText(sh, a.Value)}}
			subscripts(sh, v)
		}
	case a.Array != nil:
		array(sh, a)
	case a.Index != nil:
		w := act.Word{Span: spanOf(sh, a), At: -1}
		if a.Value != nil {
			w = wordText(sh, a.Value)
		}
		setElement(sh, a.Name.Value, a.Index, w, a.Append)
	default:
		w := act.Word{Span: spanOf(sh, a), At: -1}
		if a.Value != nil {
			w = wordText(sh, a.Value)
		}
		if old := sh.Vars[a.Name.Value]; a.Append && len(old) > 0 {
			w.Text, w.At, w.Taint = old[0].Text+w.Text, -1, w.Taint|old[0].Taint
		}
		setVariable(sh, a.Name.Value, w)
		if a.Value != nil && len(sh.Others) > 0 && !a.Append {
			otherAssign(sh, a)
		}
	}
}

// hide keeps the value that a local variable of a function takes the place of.
func hide(sh *interp.Process, c *syntax.DeclClause, a *syntax.Assign) {
	if sh.Saved == nil || a.Name == nil || c.Variant.Value == "export" || c.Variant.Value == "readonly" {
		return
	}
	if _, done := sh.Saved[a.Name.Value]; !done && len(sh.Saved) < 2*scan.MaxFiles {
		sh.Saved[a.Name.Value] = sh.Vars[a.Name.Value]
	}
}

// restore gives the variables back that a function's locals hid.
func restore(sh *interp.Process, saved map[string][]act.Word) {
	for name, list := range saved {
		if list == nil {
			delete(sh.Vars, name)
		} else {
			sh.Vars[name] = list
		}
	}
}

// hooks runs what a variable makes the shell run later.
func hooks(sh *interp.Process, a *syntax.Assign, from, to int) {
	if a.Name == nil {
		return
	}
	switch name := a.Name.Value; name {
	case "PROMPT_COMMAND", "BASH_ENV", "PS4", "PS1", "PS0":
		if w := sh.Vars[name]; len(w) == 1 {
			variableRuns(sh, &act.Invocation{Src: sh.Src, From: from, To: to}, act.Assign{Name: name, Value: w[0]})
		}
	}
}

// asNumber: declare -i takes its values for arithmetic.
func asNumber(c *syntax.DeclClause) bool {
	for _, a := range c.Args {
		if a.Naked && a.Name == nil && a.Value != nil {
			if lit := a.Value.Lit(); strings.HasPrefix(lit, "-") && strings.ContainsRune(lit, 'i') {
				return true
			}
		}
	}
	return false
}

// listsVariables: export, declare -p and their kind without a name print them all.
func listsVariables(c *syntax.DeclClause) bool {
	for _, a := range c.Args {
		if a.Name != nil {
			return false
		}
	}
	return c.Variant.Value != "local"
}

// exports: a variable that every later command sees.
func exports(sh *interp.Process, c *syntax.DeclClause, a *syntax.Assign) {
	if a.Name == nil || a.Value == nil || c.Variant.Value == "local" || c.Variant.Value == "readonly" {
		return
	}
	if w := sh.Vars[a.Name.Value]; len(w) == 1 {
		v := &act.Invocation{Src: sh.Src, From: int(c.Pos().Offset()), To: int(c.End().Offset())}
		variableRuns(sh, v, act.Assign{Name: a.Name.Value, Value: w[0]})
	}
}

func setVariable(sh *interp.Process, name string, w act.Word) { setAll(sh, name, []act.Word{w}) }

func setAll(sh *interp.Process, name string, list []act.Word) {
	for i := range list {
		if len(list[i].Text) > scan.MaxValue {
			list[i].Text, list[i].At = string(scan.Hole), -1
		}
	}
	if sh.Vars == nil {
		sh.Vars = map[string][]act.Word{}
	}
	if to, ok := sh.Refs[name]; ok {
		name = to
	}
	if len(sh.Vars) < 256 {
		sh.Vars[name] = list
	}
}

// call runs a simple command.
func call(sh *interp.Process, c *syntax.CallExpr, in act.Flow, files []act.Redir) act.Flow {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			assign(sh, a)
			hooks(sh, a, int(c.Pos().Offset()), int(c.End().Offset()))
		}
		sh.Env.Ran = true
		return act.Flow{Known: true}
	}
	v := &act.Invocation{Src: sh.Src, Stdin: in, Redirs: files, From: int(c.Pos().Offset()), To: int(c.End().Offset())}
	for _, a := range c.Assigns {
		w := act.Word{At: -1}
		if a.Value != nil {
			w = wordText(sh, a.Value)
		}
		if a.Name != nil {
			v.Env = append(v.Env, act.Assign{Name: a.Name.Value, Value: w})
		}
	}
	v.Argv = make([]act.Word, 0, len(c.Args))
	for _, w := range c.Args {
		v.Argv = fields(sh, w, v.Argv)
	}
	if len(v.Argv) == 0 {
		return act.Flow{Known: true}
	}
	if len(sh.Others) > 0 {
		otherValues(sh, c, v)
	}
	return sh.Run(v)
}

// spanOf is where a node stands in the submitted command.
func spanOf(sh *interp.Process, n syntax.Node) act.Span {
	s, _ := sh.Src.Where(int(n.Pos().Offset()), int(n.End().Offset()))
	return s
}

// sink is a text that reads what is written to it.
func sink(sh *interp.Process, list []*syntax.Stmt) interp.Sink {
	return func(written act.Flow) { statements(sh.Fork(), list, written) }
}

var pool = sync.Pool{New: func() any { return newParser() }}
