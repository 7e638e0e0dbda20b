package facts

import (
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/rules"
)

// WindowsTable is rules/windows.json: it maps the commands of PowerShell, .NET and cmd to the
// commands of a POSIX shell with the same effect. So the rules for those commands judge both.
type WindowsTable struct {
	Aliases  Dict[string] `json:"aliases"`
	Env      Dict[string] `json:"env"`      // variables with the same value on every machine
	Switches []string     `json:"switches"` // parameters without a value, of any command
	Options  []string     `json:"options"`  // parameters with a value, of any command
	Cmdlets  []*Cmdlet    `json:"cmdlets"`
	Members  []*WinMember `json:"members"`
	Internal []*Cmdlet    `json:"internal"` // commands that are built into cmd
	Paths    Dict[string] `json:"paths"`    // maps "get-x.property" to the path that it returns
	Verbs    []string     `json:"verbs"`    // verbs with which the names of commands begin
	Programs []string     `json:"programs"` // programs that exist only on Windows
	// Elsewhere are names that also exist on other systems, with the words that show that Windows
	// is meant. Marks occur only in PowerShell.
	Elsewhere Dict[[]string] `json:"elsewhere"`
	Marks     []string       `json:"marks"`
	Locators  []string       `json:"locators"` // programs that print where other programs are
	Loaders   []string       `json:"loaders"`  // programs that run or install the files in their arguments
	Carriers  []*WinCarrier  `json:"carriers"` // programs that start others

	ByCmdlet   Dict[*Cmdlet]       `json:"-"`
	ByInternal Dict[*Cmdlet]       `json:"-"`
	ByMember   Dict[[]*WinMember]  `json:"-"`
	ByCarrier  Dict[[]*WinCarrier] `json:"-"`
	IsVerb     Dict[bool]          `json:"-"`
	IsProgram  Dict[bool]          `json:"-"`
	IsSwitch   Dict[bool]          `json:"-"`
}

// Cmdlet describes the parameters of a command, and the POSIX command with the same effect.
type Cmdlet struct {
	Name   []string `json:"name"`
	Pos    []string `json:"pos,omitempty"`    // parameters whose name may be omitted
	Params []string `json:"params,omitempty"` // other parameters with a value
	// Run is the command with the same effect: words, "{p}" for the values of a parameter,
	// "{p:-o}" for "-o" and the value if it is given, "{p?-o}" for "-o" if it is given.
	Run []string `json:"run,omitempty"`
	// Write: ">" or ">>". The parameter Text is written to the file that the first parameter of
	// Pos names.
	Write string   `json:"write,omitempty"`
	Text  string   `json:"text,omitempty"`
	Gives string   `json:"gives,omitempty"` // its output: "input", "args", "path", or a taint "network", "secret", "environ"
	Off   []string `json:"off,omitempty"`   // with one of these parameters it does nothing
}

// WinMember is a member of a .NET or COM type that has the effect of a command.
type WinMember struct {
	On    []string `json:"on"`
	Name  []string `json:"name"`
	Run   []string `json:"run,omitempty"`  // "{0}" is the first argument
	Line  []string `json:"line,omitempty"` // these arguments, joined, are a command line
	Text  string   `json:"text,omitempty"` // the language of a program text in the arguments
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

// TextLike returns the first text that matches one of the patterns, ignoring case.
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

// ProgramFact has the facts about a program that rules match: Words, split at blanks even inside
// quotes, and Whole, the unchanged arguments.
type ProgramFact struct{ Words, Whole []string }

// WinCarrier is a program of Windows that starts another one or fetches a file.
type WinCarrier struct {
	Exe     []string `json:"exe"`
	Options []string `json:"options,omitempty"` // the word after one of these is a command line
	After   []string `json:"after,omitempty"`   // all words after one of these are a command line
	Rest    bool     `json:"rest,omitempty"`    // all words from the first operand on are a command line
	Lang    string   `json:"lang,omitempty"`    // language of the command line; cmd if empty
	Fetch   bool     `json:"fetch,omitempty"`   // the word after the URL is the file to which it is saved
	Decode  []string `json:"decode,omitempty"`  // with one of these, the last word is a file that is decoded from another
	Encode  []string `json:"encode,omitempty"`  // like Decode, but the file is encoded, so that nothing is hidden
	Named   string   `json:"named,omitempty"`   // the text after this mark inside a word is a command line
}
