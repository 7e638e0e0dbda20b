package posix

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/hosts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// renames records that a program was copied, moved or linked to another name.
func renames(e *interp.Env, sh *interp.Process, from, to act.Word) {
	name := scan.Base(from.Text)
	if !e.Program(name).Known() || !programPath(from) || !to.Known() {
		return
	}
	key := e.Key(sh.Cwd, to.Text)
	if strings.HasSuffix(to.Text, "/") {
		key = path.Join(key, name)
	}
	if len(e.Programs) < scan.MaxFiles {
		scan.Put(&e.Programs, key, name)
	}
}

// programNamed returns the program that the command itself copied, moved or linked to this name,
// and false if there is none. A bare name is searched in the folders of PATH.
func programNamed(sh *interp.Process, v *act.Invocation, name string) (string, bool) {
	e := sh.Env
	if is, ok := e.Programs[e.Key(sh.Cwd, name)]; ok || len(e.Programs) == 0 || strings.IndexByte(name, '/') >= 0 {
		return is, ok
	}
	if !e.Stranger(name) { // a known program is replaced only by one in a folder that PATH lists first
		for _, folder := range searched(sh, v) {
			if is, ok := e.Programs[strings.TrimSuffix(folder, "/")+"/"+name]; ok {
				return is, true
			}
		}
		return "", false
	}
	for _, d := range slices.Sorted(maps.Keys(e.Programs)) {
		if path.Base(d) == name {
			return e.Programs[d], true
		}
	}
	return "", false
}

// programPath reports whether the path is in a folder for programs, or is the output of which(1).
func programPath(w act.Word) bool {
	return strings.Contains(w.Text, "bin/") || w.At < 0 && !strings.Contains(w.Text, "/")
}

// writtenProgram judges a file that the command itself wrote and now starts by its path. Its "#!"
// line sets the language; the default is shell.
func writtenProgram(sh *interp.Process, v *act.Invocation) (act.Flow, bool) {
	e, first := sh.Env, v.Argv[0]
	if strings.IndexByte(first.Text, '/') >= 0 && !facts.StandardDirectory(first.Text) {
		e.Want(sh, first.Text)
	} else if e.Trace != nil {
		folders := searched(sh, v)
		for _, folder := range folders[:len(folders)-len(facts.StandardDirectories)] {
			e.Want(sh, folder+"/"+first.Text)
		}
	}
	if len(e.Files) == 0 || !first.Known() {
		return act.Flow{}, false
	}
	params := v.Argv[1:]
	f, ok := e.Files[e.Key(sh.Cwd, first.Text)]
	if !ok && strings.ContainsAny(first.Text, "*?[") {
		f, ok = e.WrittenFile(sh, first.Text)
	}
	if strings.IndexByte(first.Text, '/') < 0 {
		if f, ok = onPath(sh, v, v.Exe); !ok && len(v.Operands) > 0 { // a plugin: "kubectl x" runs kubectl-x
			f, ok = onPath(sh, v, v.Exe+"-"+v.Operands[0].Text)
			params = params[min(1+slices.IndexFunc(params, func(w act.Word) bool { return w.Text == v.Operands[0].Text }), len(params)):]
		}
	}
	if !ok || !f.Known || f.Word.Text == "" {
		return act.Flow{}, false
	}
	f.Word.Taint |= f.Taint
	return sh.Interpret(e.Shebang(f.Word.Text), f.Word, v, "file", params), true
}

// onPath returns the file with this name that the command itself wrote into a folder of PATH, and
// false if there is none.
func onPath(sh *interp.Process, v *act.Invocation, name string) (act.Flow, bool) {
	if strings.ContainsAny(name, "/"+string(scan.Hole)) {
		return act.Flow{}, false
	}
	found := ""
	for file := range sh.Env.Files {
		folder, ok := strings.CutSuffix(file, name)
		if !ok || !strings.HasSuffix(folder, "/") || found != "" && found < file {
			continue
		}
		if slices.ContainsFunc(searched(sh, v), func(p string) bool { return strings.TrimSuffix(p, "/")+"/" == folder }) {
			found = file
		}
	}
	return sh.Env.Files[found], found != ""
}

// searched returns the folders in which the shell looks for programs: those of PATH that the
// command sets, then the standard ones.
func searched(sh *interp.Process, v *act.Invocation) []string {
	var out []string
	for p := range strings.SplitSeq(sh.Variable(v, "PATH").Text, ":") {
		p = strings.TrimPrefix(p, string(scan.Hole)+"/") // for example $PWD/bin
		if p != "" && strings.IndexByte(p, scan.Hole) < 0 {
			out = append(out, sh.Env.Key(sh.Cwd, p))
		}
	}
	return append(out, facts.StandardDirectories[:]...)
}

// unpacksArchive records that an archive from the network was unpacked.
func unpacksArchive(e *interp.Env, v *act.Invocation) {
	if !e.In("unpackers", v.Exe) || v.Has("-t") || v.Has("--list") || v.Exe == "unzip" && (v.Has("-l") || v.Has("-p")) {
		return
	}
	e.Unpacked = e.Unpacked || v.Stdin.Taint&act.FromNetwork != 0 || slices.ContainsFunc(v.Argv[1:], func(w act.Word) bool {
		return e.Files[e.Key(v.Cwd, w.Text)].Taint&act.FromNetwork != 0 || hosts.ForeignShare(w.Text)
	})
}

// cloned records the folder into which a repository from the network is cloned.
func cloned(sh *interp.Process, v *act.Invocation) {
	i := slices.IndexFunc(v.Operands, func(w act.Word) bool { return strings.ContainsAny(w.Text, "/:") })
	if i < 0 || !v.UnderAny(sh.Env.Groups.Get("clones")) && !sh.Env.In("clones", v.Exe) {
		return
	}
	folder := strings.TrimSuffix(path.Base(v.Operands[i].Text[strings.LastIndexByte(v.Operands[i].Text, ':')+1:]), ".git")
	if i+1 < len(v.Operands) {
		folder = v.Operands[i+1].Text
	}
	sh.Env.Cloned = append(sh.Env.Cloned, sh.Env.Key(sh.Cwd, folder))
}

// runsUnpacked reports that a program from a downloaded archive or a cloned repository runs, by
// its path, by an interpreter or by make.
func runsUnpacked(e *interp.Env, v *act.Invocation) {
	w := v.Argv[0]
	switch {
	case !e.Unpacked && e.Cloned == nil:
		return
	case strings.IndexByte(w.Text, '/') >= 0:
	case e.In("makes", v.Exe):
		if !e.Unpacked {
			return
		}
		if f := e.Files["Makefile"]; f.Known && f.Taint&act.FromNetwork == 0 { // the rules of the makefile are known
			return
		}
		e.See(act.RunsDownload, v.Src, v.From, v.To, v.Exe)
		return
	case !e.In("file-runners", v.Exe) || len(v.Operands) == 0 || v.Has("-c") || v.Has("-e") || v.Has("-m"):
		return
	default:
		w = v.Operands[0]
	}
	windows, _ := paths.WindowsClass(w.Text)
	key := e.Key(v.Cwd, w.Text)
	if !e.Unpacked && !slices.ContainsFunc(e.Cloned, func(folder string) bool { return strings.HasPrefix(key, folder+"/") }) {
		return
	}
	if windows&paths.IsSystem == 0 && (strings.HasPrefix(w.Text, "/tmp/") || !scan.HasAnyPrefix(w.Text, "/", "~")) {
		e.See(act.RunsDownload, v.Src, v.From, v.To, act.Printable(w.Text))
	}
}
