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

// readLanguages are the languages of code.json by their names.
func readLanguages(from rules.TableReader) (map[string]*Language, error) {
	var t struct {
		Languages []Language `json:"languages"`
	}
	err := from("code", &t)
	out := map[string]*Language{}
	for i := range t.Languages {
		for _, n := range t.Languages[i].Names {
			out[n] = &t.Languages[i]
		}
	}
	return out, err
}

// Language gives how a language is written; one that is not listed has "#" comments.
func (c *Set) Language(name string) *Language {
	all := c.languages()
	if l := all[name]; l != nil {
		return l
	}
	return all["other"]
}
