package posix

import (
	"path"
	"slices"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
)

// curlConfig adds the options in a ~/.curlrc that the command itself wrote before the options of
// the call. The file has one option per line: name = "value".
func curlConfig(sh *interp.Process, v *act.Invocation) {
	if len(sh.Env.Files) == 0 || len(v.Argv) < 2 || v.Argv[1].Text == "-q" {
		return
	}
	files := []string{"~/.curlrc"}
	for _, a := range v.Env {
		if a.Name == "CURL_HOME" || a.Name == "XDG_CONFIG_HOME" {
			files = append(files, path.Join(a.Value.Text, ".curlrc"))
		}
	}
	var more []act.Word
	for _, name := range files {
		if f := sh.Env.ReadFile(sh, act.Word{Text: name}); f.Known && sh.Env.Budget.Spend(1+len(f.Word.Text)/8) {
			more = append(more, settingsAsOptions(f.Word)...)
		}
	}
	more = slices.DeleteFunc(more, func(w act.Word) bool { return w.Text == "--url" }) // its value remains as an operand
	v.Argv = slices.Insert(slices.Clone(v.Argv), 1, more...)
}
