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

import "github.com/countersign/countersign/policy/actionrisk/scan"

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
