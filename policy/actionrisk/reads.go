package actionrisk

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// read is a line of reads.json: which files of a folder a tool runs without being
// told so on its command line, and in which language they are written.
type read struct {
	Exe []string `json:"exe"`
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// Files are patterns for the file's name, or, with a slash, for the end of its path.
	Files []string `json:"files"`
	Lang  string   `json:"lang"`
	// Named: only if a word of the command line names the file or its folder.
	Named bool `json:"named,omitempty"`
	// Compile: the file is made into a program; a downloaded one is not run by that.
	Compile bool     `json:"compile,omitempty"`
	Unless  []string `json:"unless,omitempty"` // with one of these it is not read
	Dry     bool     `json:"dry,omitempty"`    // a dry run reads it, too

	sub [][]string
}

// readTable is reads.json.
type readTable struct {
	// Keys are the settings whose value is a command line; Sections are those that
	// hold command lines by name.
	Keys     []string `json:"keys"`
	Sections []string `json:"sections"`
	// Lifecycle are the scripts that an installation runs by itself.
	Lifecycle []string `json:"lifecycle"`
	Reads     []read   `json:"reads"`
}

func (c *compiled) readReads(from tableReader) error {
	var t readTable
	if err := from("reads", &t); err != nil {
		return err
	}
	c.commandKeys, c.commandSections, c.lifecycle = scan.SetOf(strings.Join(t.Keys, " ")), scan.SetOf(strings.Join(t.Sections, " ")), t.Lifecycle
	c.reads = map[string][]*read{}
	for i := range t.Reads {
		r := &t.Reads[i]
		for _, s := range r.Sub {
			r.sub = append(r.sub, strings.Fields(s))
		}
		names, err := c.names(r.Exe)
		if err != nil {
			return err
		}
		for _, n := range names {
			c.reads[n] = append(c.reads[n], r)
		}
	}
	return nil
}

// readsWritten runs the files that the command itself wrote and that the tool now
// runs by itself: a Makefile, a conftest.py, the scripts of a package.json.
func (sh *shell) readsWritten(v *invocation) {
	e := sh.e
	rows := e.reads[v.exe]
	if len(e.files) == 0 || len(rows) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.files)) {
		f := e.files[name]
		for _, r := range rows {
			if !e.budget.spend(1+len(r.Files)) || !r.takes(sh, v, name) {
				continue
			}
			sh.runsRead(r, v, name, f)
			break // a file is read once
		}
	}
}

// takes: the tool reads the file of this name.
func (r *read) takes(sh *shell, v *invocation, name string) bool {
	return (!v.dry || r.Dry) && (len(r.sub) == 0 || v.underAny(r.sub)) && !slices.ContainsFunc(r.Unless, v.has) &&
		slices.ContainsFunc(r.Files, func(p string) bool { return namedLike(p, name) }) && (!r.Named || sh.names(v, name))
}

// namedLike: the pattern holds for the file's name, or for the end of its path.
func namedLike(pattern, name string) bool {
	return paths.GlobMatch(pattern, lastParts(name, strings.Count(pattern, "/")))
}

// lastParts is the last part of a path and n more.
func lastParts(name string, n int) string {
	i := len(name)
	for ; n >= 0 && i > 0; n-- {
		i = strings.LastIndexByte(name[:i], '/')
	}
	return name[i+1:]
}

// names: a word of the command line is the file, a pattern for it or a folder above.
func (sh *shell) names(v *invocation, name string) bool {
	for _, w := range v.argv[1:] {
		key := paths.FileKey(sh.cwd, w.Text)
		if key == name || key == "." || w.Glob && paths.GlobMatch(key, name) || strings.HasPrefix(name, key+"/") {
			return true
		}
	}
	return false
}

// runsRead runs what a file holds, or says where it came from if that is not known.
func (sh *shell) runsRead(r *read, v *invocation, name string, f flow) {
	e := sh.e
	switch {
	case f.known:
		once := strings.Join([]string{name, sh.cwd, commandLine(v), f.word.Text}, "\x00")
		if e.ranFiles[once] { // it starts the tool again
			return
		}
		if e.ranFiles == nil {
			e.ranFiles = map[string]bool{}
		}
		e.ranFiles[once] = true
		if f.taint&fromDecoder != 0 {
			e.raise("obf.decode-exec", sh.src, v.from, v.to, printable(name))
		}
		f.word.Taint |= f.taint
		sh.interpret(r.Lang, f.word, v, v.exe, nil)
	case r.Compile:
	case f.taint&fromNetwork != 0:
		e.raise("rce.download-exec", sh.src, v.from, v.to, printable(name))
	case f.taint&fromDecoder != 0:
		e.raise("obf.decode-exec", sh.src, v.from, v.to, printable(name))
	}
}

// commandLine is the words of an invocation as one text.
func commandLine(v *invocation) string {
	var b strings.Builder
	for _, w := range v.argv {
		b.WriteString(w.Text + "\x00")
	}
	return b.String()
}
