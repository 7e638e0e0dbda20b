package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// configFile is a file whose text another program runs later: a line of env.json.
type configFile struct {
	File []string `json:"file"` // patterns of its path
	// Keys stand before a command on a line of the file; with Lang all of it is a text
	// of that language; with As its lines are options of that command.
	Keys []string `json:"keys,omitempty"`
	Lang string   `json:"lang,omitempty"`
	As   []string `json:"as,omitempty"`
}

// configured judges what a text does in a file that a program reads for its settings.
func (e *engine) configured(sh *shell, name string, f flow) {
	if f.word.Text == "" || !f.known && !partlyKnown(f.word) || len(f.word.Text) > scan.MaxDecoded || f.word.Glob {
		return
	}
	for i := range e.configs {
		c := &e.configs[i]
		for _, pattern := range c.File {
			if strings.HasSuffix(pattern, "*") && paths.GlobMatch(pattern, name) || strings.HasSuffix(name, strings.TrimLeft(pattern, "*")) && pattern[0] == '*' {
				sh.config(c, f.word)
				return
			}
		}
	}
}

// config runs what a file of settings makes its program run.
func (sh *shell) config(c *configFile, text Word) {
	v := &invocation{exe: "config", src: sh.src, argv: []Word{text}}
	if c.Lang != "" {
		sh.interpret(c.Lang, text, v, "config", nil)
		return
	}
	if len(c.As) > 0 {
		sh.plain(c.As, settingsAsOptions(text), v)
		return
	}
	for line := range strings.Lines(text.Text) {
		if !sh.e.budget.spend(1 + len(c.Keys)) {
			return
		}
		line = strings.TrimSpace(line)
		for _, key := range c.Keys {
			if _, value, ok := strings.Cut(line, "="); key == "=!" && ok && strings.HasPrefix(strings.TrimSpace(value), "!") { // an alias of Git
				w := text
				w.Text, w.At = strings.TrimPrefix(strings.TrimSpace(value), "!"), -1
				sh.interpret("shell", w, v, "alias", nil)
			}
			rest, ok := cutFold(line, key)
			if !ok {
				continue
			}
			if trimmed := strings.TrimLeft(rest, " \t=:+\"'"); trimmed != rest || key == "|" {
				w := text
				w.Text, w.At = strings.TrimRight(trimmed, "\"'"), -1
				if worldWritable(w.Text) && !strings.ContainsAny(w.Text, " \t") {
					sh.e.raise("rce.library-preload", sh.src, 0, len(sh.src.text), printable(w.Text))
				}
				w.Text = strings.NewReplacer("%%", "%", "%h", "host", "%p", "22", "%r", "user").Replace(w.Text)
				sh.interpret("shell", w, v, key, nil)
			}
		}
	}
}

// cutFold is strings.CutPrefix for any case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// settingsAsOptions writes the lines of a file such as .curlrc, "name = value" or
// "name value", as the options they stand for.
func settingsAsOptions(text Word) []Word {
	var out []Word
	for line := range strings.Lines(text.Text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || len(out) >= scan.MaxLoop {
			continue
		}
		name, value := line, ""
		if i := strings.IndexAny(line, " \t=:"); i > 0 {
			name, value = line[:i], strings.Trim(line[i:], " \t=:")
		}
		if value = strings.Trim(value, `"'`); !strings.HasPrefix(name, "-") {
			name = "--" + strings.ReplaceAll(name, "_", "-")
		}
		out = append(out, Word{Text: name, At: -1, Span: text.Span})
		if value != "" {
			out = append(out, Word{Text: value, At: -1, Span: text.Span, Taint: text.Taint, Var: text.Var})
		}
	}
	return out
}

// options judges a program with the options that a file or its input holds.
func (sh *shell) options(v *invocation, words []Word) {
	for _, w := range words {
		f := v.stdin
		if w.Text != "-" && w.Text != "/dev/stdin" {
			f = sh.e.readFile(sh, w)
		}
		if f.known || partlyKnown(f.word) {
			more := settingsAsOptions(f.word)
			for i := range more {
				more[i].Taint |= f.taint
			}
			sh.plain([]string{v.exe}, more, v)
		}
	}
}

// configures judges what is written into a file of settings.
func configures(sh *shell, file Word, f flow) {
	if file.known() && file.Text != "/dev/null" {
		sh.e.configured(sh, paths.FileKey(sh.cwd, file.Text), f)
	}
}
