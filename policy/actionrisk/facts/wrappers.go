package facts

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Wrapper says how one executable carries another command or a program text.
type Wrapper struct {
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// Lang is the language of carried text: shell, python, node, perl, ruby,
	// php, awk, sql, powershell, cmd.
	Lang string `json:"lang,omitempty"`
	// Options hold text as their value; with one of Flag the first operand is text.
	Options []string `json:"options,omitempty"`
	Flag    []string `json:"flag,omitempty"`
	// Skip is how many operands (after Sub) are before what is carried.
	Skip int `json:"skip,omitempty"`
	// Argv: the operands are the inner command; Join: they are joined to a text;
	// Script: the first of them is a text.
	Argv   bool `json:"argv,omitempty"`
	Join   bool `json:"join,omitempty"`
	Script bool `json:"script,omitempty"`
	// After: one of these words begins the inner command, one of Until ends it.
	After []string `json:"after,omitempty"`
	Until []string `json:"until,omitempty"`
	// Stdin: it reads text from its input if nothing else is given. File: the
	// first operand, or the value of one of FileOptions, is a file of text.
	Stdin       bool     `json:"stdin,omitempty"`
	File        bool     `json:"file,omitempty"`
	FileOptions []string `json:"fileOptions,omitempty"`
	Append      bool     `json:"append,omitempty"`   // xargs: input becomes operands
	Parallel    bool     `json:"parallel,omitempty"` // parallel: words after ":::" or the input fill {} or follow
	Assigns     bool     `json:"assigns,omitempty"`  // env: NAME=value may be first
	Root        bool     `json:"root,omitempty"`     // runs as root unless -u says otherwise
	Account     bool     `json:"account,omitempty"`  // or the first operand names another user: su bob -c
	Remote      bool     `json:"remote,omitempty"`   // on another machine or in a container
	Host        bool     `json:"host,omitempty"`     // the skipped operand names it
	Unless      []string `json:"unless,omitempty"`   // with one of these nothing runs
	Gone        bool     `json:"gone,omitempty"`     // a fresh shell that shares no variables
	Each        bool     `json:"each,omitempty"`     // every operand is a text of its own
	Plus        bool     `json:"plus,omitempty"`     // so is an operand that begins with "+"
	Also        []string `json:"also,omitempty"`     // options whose text runs as well
	Files       []string `json:"files,omitempty"`    // operands of these patterns ("@*", "*.js") are files of text
	Beside      bool     `json:"beside,omitempty"`   // it runs what it carries, and has an effect of its own
	Dry         bool     `json:"dry,omitempty"`      // a dry run runs it, too
	// Only: one of these must be given, as of an effect.
	Only []string `json:"only,omitempty"`
	// Settings: of an option's value "name=text" the text, if the name ends so; "*"
	// for any name, "data:" for an address that holds the text itself.
	Settings []string `json:"settings,omitempty"`
	Commas   bool     `json:"commas,omitempty"` // the words of a text are between commas
	// Edits is the file that the program starts an editor on.
	Edits string `json:"edits,omitempty"`
}

// takesText: an option that holds text takes the next word, whether the tool's own
// entry says so or not.
func (p *Program) takesText(w *Wrapper) {
	options := slices.Concat(w.Options, w.FileOptions, w.Also)
	if len(w.Sub) > 0 { // a short option may mean something else elsewhere
		options = slices.DeleteFunc(options, func(o string) bool { return !strings.HasPrefix(o, "--") })
	}
	if len(options) == 0 {
		return
	}
	if p.Options == nil {
		p.Options = &Tool{First: len(w.Sub) == 0 && (w.Argv || w.File || w.Join)}
	}
	p.Options.addValues(options)
}

// OptionText is the program text in an option's value: all of it, what follows
// "exec=" (tar --checkpoint-action), the value of a setting whose name ends in
// "command" (ssh -o), or, of env -S, with the operands after it.
func OptionText(o *act.Option, w *Wrapper, v *act.Invocation) (act.Word, bool) {
	text := o.Value
	if rest, ok := strings.CutPrefix(text.Text, "exec="); ok {
		text = text.Tail(len("exec="))
		text.Text = rest
	} else if o.Name == "--checkpoint-action" {
		return act.Word{}, false
	}
	if len(w.Settings) > 0 {
		return settingText(text, w.Settings)
	}
	if w.Commas {
		parts := strings.Split(text.Text, ",")
		for i := range parts {
			parts[i] = scan.Quote(parts[i])
		}
		text.Text, text.At = strings.Join(parts, " "), -1
	}
	if v.Exe == "env" {
		text.Text = strings.NewReplacer(`\_`, " ", `\c`, "").Replace(text.Text) // blanks of env's own
		for _, w := range v.Operands {
			text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
		}
	}
	return text, true
}

// settingText is the text that a setting "name=text" holds, if its name ends in one
// of the suffixes, or that an address "data:…" holds.
func settingText(w act.Word, suffixes []string) (act.Word, bool) {
	if slices.Contains(suffixes, "data:") {
		text, ok := DataAddress(w.Text)
		w.Text, w.At, w.Taint = text, -1, w.Taint|act.FromDecoder
		return w, ok
	}
	name, _, ok := strings.Cut(w.Text, "=")
	if !ok {
		return act.Word{}, false
	}
	lower := strings.ToLower(name)
	for _, s := range suffixes {
		if s == "*" || strings.HasSuffix(lower, s) {
			rest := w.Tail(len(name) + 1)
			if t := strings.Trim(rest.Text, `"'`); t != rest.Text {
				rest.Text, rest.At = t, -1
			}
			if t := strings.TrimPrefix(rest.Text, "!"); t != rest.Text { // an alias that the shell runs
				rest.Text, rest.At = t, -1
			}
			return rest, true
		}
	}
	return act.Word{}, false
}

// Assignments takes the NAME=value words in front of the inner command into its
// environment, and gives the place after them.
func Assignments(w *Wrapper, v *act.Invocation, skip int) int {
	for w.Assigns && skip < len(v.Operands) {
		name, value, ok := strings.Cut(v.Operands[skip].Text, "=")
		switch {
		case v.Operands[skip].Text == "-": // env -
		case ok && name != "":
			word := v.Operands[skip].Tail(len(name) + 1)
			word.Text = value
			v.Env = append(v.Env, act.Assign{Name: name, Value: word})
		default:
			return skip
		}
		skip++
	}
	return skip
}

// DataAddress is the text that an address "data:type;base64,…" holds.
func DataAddress(t string) (string, bool) {
	rest, ok := strings.CutPrefix(t, "data:")
	kind, text, comma := strings.Cut(rest, ",")
	if !ok || !comma || len(text) > scan.MaxDecoded {
		return "", false
	}
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	if strings.HasSuffix(kind, ";base64") {
		return scan.Decode64(text)
	}
	return text, true
}
