// Package posix is the front-end for shells and for programs that are called with words. It
// evaluates a script as far as variables, files and pipes are known, and judges each call that
// would run. Other front-ends pass their calls of programs to this package, so that a program has
// one meaning in every language.
package posix

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"mvdan.cc/sh/v3/syntax"
)

// parserPair holds a parser for Bash, one for zsh, and a lenient one for Bash that recovers from
// errors. A parser is not safe for concurrent use, so each goroutine takes a pair from pool.
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
	text, sure := interp.EndComments(p.strict, text)
	f, err := p.strict.Parse(strings.NewReader(text), "")
	if err == nil {
		interp.SplitFunctions(f, text)
		return interp.Parsed{Stmts: f.Stmts, Whole: sure}
	}
	if f, err = p.zsh.Parse(strings.NewReader(text), ""); err == nil {
		interp.SplitFunctions(f, text)
		return interp.Parsed{Stmts: f.Stmts, Zsh: sure}
	}
	if f, err = p.lenient.Parse(strings.NewReader(text), ""); err == nil && f != nil {
		interp.SplitFunctions(f, text)
		return interp.Parsed{Stmts: f.Stmts}
	}
	return interp.Parsed{}
}

// parse is parseShell with a cache, for texts that are parsed several times: in a loop, or in a
// file that runs itself.
func parse(e *interp.Env, text string) interp.Parsed {
	for i := range e.Texts {
		if e.Texts[i].Text == text {
			return e.Texts[i]
		}
	}
	p := parseShell(text)
	p.Text = text
	if len(e.Texts) < scan.MaxTexts {
		e.Texts = append(e.Texts, p)
	}
	return p
}

// Script judges a whole text as a shell program and returns its output.
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
	if !p.Whole && !(p.Zsh && sh.Zsh) { // if only zsh accepts the text and no zsh runs it, it may not be shell text at all
		e.Unparsed = true
		e.Unproven = true
		e.Doubt("a part of the command could not be parsed")
		e.See(act.Unparsed, src, 0, len(src.Text), "")
		scanTokens(e, src)
	}
	return out
}

func statements(sh *interp.Process, list []*syntax.Stmt, in act.Flow) act.Flow {
	if len(list) == 0 {
		return act.Flow{}
	}
	out := stmt(sh, list[0], in)
	for _, s := range list[1:] {
		out = interp.Join(out, stmt(sh, s, in))
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
	made := make([]act.Redir, len(s.Redirs)) // the file of each redirection, if it names one
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
	emptiesInput(sh, s, files)
	out := command(sh, s.Cmd, in, files)
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

// opens handles exec without a command, which keeps its redirections open. It returns false for
// other statements.
func opens(sh *interp.Process, s *syntax.Stmt, made []act.Redir) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 1 || c.Args[0].Lit() != "exec" || len(s.Redirs) == 0 {
		return false
	}
	sh.Env.Ran = true
	ownDescriptors(sh)
	for i, r := range s.Redirs {
		keepsOpen(sh, r, made[i])
	}
	return true
}

// ownDescriptors copies the table of descriptors, so that a subshell does not change that of its
// parent.
func ownDescriptors(sh *interp.Process) {
	if sh.Fds = maps.Clone(sh.Fds); sh.Fds == nil {
		sh.Fds = map[string]act.Redir{}
	}
}

// keepsOpen records the file that a redirection keeps open, or closes it.
func keepsOpen(sh *interp.Process, r *syntax.Redirect, f act.Redir) {
	name, variable := descriptor(r)
	switch {
	case givesText(r):
		f = act.Redir{Op: "<", File: act.Word{Text: "/dev/fd/" + name, At: -1}}
		sh.Env.Remember(sh, f.File, known(given(sh, r)), false)
	case r.Op == syntax.DplOut && strings.HasPrefix(r.Word.Lit(), "-"):
		delete(sh.Fds, name)
		return
	case f.Op == "": // a copy of a descriptor that is already open
		if f = sh.Fds[strings.TrimSuffix(r.Word.Lit(), "-")]; f.Op == "" {
			return
		}
	}
	if variable != "" {
		setVariable(sh, variable, act.Word{Text: name, At: -1})
	}
	if len(sh.Fds) < 2*scan.MaxFiles {
		sh.Fds[name] = f
	}
}

// descriptor returns the descriptor that a redirection opens. For {name}>file, where the shell
// chooses the number, it also returns the variable for the number.
func descriptor(r *syntax.Redirect) (name, variable string) {
	switch {
	case r.N != nil && strings.HasPrefix(r.N.Value, "{"):
		variable = strings.Trim(r.N.Value, "{}")
		return "fd-" + variable, variable
	case r.N != nil:
		return r.N.Value, ""
	case r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut || r.Op == syntax.DplIn || givesText(r):
		return "0", ""
	}
	return "1", ""
}

// givesText reports whether the redirection is a here-document or a here-string.
func givesText(r *syntax.Redirect) bool {
	return r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
}

// given returns the text of a here-document or a here-string.
func given(sh *interp.Process, r *syntax.Redirect) act.Word {
	switch {
	case r.Op == syntax.WordHdoc:
		return wordText(sh, r.Word)
	case r.Hdoc != nil:
		if end := r.Word.Lit(); (end == "" || strings.Contains(end, "\\")) && len(r.Hdoc.Parts) == 1 { // a quoted mark: backslashes are literal
			if lit, ok := r.Hdoc.Parts[0].(*syntax.Lit); ok {
				return literal(sh, lit)
			}
		}
		return body(sh, r.Hdoc)
	}
	return act.Word{}
}

// redirect evaluates one redirection. It returns the new input, the list of files with the new
// file added, and whether the output no longer goes to the pipe.
func redirect(sh *interp.Process, r *syntax.Redirect, in act.Flow, files []act.Redir, quiet bool) (act.Flow, []act.Redir, bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return known(given(sh, r)), files, quiet
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
	}
	w := wordText(sh, r.Word)
	switch r.Op {
	case syntax.RdrIn, syntax.RdrInOut:
		return sh.Env.ReadFile(sh, w), append(files, act.Redir{Op: "<", File: w}), quiet
	case syntax.AppOut, syntax.AppAll, syntax.AppClob, syntax.AppAllClob:
		return in, append(files, act.Redir{Op: ">>", File: w}), quiet || toStdout(r)
	}
	return in, append(files, act.Redir{Op: ">", File: w}), quiet || toStdout(r)
}

func toStdout(r *syntax.Redirect) bool { return r.N == nil || r.N.Value == "1" }

func known(w act.Word) act.Flow { return act.Flow{Word: w, Known: w.Known(), Taint: w.Taint} }

// command judges one command of any kind and returns its output.
func command(sh *interp.Process, c syntax.Command, in act.Flow, files []act.Redir) act.Flow {
	switch c := c.(type) {
	case nil:
		sh.Env.Ran = true
		if len(files) > 0 && files[0].Op == "<" {
			return in // $(<file) returns the content of the file
		}
	case *syntax.CallExpr:
		return call(sh, c, in, files)
	case *syntax.BinaryCmd:
		return binary(sh, c, in)
	case *syntax.Block:
		return statements(sh, c.Stmts, in)
	case *syntax.Subshell:
		return statements(sh.Fork(), c.Stmts, in)
	case *syntax.DeclClause:
		return declaration(sh, c)
	case *syntax.TimeClause:
		return stmt(sh, c.Stmt, in)
	case *syntax.CoprocClause:
		return coprocess(sh, c, in)
	default:
		return compound(sh, c, in)
	}
	return act.Flow{Known: true}
}

// Further judges a text as a shell script after another language has been recognized, because a
// shell that gets the text runs its other commands. If the text is a single plain command, Further
// skips it: no program has that name.
func Further(e *interp.Env, src *act.Source) {
	if src.Depth == 0 && len(src.Text) <= scan.MaxText && scan.Nesting(src.Text) <= scan.MaxNesting {
		p := parse(e, src.Text)
		_, plain := append(p.Stmts, &syntax.Stmt{})[0].Cmd.(*syntax.CallExpr)
		if p.Whole && !(plain && len(p.Stmts) == 1) {
			Script(&interp.Process{Env: e}, src, act.Flow{})
		}
	}
}

// compound judges a control structure, which decides which commands run, and how often.
func compound(sh *interp.Process, c syntax.Command, in act.Flow) act.Flow {
	switch c := c.(type) {
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
	default: // a test, or an arithmetic command
		nested(sh, c)
	}
	sh.Env.Ran = true
	return act.Flow{Known: true}
}

// conditional judges the conditions and every branch of an if.
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

// while judges the body of a loop once, or once for each known line that its condition reads.
func while(sh *interp.Process, c *syntax.WhileClause, in act.Flow) act.Flow {
	if len(c.Cond) == 1 && endless(c.Cond[0], c.Until) {
		spawns(sh, c.Do, c)
	}
	if lines, ok := readsLines(c, in); ok {
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

// declaration handles declare, export and similar builtins, which set variables. Without a name
// they print all variables.
func declaration(sh *interp.Process, c *syntax.DeclClause) act.Flow {
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
	if listsVariables(c) {
		return act.Flow{Taint: act.FromEnviron, Via: c.Variant.Value}
	}
	sh.Env.Ran = true
	return act.Flow{Known: true}
}

// coprocess judges a coprocess, which runs in the background. Its output and its input become
// files, and an array contains their descriptors.
func coprocess(sh *interp.Process, c *syntax.CoprocClause, in act.Flow) act.Flow {
	name := "COPROC"
	if c.Name != nil {
		name = wordText(sh, c.Name).Text
	}
	out := stmt(sh.Fork(), c.Stmt, in)
	prints, reads := act.Word{Text: "/dev/fd/of-" + name, At: -1}, act.Word{Text: "/dev/fd/to-" + name, At: -1}
	sh.Env.Remember(sh, prints, out, false)
	sinks(sh, reads.Text, []*syntax.Stmt{c.Stmt})
	ownDescriptors(sh)
	sh.Fds["of-"+name], sh.Fds["to-"+name] = act.Redir{Op: "<", File: prints}, act.Redir{Op: ">", File: reads}
	setAll(sh, name, []act.Word{{Text: "of-" + name, At: -1}, {Text: "to-" + name, At: -1}})
	return act.Flow{Known: true}
}

func binary(sh *interp.Process, c *syntax.BinaryCmd, in act.Flow) act.Flow {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		apart(sh, c.X)
		emptiesSource(sh, c)
		from := len(sh.Env.Findings)
		out := stmt(sh, c.X, in)
		apart(sh, c.Y)
		sh.Env.Segment++
		to := len(sh.Env.Findings)
		out = stmt(sh, c.Y, out)
		if _, simple := c.Y.Cmd.(*syntax.CallExpr); simple {
			handOver(sh.Env, from, to)
		}
		return out
	}
	out := stmt(sh, c.X, in)
	sh.Env.Segment++
	apart(sh, c.Y)
	return interp.Join(out, stmt(sh, c.Y, in))
}

// apart keeps the current values of variables as possible ones, if the statement only assigns
// variables. In a pipe, in the background or after a condition the assignment may happen in
// another process, or not at all, so the old values may remain.
func apart(sh *interp.Process, s *syntax.Stmt) {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 0 {
		maybe(sh, call.Assigns)
	}
}

func assign(sh *interp.Process, a *syntax.Assign) {
	switch {
	case a.Naked || a.Name == nil:
		if a.Value != nil {
			subscripts(sh, &act.Invocation{Exe: "declare", Src: sh.Src, From: int(a.Pos().Offset()), To: int(a.End().Offset()), Argv: []act.Word{{Text: "declare"}, wordText(sh, a.Value)}})
		}
		return
	case a.Array != nil:
		array(sh, a)
		return
	}
	w := act.Word{Span: spanOf(sh, a), At: -1}
	if a.Value != nil {
		w = wordText(sh, a.Value)
	}
	if a.Index != nil {
		setElement(sh, a.Name.Value, a.Index, w, a.Append)
		return
	}
	if old := sh.Vars[a.Name.Value]; a.Append && len(old) > 0 {
		w.Text, w.At, w.Taint = old[0].Text+w.Text, -1, w.Taint|old[0].Taint
	}
	setVariable(sh, a.Name.Value, w)
	if a.Value != nil && len(sh.Others) > 0 && !a.Append {
		otherAssign(sh, a)
	}
}

// sinks records that the statements read the text that is written to a file with this name.
func sinks(sh *interp.Process, name string, list []*syntax.Stmt) {
	if len(sh.Env.Sinks) < scan.MaxFiles {
		reader := sh.Fork()
		scan.Put(&sh.Env.Sinks, name, func(written act.Flow) { statements(reader.Fork(), list, written) })
	}
}

// hide saves the value of a variable before a local variable of the function replaces it.
func hide(sh *interp.Process, c *syntax.DeclClause, a *syntax.Assign) {
	if sh.Saved == nil || a.Name == nil || c.Variant.Value == "export" || c.Variant.Value == "readonly" {
		return
	}
	if _, done := sh.Saved[a.Name.Value]; !done && len(sh.Saved) < 2*scan.MaxFiles {
		sh.Saved[a.Name.Value] = sh.Vars[a.Name.Value]
	}
}

// restore resets the variables that the local variables of a function replaced.
func restore(sh *interp.Process, saved map[string][]act.Word) {
	for name, list := range saved {
		if list == nil {
			delete(sh.Vars, name)
		} else {
			sh.Vars[name] = list
		}
	}
}

// hooks judges the commands that a variable makes the shell run later.
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

// asNumber reports whether the declaration has -i, which evaluates values as arithmetic.
func asNumber(c *syntax.DeclClause) bool {
	return slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name == nil && a.Value != nil && shortOption(a.Value.Lit(), 'i') })
}

// listsVariables reports whether export, declare -p or a similar call has no name, so that it
// prints all variables.
func listsVariables(c *syntax.DeclClause) bool {
	return c.Variant.Value != "local" && !slices.ContainsFunc(c.Args, func(a *syntax.Assign) bool { return a.Name != nil })
}

// exports judges an exported variable, which every later command inherits.
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
	if to, ok := sh.Refs[name]; ok {
		name = to
	}
	if len(sh.Vars) < 256 {
		scan.Put(&sh.Vars, name, list)
	}
}

// call judges a simple command and returns its output.
func call(sh *interp.Process, c *syntax.CallExpr, in act.Flow, files []act.Redir) act.Flow {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			assign(sh, a)
			hooks(sh, a, int(c.Pos().Offset()), int(c.End().Offset()))
		}
		sh.Env.Ran = true
		return act.Flow{Known: true}
	}
	from := len(sh.Env.Findings)
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
	to := len(sh.Env.Findings)
	out := sh.Run(v)
	handOver(sh.Env, from, to)
	return out
}

// spanOf returns the range of a node in the submitted command.
func spanOf(sh *interp.Process, n syntax.Node) act.Span {
	s, _ := sh.Src.Where(int(n.Pos().Offset()), int(n.End().Offset()))
	return s
}

var pool = sync.Pool{New: func() any { return newParser() }}
