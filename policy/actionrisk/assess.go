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
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/interp"
	"github.com/countersign/countersign/policy/actionrisk/judge"
	"github.com/countersign/countersign/policy/actionrisk/scan"
)

// Assess judges one action. It is pure and total: the same action gives the same
// answer, and any text gets one.
func Assess(a act.Action) (out judge.Assessment) {
	defer func() {
		if recover() != nil { // a fault in a parser must stop an action, not the service
			e := &interp.Env{Set: facts.Tables(), Front: fronts(), Action: a, Unparsed: true, Unproven: true}
			e.Doubt("the action could not be looked through")
			e.Raise("parse.too-deep", &act.Source{Text: a.Command}, 0, len(a.Command), "")
			out = judge.Conclude(e, "unknown")
		}
	}()
	out, _ = assess(a)
	return out
}

// assess also tells how many steps it took.
func assess(a act.Action) (judge.Assessment, int) {
	e := &interp.Env{Set: facts.Tables(), Front: fronts(), Action: a, Budget: act.Budget{Left: scan.MaxSteps}}
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
		e.Raise("parse.too-deep", &whole, 0, len(a.Command), "")
	}
	return judge.Conclude(e, route), scan.MaxSteps - e.Budget.Left
}
