package interp

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
	"github.com/countersign/countersign/policy/actionrisk/tree"
	"mvdan.cc/sh/v3/syntax"
)

// Parsed is a text with its parsed statements.
type Parsed struct {
	Text  string
	Stmts []*syntax.Stmt
	Whole bool // the whole text was parsed
	Zsh   bool // the text is valid only as zsh
}

// Process is the known state of one shell process.
type Process struct {
	Env      *Env
	Src      *act.Source
	Vars     map[string][]act.Word // a scalar has one word
	Funcs    map[string]Function
	Aliases  map[string]act.Word
	Cwd      string     // working directory; "" is the action's
	Zero     act.Word   // $0 in bash -c, if given
	Params   []act.Word // $1, $2 …
	Root     bool       // runs as root
	Remote   bool       // runs on another machine
	Scratch  bool       // runs in a temporary container whose files are discarded
	Host     string
	Others   map[string][]act.Word // other values that a variable may have
	Fds      map[string]act.Redir  // files opened by exec, by descriptor
	Running  int                   // number of functions that are being called
	Calls    []string              // their names
	Suspects int                   // number of enclosing programs that are only assumed to run their arguments
	Behind   bool                  // runs in the background
	Zsh      bool                  // the shell is zsh
	Saved    map[string][]act.Word // values hidden by local variables of the function; nil outside of functions
	Refs     map[string]string     // name references (declare -n)
	Carrier  *act.Invocation       // the invocation whose program text is being read
}

// Function is a shell function that the command defined.
type Function struct {
	Body *syntax.Stmt
	Src  *act.Source
}

// Fork returns a subshell: a copy of the state, whose changes do not affect this shell.
func (sh *Process) Fork() *Process {
	sub := *sh
	sub.Vars, sub.Funcs, sub.Aliases = maps.Clone(sh.Vars), maps.Clone(sh.Funcs), maps.Clone(sh.Aliases)
	return &sub
}

// Enter changes the working directory. "" is the action's own folder; a folder below that is
// stored relative to it.
func (sh *Process) Enter(w act.Word) {
	own, t := sh.Env.Context.Cwd, w.Text
	switch {
	case !w.Known():
		sh.Cwd = string(scan.Hole)
		return
	case t == "-":
		sh.Cwd = ""
		return
	case startsAtRoot(t):
		t = path.Clean(t)
	case sh.Cwd != "" && (startsAtRoot(sh.Cwd) || sh.Cwd[0] == scan.Hole):
		t = path.Join(sh.Cwd, t)
	default:
		t = path.Join(cmp.Or(own, "."), sh.Cwd, t)
	}
	if sh.Cwd = t; own != "" && !sh.Remote {
		sh.Cwd = strings.TrimPrefix(strings.TrimPrefix(t, own), "/")
		if t != own && !strings.HasPrefix(t, own+"/") {
			sh.Cwd = t
		}
	}
}

// Join returns the output of two commands that run one after the other.
func Join(a, b act.Flow) act.Flow {
	switch {
	case b.Known && b.Word.Text == "" && b.Taint == 0:
		return a
	case a.Known && a.Word.Text == "" && a.Taint == 0:
		return b
	case a.Known && b.Known && len(a.Word.Text)+len(b.Word.Text) <= scan.MaxValue:
		if a.Line {
			a.Word.Text += "\n"
		}
		a.Word.Text, a.Word.At, a.Line = a.Word.Text+b.Word.Text, -1, b.Line
	default:
		a.Known = false
	}
	a.Taint |= b.Taint
	a.Layer = max(a.Layer, b.Layer)
	return a
}

// Write judges a redirection of the output of the whole source to a file.
func (sh *Process) Write(r act.Redir, out act.Flow) { sh.WriteAt(r, out, 0, len(sh.Src.Text)) }

// WriteAt is like Write for the output of Text[from:to].
func (sh *Process) WriteAt(r act.Redir, out act.Flow, from, to int) {
	e := sh.Env
	if !e.Budget.Spend(10) {
		return
	}
	v := &act.Invocation{Exe: r.Op, Operands: []act.Word{r.File}, Argv: []act.Word{{Text: r.Op}, r.File}, After: -1,
		Stdin: out, Cwd: sh.Cwd, Remote: sh.Remote, Root: sh.Root, Src: sh.Src, From: from, To: to}
	e.Match(&act.Item{Kind: act.KindRedir, Name: r.Op, Inv: v, Src: sh.Src, From: from, To: to})
	if c := e.ClassOf(r.File, sh.Cwd); c&(paths.IsTemp|paths.IsNullDevice) == 0 {
		e.Unproven = true
	}
	e.Remember(sh, r.File, out, r.Op == ">>")
	for _, sent := range e.Front.Redirected {
		sent(sh, r.File, out, v)
	}
}

// Piece returns the text of a node as a word.
func Piece(src *act.Source, n *tree.Node) act.Word {
	span, _ := src.Where(n.Start, n.End)
	w := act.Word{Text: n.Text, Span: span, At: -1, Taint: src.Taint}
	w.Glob = strings.ContainsAny(n.Text, "*?[")
	return w
}

// Reading returns a copy of the process that reads another text.
func (sh *Process) Reading(src *act.Source) *Process {
	inner := *sh
	inner.Src = src
	return &inner
}

// Behalf returns a copy of the process that reads a text which another program runs. via is the
// name of that program.
func (sh *Process) Behalf(src *act.Source, via string) *Process {
	s := *src
	if via != "" {
		s.Via = append(slices.Clip(src.Via), via)
	}
	s.Depth++
	return sh.Reading(&s)
}

// Start runs words as a command. Its findings have the range of v in the text.
func (sh *Process) Start(words []act.Word, v *act.Invocation) act.Flow {
	if len(words) == 0 || sh.Src.Depth > scan.MaxDepth {
		return act.Flow{}
	}
	return sh.Run(&act.Invocation{Src: sh.Src, Direct: true, Argv: words, Stdin: act.Flow{Known: true}, From: v.From, To: v.To})
}

// Emit judges an effect of a program text. via is the name of the program that runs the text.
func (sh *Process) Emit(src *act.Source, via string, f act.Effect) act.Flow {
	argv, at := f.Argv(src), &act.Invocation{Src: src, From: f.From, To: f.To}
	switch {
	case f.Op != act.Overwrite && f.Op != act.AppendTo:
		return sh.Behalf(src, via).Start(argv, at)
	case f.Writes == "":
		sh.WritesTo(argv[0].Text, argv[1], at)
		return act.Flow{}
	}
	sh.Env.Ran = true
	sh.Behalf(src, via).WriteAt(act.Redir{Op: argv[0].Text, File: argv[1]}, act.Flow{Word: act.Word{Text: f.Writes, At: -1, Span: argv[1].Span}, Known: true}, f.From, f.To)
	return act.Flow{}
}

// StartNode runs the members "command" and "args" of a description. Each is a list of words or a
// text.
func (sh *Process) StartNode(src *act.Source, v *act.Invocation, nodes ...*tree.Node) {
	var words []act.Word
	for _, n := range nodes {
		switch {
		case n == nil:
		case n.Kind == '[':
			for _, k := range n.Kids {
				words = append(words, Piece(src, k))
			}
		case n.Text != "":
			words = append(words, Piece(src, n))
		}
	}
	at := &act.Invocation{Exe: v.Exe, Src: sh.Src, To: len(sh.Src.Text), Stdin: act.Flow{Known: true}}
	switch {
	case len(words) == 1 && strings.Contains(words[0].Text, " "):
		sh.Interpret("shell", words[0], at, "command", nil)
	case len(words) > 1 && words[0].Text == "-c": // arguments for a shell that is not named
		sh.Interpret("shell", words[1], at, "command", nil)
	case len(words) > 0:
		sh.Start(words, at)
	}
}
