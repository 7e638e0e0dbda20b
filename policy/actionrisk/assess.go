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
// The rooms below, each of which may import those before it:
//
//	scan paths rules  texts, paths, the tables as files
//	act               the words, texts, calls and items everybody speaks of
//	tree hosts        readers of JSON and YAML, of addresses
//	facts             the tables, read
//	lang/sql stores amounts tokens   readers of statements, amounts, program texts
//	interp            the environment of one assessment, the one way between languages
//	judge             rules, predicates, context, score
//	lang/…            a front-end for each family of languages; none knows another
//
// This package is the face: the list of front-ends, the first look at a text, and what
// callers see.
//
//	rm -rf build             low       shell.rm.recursive-rebuildable
//	sudo bash -c 'rm -rf /'  critical  shell.rm.recursive-root
//	echo "rm -rf /"          low       (mentioned, not run)
package actionrisk

import (
	"fmt"
	"sync"

	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/actionrisk/rules"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Edition is one rule set, ready to judge.
type Edition struct {
	tables *facts.Set
	front  *interp.Frontends
}

// current is the rule set of this release. A fault in its tables is a fault in the
// program, which the first test finds, so it panics.
var current = sync.OnceValue(func() *Edition {
	front, _ := frontends(facts.Tables())
	return &Edition{facts.Tables(), front}
})

// At is a rule set by its version: that of this program, or a released one whose tables
// are in the tree. The program changes while the tables of a released rule set do not;
// TestReleasedRuleSetsAnswerAsTheyDid holds its answers to those of its release
// (testdata/past), and a rule set that can no longer keep them leaves the tree. Reading a
// released one takes some milliseconds: keep what At returns.
func At(version string) (*Edition, error) { return at(rules.Released, version) }

func at(shelf rules.Shelf, version string) (*Edition, error) {
	if version == facts.RulesetVersion {
		return current(), nil
	}
	read, err := shelf.Reader(version)
	if err != nil {
		return nil, err
	}
	tables, err := facts.Compile(read)
	if err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	front, bench := frontends(tables)
	if err := bench.Check(); err != nil {
		return nil, fmt.Errorf("rule set %s: %w", version, err)
	}
	return &Edition{tables, front}, nil
}

// Assess judges one action by the rule set of this release. It is pure and total: the
// same action gives the same answer, and any text gets one.
func Assess(a Action) Assessment { return current().Assess(a) }

// Surroundings is what a caller knows of the machine an action is about. The engine
// itself looks at nothing.
type Surroundings struct {
	Files map[string]string // texts of files that run, by the paths of Trace.Wanted
}

// AssessIn judges one action with what is known of its surroundings, and tells what it
// does to the machine. A text of a file is read like one that the command itself wrote.
func AssessIn(a Action, s Surroundings) (Assessment, Trace) {
	var trace Trace
	return current().assessIn(a, s, &trace), trace
}

// Assess judges one action by this rule set.
func (d *Edition) Assess(a Action) (out Assessment) { return d.assessIn(a, Surroundings{}, nil) }

func (d *Edition) assessIn(a Action, s Surroundings, trace *Trace) (out Assessment) {
	defer func() {
		if recover() != nil { // a fault in a parser must stop an action, not the service
			e := d.environment(a)
			e.Unparsed, e.Unproven = true, true
			e.Doubt("the action could not be looked through")
			e.See(act.TooDeep, &act.Source{Text: a.Command}, 0, len(a.Command), "")
			out = judge.Conclude(e, "unknown")
		}
	}()
	e := d.environment(a)
	e.Trace = trace
	e.Context.Cwd = a.Cwd
	for name, text := range s.Files {
		scan.Put(&e.Files, e.Key("", name), act.Flow{Known: true, Word: act.Word{Text: text, At: -1, Span: act.Span{End: len(a.Command)}}})
	}
	out, _ = d.follow(e, scan.MaxSteps*(1+len(s.Files)))
	return out
}

func (d *Edition) environment(a Action) *interp.Env {
	return &interp.Env{Set: d.tables, Front: d.front, Action: a}
}

// assess also tells how many steps it took.
func (d *Edition) assess(a Action) (Assessment, int) {
	return d.follow(d.environment(a), scan.MaxSteps)
}

// follow judges the action of an environment within a number of steps.
func (d *Edition) follow(e *interp.Env, steps int) (Assessment, int) {
	a := &e.Action
	e.Budget = act.Budget{Left: steps}
	e.Context = judge.ReadContext(&e.Action)
	whole := act.Source{Text: a.Command, At: 0, Span: act.Span{Start: 0, End: len(a.Command)}}
	route := top(e, whole)
	for i := 0; i < len(e.Later); i++ { // one may add another
		e.Later[i]()
	}
	if e.Background && len(e.Files) > 0 { // a file may be read before the line that writes it, by a pipe with a name
		e.Segment = 0
		top(e, whole)
	}
	if e.Budget.Spent || e.TooDeep {
		e.See(act.TooDeep, &whole, 0, len(a.Command), "")
	}
	return judge.Conclude(e, route), steps - e.Budget.Left
}
