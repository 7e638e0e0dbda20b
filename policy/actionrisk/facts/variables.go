package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
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
	// Start: the program reads the file, or folder, before anything else, and runs what is in it.
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

// family is a variable with a part of its name that may be anything.
type family struct {
	Pattern string
	Is      *variable
}

// VariableOf finds the line about a name.
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

// WorldWritable: a part of the value lies where everybody may write.
func WorldWritable(value string) bool {
	return scan.HasAny(value+"/", "/tmp/", "/dev/shm/")
}

// ConfigFile is a file whose text another program runs later: a line of env.json.
type ConfigFile struct {
	File []string `json:"file"` // patterns of its path
	// Keys are before a command on a line of the file; with Lang all of it is a text
	// of that language; with As its lines are options of that command.
	Keys []string `json:"keys,omitempty"`
	Lang string   `json:"lang,omitempty"`
	As   []string `json:"as,omitempty"`
}
