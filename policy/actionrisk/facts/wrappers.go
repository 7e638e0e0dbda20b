package facts

import (
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Wrapper describes how a program runs another command or a program text.
type Wrapper struct {
	Sub []string `json:"sub,omitempty"` // only for these subcommands
	// Lang is the language of the text, such as shell, python or sql.
	Lang string `json:"lang,omitempty"`
	// Options have the text as their value. With one of Flag, the first operand is the text.
	Options []string `json:"options,omitempty"`
	Flag    []string `json:"flag,omitempty"`
	// Skip is the number of operands after Sub and before the command or text.
	Skip int `json:"skip,omitempty"`
	// Argv: the operands are the words of the inner command. Join: they are joined to a text.
	// Script: the first one is a text.
	Argv   bool `json:"argv,omitempty"`
	Join   bool `json:"join,omitempty"`
	Script bool `json:"script,omitempty"`
	// After: one of these words begins the inner command. Until: one of these ends it.
	After []string `json:"after,omitempty"`
	Until []string `json:"until,omitempty"`
	// Stdin: the program reads the text from standard input if no other is given. File: the first
	// operand, or the value of one of FileOptions, is a file with the text.
	Stdin       bool     `json:"stdin,omitempty"`
	File        bool     `json:"file,omitempty"`
	FileOptions []string `json:"fileOptions,omitempty"`
	Append      bool     `json:"append,omitempty"`   // xargs: the input becomes operands
	Parallel    bool     `json:"parallel,omitempty"` // parallel: words after ":::" or the input replace {} or are appended
	Assigns     bool     `json:"assigns,omitempty"`  // env: assignments NAME=value may come first
	Root        bool     `json:"root,omitempty"`     // runs the command as root unless -u names another user
	Account     bool     `json:"account,omitempty"`  // like Root, but the first operand may name another user: su bob -c
	Remote      bool     `json:"remote,omitempty"`   // runs the command on another machine or in a container
	Host        bool     `json:"host,omitempty"`     // the last skipped operand names the host
	Unless      []string `json:"unless,omitempty"`   // with one of these options nothing runs
	Gone        bool     `json:"gone,omitempty"`     // runs it in a new shell without the variables of this one
	Each        bool     `json:"each,omitempty"`     // every operand is a separate text
	Plus        bool     `json:"plus,omitempty"`     // an operand that begins with "+" is a separate text
	Also        []string `json:"also,omitempty"`     // options whose text also runs
	Files       []string `json:"files,omitempty"`    // operands that match these patterns ("@*", "*.js") are files with the text
	Beside      bool     `json:"beside,omitempty"`   // the program also has an effect of its own
	Dry         bool     `json:"dry,omitempty"`      // a dry run also runs the command
	// Only: one of these must be given, as in Any of an effect.
	Only []string `json:"only,omitempty"`
	// Settings: the text is in an option's value "name=text" if the name ends with one of these.
	// "*" is any name; "data:" is a data URL that contains the text.
	Settings []string `json:"settings,omitempty"`
	Commas   bool     `json:"commas,omitempty"` // the words of a text are separated by commas
	// Edits is the file that the program opens in an editor.
	Edits string `json:"edits,omitempty"`
}

// takesText adds the options with a text to the options that take a value, even if programs.json
// does not list them as such.
func (p *Program) takesText(w *Wrapper) {
	options := slices.Concat(w.Options, w.FileOptions, w.Also)
	if len(w.Sub) > 0 { // a short option may have another meaning for other subcommands
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

// OptionText returns the program text in an option's value: the whole value, the part after
// "exec=" (tar --checkpoint-action), or the value of a setting (ssh -o). For env -S it appends the
// operands to the text.
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
		text.Text = strings.NewReplacer(`\_`, " ", `\c`, "").Replace(text.Text) // escapes that only env has
		for _, w := range v.Operands {
			text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
		}
	}
	return text, true
}

// settingText returns the text in a setting "name=text" if the name ends with one of the suffixes,
// or the text in a data URL.
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

// Assignments moves the NAME=value words before the inner command to the environment. It returns
// the index of the operand after them.
func Assignments(w *Wrapper, v *act.Invocation, skip int) int {
	for w.Assigns && skip < len(v.Operands) {
		name, value, ok := strings.Cut(v.Operands[skip].Text, "=")
		switch {
		case v.Operands[skip].Text == "-": // "-" means -i: an empty environment
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

// DataAddress returns the text that a data URL "data:type;base64,…" contains.
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
