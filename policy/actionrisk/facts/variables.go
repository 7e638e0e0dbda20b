package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// variable is a row of env.json: how programs use the value of an environment variable.
type variable struct {
	Name []string `json:"name"` // a part of the name may be "*"
	// Lang: the value is a text in that language ("function": a function that a shell imports).
	// File: the value names a file with a text in that language.
	Lang string `json:"lang,omitempty"`
	File string `json:"file,omitempty"`
	// As: the words of the value are appended to this command. Whole: the value is a single word.
	As    []string `json:"as,omitempty"`
	Whole bool     `json:"whole,omitempty"`
	// Assign: NAME=value is appended as a single word.
	Assign bool `json:"assign,omitempty"`
	// Loads: code is loaded from the path, which is dangerous if everybody can write there.
	Loads bool `json:"loads,omitempty"`
	// Start: the program runs the file, or the files in the folder, before anything else.
	Start bool `json:"start,omitempty"`
}

func (c *Set) readVariables(read rules.TableReader) error {
	var t struct {
		Variables []*variable  `json:"variables"`
		Files     []ConfigFile `json:"files"`
	}
	if err := read("env", &t); err != nil {
		return err
	}
	variables := map[string]*variable{}
	for _, v := range t.Variables {
		for _, name := range v.Name {
			if strings.Contains(name, "*") {
				c.Families = append(c.Families, family{name, v})
			} else {
				variables[name] = v
			}
		}
	}
	c.Variables, c.Configs = dictOf(variables), t.Files
	return nil
}

// family is a variable whose name has a "*".
type family struct {
	Pattern string
	Is      *variable
}

// VariableOf returns the row for a variable, or nil.
func (c *Set) VariableOf(name string) *variable {
	if a := c.Variables.Get(name); a != nil {
		return a
	}
	for _, f := range c.Families {
		if paths.GlobMatch(f.Pattern, name) {
			return f.Is
		}
	}
	return nil
}

// WorldWritable reports whether a part of the value is in a folder where everybody may write.
func WorldWritable(value string) bool {
	return scan.HasAny(value+"/", "/tmp/", "/dev/shm/")
}

// ConfigFile is a file whose text another program runs later: a row of env.json.
type ConfigFile struct {
	File []string `json:"file"` // patterns for its path
	// A command follows one of Keys on a line of the file. With Lang, the whole file is a text in
	// that language. With As, its lines are options of that command.
	Keys []string `json:"keys,omitempty"`
	Lang string   `json:"lang,omitempty"`
	As   []string `json:"as,omitempty"`
}
