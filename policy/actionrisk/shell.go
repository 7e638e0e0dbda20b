package actionrisk

import (
	"maps"
	"strings"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/paths"
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

// parsed is a text as statements, and how it was read.
type parsed struct {
	stmts []*syntax.Stmt
	whole bool // all of it parsed
	zsh   bool // it parsed, but only as zsh
}

func parseShell(text string) parsed {
	p := pool.Get().(*parserPair)
	defer pool.Put(p)
	f, err := p.strict.Parse(strings.NewReader(text), "")
	if err == nil {
		return parsed{stmts: f.Stmts, whole: true}
	}
	if f, err = p.zsh.Parse(strings.NewReader(text), ""); err == nil {
		return parsed{stmts: f.Stmts, zsh: true}
	}
	if f, err = p.lenient.Parse(strings.NewReader(text), ""); err == nil && f != nil {
		return parsed{stmts: f.Stmts}
	}
	return parsed{}
}

// parse is parseShell for texts that may come again: a loop's, a file's that runs
// itself.
func (e *engine) parse(text string) parsed {
	p, ok := e.texts[text]
	if ok {
		return p
	}
	p = parseShell(text)
	if e.texts == nil {
		e.texts = map[string]parsed{}
	}
	if len(e.texts) < scan.MaxTexts {
		e.texts[text] = p
	}
	return p
}

// shell is the state of one shell process as far as it is known.
type shell struct {
	e        *engine
	src      *source
	vars     map[string][]Word // scalars have one word
	funcs    map[string]function
	aliases  map[string]Word
	cwd      string // "" is the action's own
	zero     Word   // $0 of bash -c, if given
	params   []Word // $1 …
	root     bool   // runs as root
	remote   bool   // runs on another machine
	scratch  bool   // in a container made for it: what it deletes is missed by nobody
	host     string
	others   map[string][]Word // further values a variable may have
	fds      map[string]redir  // files opened by exec, by descriptor
	running  int               // functions being called
	calls    []string          // their names
	suspects int               // programs around this one of which it is only suspected that they carry it
	behind   bool              // in the background
	zsh      bool              // this shell is zsh
	saved    map[string][]Word // what the locals of the function hide, nil outside of functions
	refs     map[string]string // names that stand for other names
	carrier  *invocation       // whose program text is being read
}

type function struct {
	body *syntax.Stmt
	src  *source
}

// fork is a subshell: it knows what this shell knows and keeps its changes.
func (sh *shell) fork() *shell {
	sub := *sh
	sub.vars, sub.funcs, sub.aliases = maps.Clone(sh.vars), maps.Clone(sh.funcs), maps.Clone(sh.aliases)
	return &sub
}

// script runs a whole text as a shell program.
func (sh *shell) script(src *source, in flow) flow {
	e := sh.e
	if src.depth > scan.MaxDepth || len(src.text) > scan.MaxText || scan.Nesting(src.text) > scan.MaxNesting || !e.budget.spend(1+len(src.text)/4) {
		e.tooDeep = true
		e.scanTokens(src)
		return flow{}
	}
	p := e.parse(src.text)
	outer := sh.src
	sh.src = src
	defer func() { sh.src = outer }()
	out := sh.stmts(p.stmts, in)
	if !p.whole && !(p.zsh && sh.zsh) { // without zsh around it, it may as well be no shell text at all
		e.unparsed = true
		e.unproven = true
		e.doubt("a part of the command could not be parsed")
		e.raise("parse.unparsed", src, 0, len(src.text), "")
		e.scanTokens(src)
	}
	return out
}

func (sh *shell) stmts(list []*syntax.Stmt, in flow) flow {
	var out flow
	for i, s := range list {
		f := sh.stmt(s, in)
		if i == 0 {
			out = f
			continue
		}
		out = join(out, f)
	}
	return out
}

// join is the output of two commands, one after the other.
func join(a, b flow) flow {
	switch {
	case b.known && b.word.Text == "" && b.taint == 0:
		return a
	case a.known && a.word.Text == "" && a.taint == 0:
		return b
	case a.known && b.known && len(a.word.Text)+len(b.word.Text) <= scan.MaxValue:
		if a.line {
			a.word.Text += "\n"
		}
		a.word.Text, a.word.At, a.line = a.word.Text+b.word.Text, -1, b.line
	default:
		a.known = false
	}
	a.taint |= b.taint
	a.layer = max(a.layer, b.layer)
	return a
}

func (sh *shell) stmt(s *syntax.Stmt, in flow) flow {
	if s == nil || sh.e.invocations > scan.MaxInvocations || !sh.e.budget.spend(2) {
		return flow{}
	}
	sh.e.background = sh.e.background || s.Background
	var files []redir
	quiet := false
	made := make([]redir, len(s.Redirs)) // the file of each, if it names one
	for i, r := range s.Redirs {
		before := len(files)
		if in, files, quiet = sh.redirect(r, in, files, quiet); len(files) > before {
			made[i] = files[len(files)-1]
		}
	}
	if sh.opens(s, made) {
		return flow{known: true}
	}
	if s.Background {
		sh.apart(s)
		behind := sh.behind
		sh.behind = true
		defer func() { sh.behind = behind }()
	}
	out := sh.command(s.Cmd, in, files, s)
	for _, f := range files {
		if f.op != "<" {
			sh.write(f, out, s)
		}
	}
	if quiet {
		return flow{known: true}
	}
	return out
}

// opens: exec without a command keeps its redirections open under their
// descriptors.
func (sh *shell) opens(s *syntax.Stmt, made []redir) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 1 || c.Args[0].Lit() != "exec" || len(s.Redirs) == 0 {
		return false
	}
	sh.e.ran = true
	if sh.fds = maps.Clone(sh.fds); sh.fds == nil { // a subshell's are its own
		sh.fds = map[string]redir{}
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
		var f redir
		switch {
		case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc:
			text := Word{}
			if r.Hdoc != nil {
				text = sh.body(r.Hdoc)
			} else {
				text = sh.text(r.Word)
			}
			f = redir{"<", Word{Text: "/dev/fd/" + name, At: -1}}
			sh.e.remember(sh, f.file, known(text), false)
		case r.Op == syntax.DplOut && strings.HasPrefix(r.Word.Lit(), "-"):
			if chosen {
				name = "fd-" + name
			}
			delete(sh.fds, name)
			continue
		case made[i].op != "":
			f = made[i]
		default: // a copy of what this very line has opened
			if f = sh.fds[strings.TrimSuffix(r.Word.Lit(), "-")]; f.op == "" {
				continue
			}
		}
		if chosen { // {name}: the shell chooses a number and keeps it there
			sh.set(name, Word{Text: "fd-" + name, At: -1})
			name = "fd-" + name
		}
		if len(sh.fds) < 2*scan.MaxFiles {
			sh.fds[name] = f
		}
	}
	return true
}

// redirect reads one redirection: what it makes of stdin, the files it names,
// and whether output no longer reaches the pipe.
func (sh *shell) redirect(r *syntax.Redirect, in flow, files []redir, quiet bool) (flow, []redir, bool) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return flow{known: true}, files, quiet
		}
		return known(sh.body(r.Hdoc)), files, quiet
	case syntax.WordHdoc:
		w := sh.text(r.Word)
		return flow{word: w, known: w.known(), taint: w.Taint}, files, quiet
	case syntax.DplIn, syntax.DplOut:
		w := sh.text(r.Word)
		if strings.HasPrefix(w.Text, "/") {
			files = append(files, redir{">", w})
		}
		if f, ok := sh.fds[strings.TrimSuffix(w.Text, "-")]; ok {
			if r.Op == syntax.DplIn && f.op == "<" {
				return sh.e.readFile(sh, f.file), append(files, f), quiet
			}
			return in, append(files, redir{">", f.file}), quiet || toStdout(r)
		}
		return in, files, quiet
	case syntax.RdrIn, syntax.RdrInOut:
		w := sh.text(r.Word)
		return sh.e.readFile(sh, w), append(files, redir{"<", w}), quiet
	case syntax.AppOut, syntax.AppAll, syntax.AppClob, syntax.AppAllClob:
		return in, append(files, redir{">>", sh.text(r.Word)}), quiet || toStdout(r)
	}
	return in, append(files, redir{">", sh.text(r.Word)}), quiet || toStdout(r)
}

func toStdout(r *syntax.Redirect) bool { return r.N == nil || r.N.Value == "1" }

func known(w Word) flow { return flow{word: w, known: w.known(), taint: w.Taint} }

// write is what happens to a file that output is sent to.
func (sh *shell) write(r redir, out flow, s *syntax.Stmt) {
	e := sh.e
	if !e.budget.spend(10) {
		return
	}
	from, to := 0, len(sh.src.text)
	if s != nil {
		from, to = int(s.Pos().Offset()), int(s.End().Offset())
	}
	v := &invocation{exe: r.op, operands: []Word{r.file}, argv: []Word{{Text: r.op}, r.file}, after: -1,
		stdin: out, cwd: sh.cwd, remote: sh.remote, root: sh.root, src: sh.src, from: from, to: to}
	e.match(&item{kind: kindRedir, name: r.op, inv: v, src: sh.src, from: from, to: to})
	if c := e.classOf(r.file, sh.cwd); c&(paths.IsTemp|paths.IsNullDevice) == 0 {
		e.unproven = true
	}
	e.remember(sh, r.file, out, r.op == ">>")
	for _, sent := range e.front.redirected {
		sent(sh, r.file, out, v)
	}
}

// command runs one command of any kind with the given input.
func (sh *shell) command(c syntax.Command, in flow, files []redir, s *syntax.Stmt) flow {
	switch c := c.(type) {
	case nil:
		sh.e.ran = true
		if len(files) > 0 && files[0].op == "<" {
			return in // $(<file) is the file
		}
		return flow{known: true}
	case *syntax.CallExpr:
		return sh.call(c, in, files)
	case *syntax.BinaryCmd:
		return sh.binary(c, in)
	case *syntax.Block:
		return sh.stmts(c.Stmts, in)
	case *syntax.Subshell:
		return sh.fork().stmts(c.Stmts, in)
	case *syntax.IfClause:
		var ways []func() flow
		all := false
		for ; c != nil; c = c.Else {
			sh.stmts(c.Cond, in)
			then := c.Then
			ways = append(ways, func() flow { return sh.stmts(then, in) })
			all = len(c.Cond) == 0
		}
		return sh.branches(ways, all)
	case *syntax.WhileClause:
		if len(c.Cond) == 1 && endless(c.Cond[0], c.Until) {
			sh.spawns(c.Do, c)
		}
		if lines, ok := sh.readsLines(c, in); ok {
			for _, line := range lines[:len(lines)-1] {
				if sh.e.rounds++; sh.e.rounds > scan.MaxRounds {
					break
				}
				one := in
				one.word.Text, one.word.At = line, -1
				sh.stmts(c.Cond, one)
				sh.stmts(c.Do, in)
			}
			in.word.Text, in.word.At = lines[len(lines)-1], -1
		}
		sh.stmts(c.Cond, in)
		return sh.stmts(c.Do, in)
	case *syntax.ForClause:
		return sh.loop(c, in)
	case *syntax.CaseClause:
		sh.text(c.Word)
		var ways []func() flow
		for _, it := range c.Items {
			ways = append(ways, func() flow { return sh.stmts(it.Stmts, in) })
		}
		return sh.branches(ways, false)
	case *syntax.FuncDecl:
		sh.declare(c)
	case *syntax.DeclClause:
		for _, a := range c.Args {
			sh.hide(c, a)
			sh.assign(a)
			sh.hooks(a, int(c.Pos().Offset()), int(c.End().Offset()))
			sh.exports(c, a)
			if a.Name != nil && asNumber(c) {
				sh.inArithmetic(a.Name.Value, c)
			}
		}
		sh.refers(c.Args)
		sh.shows(c)
		if listsVariables(c) {
			return flow{taint: fromEnviron, via: c.Variant.Value}
		}
	case *syntax.TimeClause:
		return sh.stmt(c.Stmt, in)
	case *syntax.CoprocClause:
		return sh.coprocess(c, in)
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		sh.nested(c)
	}
	sh.e.ran = true
	return flow{known: true}
}

// coprocess runs beside the rest; what it prints and what it reads are files whose
// descriptors stand in an array.
func (sh *shell) coprocess(c *syntax.CoprocClause, in flow) flow {
	name := "COPROC"
	if c.Name != nil {
		name = sh.text(c.Name).Text
	}
	out := sh.fork().stmt(c.Stmt, in)
	prints, reads := Word{Text: "/dev/fd/of-" + name, At: -1}, Word{Text: "/dev/fd/to-" + name, At: -1}
	sh.e.remember(sh, prints, out, false)
	if sh.e.sinks == nil {
		sh.e.sinks = map[string]sink{}
	}
	if len(sh.e.sinks) < scan.MaxFiles {
		sh.e.sinks[reads.Text] = sh.fork().sink([]*syntax.Stmt{c.Stmt})
	}
	if sh.fds = maps.Clone(sh.fds); sh.fds == nil {
		sh.fds = map[string]redir{}
	}
	sh.fds["of-"+name], sh.fds["to-"+name] = redir{"<", prints}, redir{">", reads}
	sh.setAll(name, []Word{{Text: "of-" + name, At: -1}, {Text: "to-" + name, At: -1}})
	return flow{known: true}
}

func (sh *shell) binary(c *syntax.BinaryCmd, in flow) flow {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		sh.apart(c.X)
		out := sh.stmt(c.X, in)
		sh.apart(c.Y)
		sh.e.segment++
		return sh.stmt(c.Y, out)
	}
	out := sh.stmt(c.X, in)
	sh.e.segment++
	if call, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 0 {
		sh.maybe(call.Assigns)
	}
	return join(out, sh.stmt(c.Y, in))
}

// apart: assignments of their own in a pipe or in the background happen in another
// process; the values before them stay possible.
func (sh *shell) apart(s *syntax.Stmt) {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) == 0 {
		sh.maybe(call.Assigns)
	}
}

func (sh *shell) assign(a *syntax.Assign) {
	switch {
	case a.Naked || a.Name == nil:
		if a.Value != nil {
			v := &invocation{exe: "declare", src: sh.src, from: int(a.Pos().Offset()), to: int(a.End().Offset()), argv: []Word{{Text: "declare"}, sh.text(a.Value)}}
			sh.subscripts(v)
		}
	case a.Array != nil:
		sh.array(a)
	case a.Index != nil:
		w := Word{Span: sh.spanOf(a), At: -1}
		if a.Value != nil {
			w = sh.text(a.Value)
		}
		sh.setElement(a.Name.Value, a.Index, w, a.Append)
	default:
		w := Word{Span: sh.spanOf(a), At: -1}
		if a.Value != nil {
			w = sh.text(a.Value)
		}
		if old := sh.vars[a.Name.Value]; a.Append && len(old) > 0 {
			w.Text, w.At, w.Taint = old[0].Text+w.Text, -1, w.Taint|old[0].Taint
		}
		sh.set(a.Name.Value, w)
		if a.Value != nil && len(sh.others) > 0 && !a.Append {
			sh.otherAssign(a)
		}
	}
}

// hide keeps the value that a local variable of a function takes the place of.
func (sh *shell) hide(c *syntax.DeclClause, a *syntax.Assign) {
	if sh.saved == nil || a.Name == nil || c.Variant.Value == "export" || c.Variant.Value == "readonly" {
		return
	}
	if _, done := sh.saved[a.Name.Value]; !done && len(sh.saved) < 2*scan.MaxFiles {
		sh.saved[a.Name.Value] = sh.vars[a.Name.Value]
	}
}

// restore gives the variables back that a function's locals hid.
func (sh *shell) restore(saved map[string][]Word) {
	for name, list := range saved {
		if list == nil {
			delete(sh.vars, name)
		} else {
			sh.vars[name] = list
		}
	}
}

// hooks runs what a variable makes the shell run later.
func (sh *shell) hooks(a *syntax.Assign, from, to int) {
	if a.Name == nil {
		return
	}
	switch name := a.Name.Value; name {
	case "PROMPT_COMMAND", "BASH_ENV", "PS4", "PS1", "PS0":
		if w := sh.vars[name]; len(w) == 1 {
			sh.variableRuns(&invocation{src: sh.src, from: from, to: to}, assign{name, w[0]})
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
func (sh *shell) exports(c *syntax.DeclClause, a *syntax.Assign) {
	if a.Name == nil || a.Value == nil || c.Variant.Value == "local" || c.Variant.Value == "readonly" {
		return
	}
	if w := sh.vars[a.Name.Value]; len(w) == 1 {
		v := &invocation{src: sh.src, from: int(c.Pos().Offset()), to: int(c.End().Offset())}
		sh.variableRuns(v, assign{a.Name.Value, w[0]})
	}
}

func (sh *shell) set(name string, w Word) { sh.setAll(name, []Word{w}) }

func (sh *shell) setAll(name string, list []Word) {
	for i := range list {
		if len(list[i].Text) > scan.MaxValue {
			list[i].Text, list[i].At = string(scan.Hole), -1
		}
	}
	if sh.vars == nil {
		sh.vars = map[string][]Word{}
	}
	if to, ok := sh.refs[name]; ok {
		name = to
	}
	if len(sh.vars) < 256 {
		sh.vars[name] = list
	}
}

// call runs a simple command.
func (sh *shell) call(c *syntax.CallExpr, in flow, files []redir) flow {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			sh.assign(a)
			sh.hooks(a, int(c.Pos().Offset()), int(c.End().Offset()))
		}
		sh.e.ran = true
		return flow{known: true}
	}
	v := &invocation{src: sh.src, stdin: in, redirs: files, from: int(c.Pos().Offset()), to: int(c.End().Offset())}
	for _, a := range c.Assigns {
		w := Word{At: -1}
		if a.Value != nil {
			w = sh.text(a.Value)
		}
		if a.Name != nil {
			v.env = append(v.env, assign{a.Name.Value, w})
		}
	}
	v.argv = make([]Word, 0, len(c.Args))
	for _, w := range c.Args {
		v.argv = sh.fields(w, v.argv)
	}
	if len(v.argv) == 0 {
		return flow{known: true}
	}
	if len(sh.others) > 0 {
		sh.otherValues(c, v)
	}
	return sh.run(v)
}

// spanOf is where a node stands in the submitted command.
func (sh *shell) spanOf(n syntax.Node) Span {
	s, _ := sh.src.where(int(n.Pos().Offset()), int(n.End().Offset()))
	return s
}

// sink is a text that reads what is written to it.
func (sh *shell) sink(list []*syntax.Stmt) sink {
	return func(written flow) { sh.fork().stmts(list, written) }
}

var pool = sync.Pool{New: func() any { return newParser() }}

// runScript runs a whole text as the program of a shell.
func runScript(sh *shell, src *source, in flow) flow { return sh.script(src, in) }
