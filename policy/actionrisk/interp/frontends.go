package interp

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Reader reads a text in one of its languages for the process sh, and returns the output of the
// text. v is the invocation that contains the text, or nil.
type Reader func(sh *Process, src *act.Source, lang string, v *act.Invocation) act.Flow

// Frontends lists the entry points of everything that reads a language. Front-ends call each other
// only through this list.
type Frontends struct {
	Languages  map[string][]Reader // by name; "program" reads all languages without an entry
	Shell      func(sh *Process, src *act.Source, v *act.Invocation, via string, params []act.Word) act.Flow
	Script     func(sh *Process, src *act.Source, in act.Flow) act.Flow
	Takes      []func(sh *Process, v *act.Invocation) (act.Flow, bool)                        // handle invocations that belong to another language, such as cmdlets
	Calls      []func(sh *Process, v *act.Invocation) bool                                    // judge invocations beyond the tables; report whether a rule matched
	Starts     []func(sh *Process, w *facts.Wrapper, v *act.Invocation)                       // read the files that a program runs when it starts
	Carriers   map[string]func(sh *Process, v *act.Invocation, skip int)                      // handle wrappers whose operands from skip on are neither a command nor a program text
	Unknown    map[string]func(sh *Process, in act.Flow, v *act.Invocation)                   // judge an unknown text in the language
	Written    []func(sh *Process, file act.Word, f act.Flow)                                 // called for each file that is written
	Redirected []func(sh *Process, file act.Word, f act.Flow, v *act.Invocation)              // called for each redirection to a file
	Nodes      map[string]func(sh *Process, src *act.Source, n *tree.Node, v *act.Invocation) // judge an object of a document: a manifest or a container
	Money      func(e *Env, v *act.Invocation) []string                                       // rule ids of an invocation of a wallet or payment client
	Run        func(sh *Process, v *act.Invocation) act.Flow                                  // judges one invocation
	Match      func(e *Env, it *act.Item) bool                                                // adds findings of the rules that match, and reports whether there was one
	Adjust     func(e *Env, r *facts.Rule, it *act.Item) (act.Level, []act.Adjustment)
}

// ReadsStatements reports whether a program is a database client that runs its input.
func (e *Env) ReadsStatements(exe string) bool {
	for _, w := range e.Program(exe).Carries {
		if w.Stdin && len(w.Sub) == 0 && act.StoreLanguage(w.Lang) {
			return true
		}
	}
	return false
}
