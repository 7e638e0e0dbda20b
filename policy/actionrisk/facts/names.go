package facts

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// The lists of names.json. A name of a program text is looked up in the list that fits its use.
const (
	AsCall        = "calls"        // effects of functions on their arguments
	AsReceiver    = "receivers"    // effects of methods on the path or command that they are called on
	AsValue       = "values"       // values of names and calls: the text that a name expands to
	AsJoin        = "joins"        // functions that join their arguments with Text
	AsEnvironment = "environments" // names of the whole environment (all variables)
	AsThrough     = "through"      // functions that return their argument's text or a path built from it
	AsBuilder     = "builders"     // functions that encode a text
	AsFetcher     = "fetchers"     // functions that read from the network
	AsLister      = "listers"      // functions that list the files of a folder
	AsLibrary     = "libraries"    // methods of libraries for services: boto3's delete_bucket is "aws s3 delete-bucket"
)

// lists maps each list of names.json to whether its rows must name an effect.
var lists = map[string]bool{AsCall: true, AsReceiver: true, AsLibrary: true, AsValue: false, AsJoin: false,
	AsEnvironment: false, AsThrough: false, AsBuilder: false, AsFetcher: false, AsLister: false}

// Name is a row of names.json: the value or effect of some names in a program text. If several
// rows match, the first one is used.
type Name struct {
	// Names are "remove", or "os.remove" with the end of the receiver; "*" is any name without a
	// row. Methods of libraries are in lower case with "_" between their words, and "*" matches
	// the rest of a name.
	Names []string `json:"names"`
	Langs []string `json:"langs,omitempty"` // all languages if empty
	// On are patterns for the whole receiver: "*fs*". "." is the result of a call, "-" means no
	// receiver.
	On   []string `json:"on,omitempty"`
	Does Doing    `json:"does,omitempty"`
	Text string   `json:"text,omitempty"`
	// Import: the text must contain one of these, the names of libraries. With: one of these must
	// be among the arguments.
	Import []string `json:"import,omitempty"`
	With   []string `json:"with,omitempty"`
	// Run is the command with the same effect. {0} is the first argument, {name} the value of a
	// named argument, {*} the part that the star matched, {kebab} the call's name with dashes,
	// {service} the service for which the client was created.
	Run []string `json:"run,omitempty"`
}

// Doing is the effect of a call in a program text on its arguments.
type Doing string

// The effects of calls.
const (
	Nothing           Doing = "nothing" // excludes a function that has the same name as one with an effect
	RunsText          Doing = "shell"   // runs a text in a shell
	RunsWords         Doing = "words"   // runs a command given as a list of words
	DeletesTree       Doing = "tree"    // deletes a folder and its contents
	DeletesTreeIfTold Doing = "tree-if-recursive"
	DeletesFile       Doing = "file"
	ReadsFile         Doing = "read"
	WritesFile        Doing = "write"
	MovesFile         Doing = "move"
	ChangesMode       Doing = "mode"
	Evaluates         Doing = "code"      // runs a text of its own language
	Queries           Doing = "query"     // runs a database statement
	DropsIndex        Doing = "index"     // deletes an index or a collection of a service
	Loads             Doing = "loads"     // runs a file or the contents of a URL
	Saves             Doing = "saves"     // saves the contents of a URL to a file
	Unpickles         Doing = "unpickles" // unpickles a text, which can run code
	Signals           Doing = "signal"
	CopiesFile        Doing = "copy"
	CopiesTree        Doing = "copy-tree" // copies the contents of a folder into another one
	LinksFile         Doing = "link"
	Enters            Doing = "enter"  // changes the working directory
	Unpacks           Doing = "unpack" // extracts an archive into a folder
)

var doings = []Doing{Nothing, RunsText, RunsWords, DeletesTree, DeletesTreeIfTold, DeletesFile, ReadsFile, WritesFile, MovesFile,
	ChangesMode, Evaluates, Queries, DropsIndex, Loads, Saves, Unpickles, Signals, CopiesFile, CopiesTree, LinksFile, Enters, Unpacks}

// Deletes reports whether the effect deletes a file or folder.
func (d Doing) Deletes() bool {
	return d == DeletesFile || d == DeletesTree || d == DeletesTreeIfTold
}

// acts reports whether the row's effect is a known one. In a list whose rows must name an effect
// (does), a row needs an effect or a command.
func (n *Name) acts(does bool) bool {
	if n.Does == "" {
		return !does || n.Run != nil
	}
	return slices.Contains(doings, n.Does)
}

// Loaded reports whether a text contains the name of one of the row's libraries.
func (n *Name) Loaded(text string) bool {
	return scan.HasAny(text, n.Import...)
}

// called is one name of a row.
type called struct {
	Qualifier string // "os" of "os.Remove", or ""
	Last      string // "Remove"
	Row       *Name
}

// readNames reads names.json and indexes each list by the last part of the names.
func (c *Set) readNames(read rules.TableReader) error {
	var table map[string][]*Name
	if err := read("names", &table); err != nil {
		return err
	}
	out := map[string]map[string][]called{}
	for list, rows := range table {
		does, listed := lists[list]
		if !listed {
			return fmt.Errorf("names.json: unknown list %q", list)
		}
		byLast := map[string][]called{}
		for _, row := range rows {
			if !row.acts(does) {
				return fmt.Errorf("names.json: list %s: unknown or missing effect %q", list, row.Does)
			}
			for _, n := range row.Names {
				cut := strings.LastIndexByte(n, '.')
				last := n[cut+1:]
				key := last
				if strings.Contains(last, "*") {
					key = "*"
				}
				byLast[key] = append(byLast[key], called{n[:max(cut, 0)], last, row})
			}
		}
		out[list] = byLast
	}
	c.Called = dictOfDicts(out)
	return nil
}

// Libraries returns the rows about libraries that a text loads.
func (c *Set) Libraries(text string) map[*Name]bool {
	out := map[*Name]bool{}
	libraries := c.Called.Get(AsLibrary)
	for _, rows := range libraries.Entries {
		for _, n := range rows.Is {
			if n.Row.Loaded(text) {
				out[n.Row] = true
			}
		}
	}
	return out
}

// Named returns the first row of a list that matches a dotted name, or nil.
func (c *Set) Named(as, name, lang string) *Name {
	for row := range c.AllNamed(as, name, lang) {
		return row
	}
	return nil
}

// AllNamed returns the rows of a list that match a dotted name, in the order of precedence.
func (c *Set) AllNamed(as, name, lang string) iter.Seq[*Name] {
	cut := strings.LastIndexAny(name, ".:>")
	on := "-"
	if cut >= 0 {
		if on = strings.TrimRight(strings.ReplaceAll(name[:cut], "::", "."), ".:-"); on == "" {
			on = "."
		}
	}
	return func(yield func(*Name) bool) {
		list := c.Called.Get(as)
		last := name[cut+1:]
		for _, rows := range [...][]called{list.Get(last), list.Get("*")} {
			for _, n := range rows {
				if (n.Last == last || paths.GlobMatch(n.Last, last)) && n.holds(on, lang) && !yield(n.Row) {
					return
				}
			}
		}
	}
}

func (n called) holds(on, lang string) bool {
	return (n.Qualifier == "" || on == n.Qualifier || strings.HasSuffix(on, "."+n.Qualifier)) &&
		(n.Row.Langs == nil || slices.Contains(n.Row.Langs, lang)) &&
		(n.Row.On == nil || slices.ContainsFunc(n.Row.On, func(p string) bool { return paths.GlobMatch(p, on) }))
}
