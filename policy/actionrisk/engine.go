// Package actionrisk judges one proposed action of an agent: a shell, Git, SQL,
// infrastructure, deployment, MCP, wallet or x402 action. It answers what would
// really run and how bad that would be: low, medium, high or critical.
//
// It is a small abstract interpreter. Text is routed to its language, parsed,
// wrappers and encodings are peeled off, literal variables and pipes followed;
// what is left (invocations, statements, calls, payments) is matched against the
// tables in rules/. Context the agent states may raise a level and lower it by
// one at most. Nothing is executed and nothing is read but the action itself:
// no clock, randomness, file, network, goroutine or map order.
//
//	rm -rf build             low       shell.rm.recursive-rebuildable
//	sudo bash -c 'rm -rf /'  critical  shell.rm.recursive-root
//	echo "rm -rf /"          low       (mentioned, not run)
package actionrisk

import (
	"cmp"
	"slices"
	"strings"
	"sync"

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

// Coverage says how well the action was understood.
type Coverage struct {
	Route         string   `json:"route" jsonschema_description:"Language the command was read as."`
	Parsed        bool     `json:"parsed" jsonschema_description:"False if a parser refused a part of it and tokens were scanned instead."`
	ReadOnly      bool     `json:"readOnly" jsonschema_description:"Every part is proven to change nothing."`
	Unmatched     bool     `json:"unmatched" jsonschema_description:"No rule matched and it is not proven read-only."`
	Uncertainties []string `json:"uncertainties" jsonschema_description:"What could not be known, one clause each."`
}

// Assessment is the engine's answer.
type Assessment struct {
	Risk             Level
	Score            int // 0 to 99
	RequiresApproval bool
	Findings         []Finding // level descending, span, id; at most 64
	Coverage         Coverage
}

// RuleIDs are the ids of the rules that matched, each once, highest level first;
// never nil.
func (a Assessment) RuleIDs() []string {
	ids := make([]string, 0, len(a.Findings))
	for i := range a.Findings {
		if id := a.Findings[i].Rule.ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
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

// Assess judges one action. It is pure and total: the same action gives the same
// answer, and any text gets one.
func Assess(a Action) (out Assessment) {
	defer func() {
		if recover() != nil { // a fault in a parser must stop an action, not the service
			e := &engine{compiled: ruleset(), front: fronts(), action: a, unparsed: true, unproven: true}
			e.doubt("the action could not be looked through")
			e.raise("parse.too-deep", &source{text: a.Command}, 0, len(a.Command), "")
			out = e.conclude("unknown")
		}
	}()
	out, _ = assess(a)
	return out
}

// assess also tells how many steps it took.
func assess(a Action) (Assessment, int) {
	e := &engine{compiled: ruleset(), front: fronts(), action: a, budget: budget{left: scan.MaxSteps}}
	e.context = readContext(&e.action)
	whole := source{text: a.Command, at: 0, span: Span{0, len(a.Command)}}
	route := e.top(whole)
	for i := 0; i < len(e.later); i++ { // one may add another
		e.later[i]()
	}
	if e.background && len(e.files) > 0 { // a file may be read before the line that writes it, by a pipe with a name
		e.segment = 0
		e.top(whole)
	}
	if e.budget.spent || e.tooDeep {
		e.raise("parse.too-deep", &whole, 0, len(a.Command), "")
	}
	return e.conclude(route), scan.MaxSteps - e.budget.left
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

// conclude sorts the findings and adds them up.
func (e *engine) conclude(route string) Assessment {
	a := Assessment{Coverage: Coverage{Route: route, Parsed: !e.unparsed, Uncertainties: e.uncertain}}
	if a.Coverage.Uncertainties == nil {
		a.Coverage.Uncertainties = []string{}
	}
	a.Coverage.ReadOnly = len(e.findings) == 0 && !e.unproven && !e.unparsed && e.ran
	a.Coverage.Unmatched = !a.Coverage.ReadOnly && !slices.ContainsFunc(e.findings, understood)
	if e.action.FailClosedOnUnmatched && (a.Coverage.Unmatched || e.loose) {
		e.raise("gate.unmatched-fail-closed", &source{text: e.action.Command}, 0, len(e.action.Command), "")
	}
	slices.SortStableFunc(e.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(a.Span.Start, b.Span.Start),
			cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Rule.ID, b.Rule.ID))
	})
	a.Findings = e.findings[:min(len(e.findings), scan.MaxFindings)]
	if a.Findings == nil {
		a.Findings = []Finding{}
	}
	a.Risk, a.Score = riskOf(a.Findings)
	a.RequiresApproval = a.Risk >= High
	return a
}

// understood: a finding that only says that something was not understood does
// not count as a match.
func understood(f Finding) bool {
	return f.Rule.ID != "parse.dialect-unknown" && f.Rule.ID != "parse.unparsed"
}

// riskOf is the highest level and the score: 25 per level, and up to 24 for what
// comes beside the worst finding, for what cannot be undone and what is hidden.
func riskOf(findings []Finding) (Level, int) {
	if len(findings) == 0 {
		return Low, 0
	}
	risk, extra := findings[0].Level, 0
	irreversible, hidden := findings[0].Rule.Reversible == "no", false
	for i := range findings {
		f := &findings[i]
		if i > 0 {
			extra += [...]int{1, 2, 4, 6}[f.Level]
		}
		if strings.HasPrefix(f.Rule.ID, "obf.") || strings.HasPrefix(f.Rule.ID, "text.") {
			hidden = true
		}
		if blindsFirst(f.Rule.ID) && risk >= High {
			extra += 6
		}
	}
	if irreversible && risk > Low {
		extra += 6
	}
	if hidden {
		extra += 3
	}
	return risk, 25*int(risk) + min(24, extra)
}

// blindsFirst: audit or backup switched off makes whatever else is done worse.
func blindsFirst(id string) bool {
	return strings.HasSuffix(id, ".audit-off") || strings.HasSuffix(id, ".delete-backup") || strings.HasSuffix(id, ".hardening-off")
}

var pool = sync.Pool{New: func() any { return newParser() }}
