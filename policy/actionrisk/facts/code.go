package facts

import "github.com/countersign/countersign/policy/actionrisk/rules"

// Language says how a language is written.
type Language struct {
	Names    []string `json:"names"`
	Comments []string `json:"comments"` // what begins a comment, to the end of the line or "*/"
	// Bare: a call needs no brackets. Chars: single quotes hold one character. Strings:
	// a command line in a string is taken to run where the text starts programs.
	Bare    bool     `json:"bare,omitempty"`
	Chars   bool     `json:"chars,omitempty"`
	Strings bool     `json:"strings,omitempty"`
	Dashes  bool     `json:"dashes,omitempty"` // a colon before a name calls a method
	Ticks   string   `json:"ticks,omitempty"`  // "text": backticks hold text, not a command
	Holes   []string `json:"holes,omitempty"`  // what begins an expression inside of a string
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

// Language gives how a language is written; one that is not listed has "#" comments.
func (c *Set) Language(name string) *Language {
	if l := c.Languages.Get(name); l != nil {
		return l
	}
	return c.Languages.Get("other")
}
