package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Sink is the command in >(…), which gets the written text as its input.
type Sink func(written act.Flow)

// Remember stores the contents of a file that the command writes. If more is true, they are
// appended to the old contents.
func (e *Env) Remember(sh *Process, name act.Word, f act.Flow, more bool) {
	if s, ok := e.Sinks[name.Text]; ok {
		delete(e.Sinks, name.Text) // removed during the call, so that a sink that writes to itself ends
		s(f)
		e.Sinks[name.Text] = s
		return
	}
	for _, written := range e.Front.Written {
		written(sh, name, f)
	}
	if !name.Known() || len(f.Word.Text) > scan.MaxDecoded || name.Text == "/dev/null" {
		return
	}
	key := e.Key(sh.Cwd, name.Text)
	if !f.Known {
		e.placing(key)
	}
	old, ok := e.Files[key]
	if !ok && len(e.Files) >= scan.MaxFiles {
		return
	}
	if more && ok {
		f = Join(old, f)
	}
	scan.Put(&e.Files, key, f)
}

// Key returns the key of a file in Env.Files. If the file is below the working directory of the
// action, the key is relative to that.
func (e *Env) Key(cwd, name string) string {
	key := paths.FileKey(cwd, name)
	if rest, ok := strings.CutPrefix(key, e.Context.Cwd+"/"); ok && e.Context.Cwd != "" {
		return rest
	}
	return key
}

// ReadFile returns the contents of a file.
func (e *Env) ReadFile(sh *Process, name act.Word) act.Flow {
	e.reading(sh, name.Text)
	if fd, ok := act.Descriptor(name.Text); ok {
		if f, ok := sh.Fds[fd]; ok && f.File.Text != name.Text {
			name = f.File
		}
	}
	if f, ok := e.Files[e.Key(sh.Cwd, name.Text)]; ok && name.Known() {
		return f
	}
	if name.Text == "/dev/null" {
		return act.Flow{Known: true}
	}
	f := act.Flow{Via: "file", Taint: name.Taint&^act.FromStdin | e.Within(sh.Cwd, name)}
	if scan.HasAnyPrefix(name.Text, "/dev/tcp/", "/dev/udp/") {
		f.Taint |= act.FromNetwork
	}
	if e.Credential(name, sh.Cwd) && !sh.Remote || e.ClassOf(name, sh.Cwd)&paths.IsKeyFolder != 0 {
		f.Taint |= act.FromSecret
	}
	return f
}

// Credential reports whether a word names a file with a credential.
func (e *Env) Credential(name act.Word, cwd string) bool {
	c := e.ClassOf(name, cwd)
	return c&paths.IsCredential != 0 && c&paths.IsPublic == 0
}

// Within returns the origins of the files that the command wrote above or below a path: for
// example a secret that was copied into a folder.
func (e *Env) Within(cwd string, name act.Word) (t act.Taint) {
	if len(e.Files) == 0 || !name.Known() || name.Text == "" {
		return 0
	}
	key := strings.TrimSuffix(e.Key(cwd, strings.TrimRight(name.Text, "*")), "/")
	if key == "." || key == "" || key == "~" || key == "/dev" {
		return 0
	}
	pattern := strings.HasSuffix(name.Text, "*")
	for file, f := range e.Files {
		t |= near(key, pattern, file, f.Taint)
	}
	return t
}

// near returns the origins of a file that count for a path above or below it.
func near(key string, pattern bool, file string, t act.Taint) act.Taint {
	t &= act.FromSecret | act.FromDump | act.FromEnviron
	switch below := strings.HasPrefix(file, key+"/"); {
	case below && !pattern && paths.KindOfFile(file)&(paths.IsCredential|paths.IsPublic) == paths.IsCredential:
		return t | act.FromSecret
	case below, pattern && strings.HasPrefix(file, key), strings.HasPrefix(key, file+"/"):
		return t
	}
	return 0
}

// WrittenFile returns the file that the command wrote with this name, or as the module with this
// name.
func (e *Env) WrittenFile(sh *Process, name string) (act.Flow, bool) {
	e.Want(sh, name)
	if len(e.Files) == 0 {
		return act.Flow{}, false
	}
	if key := e.Key(sh.Cwd, name); strings.ContainsAny(key, "*?[") {
		if found := e.Matching(key); len(found) > 0 {
			return e.Files[found[0]], true
		}
	}
	for _, suffix := range [...]string{"", ".py", "/__main__.py", "/__init__.py", ".js", ".mjs", ".cjs", ".ts", "/index.js", ".rb", ".pm", ".pl", ".lua", ".jl"} {
		if f, ok := e.Files[e.Key(sh.Cwd, name+suffix)]; ok {
			return f, true
		}
	}
	return act.Flow{}, false
}

// Matching returns the names of the written files that match a pattern, sorted.
func (e *Env) Matching(pattern string) (out []string) {
	for file := range e.Files {
		if strings.Count(file, "/") == strings.Count(pattern, "/") && paths.GlobMatch(pattern, file) {
			out = append(out, file)
		}
	}
	slices.Sort(out)
	return out
}

// Shebang returns the language in the "#!" line of a text, or "shell" if there is none.
func (e *Env) Shebang(line string) string {
	lang := "shell"
	line, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return lang
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return lang
	}
	name := scan.Base(words[0])
	if name == "env" && len(words) > 1 {
		name = scan.Base(words[len(words)-1])
	}
	for _, w := range e.Program(name).Carries {
		if w.File && w.Lang != "" {
			lang = w.Lang
		}
	}
	return lang
}
