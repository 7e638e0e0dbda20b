package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Trace is what an evaluation reports to a caller with access to the machine: the programs that
// run, with their words and folders, and the files that run but whose text is unknown.
type Trace struct {
	Uses   []Use
	Texts  []Text
	Wanted []string // paths of files that would run; relative paths start at the action's folder

	reads  []string // files that are read; they become wanted if an interpreter runs an unknown text
	placed []string // files and folders that the command wrote with unknown content
}

// Use is one invocation or one redirection.
type Use struct {
	Program string // name of the program; ">" or ">>" for a redirection
	Words   []act.Word
	Folder  string       // working directory; "" is the action's folder, the byte scan.Hole means that it is unknown
	Env     []act.Assign // variables set for this invocation
	Proven  bool         // known to change nothing
	Carries bool         // runs another command, which has its own Use
	Remote  bool         // runs on another machine
}

// Text is a program text in a language other than the shell's.
type Text struct{ Language, Text string }

// maxTraced is the largest number of uses, of texts and of files in a trace.
const maxTraced = 512

// Used records an invocation.
func (e *Env) Used(v *act.Invocation, proven, carries bool) {
	if e.Trace != nil && len(e.Trace.Uses) < maxTraced {
		e.Trace.Uses = append(e.Trace.Uses, Use{Program: v.Exe, Words: slices.Clone(v.Argv), Folder: v.Cwd, Env: v.Env, Proven: proven, Carries: carries, Remote: v.Remote})
	}
}

// redirected records an item that is a redirection.
func (e *Env) redirected(it *act.Item) {
	if e.Trace != nil && it.Kind == act.KindRedir && it.Inv != nil {
		e.Used(it.Inv, strings.HasPrefix(it.Name, "<"), false)
	}
}

// texted records a program text.
func (e *Env) texted(lang, text string) {
	if e.Trace != nil && len(e.Trace.Texts) < maxTraced {
		e.Trace.Texts = append(e.Trace.Texts, Text{lang, text})
	}
}

// Fed records that an interpreter runs an unknown text. The text may come from any file that was
// read before, so the trace then asks for the text of these files.
func (e *Env) Fed() {
	if e.Trace == nil {
		return
	}
	for _, key := range e.Trace.reads {
		e.want(key)
	}
}

// reading records that a file is read.
func (e *Env) reading(sh *Process, name string) {
	if e.Trace != nil && !sh.Remote && name != "" && len(e.Trace.reads) < maxTraced {
		e.Trace.reads = append(e.Trace.reads, e.Key(sh.Cwd, name))
	}
}

// Want records that a file would run. A caller that can read the file may pass its text to another
// evaluation.
func (e *Env) Want(sh *Process, name string) {
	if e.Trace == nil || sh.Remote || sh.Scratch || name == "" || strings.IndexByte(name, scan.Hole) >= 0 {
		return
	}
	key := e.Key(sh.Cwd, name)
	if slices.ContainsFunc(e.Trace.placed, func(p string) bool { return p == key || strings.HasPrefix(key, p+"/") }) {
		e.Fed() // the unknown content may come from one of the files that were read
	}
	e.want(key)
}

// placing records that the command writes a file with unknown content.
func (e *Env) placing(key string) {
	if e.Trace != nil && len(e.Trace.placed) < maxTraced {
		e.Trace.placed = append(e.Trace.placed, key)
	}
}

func (e *Env) want(key string) {
	if _, given := e.Files[key]; !given && strings.IndexByte(key, scan.Hole) < 0 && !strings.HasPrefix(key, "/dev/") && len(e.Trace.Wanted) < maxTraced && !slices.Contains(e.Trace.Wanted, key) {
		e.Trace.Wanted = append(e.Trace.Wanted, key)
	}
}
