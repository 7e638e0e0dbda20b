package actionrisk

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// renames notes that a program was copied, moved or linked to another name.
func (e *engine) renames(sh *shell, from, to Word) {
	name := scan.Base(from.Text)
	if !e.exe[name] && e.wrappers[name] == nil || !programPath(from) || !to.known() {
		return
	}
	key := paths.FileKey(sh.cwd, to.Text)
	if strings.HasSuffix(to.Text, "/") {
		key = path.Join(key, name)
	}
	if e.programs == nil {
		e.programs = map[string]string{}
	}
	if len(e.programs) < scan.MaxFiles {
		e.programs[key] = name
	}
}

// programNamed is what a program is that the command put somewhere under this name,
// perhaps into a folder that it searches.
func (sh *shell) programNamed(v *invocation, name string) (string, bool) {
	e := sh.e
	if is, ok := e.programs[paths.FileKey(sh.cwd, name)]; ok || len(e.programs) == 0 || strings.IndexByte(name, '/') >= 0 {
		return is, ok
	}
	if !e.stranger(name) { // then only a folder that is searched first counts
		for _, folder := range sh.searched(v) {
			if is, ok := e.programs[strings.TrimSuffix(folder, "/")+"/"+name]; ok {
				return is, true
			}
		}
		return "", false
	}
	for _, d := range sortedKeys(e.programs) {
		if path.Base(d) == name {
			return e.programs[d], true
		}
	}
	return "", false
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// programPath: a path of a folder for programs, or what which(1) printed.
func programPath(w Word) bool {
	return strings.Contains(w.Text, "bin/") || w.At < 0 && !strings.Contains(w.Text, "/")
}

// writtenProgram runs a file that the command itself wrote, when it is started by
// its path: by its "#!" line, else as shell text.
func (sh *shell) writtenProgram(v *invocation) (flow, bool) {
	e, first := sh.e, v.argv[0]
	if len(e.files) == 0 || !first.known() {
		return flow{}, false
	}
	params := v.argv[1:]
	f, ok := e.files[paths.FileKey(sh.cwd, first.Text)]
	if strings.IndexByte(first.Text, '/') < 0 {
		if f, ok = sh.onPath(v, v.exe); !ok && len(v.operands) > 0 { // a plugin: kubectl-x is "kubectl x"
			f, ok = sh.onPath(v, v.exe+"-"+v.operands[0].Text)
			params = params[min(1+slices.IndexFunc(params, func(w Word) bool { return w.Text == v.operands[0].Text }), len(params)):]
		}
	}
	if !ok || !f.known || f.word.Text == "" {
		return flow{}, false
	}
	f.word.Taint |= f.taint
	return sh.interpret(e.shebang(f.word.Text), f.word, v, "file", params), true
}

// onPath is the file that the command itself wrote under the name of a program, into
// a folder where programs are looked for.
func (sh *shell) onPath(v *invocation, name string) (flow, bool) {
	if strings.ContainsAny(name, "/"+string(scan.Hole)) {
		return flow{}, false
	}
	found := ""
	for file := range sh.e.files {
		folder, ok := strings.CutSuffix(file, name)
		if !ok || !strings.HasSuffix(folder, "/") || found != "" && found < file {
			continue
		}
		if slices.ContainsFunc(sh.searched(v), func(p string) bool { return strings.TrimSuffix(p, "/")+"/" == folder }) {
			found = file
		}
	}
	return sh.e.files[found], found != ""
}

// searched are the folders in which programs are looked for: those that the command
// itself names, and the usual ones.
func (sh *shell) searched(v *invocation) []string {
	var out []string
	for p := range strings.SplitSeq(sh.variable(v, "PATH").Text, ":") {
		if p != "" && strings.IndexByte(p, scan.Hole) < 0 {
			out = append(out, paths.FileKey(sh.cwd, p))
		}
	}
	return append(out, standardDirectories[:]...)
}

// unpacks notes that an archive from the network was unpacked here.
func (e *engine) unpacks(v *invocation) {
	switch v.exe {
	case "tar", "gtar", "bsdtar", "unzip", "7z", "cpio", "bsdcpio", "gunzip", "unar":
	default:
		return
	}
	if v.exe == "unzip" && (v.has("-l") || v.has("-p")) || v.has("-t") || v.has("--list") {
		return
	}
	if strings.HasPrefix(v.word(1).Text, "t") && v.exe != "unzip" && v.exe != "7z" {
		return
	}
	if v.stdin.taint&fromNetwork != 0 {
		e.unpacked = true
		return
	}
	for _, w := range v.argv[1:] {
		if f, ok := e.files[paths.FileKey(v.cwd, w.Text)]; ok && f.taint&fromNetwork != 0 || foreignShare(w.Text) {
			e.unpacked = true
		}
	}
}

// runsUnpacked: after an archive from the network was unpacked, a program of the
// working folder is started by its path or by an interpreter.
func (e *engine) runsUnpacked(v *invocation) {
	if !e.unpacked {
		return
	}
	w := v.argv[0]
	if strings.IndexByte(w.Text, '/') < 0 {
		if v.exe == "make" || v.exe == "gmake" || v.exe == "ninja" {
			e.raise("rce.download-exec", v.src, v.from, v.to, v.exe)
			return
		}
		if !slices.Contains(e.groups["interpreters"], v.exe) && v.exe != "source" && v.exe != "." || len(v.operands) == 0 || v.has("-c") || v.has("-e") || v.has("-m") {
			return
		}
		w = v.operands[0]
	}
	if c, ok := paths.WindowsClass(w.Text); ok && c&paths.IsSystem != 0 || strings.HasPrefix(w.Text, "/") && !strings.HasPrefix(w.Text, "/tmp/") || strings.HasPrefix(w.Text, "~") {
		return
	}
	e.raise("rce.download-exec", v.src, v.from, v.to, printable(w.Text))
}
