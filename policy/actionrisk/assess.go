// Package actionrisk judges one proposed action of an agent: a shell, Git, SQL, infrastructure,
// deployment, MCP, wallet or x402 action. It finds out what would run, and returns a level of
// risk: low, medium, high or critical.
//
// It is a small abstract interpreter. It selects the language of the text, parses the text,
// removes wrappers and encodings, and follows literal variables and pipes. It matches the results
// (invocations, statements, calls, payments) against the tables in rules/. The context that the
// agent states may raise a level, and lower it by at most one. The engine executes nothing and
// reads only the action itself: it uses no clock, randomness, file, network, goroutine or map
// order.
//
// The packages below. Each may import only packages above it in this list:
//
//	scan paths rules  texts, paths, the tables as files
//	act               the shared types: words, texts, invocations, items
//	tree hosts        parsers of JSON and YAML, and of hosts and URLs
//	facts             the tables in the form used for lookups
//	lang/sql stores amounts tokens   parsers of statements, amounts, program texts
//	interp            the state of one evaluation, and the calls between languages
//	judge             rules, predicates, context, score
//	lang/…            a front-end for each family of languages; they never import each other
//
// This package has the list of front-ends, selects the language of a text, and exports the API.
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

// Edition is a rule set that is ready to judge actions.
type Edition struct {
	tables *facts.Set
	front  *interp.Frontends
}

// current is the rule set of this release. Its tables are not checked at the start: TestTablesStrict
// does that, and an invalid row panics at its first use.
var current = sync.OnceValue(func() *Edition {
	front, _ := frontends(facts.Tables())
	return &Edition{facts.Tables(), front}
})

// At returns the rule set of a version: that of this program, or a released one whose tables are
// in the source tree. The code changes after a release, but the tables of a released rule set do
// not. TestReleasedRuleSetsAnswerAsTheyDid compares the verdicts of each released rule set with
// those that it gave at its release (testdata/past). A rule set whose verdicts can no longer be
// reproduced is removed. Loading a released rule set takes some milliseconds, so keep the result.
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

// Assess judges one action with the rule set of this release. It is deterministic, and every text
// gets a verdict.
func Assess(a Action) Assessment { return current().Assess(a) }

// Surroundings is what the caller knows about the machine. The engine reads nothing from the
// machine.
type Surroundings struct {
	Files map[string]string // contents of files that run, by their paths in Trace.Wanted
}

// AssessIn judges one action with the given surroundings, and returns a trace of the programs that
// run. The engine reads a given file like one that the command wrote.
func AssessIn(a Action, s Surroundings) (Assessment, Trace) {
	var trace Trace
	return current().assessIn(a, s, &trace), trace
}

// Assess judges one action with this rule set.
func (d *Edition) Assess(a Action) (out Assessment) { return d.assessIn(a, Surroundings{}, nil) }

func (d *Edition) assessIn(a Action, s Surroundings, trace *Trace) (out Assessment) {
	defer func() {
		if recover() != nil { // a bug in a parser must stop the action, not the service
			e := d.environment(a)
			e.Unparsed, e.Unproven = true, true
			e.Doubt("an internal error stopped the analysis")
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

// assess is like Assess, and also returns the number of steps used.
func (d *Edition) assess(a Action) (Assessment, int) {
	return d.follow(d.environment(a), scan.MaxSteps)
}

// follow judges the action of an environment within a number of steps. It returns the number of
// steps used.
func (d *Edition) follow(e *interp.Env, steps int) (Assessment, int) {
	a := &e.Action
	e.Budget = act.Budget{Left: steps}
	e.Context = judge.ReadContext(&e.Action)
	whole := act.Source{Text: a.Command, At: 0, Span: act.Span{Start: 0, End: len(a.Command)}}
	route := top(e, whole)
	for i := 0; i < len(e.Later); i++ { // the command of a trap may set another trap
		e.Later[i]()
	}
	if e.Background && len(e.Files) > 0 { // a background command may read a file, such as a named pipe, before a later line writes it: read the text again
		e.Segment = 0
		top(e, whole)
	}
	if e.Budget.Spent || e.TooDeep {
		e.See(act.TooDeep, &whole, 0, len(a.Command), "")
	}
	return judge.Conclude(e, route), steps - e.Budget.Left
}
