package actionrisk

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// wrapper says how one executable carries another command or a program text.
type wrapper struct {
	Exe []string `json:"exe"`
	Sub []string `json:"sub,omitempty"` // only under these subcommands
	// Lang is the language of carried text: shell, python, node, perl, ruby,
	// php, awk, sql, powershell, cmd.
	Lang string `json:"lang,omitempty"`
	// Options hold text as their value; with one of Flag the first operand is text.
	Options []string `json:"options,omitempty"`
	Flag    []string `json:"flag,omitempty"`
	// Skip is how many operands (after Sub) stand before what is carried.
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
	Assigns     bool     `json:"assigns,omitempty"`  // env: NAME=value may stand first
	Root        bool     `json:"root,omitempty"`     // runs as root unless -u says otherwise
	Remote      bool     `json:"remote,omitempty"`   // on another machine or in a container
	Host        bool     `json:"host,omitempty"`     // the skipped operand names it
	Unless      []string `json:"unless,omitempty"`   // with one of these nothing runs
	Gone        bool     `json:"gone,omitempty"`     // a fresh shell that shares no variables
	Each        bool     `json:"each,omitempty"`     // every operand is a text of its own
	Plus        bool     `json:"plus,omitempty"`     // so is an operand that begins with "+"
	Also        []string `json:"also,omitempty"`     // options whose text runs beside the rest
	Files       []string `json:"files,omitempty"`    // operands of these patterns ("@*", "*.js") are files of text
	Beside      bool     `json:"beside,omitempty"`   // what it carries runs beside what it does itself
	Dry         bool     `json:"dry,omitempty"`      // a dry run runs it, too
	// Only: one of these must stand there, as in effects.json.
	Only []string `json:"only,omitempty"`
	// Settings: of an option's value "name=text" the text, if the name ends so; "*"
	// for any name, "data:" for an address that holds the text itself.
	Settings []string `json:"settings,omitempty"`
	Commas   bool     `json:"commas,omitempty"` // the words of a text stand between commas
	// Edits is the file that the program starts an editor on.
	Edits string `json:"edits,omitempty"`

	sub [][]string
}

type wrapperTable struct {
	Wrappers []wrapper `json:"wrappers"`
}

func (c *compiled) readWrappers(read tableReader) error {
	c.wrappers = map[string][]*wrapper{}
	for _, file := range [...]string{"wrappers", "wrappers_sql", "wrappers_ops"} {
		var t wrapperTable
		if err := read(file, &t); err != nil {
			return err
		}
		for i := range t.Wrappers {
			w := &t.Wrappers[i]
			for _, s := range w.Sub {
				w.sub = append(w.sub, strings.Fields(s))
			}
			names, err := c.names(w.Exe)
			if err != nil {
				return err
			}
			for _, n := range names {
				c.wrappers[n] = append(c.wrappers[n], w)
				c.takesText(n, w)
			}
		}
	}
	return nil
}

// takesText: an option that holds text takes the next word, whether the tool's own
// entry says so or not.
func (c *compiled) takesText(exe string, w *wrapper) {
	options := slices.Concat(w.Options, w.FileOptions, w.Also)
	if len(w.sub) > 0 { // a short option may mean something else elsewhere
		options = slices.DeleteFunc(options, func(o string) bool { return !strings.HasPrefix(o, "--") })
	}
	if len(options) == 0 {
		return
	}
	spec := c.tools[exe]
	if spec == nil {
		spec = &tool{First: len(w.sub) == 0 && (w.Argv || w.File || w.Join)}
		c.tools[exe] = spec
	}
	for _, o := range options {
		if !slices.Contains(spec.Values, o) {
			spec.Values = append(slices.Clip(spec.Values), o)
		}
	}
}

// unwrap runs what a wrapper carries and tells whether there was anything.
func (sh *shell) unwrap(w *wrapper, v *invocation) (flow, bool) {
	if v.dry && !w.Dry {
		return flow{}, false
	}
	inner, skip := sh.around(w, v)
	beside := inner.beside(w, v)
	if out, ok := inner.optionTexts(w, v); ok {
		return out, true
	}
	skip = assignments(w, v, skip)
	rest := v.operands[min(skip, len(v.operands)):]
	switch {
	case sh.e.front.carriers[w.Lang] != nil:
		sh.e.front.carriers[w.Lang](inner, v, skip)
		return flow{}, true
	case len(w.After) > 0:
		return sh.afterWord(inner, w, v)
	case len(w.Flag) > 0 && slices.ContainsFunc(w.Flag, v.has) && len(rest) > 0:
		if len(rest) > 1 {
			inner.zero, inner.params = rest[1], rest[min(2, len(rest)):]
		}
		return inner.interpret(w.Lang, rest[0], v, v.exe+" "+w.Flag[0], inner.params), true
	case w.Append && v.stdin.known && strings.TrimSpace(v.stdin.word.Text) == "" && (v.has("-r") || v.has("--no-run-if-empty")):
		return flow{known: true}, true
	case w.Argv && len(rest) > 0:
		return sh.words(inner, rest, w, v), true
	case w.Each && len(rest) > 0 || w.Plus:
		return inner.eachText(rest, w, v)
	case w.Script && v.exe == "npm":
		return inner.npmScripts(rest, w, v)
	case w.Edits != "":
		return inner.edits(w.Edits, v)
	case w.Script && len(rest) > 0:
		return inner.interpret(w.Lang, rest[0], v, v.exe, nil), true
	case w.Parallel:
		return inner.parallel(rest, v)
	case w.Join && len(rest) > 0 && w.Host && strings.HasPrefix(rest[0].Text, "-"): // options behind the host
		for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
			if slices.Contains(sh.e.tools[v.exe].Values, rest[0].Text) {
				rest = rest[1:]
			}
			rest = rest[min(1, len(rest)):]
		}
		if len(rest) == 0 {
			return inner.fromInput(w, v)
		}
		return inner.interpret(w.Lang, joinWords(rest, sh.src), v, v.exe, nil), true
	case w.Join && len(rest) > 0:
		if len(rest) > 1 && slices.Contains(sh.e.groups["shells"], scan.Base(rest[0].Text)) {
			inner.argv(rest, w, v) // what was meant; joined, the quotes are lost
		}
		return inner.interpret(w.Lang, joinWords(rest, sh.src), v, v.exe, nil), true
	case w.File && len(rest) > 0 && rest[0].Text != "-" && !v.has("-s"):
		inner.params = rest[1:]
		return inner.file(w, v, rest[0]), true
	case w.Stdin:
		out, ok := inner.fromInput(w, v)
		return out, ok || beside
	}
	return flow{}, beside
}

// beside runs the texts and files that a program reads before it comes to the rest:
// what its start file holds, what an option adds, files among its operands.
func (sh *shell) beside(w *wrapper, v *invocation) (done bool) {
	for _, starts := range sh.e.front.starts {
		starts(sh, w, v)
	}
	for i := range v.opts {
		if o := &v.opts[i]; o.given && slices.Contains(w.Also, o.name) {
			sh.interpret(w.Lang, o.value, v, v.exe+" "+o.name, nil)
			done = true
		}
	}
	for _, operand := range v.operands {
		for _, pattern := range w.Files {
			if matchWord(pattern, operand.Text) {
				if pattern == "@*" {
					operand.Text, operand.At = strings.TrimLeft(operand.Text, "@"), -1
				}
				sh.file(w, v, operand)
				done = true
			}
		}
	}
	return done
}

// around is the shell in which a wrapper runs what it carries, and how many
// operands stand before that.
func (sh *shell) around(w *wrapper, v *invocation) (*shell, int) {
	inner := *sh
	if w.Gone {
		inner.vars, inner.funcs, inner.aliases, inner.params = nil, nil, nil, nil
	}
	if w.Lang == "shell" && len(v.env) > 0 && !w.Gone { // a shell that is given variables
		inner.vars = maps.Clone(sh.vars)
		for _, a := range v.env {
			inner.set(a.name, a.value)
		}
	}
	if w.Root {
		user, ok := v.value("-u", "--user", "-g")
		inner.root = !ok || user.Text == "root" || user.Text == "0"
	}
	skip := w.Skip
	if len(w.sub) > 0 {
		skip += len(w.sub[0])
	}
	if w.Remote {
		inner.remote, inner.cwd, inner.root = true, "", false // root here is not root there
		if w.Host && len(v.operands) >= skip && skip > 0 {
			inner.host = v.operands[skip-1].Text
		}
	}
	return &inner, skip
}

// optionTexts runs the texts and files that stand in options.
func (sh *shell) optionTexts(w *wrapper, v *invocation) (out flow, done bool) {
	for i := range v.opts {
		o := &v.opts[i]
		if o.given && slices.Contains(w.Options, o.name) {
			if text, ok := optionText(o, w, v); ok {
				out, done = sh.interpret(w.Lang, text, v, v.exe+" "+o.name, nil), true
			}
		}
		if o.given && slices.Contains(w.FileOptions, o.name) {
			if o.value.Text == "-" || o.value.Text == "/dev/stdin" {
				return sh.fromInput(w, v)
			}
			out, done = sh.file(w, v, o.value), true
		}
	}
	return out, done
}

// optionText is the program text in an option's value: all of it, what follows
// "exec=" (tar --checkpoint-action), the value of a setting whose name ends in
// "command" (ssh -o), or, of env -S, with the operands behind it.
func optionText(o *option, w *wrapper, v *invocation) (Word, bool) {
	text := o.value
	if rest, ok := strings.CutPrefix(text.Text, "exec="); ok {
		text = text.tail(len("exec="))
		text.Text = rest
	} else if o.name == "--checkpoint-action" {
		return Word{}, false
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
	if v.exe == "env" {
		text.Text = strings.NewReplacer(`\_`, " ", `\c`, "").Replace(text.Text) // blanks of env's own
		for _, w := range v.operands {
			text.Text, text.At = text.Text+" "+scan.Quote(w.Text), -1
		}
	}
	return text, true
}

// settingText is the text that a setting "name=text" holds, if its name ends in one
// of the suffixes, or that an address "data:…" holds.
func settingText(w Word, suffixes []string) (Word, bool) {
	if slices.Contains(suffixes, "data:") {
		text, ok := dataAddress(w.Text)
		w.Text, w.At, w.Taint = text, -1, w.Taint|fromDecoder
		return w, ok
	}
	name, _, ok := strings.Cut(w.Text, "=")
	if !ok {
		return Word{}, false
	}
	lower := strings.ToLower(name)
	for _, s := range suffixes {
		if s == "*" || strings.HasSuffix(lower, s) {
			rest := w.tail(len(name) + 1)
			if t := strings.Trim(rest.Text, `"'`); t != rest.Text {
				rest.Text, rest.At = t, -1
			}
			if t := strings.TrimPrefix(rest.Text, "!"); t != rest.Text { // an alias that the shell runs
				rest.Text, rest.At = t, -1
			}
			return rest, true
		}
	}
	return Word{}, false
}

// dataAddress is the text that an address "data:type;base64,…" holds.
func dataAddress(t string) (string, bool) {
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

// assignments takes the NAME=value words in front of the inner command into its
// environment, and gives the place behind them.
func assignments(w *wrapper, v *invocation, skip int) int {
	for w.Assigns && skip < len(v.operands) {
		name, value, ok := strings.Cut(v.operands[skip].Text, "=")
		switch {
		case v.operands[skip].Text == "-": // env -
		case ok && name != "":
			word := v.operands[skip].tail(len(name) + 1)
			word.Text = value
			v.env = append(v.env, assign{name, word})
		default:
			return skip
		}
		skip++
	}
	return skip
}

// words runs operands that are a command of their own.
func (sh *shell) words(inner *shell, rest []Word, w *wrapper, v *invocation) flow {
	if v.exe == "env" && (v.has("-i") || v.has("--ignore-environment") || v.has("-")) {
		inner.vars = nil
	}
	out := inner.argv(rest, w, v)
	sh.otherReading(inner, rest, w, v)
	switch v.exe {
	case "builtin", "command", "time", "exec": // in this shell itself: what is set stays
		sh.cwd, sh.vars, sh.funcs, sh.aliases = inner.cwd, inner.vars, inner.funcs, inner.aliases
	}
	return out
}

// eachText runs operands that are texts of their own, or those with a "+" in front.
func (sh *shell) eachText(rest []Word, w *wrapper, v *invocation) (out flow, done bool) {
	for _, text := range rest {
		if w.Plus {
			if !strings.HasPrefix(text.Text, "+") {
				continue
			}
			text = text.tail(1)
		}
		out, done = sh.interpret(w.Lang, text, v, v.exe, nil), true
	}
	return out, done
}

// npmScripts runs what npm pkg set writes into the scripts of a package.
func (sh *shell) npmScripts(rest []Word, w *wrapper, v *invocation) (out flow, done bool) {
	for _, pair := range rest {
		if name, _, ok := strings.Cut(pair.Text, "="); ok && strings.HasPrefix(name, "scripts.") {
			out, done = sh.interpret(w.Lang, pair.tail(len(name)+1), v, "npm script", nil), true
		}
	}
	return out, done
}
