package facts

import (
	"fmt"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// TextFunction is a row of functions.json: the names that languages give to a function on texts. A
// name that begins with a dot is a method of the first text. Without languages, the row applies to
// all languages that lang/program reads.
type TextFunction struct {
	Does    string   `json:"does"` // key of scan.Functions
	Langs   []string `json:"langs,omitempty"`
	Names   []string `json:"names"`
	Options []string `json:"options,omitempty"` // for a program: only if one of these options is given
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
			return fmt.Errorf("functions.json: package scan has no function %q", f.Does)
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

// TextFunction returns the function that has this name in a language, or nil. The language ""
// means all languages of lang/program.
func (c *Set) TextFunction(lang, name string) *TextFunction {
	return c.Functions.Get(lang + " " + name)
}
