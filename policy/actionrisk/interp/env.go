// Package interp is the environment of one assessment: what is known of files, variables,
// folders and names while the action is followed, what was found so far, the budget of
// steps, and the one way from any language into any other. It knows no language itself:
// package actionrisk fills the list of front-ends.
package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Finding is one rule that holds for the action.
type Finding struct {
	Rule    *facts.Rule
	Base    act.Level // the rule's own level
	Level   act.Level // after context
	Span    act.Span
	Segment int      // index in the order of commands
	Via     []string // what carried it, outermost first
	Decoded string   // what ran, if it is in another form in the command
	Target  string   // the word it is about
	Context []act.Adjustment
}

// Predicate tests an item against one of its class words and returns the word it
// is about, which becomes the finding's target (the zero Word if it is about none).
type Predicate func(e *Env, it *act.Item, args []string) (act.Word, bool)

// Predicates are a front-end's own, by name; groups tells that their arguments may
// name groups of groups.json.
type Predicates struct {
	Test   map[string]Predicate
	Groups bool
}

// Env is the state of one assessment.
type Env struct {
	*facts.Set
	Front       *Frontends
	Action      act.Action
	Context     Context
	Budget      act.Budget
	Findings    []Finding
	Segment     int
	Invocations int
	Braced      int                            // words made of braces
	Rounds      int                            // values of loops run through
	Decoded     int                            // bytes of decoded text so far
	Files       map[string]act.Flow            // written by the command itself
	RanFiles    map[string]bool                // files that tools ran, and how they were called
	Programs    map[string]string              // programs that the command gave other names
	Later       []func()                       // what traps run at the end
	Left        bool                           // an exit or return is somewhere
	links       []paths.Link                   // made by the command itself
	gitConfig   map[string]act.Word            // what git config set before
	HostAliases map[string]act.Word            // what gh alias set made before, by "gh NAME"
	Texts       []Parsed                       // parsed so far
	classes     map[paths.SeenFrom]paths.Class // of the paths looked at so far
	Unpacked    bool                           // an archive from the network was unpacked
	Cloned      []string                       // folders that hold what came from the network as a repository
	Sinks       map[string]Sink                // what >(…) runs, by the name of its file
	Unproven    bool                           // something ran that is not proven read-only
	Loose       bool                           // some program matched no rule and is not proven read-only
	Ran         bool                           // something ran at all
	Background  bool                           // something runs in the background
	Sourced     bool                           // a file of the project that is not known set variables and functions
	Unparsed    bool
	TooDeep     bool
	Trace       *Trace // nil: not asked for
	Uncertain   []string
}

// Report adds a finding of a rule at text[from:to] of the source.
func (e *Env) Report(r *facts.Rule, it *act.Item, about act.Word) {
	span, decoded := it.Src.Where(it.From, it.To)
	target := it.Target
	if about.Text != "" {
		target = act.Printable(about.Text)
	}
	e.add(Finding{Rule: r, Base: r.Level, Span: span, Via: it.Src.Via, Decoded: decoded, Target: target}, it)
}

// See adds a finding of the rule that speaks of what was seen at text[from:to].
func (e *Env) See(what act.Sight, src *act.Source, from, to int, target string) {
	e.found(e.Seen.Get(string(what)), src, from, to, target)
}

func (e *Env) found(r *facts.Rule, src *act.Source, from, to int, target string) {
	if r == nil { // an earlier rule set had none
		return
	}
	span, decoded := src.Where(from, to)
	e.add(Finding{Rule: r, Base: r.Level, Span: span, Via: src.Via, Decoded: decoded, Target: target}, nil)
}

func (e *Env) add(f Finding, it *act.Item) {
	f.Segment = e.Segment
	f.Level, f.Context = e.Front.Adjust(e, f.Rule, it)
	for i := range e.Findings {
		if g := &e.Findings[i]; g.Rule == f.Rule && g.Span == f.Span {
			if f.Level > g.Level {
				*g = f
			}
			return
		}
	}
	if len(e.Findings) < 4*scan.MaxFindings {
		e.Findings = append(e.Findings, f)
		return
	}
	for i := range e.Findings { // many small findings must not crowd out a large one
		if e.Findings[i].Level < f.Level {
			e.Findings[i] = f
			return
		}
	}
}

// Match reports every rule that holds for the item and tells whether one did.
func (e *Env) Match(it *act.Item) bool {
	e.redirected(it)
	return e.Budget.Spend(1) && e.Front.Match(e, it)
}

// Doubt notes something that could not be known.
func (e *Env) Doubt(what string) {
	if !slices.Contains(e.Uncertain, what) && len(e.Uncertain) < 16 {
		e.Uncertain = append(e.Uncertain, what)
	}
}

// Run judges one call of a program, as the front-end of programs does, and gives what it
// prints.
func (sh *Process) Run(v *act.Invocation) act.Flow { return sh.Env.Front.Run(sh, v) }

// Route reads a text whose language is not stated.
func (e *Env) Route(src *act.Source) { e.Read("any", src, nil) }

// Describes begins a text that describes a desired state; false if it is too large.
func (sh *Process) Describes(src *act.Source) bool {
	e := sh.Env
	e.Unproven = true
	if rest, ok := strings.CutPrefix(src.Text, "="); ok { // -p='[…]'
		src.Text = rest
		if src.At >= 0 {
			src.At++
		}
	}
	if src.Depth > scan.MaxDepth || len(src.Text) > scan.MaxText || !e.Budget.Spend(len(src.Text)/16) {
		e.TooDeep = true
		return false
	}
	return true
}
