package facts

import (
	"fmt"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// programTable is code.json: what is known of programming languages.
type programTable struct {
	Languages []Language `json:"languages"`
	// Calls say what a called name does, Receivers what a method does to the path or
	// command it is called on.
	Calls     []codeCall `json:"calls"`
	Receivers []codeCall `json:"receivers"`
	// Values are names, or calls of them, that stand for a known text.
	Values []codeValue `json:"values"`
	// Joins put their arguments together, with this text between them.
	Joins []codeValue `json:"joins"`
	// Environments are all variables of the environment at once.
	Environments []string `json:"environments"`
	// Through give the text of their argument, or a path made of it.
	Through []string `json:"through"`
	// Builders make a text that nobody reads in the open of another one; Fetchers get
	// one from the network; Listers give the files of a folder.
	Builders []string `json:"builders"`
	Fetchers []string `json:"fetchers"`
	Listers  []string `json:"listers"`
}

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

type codeCall struct {
	Does  string   `json:"does"`
	Langs []string `json:"langs,omitempty"` // all if none
	Names []string `json:"names"`
}

type codeValue struct {
	Text  string   `json:"text"`
	Names []string `json:"names"`
}

// Doing is what a call of a program text does with its arguments.
type Doing uint8

// What calls do.
const (
	Nothing           Doing = iota
	RunsText                // a text for a shell
	RunsWords               // the words of a command
	DeletesTree             // a folder and what is in it
	DeletesTreeIfTold       // one if the arguments say so, else a file
	DeletesFile
	ReadsFile
	WritesFile
	MovesFile
	ChangesMode
	Evaluates  // a text of its own language
	Queries    // a statement of a database
	DropsIndex // or a collection of a service
	Loads      // runs a file or an address
	Saves      // an address to a file
	Unpickles  // runs what a pickled text says
	Signals    // sends a signal
)

// Deletes: a file or a folder.
func (d Doing) Deletes() bool {
	return d == DeletesFile || d == DeletesTree || d == DeletesTreeIfTold
}

// doing are the words of code.json for what calls do.
var doing = map[string]Doing{"tree": DeletesTree, "tree-if-recursive": DeletesTreeIfTold, "file": DeletesFile, "shell": RunsText, "words": RunsWords, "code": Evaluates,
	"loads": Loads, "write": WritesFile, "move": MovesFile, "mode": ChangesMode, "saves": Saves, "unpickles": Unpickles, "read": ReadsFile}

// codeName is a name of code.json, with what must stand before it.
type codeName struct {
	qualifier string // "os" of "os.Remove", or ""
	langs     map[string]bool
	Does      Doing
	Text      string
}

// code is code.json ready to look up names by their last part.
type code struct {
	languages                   map[string]*Language
	Environments                map[string]bool
	Through, Joins              map[string][]codeName
	Calls, Receivers, Values    map[string][]codeName
	Builders, Fetchers, Listers map[string][]codeName
}

func readCode(from rules.TableReader) (*code, error) {
	var t programTable
	if err := from("code", &t); err != nil {
		return nil, err
	}
	c := &code{languages: map[string]*Language{}, Values: map[string][]codeName{}, Joins: map[string][]codeName{},
		Environments: scan.SetOf(strings.Join(t.Environments, " ")), Through: byLastPart(t.Through),
		Builders: byLastPart(t.Builders), Fetchers: byLastPart(t.Fetchers), Listers: byLastPart(t.Listers)}
	for i := range t.Languages {
		for _, n := range t.Languages[i].Names {
			c.languages[n] = &t.Languages[i]
		}
	}
	var err error
	if c.Calls, err = calls(t.Calls); err != nil {
		return nil, err
	}
	if c.Receivers, err = calls(t.Receivers); err != nil {
		return nil, err
	}
	for _, v := range t.Values {
		names(c.Values, v.Names, codeName{Text: v.Text})
	}
	for _, j := range t.Joins {
		names(c.Joins, j.Names, codeName{Text: j.Text})
	}
	return c, nil
}

// calls are rows of what names do, by their last part.
func calls(rows []codeCall) (map[string][]codeName, error) {
	out := map[string][]codeName{}
	for _, r := range rows {
		if doing[r.Does] == Nothing {
			return nil, fmt.Errorf("code: nothing does %q", r.Does)
		}
		names(out, r.Names, codeName{Does: doing[r.Does], langs: scan.SetOf(strings.Join(r.Langs, " "))})
	}
	return out, nil
}

// byLastPart are names by their last part.
func byLastPart(list []string) map[string][]codeName {
	out := map[string][]codeName{}
	names(out, list, codeName{})
	return out
}

// names adds names to a table by their last part.
func names(into map[string][]codeName, list []string, as codeName) {
	for _, n := range list {
		as.qualifier = ""
		if i := strings.LastIndexByte(n, '.'); i >= 0 {
			as.qualifier, n = n[:i], n[i+1:]
		}
		into[n] = append(into[n], as)
	}
}

// Named finds a dotted name of a program text in a table.
func Named(table map[string][]codeName, name, lang string) (codeName, bool) {
	i := strings.LastIndexAny(name, ".:>")
	rows := table[name[i+1:]]
	if len(rows) == 0 {
		return codeName{}, false
	}
	before := strings.TrimRight(strings.ReplaceAll(name[:max(i, 0)], "::", "."), ".:-")
	for _, r := range rows {
		if len(r.langs) > 0 && !r.langs[lang] || r.qualifier != "" && before != r.qualifier && !strings.HasSuffix(before, "."+r.qualifier) {
			continue
		}
		return r, true
	}
	return codeName{}, false
}

// Language gives how a language is written; one that is not listed has "#" comments.
func (c *code) Language(name string) *Language {
	if l := c.languages[name]; l != nil {
		return l
	}
	return c.languages["other"]
}
