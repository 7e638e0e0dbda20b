package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// WindowsTable is rules/windows.json: what PowerShell, .NET and cmd call things,
// and which command of a POSIX shell does the same, so that one table decides how
// bad it is. It judges nothing itself.
type WindowsTable struct {
	Aliases  Dict[string] `json:"aliases"`
	Env      Dict[string] `json:"env"`      // variables that are the same everywhere
	Switches []string     `json:"switches"` // parameters without a value, of whatever command
	Options  []string     `json:"options"`  // parameters with a value, of whatever command
	Cmdlets  []*Cmdlet    `json:"cmdlets"`
	Members  []*WinMember `json:"members"`
	Internal []*Cmdlet    `json:"internal"` // commands that are part of cmd
	Paths    Dict[string] `json:"paths"`    // "get-x.property": the path that it gives
	Verbs    []string     `json:"verbs"`    // with which the names of commands begin
	Programs []string     `json:"programs"` // by which text is known to be meant for Windows
	// Elsewhere are names that mean something on other systems as well, and what tells
	// that Windows is meant; Marks stand only in PowerShell.
	Elsewhere Dict[[]string] `json:"elsewhere"`
	Marks     []string       `json:"marks"`
	Locators  []string       `json:"locators"` // programs that print where others are
	Loaders   []string       `json:"loaders"`  // programs that run or install the files they are given
	Carriers  []*WinCarrier  `json:"carriers"` // programs that start others

	ByCmdlet   Dict[*Cmdlet]       `json:"-"`
	ByInternal Dict[*Cmdlet]       `json:"-"`
	ByMember   Dict[[]*WinMember]  `json:"-"`
	ByCarrier  Dict[[]*WinCarrier] `json:"-"`
	IsVerb     Dict[bool]          `json:"-"`
	IsProgram  Dict[bool]          `json:"-"`
	IsSwitch   Dict[bool]          `json:"-"`
}

// Cmdlet says how a command reads its parameters and what does the same elsewhere.
type Cmdlet struct {
	Name   []string `json:"name"`
	Pos    []string `json:"pos,omitempty"`    // parameters that may go without their name
	Params []string `json:"params,omitempty"` // others with a value
	// Run is the command that does the same: words, "{p}" for the values of a
	// parameter, "{p:-o}" for "-o" and its value if it is given, "{p?-o}" for "-o" if
	// it is given.
	Run []string `json:"run,omitempty"`
	// Write: ">" or ">>", Text goes to the file that Pos begins with.
	Write string   `json:"write,omitempty"`
	Text  string   `json:"text,omitempty"`
	Gives string   `json:"gives,omitempty"` // its output: "input", "args", "path", or a taint "network", "secret", "environ"
	Off   []string `json:"off,omitempty"`   // with one of these it does nothing
}

// WinMember is a member of a .NET or COM type that does what a command does.
type WinMember struct {
	On    []string `json:"on"`
	Name  []string `json:"name"`
	Run   []string `json:"run,omitempty"`  // "{0}" is the first argument
	Line  []string `json:"line,omitempty"` // these together are a command line
	Text  string   `json:"text,omitempty"` // this is program text in that language
	Write string   `json:"write,omitempty"`
	Gives string   `json:"gives,omitempty"`
}

func (c *Set) readWindows(read rules.TableReader) error {
	t := &c.Windows
	if err := read("windows", t); err != nil {
		return err
	}
	t.ByCmdlet, t.ByInternal = cmdletsByName(t.Cmdlets), cmdletsByName(t.Internal)
	members, carriers := map[string][]*WinMember{}, map[string][]*WinCarrier{}
	for _, m := range t.Members {
		for _, n := range m.Name {
			members[n] = append(members[n], m)
		}
	}
	for _, p := range t.Carriers {
		for _, n := range p.Exe {
			carriers[n] = append(carriers[n], p)
		}
	}
	t.ByMember, t.ByCarrier = dictOf(members), dictOf(carriers)
	t.IsVerb, t.IsProgram, t.IsSwitch = setOf(t.Verbs), setOf(t.Programs), setOf(t.Switches)
	return nil
}

func cmdletsByName(list []*Cmdlet) Dict[*Cmdlet] {
	byName := map[string]*Cmdlet{}
	for _, cmdlet := range list {
		for _, n := range cmdlet.Name {
			byName[n] = cmdlet
		}
	}
	return dictOf(byName)
}

// TextLike is a text that one of the patterns fits, in any case.
func TextLike(texts, patterns []string) (act.Word, bool) {
	for _, t := range texts {
		low := strings.ToLower(strings.ReplaceAll(t, `\`, "/"))
		for _, p := range patterns {
			if low == p || p == `\*` && low == "*" || strings.IndexByte(p, '*') >= 0 && paths.GlobMatch(p, low) {
				return act.Word{Text: t}, true
			}
		}
	}
	return act.Word{}, false
}

// ProgramFact is what the tables ask about a program: its words, blanks part them
// inside quotes too, and its arguments as they are.
type ProgramFact struct{ Words, Whole []string }

// WinCarrier is a program of Windows that starts another, or fetches a file.
type WinCarrier struct {
	Exe     []string `json:"exe"`
	Options []string `json:"options,omitempty"` // what follows one of these is a command line
	After   []string `json:"after,omitempty"`   // all that follows one of these is
	Rest    bool     `json:"rest,omitempty"`    // all from the first word that is no option on is
	Lang    string   `json:"lang,omitempty"`    // cmd, if nothing else
	Fetch   bool     `json:"fetch,omitempty"`   // what follows the URL is the file that it is saved to
	Decode  []string `json:"decode,omitempty"`  // with one of these, the last word is a file made of another
	Encode  []string `json:"encode,omitempty"`  // so it is with one of these, and nothing is hidden by it
	Named   string   `json:"named,omitempty"`   // what follows this within a word is a command line
}
