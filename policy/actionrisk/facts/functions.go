package facts

import (
	"fmt"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// TextFunction is a row of functions.json: what languages call a function that makes a
// text of texts. A name that begins with a point is one that is called on the first of
// them. Without languages it is that of all that lang/program reads.
type TextFunction struct {
	Does    string   `json:"does"` // a word of scan.Functions
	Langs   []string `json:"langs,omitempty"`
	Names   []string `json:"names"`
	Options []string `json:"options,omitempty"` // of a program: only with one of them
}

func (c *Set) readFunctions(read rules.TableReader) error {
	var t struct {
		Functions []*TextFunction `json:"functions"`
	}
	if err := read("functions", &t); err != nil {
		return err
	}
	byName := map[string]*TextFunction{}
	for _, f := range t.Functions {
		if scan.Functions[f.Does].Of == nil {
			return fmt.Errorf("functions: nothing does %q", f.Does)
		}
		if f.Langs == nil {
			f.Langs = []string{""}
		}
		for _, lang := range f.Langs {
			for _, name := range f.Names {
				byName[lang+" "+name] = f
			}
		}
	}
	c.Functions = dictOf(byName)
	return nil
}

// TextFunction is the function that a language calls so, or nil; "" is any language of
// lang/program.
func (c *Set) TextFunction(lang, name string) *TextFunction {
	return c.Functions.Get(lang + " " + name)
}
