package actionrisk

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
)

// variable is a line of env.json: what a program does with the value of a variable.
type variable struct {
	Name []string `json:"name"` // a part may be "*"
	// Lang: the value is a text of that language ("function" for a function that a
	// shell takes over); File: it names a file of such a text.
	Lang string `json:"lang,omitempty"`
	File string `json:"file,omitempty"`
	// As: the value is read as options of that command; Whole: as one word of it.
	As    []string `json:"as,omitempty"`
	Whole bool     `json:"whole,omitempty"`
	// Assign: as one word NAME=value.
	Assign bool `json:"assign,omitempty"`
	// Loads: what lies where everybody may write is loaded as code.
	Loads bool `json:"loads,omitempty"`
}

type variableTable struct {
	Variables []variable   `json:"variables"`
	Files     []configFile `json:"files"`
}

func (c *compiled) readVariables(read tableReader) error {
	var t variableTable
	if err := read("env", &t); err != nil {
		return err
	}
	c.variables, c.configs = map[string]*variable{}, t.Files
	for i := range t.Variables {
		a := &t.Variables[i]
		for _, name := range a.Name {
			if strings.Contains(name, "*") {
				c.families = append(c.families, family{name, a})
			} else {
				c.variables[name] = a
			}
		}
	}
	return nil
}

// family is a variable with a part of its name that may be anything.
type family struct {
	pattern string
	is      *variable
}

// variableOf finds the line about a name.
func (c *compiled) variableOf(name string) *variable {
	if a := c.variables[name]; a != nil {
		return a
	}
	for _, f := range c.families {
		if paths.GlobMatch(f.pattern, name) {
			return f.is
		}
	}
	return nil
}

// variableActs runs what programs run because of a variable.
func (sh *shell) variableActs(v *invocation, name string, value Word) {
	e := sh.e
	is := e.variableOf(name)
	if is == nil || value.Text == "" || !e.budget.spend(4) {
		return
	}
	if is.Loads && worldWritable(value.Text) {
		e.raise("rce.library-preload", sh.src, v.from, v.to, printable(value.Text))
	}
	switch {
	case is.File != "":
		sh.loadsFile(v, name, value, is.File)
	case is.Lang == "function":
		if _, body, ok := strings.Cut(value.Text, "{"); ok { // () { …; }
			value.Text, value.At = "{"+body, -1
			sh.interpret("shell", value, v, name, nil)
		}
	case is.Lang == "shell" && !strings.ContainsAny(value.Text, " /$`\t"):
		// the bare name of a program, as CC=clang
	case is.Lang != "":
		sh.interpret(is.Lang, value, v, name, nil)
	case len(is.As) > 0:
		words := []Word{value}
		if is.Assign {
			words[0].Text, words[0].At = name+"="+value.Text, -1
		} else if !is.Whole {
			words = splitWords(value)
		}
		of := *v
		of.exe, of.argv, of.src = name, []Word{{Text: name, At: -1, Span: value.Span}}, sh.src
		sh.plain(is.As, words, &of)
	}
}

// fileOrInput is what a file holds that the command itself wrote, or the program's
// input where that is what the file stands for.
func (sh *shell) fileOrInput(v *invocation, name Word) (flow, bool) {
	if fd, ok := descriptor(name.Text); name.Text == "/dev/stdin" || ok && fd == "0" {
		return v.stdin, true
	}
	f, ok := sh.e.files[paths.FileKey(sh.cwd, name.Text)]
	return f, ok
}

// loadsFile: the file that a variable names runs when the program starts.
func (sh *shell) loadsFile(v *invocation, name string, value Word, lang string) {
	f, ok := sh.fileOrInput(v, value)
	if !ok {
		return
	}
	if f.taint&fromNetwork != 0 {
		sh.e.raise("rce.download-exec", sh.src, v.from, v.to, printable(value.Text))
	}
	if f.known {
		f.word.Taint |= f.taint
		sh.interpret(lang, f.word, v, name, nil)
	}
}

// worldWritable: a part of the value lies where everybody may write.
func worldWritable(value string) bool {
	return strings.Contains(value, "/tmp/") || strings.Contains(value, "/dev/shm/") || strings.HasSuffix(value, "/tmp") || strings.HasSuffix(value, "/dev/shm")
}
