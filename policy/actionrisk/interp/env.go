// Package interp has the state of one evaluation: the known files, variables, folders and names,
// the findings, and the budget of steps. It also passes texts from any language to the front-end
// of any other. It depends on no language itself: package actionrisk fills the list of front-ends.
package interp

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Finding is one rule that the action triggers.
type Finding struct {
	Rule    *facts.Rule
	Base    act.Level // the rule's level
	Level   act.Level // the level after the context changed it
	Span    act.Span
	Segment int      // index of the command
	Via     []string // what contains the text, outermost first
	Decoded string   // the text that ran, if the command has it in another form
	Target  string   // the word that the effect acts on
	Context []act.Adjustment
}

// Predicate tests an item with the arguments of a condition. It returns the word that the
// condition is about, which becomes the finding's target, or the zero Word.
type Predicate func(e *Env, it *act.Item, args []string) (act.Word, bool)

// Predicates are the predicates of a front-end by name. If Groups is true, their arguments may be
// names of groups in groups.json.
type Predicates struct {
	Test   map[string]Predicate
	Groups bool
}

// Env is the state of one evaluation.
type Env struct {
	*facts.Set
	Front       *Frontends
	Action      act.Action
	Context     Context
	Budget      act.Budget
	Findings    []Finding
	Segment     int
	Invocations int
	Braced      int                            // number of words made by brace expansion
	Rounds      int                            // number of loop iterations
	Decoded     int                            // bytes of decoded text
	Files       map[string]act.Flow            // contents of the files that the command wrote
	RanFiles    map[string]bool                // files of tools that were already judged, with folder, command line and content; prevents endless recursion
	Programs    map[string]string              // files that are copies of programs or links to them, with the program's name
	Later       []func()                       // traps, which run at the end
	Left        bool                           // an exit or return has run
	links       []paths.Link                   // links that the command made
	gitConfig   map[string]act.Word            // settings that earlier git config commands set
	HostAliases map[string]act.Word            // aliases that earlier gh alias set commands set, by "gh NAME"
	Texts       []Parsed                       // cache of parsed texts
	classes     map[paths.SeenFrom]paths.Class // cache of classes of paths
	Unpacked    bool                           // an archive from the network was extracted
	Cloned      []string                       // folders with repositories from the network
	Sinks       map[string]Sink                // the commands in >(…), by the name of the file through which they get their input
	Unproven    bool                           // a command ran that is not proven to be read-only
	Loose       bool                           // a program matched no rule and is not proven to be read-only
	Ran         bool                           // at least one command ran
	Background  bool                           // a command runs in the background
	Sourced     bool                           // a project file with unknown contents set variables and functions
	Unparsed    bool
	TooDeep     bool
	Trace       *Trace // nil if the caller needs no trace
	Uncertain   []string
}

// Report adds a finding of a rule about the item. about becomes the finding's target if it is not
// empty; otherwise the target is that of the item.
func (e *Env) Report(r *facts.Rule, it *act.Item, about act.Word) {
	span, decoded := it.Src.Where(it.From, it.To)
	target := it.Target
	if about.Text != "" {
		target = act.Printable(about.Text)
	}
	e.add(Finding{Rule: r, Base: r.Level, Span: span, Via: it.Src.Via, Decoded: decoded, Target: target}, it)
}

// See adds a finding of the rule for an observation about text[from:to].
func (e *Env) See(what act.Sight, src *act.Source, from, to int, target string) {
	e.found(e.Seen.Get(string(what)), src, from, to, target)
}

func (e *Env) found(r *facts.Rule, src *act.Source, from, to int, target string) {
	if r == nil { // an older rule set has no rule for it
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
	for i := range e.Findings { // replace a less severe finding, so that many of those cannot crowd out a severe one
		if e.Findings[i].Level < f.Level {
			e.Findings[i] = f
			return
		}
	}
}

// Match adds a finding for each rule that the item triggers, and reports whether there was one.
func (e *Env) Match(it *act.Item) bool {
	e.redirected(it)
	return e.Budget.Spend(1) && e.Front.Match(e, it)
}

// Doubt records something that could not be evaluated.
func (e *Env) Doubt(what string) {
	if !slices.Contains(e.Uncertain, what) && len(e.Uncertain) < 16 {
		e.Uncertain = append(e.Uncertain, what)
	}
}

// Run judges one invocation and returns its output.
func (sh *Process) Run(v *act.Invocation) act.Flow { return sh.Env.Front.Run(sh, v) }

// Route reads a text whose language is not stated.
func (e *Env) Route(src *act.Source) { e.Read("any", src, nil) }

// Describes prepares for reading a text that describes a desired state, such as a manifest. The
// action is then no longer proven read-only. Describes returns false if the text is too large.
func (sh *Process) Describes(src *act.Source) bool {
	e := sh.Env
	e.Unproven = true
	if rest, ok := strings.CutPrefix(src.Text, "="); ok { // the option may have been written -p='[…]'
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
