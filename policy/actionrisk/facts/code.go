package facts

import "github.com/countersign/countersign/policy/actionrisk/rules"

// Language describes the syntax of a language.
type Language struct {
	Names    []string `json:"names"`
	Comments []string `json:"comments"` // starts of comments, which end with the line or with "*/"
	// Bare: a call needs no parentheses. Chars: single quotes enclose one character. Strings: in a
	// text that starts programs, a string that is a command line is treated as one that runs.
	Bare    bool     `json:"bare,omitempty"`
	Chars   bool     `json:"chars,omitempty"`
	Strings bool     `json:"strings,omitempty"`
	Dashes  bool     `json:"dashes,omitempty"` // a colon before a name calls a method
	Ticks   string   `json:"ticks,omitempty"`  // "text": backticks enclose a string, not a command
	Holes   []string `json:"holes,omitempty"`  // starts of expressions inside strings
}

// readLanguages reads code.json.
func (c *Set) readLanguages(read rules.TableReader) error {
	var t struct {
		Languages []*Language `json:"languages"`
	}
	err := read("code", &t)
	byName := map[string]*Language{}
	for _, l := range t.Languages {
		for _, n := range l.Names {
			byName[n] = l
		}
	}
	c.Languages = dictOf(byName)
	return err
}

// Language returns the syntax of a language. Comments of an unlisted language begin with "#".
func (c *Set) Language(name string) *Language {
	if l := c.Languages.Get(name); l != nil {
		return l
	}
	return c.Languages.Get("other")
}
