package posix

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// readsWritten judges the files that the command itself wrote and that the tool runs without being
// told: a Makefile, a conftest.py, the scripts of a package.json.
func readsWritten(sh *interp.Process, v *act.Invocation) {
	e := sh.Env
	rows := e.Program(v.Exe).Reads
	wantsRead(sh, v, rows)
	if len(e.Files) == 0 || len(rows) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		f := e.Files[name]
		for _, r := range rows {
			if !e.Budget.Spend(1+len(r.Files)) || !takes(r, sh, v, name) {
				continue
			}
			runsRead(sh, r, v, name, f)
			break // judge each file once
		}
	}
}

// wantsRead asks the caller for the files whose rules or scripts the tool runs: those of make,
// just and the package managers. Other files that tools read are source code of a project (a
// configuration in JavaScript, all its tests), about which a verdict would show little.
func wantsRead(sh *interp.Process, v *act.Invocation, rows []*facts.Read) {
	for _, r := range rows {
		if r.Lang != "make" && r.Lang != "just" && r.Lang != "scripts" || len(r.Sub) > 0 && !v.UnderAny(r.Sub) || v.Dry && !r.Dry || slices.ContainsFunc(r.Unless, v.Has) {
			continue
		}
		folder, moved := v.Value("-C", "--directory", "--prefix", "--cwd", "--dir")
		for _, name := range r.Files {
			if strings.ContainsAny(name, "*?[") {
				continue
			}
			if moved {
				name = folder.Text + "/" + name
			}
			sh.Env.Want(sh, name)
		}
	}
}

// takes reports whether the tool reads the file with this name.
func takes(r *facts.Read, sh *interp.Process, v *act.Invocation, name string) bool {
	return (!v.Dry || r.Dry) && (len(r.Sub) == 0 || v.UnderAny(r.Sub)) && !slices.ContainsFunc(r.Unless, v.Has) &&
		slices.ContainsFunc(r.Files, func(p string) bool { return facts.NamedLike(p, name) }) && (!r.Named || names(sh, v, name))
}

// names reports whether a word of the command line names the file, a pattern for it or a folder
// that contains it.
func names(sh *interp.Process, v *act.Invocation, name string) bool {
	for _, w := range v.Argv[1:] {
		key := sh.Env.Key(sh.Cwd, w.Text)
		if key == name || key == "." || w.Glob && paths.GlobMatch(key, name) || strings.HasPrefix(name, key+"/") {
			return true
		}
	}
	return false
}

// runsRead judges the content of a file that the tool runs. If the content is not known, it
// reports the origin of the file.
func runsRead(sh *interp.Process, r *facts.Read, v *act.Invocation, name string, f act.Flow) {
	e := sh.Env
	switch {
	case f.Known:
		once := strings.Join([]string{name, sh.Cwd, act.ArgvText(v), f.Word.Text}, "\x00")
		if e.RanFiles[once] { // the file starts the tool again
			return
		}
		scan.Put(&e.RanFiles, once, true)
		if f.Taint&act.FromDecoder != 0 {
			e.See(act.RunsDecoded, sh.Src, v.From, v.To, act.Printable(name))
		}
		f.Word.Taint |= f.Taint
		sh.Interpret(r.Lang, f.Word, v, v.Exe, nil)
	case r.Compile:
	case f.Taint&act.FromNetwork != 0:
		e.See(act.RunsDownload, sh.Src, v.From, v.To, act.Printable(name))
	case f.Taint&act.FromDecoder != 0:
		e.See(act.RunsDecoded, sh.Src, v.From, v.To, act.Printable(name))
	}
}

// buildsStatements reports whether a command that produces statements for a database contains
// words that destroy, or hides its text. A command that only selects lines of a dump does neither.
func buildsStatements(text string) bool {
	return scan.HasAny(strings.ToLower(text), "drop", "truncate", "delete", "alter ", "grant ", "update ", "flush", "remove", "chr(", "char(", "charcode", "reverse", "decode", "pack(", "rot13", "[::-1]", "atob", "b64", "unhex", "fromhex")
}

// decodesText reports whether the program decodes text such as base64. Dumps are often compressed
// or encrypted, but not encoded as text.
func decodesText(program string) bool {
	switch program {
	case "base64", "gbase64", "base32", "basenc", "xxd", "uudecode", "rev", "tr", "ascii85", "base58":
		return true
	}
	return false
}
