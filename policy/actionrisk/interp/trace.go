package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Trace is what an assessment tells a caller who can look at the machine: which programs
// run with which words in which folder, and which files run whose text is not known.
type Trace struct {
	Uses   []Use
	Texts  []Text
	Wanted []string // paths of files that would run, relative ones seen from the action's own folder

	reads  []string // files that are read, which are wanted once an interpreter is fed from one
	placed []string // files and folders that the command itself wrote with unknown content
}

// Use is one call of a program, or one redirection.
type Use struct {
	Program string // its name, or ">" and ">>" of a redirection
	Words   []act.Word
	Folder  string       // where it runs; "" is the action's own folder, a hole one that is not known
	Env     []act.Assign // set for this call
	Proven  bool         // it is known to change nothing
	Carries bool         // what it runs is a use of its own
	Remote  bool         // it runs on another machine
}

// Text is a program text in another language than the shell's.
type Text struct{ Language, Text string }

// maxTraced is how many uses, texts and files a trace holds.
const maxTraced = 512

// Used notes a call of a program.
func (e *Env) Used(v *act.Invocation, proven, carries bool) {
	if e.Trace != nil && len(e.Trace.Uses) < maxTraced {
		e.Trace.Uses = append(e.Trace.Uses, Use{Program: v.Exe, Words: slices.Clone(v.Argv), Folder: v.Cwd, Env: v.Env, Proven: proven, Carries: carries, Remote: v.Remote})
	}
}

// redirected notes a redirection that the rules are asked about.
func (e *Env) redirected(it *act.Item) {
	if e.Trace != nil && it.Kind == act.KindRedir && it.Inv != nil {
		e.Used(it.Inv, strings.HasPrefix(it.Name, "<"), false)
	}
}

// texted notes a program text.
func (e *Env) texted(lang, text string) {
	if e.Trace != nil && len(e.Trace.Texts) < maxTraced {
		e.Trace.Texts = append(e.Trace.Texts, Text{lang, text})
	}
}

// Fed records that an interpreter runs a text that is not known. It may come from any file
// that was read before, so the trace then asks for the text of these files.
func (e *Env) Fed() {
	if e.Trace == nil {
		return
	}
	for _, key := range e.Trace.reads {
		e.want(key)
	}
}

// reading notes that a file is read.
func (e *Env) reading(sh *Process, name string) {
	if e.Trace != nil && !sh.Remote && name != "" && len(e.Trace.reads) < maxTraced {
		e.Trace.reads = append(e.Trace.reads, e.Key(sh.Cwd, name))
	}
}

// Want notes that a file would run. A caller who has its text may give it in the
// surroundings of another assessment.
func (e *Env) Want(sh *Process, name string) {
	if e.Trace == nil || sh.Remote || sh.Scratch || name == "" || strings.IndexByte(name, scan.Hole) >= 0 {
		return
	}
	key := e.Key(sh.Cwd, name)
	if slices.ContainsFunc(e.Trace.placed, func(p string) bool { return p == key || strings.HasPrefix(key, p+"/") }) {
		e.Fed() // it was copied from one of the files that were read
	}
	e.want(key)
}

// placing notes that the command writes a file with unknown content.
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
