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

// What is asked of a name: the lists of names.json.
const (
	AsCall        = "calls"        // what a call of it does with its arguments
	AsReceiver    = "receivers"    // what a method does to the path or command it is called on
	AsValue       = "values"       // the text that it, or a call of it, stands for
	AsJoin        = "joins"        // it puts its arguments together, with Text between them
	AsEnvironment = "environments" // it is all variables of the environment at once
	AsThrough     = "through"      // it gives the text of its argument, or a path made of it
	AsBuilder     = "builders"     // it encodes a text
	AsFetcher     = "fetchers"     // it gets a text from the network
	AsLister      = "listers"      // it gives the files of a folder
	AsLibrary     = "libraries"    // what a method of a service's library does: boto3's delete_bucket is "aws s3 delete-bucket"
)

// lists are those of names.json, and whether their rows say what is done.
var lists = map[string]bool{AsCall: true, AsReceiver: true, AsLibrary: true, AsValue: false, AsJoin: false,
	AsEnvironment: false, AsThrough: false, AsBuilder: false, AsFetcher: false, AsLister: false}

// Name is a row of names.json: what some names are, or do, in a program text. Of two rows
// that hold the first counts.
type Name struct {
	// Names are "remove", or "os.remove" with the end of what it is called on; "*" is any
	// that has no row of its own. Methods of libraries are in small letters with "_"
	// between their words, and "*" stands for the rest of one.
	Names []string `json:"names"`
	Langs []string `json:"langs,omitempty"` // all if none
	// On are patterns of all that it is called on: "*fs*"; "." is what a call gave, "-" is
	// nothing, which a function by itself is called on.
	On   []string `json:"on,omitempty"`
	Does Doing    `json:"does,omitempty"`
	Text string   `json:"text,omitempty"`
	// Import: one of these is in the text, as the name of what it loads. With: one of
	// these is among what the method is given.
	Import []string `json:"import,omitempty"`
	With   []string `json:"with,omitempty"`
	// Run is the command of the same effect: {0} is the first text it is given, {name}
	// the value of a named one, {*} what the star stands for, {kebab} the call with
	// dashes, {service} the name of the service that the client was made for.
	Run []string `json:"run,omitempty"`
}

// Doing is what a call of a program text does with its arguments.
type Doing string

// What calls do.
const (
	Nothing           Doing = "nothing" // what others of that name do
	RunsText          Doing = "shell"   // a text for a shell
	RunsWords         Doing = "words"   // the words of a command
	DeletesTree       Doing = "tree"    // a folder and what is in it
	DeletesTreeIfTold Doing = "tree-if-recursive"
	DeletesFile       Doing = "file"
	ReadsFile         Doing = "read"
	WritesFile        Doing = "write"
	MovesFile         Doing = "move"
	ChangesMode       Doing = "mode"
	Evaluates         Doing = "code"      // a text of its own language
	Queries           Doing = "query"     // a statement of a database
	DropsIndex        Doing = "index"     // or a collection of a service
	Loads             Doing = "loads"     // runs a file or an address
	Saves             Doing = "saves"     // an address to a file
	Unpickles         Doing = "unpickles" // runs what a pickled text says
	Signals           Doing = "signal"
	CopiesFile        Doing = "copy"
	CopiesTree        Doing = "copy-tree" // what is in a folder into another one
	LinksFile         Doing = "link"
	Enters            Doing = "enter"  // the folder that the program works in from now on
	Unpacks           Doing = "unpack" // an archive into a folder
)

var doings = []Doing{Nothing, RunsText, RunsWords, DeletesTree, DeletesTreeIfTold, DeletesFile, ReadsFile, WritesFile, MovesFile,
	ChangesMode, Evaluates, Queries, DropsIndex, Loads, Saves, Unpickles, Signals, CopiesFile, CopiesTree, LinksFile, Enters, Unpacks}

// Deletes: a file or a folder.
func (d Doing) Deletes() bool {
	return d == DeletesFile || d == DeletesTree || d == DeletesTreeIfTold
}

// acts: what the row does is known; one of a list that says it does something.
func (n *Name) acts(does bool) bool {
	if n.Does == "" {
		return !does || n.Run != nil
	}
	return slices.Contains(doings, n.Does)
}

// Loaded: the text loads what the row is about.
func (n *Name) Loaded(text string) bool {
	return scan.HasAny(text, n.Import...)
}

// called is a name of a row.
type called struct {
	Qualifier string // "os" of "os.Remove", or ""
	Last      string // "Remove"
	Row       *Name
}

// readNames reads the names of each list by their last part.
func (c *Set) readNames(read rules.TableReader) error {
	var table map[string][]*Name
	if err := read("names", &table); err != nil {
		return err
	}
	out := map[string]map[string][]called{}
	for list, rows := range table {
		does, listed := lists[list]
		if !listed {
			return fmt.Errorf("names: nobody asks for %q", list)
		}
		byLast := map[string][]called{}
		for _, row := range rows {
			if !row.acts(does) {
				return fmt.Errorf("names: %s: nothing does %q", list, row.Does)
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

// Libraries are the rows about libraries that a text loads.
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

// Named is the row about a dotted name of a program text, nil if there is none.
func (c *Set) Named(as, name, lang string) *Name {
	for row := range c.AllNamed(as, name, lang) {
		return row
	}
	return nil
}

// AllNamed are the rows about a dotted name of a program text, the one that counts first.
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
