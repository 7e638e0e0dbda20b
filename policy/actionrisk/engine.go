package actionrisk

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/policy/actionrisk/paths"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Span is a range of bytes of the submitted command.
type Span struct{ Start, End int }

// source is a piece of program text and where it came from.
type source struct {
	text   string
	at     int      // offset of text in the submitted command if it stands there verbatim, else -1
	span   Span     // its carrier in the submitted command, used when at < 0
	via    []string // what carries it, outermost first: "sudo", "bash -c", "base64"
	depth  int      // how many texts it is inside of
	layers int      // how many encodings were peeled off
	taint  taint    // where it came from
}

// span of text[from:to] in the submitted command, and the text itself if it
// stands there in another form.
func (s *source) where(from, to int) (Span, string) {
	from = min(max(from, 0), len(s.text))
	if to < from || to > len(s.text) { // a node that the lenient parser made up has no end
		to = len(s.text)
	}
	if s.at >= 0 {
		return Span{s.at + from, s.at + to}, ""
	}
	return s.span, s.text[from:to]
}

// inside is a text found in this one: carried by the word w, by way of via.
func (s *source) inside(w Word, via string) source {
	out := source{text: w.Text, at: w.At, span: w.Span, via: s.via, depth: s.depth + 1, layers: s.layers, taint: w.Taint}
	if via != "" {
		out.via = append(slices.Clip(s.via), via)
	}
	return out
}

// taint says where a text came from; several may hold.
type taint uint16

const (
	fromNetwork taint = 1 << iota // downloaded
	fromSecret                    // a credential file or store
	fromEnviron                   // the environment as a whole
	fromDump                      // a database dump
	fromDecoder                   // decoded by the command itself
	fromStdin                     // unknown text of a pipe or terminal
	fromStore                     // what others wrote into a store or a service
	fromBuilt                     // text of the command itself, changed by a filter that cannot be followed
)

// flow is what a command writes or reads: text if it is known, and its taint.
type flow struct {
	word  Word // the text and where it stands; meaningful if known
	known bool
	taint taint
	line  bool   // a line end follows the text
	via   string // decoder that made it
	layer int
	edit  string      // what filters on its way wrote into a text that is not known
	makes *invocation // a dry run that printed what it would have made
}

const (
	kindExe   = "exe"
	kindRedir = "redir"
)

// item is one thing the tables judge.
type item struct {
	kind     string   // kindExe, kindRedir, "sql", "call", "pay", "tool" …
	name     string   // what a matcher's exe lists
	tags     []string // facts for sub, any, all and none of kinds without an invocation
	inv      *invocation
	src      *source
	from, to int // where it stands in src.text
	target   string
	words    string // names that say where it acts (host, database), for kinds without an invocation
	undone   bool   // rolled back, or only stored: medium at most
	fact     any    // what the classifier of a domain knows; read by its predicates
}

// has tells whether an option, word or tag stands in the item.
func (it *item) has(name string) bool {
	if it.inv == nil {
		return slices.Contains(it.tags, name)
	}
	return it.inv.has(name)
}

func (it *item) underAny(paths [][]string) bool {
	if it.inv == nil {
		for _, p := range paths {
			if len(it.tags) > 0 && it.tags[0] == strings.Join(p, " ") {
				return true
			}
		}
		return false
	}
	return it.inv.underAny(paths)
}

// Finding is one rule that holds for the action.
type Finding struct {
	Rule    *Rule
	Base    Level // the rule's own level
	Level   Level // after context
	Span    Span
	Segment int      // index in the order of commands
	Via     []string // what carried it, outermost first
	Decoded string   // what ran, if it stands in another form in the command
	Target  string   // the word it is about
	Context []Adjustment
}

// Adjustment is how a member of the request moved a level. Class is the kind of
// value ("production"), never the value.
type Adjustment struct {
	Field string `json:"field"`
	Class string `json:"valueClass"`
	Delta int    `json:"delta"`
}

// predicate tests an item against one of its class words and returns the word it
// is about, which becomes the finding's target (the zero Word if it is about none).
type predicate func(e *engine, it *item, args []string) (Word, bool)

// predicates are a front-end's own, by name; groups tells that their arguments may
// name groups of groups.json.
type predicates struct {
	test   map[string]predicate
	groups bool
}

// engine is the state of one assessment.
type engine struct {
	*compiled
	front       *frontends
	action      Action
	context     context
	budget      budget
	findings    []Finding
	segment     int
	invocations int
	braced      int                            // words made of braces
	rounds      int                            // values of loops run through
	decoded     int                            // bytes of decoded text so far
	files       map[string]flow                // written by the command itself
	ranFiles    map[string]bool                // files that tools ran, and how they were called
	programs    map[string]string              // programs that the command gave other names
	later       []func()                       // what traps run at the end
	left        bool                           // an exit or return stands somewhere
	links       []paths.Link                   // made by the command itself
	gitConfig   map[string]Word                // what git config set before
	hostAliases map[string]Word                // what gh alias set made before, by "gh NAME"
	kept        map[string]any                 // what a front-end keeps from one text to the next
	texts       map[string]parsed              // parsed so far
	classes     map[paths.SeenFrom]paths.Class // of the paths looked at so far
	unpacked    bool                           // an archive from the network was unpacked
	sinks       map[string]sink                // what >(…) runs, by the name of its file
	unproven    bool                           // something ran that is not proven read-only
	loose       bool                           // some program matched no rule and is not proven read-only
	ran         bool                           // something ran at all
	background  bool                           // something runs beside the rest
	unparsed    bool
	tooDeep     bool
	uncertain   []string
}

// report adds a finding of a rule at text[from:to] of the source.
func (e *engine) report(r *Rule, it *item, about Word) {
	span, decoded := it.src.where(it.from, it.to)
	target := it.target
	if about.Text != "" {
		target = printable(about.Text)
	}
	e.add(Finding{Rule: r, Base: r.Level, Span: span, Via: it.src.via, Decoded: decoded, Target: target}, it)
}

// raise adds a finding that the engine makes itself, by the rule's id.
func (e *engine) raise(id string, src *source, from, to int, target string) {
	r := e.byID[id]
	if r == nil {
		return
	}
	span, decoded := src.where(from, to)
	e.add(Finding{Rule: r, Base: r.Level, Span: span, Via: src.via, Decoded: decoded, Target: target}, nil)
}

func (e *engine) add(f Finding, it *item) {
	f.Segment = e.segment
	f.Level, f.Context = e.front.adjust(e, f.Rule, it)
	for i := range e.findings {
		if g := &e.findings[i]; g.Rule == f.Rule && g.Span == f.Span {
			if f.Level > g.Level {
				*g = f
			}
			return
		}
	}
	if len(e.findings) < 4*scan.MaxFindings {
		e.findings = append(e.findings, f)
		return
	}
	for i := range e.findings { // many small findings must not crowd out a large one
		if e.findings[i].Level < f.Level {
			e.findings[i] = f
			return
		}
	}
}

// match reports every rule that holds for the item and tells whether one did.
func (e *engine) match(it *item) bool { return e.budget.spend(1) && e.front.match(e, it) }

// doubt notes something that could not be known.
func (e *engine) doubt(what string) {
	if !slices.Contains(e.uncertain, what) && len(e.uncertain) < 16 {
		e.uncertain = append(e.uncertain, what)
	}
}

// run judges one call of a program, as whoever means programs does, and gives what it
// prints.
func (sh *shell) run(v *invocation) flow { return sh.e.front.run(sh, v) }

// route reads a text whose language nobody says.
func (e *engine) routed(src *source) { e.read("any", src, nil) }

// describes begins a text that describes what shall be; false if it is too large.
func (sh *shell) describes(src *source) bool {
	e := sh.e
	e.unproven = true
	if rest, ok := strings.CutPrefix(src.text, "="); ok { // -p='[…]'
		src.text = rest
		if src.at >= 0 {
			src.at++
		}
	}
	if src.depth > scan.MaxDepth || len(src.text) > scan.MaxText || !e.budget.spend(len(src.text)/16) {
		e.tooDeep = true
		return false
	}
	return true
}
