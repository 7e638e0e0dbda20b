package posix

import (
	"path"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// curlConfig puts the options in curl's -K file, or in the ~/.curlrc that the
// command itself wrote, before its own. One stands on each line: name = "value".
func curlConfig(sh *interp.Process, v *act.Invocation) {
	var more []act.Word
	read := func(name act.Word) {
		f := v.Stdin
		if name.Text != "-" && name.Text != "/dev/stdin" {
			f = sh.Env.ReadFile(sh, name)
		}
		if !f.Known || !sh.Env.Budget.Spend(1+len(f.Word.Text)/8) {
			return
		}
		for line := range strings.Lines(f.Word.Text) {
			more = append(more, configLine(line, f.Word)...)
		}
	}
	for i := 1; i < len(v.Argv); i++ {
		switch t := v.Argv[i].Text; {
		case (t == "-K" || t == "--config") && i+1 < len(v.Argv):
			i++
			read(v.Argv[i])
		case strings.HasPrefix(t, "-K") && len(t) > 2:
			read(act.Word{Text: t[2:]})
		case strings.HasPrefix(t, "--config="):
			read(act.Word{Text: strings.TrimPrefix(t, "--config=")})
		}
	}
	if len(sh.Env.Files) > 0 && len(v.Argv) > 1 && v.Argv[1].Text != "-q" {
		read(act.Word{Text: "~/.curlrc"})
		for _, a := range v.Env {
			if a.Name == "CURL_HOME" || a.Name == "XDG_CONFIG_HOME" {
				read(act.Word{Text: path.Join(a.Value.Text, ".curlrc")})
			}
		}
	}
	if len(more) > 0 {
		v.Argv = append(append([]act.Word{v.Argv[0]}, more...), v.Argv[1:]...)
	}
}

// configLine is one line of curl's configuration as words.
func configLine(line string, at act.Word) []act.Word {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil
	}
	end := strings.IndexAny(line, " \t=:")
	name, value := line, ""
	if end > 0 {
		name, value = line[:end], strings.TrimLeft(line[end:], " \t=:")
	}
	if name[0] != '-' {
		name = "--" + name
	}
	words := []act.Word{{Text: name, At: -1, Span: at.Span, Taint: at.Taint}}
	if name == "--url" {
		words = nil
	}
	if len(value) > 1 && value[0] == '"' {
		value = scan.Unescape(strings.TrimSuffix(value[1:], `"`))
	}
	if value != "" {
		words = append(words, act.Word{Text: value, At: -1, Span: at.Span, Taint: at.Taint})
	}
	return words
}
