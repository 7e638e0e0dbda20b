package interp

import (
	"github.com/countersign/countersign/policy/actionrisk/act"
	"github.com/countersign/countersign/policy/actionrisk/facts"
	"github.com/countersign/countersign/policy/actionrisk/tree"
)

// Reader reads a text of one of its languages that a process sh hands on; v is the
// call that hands it over, or nil. What it gives is what the text prints.
type Reader func(sh *Process, src *act.Source, lang string, v *act.Invocation) act.Flow

// Frontends are the ways into everything that reads a language. They know each other
// by this list only.
type Frontends struct {
	Languages  map[string][]Reader // by name; "program" reads every other language
	Shell      func(sh *Process, src *act.Source, v *act.Invocation, via string, params []act.Word) act.Flow
	Script     func(sh *Process, src *act.Source, in act.Flow) act.Flow
	Takes      []func(sh *Process, v *act.Invocation) (act.Flow, bool)                        // the call is another language's
	Calls      []func(sh *Process, v *act.Invocation) bool                                    // what a call means apart from the rows; true if a rule holds
	Starts     []func(sh *Process, w *facts.Wrapper, v *act.Invocation)                       // what a program runs when it starts
	Carriers   map[string]func(sh *Process, v *act.Invocation, skip int)                      // what is no text but the words from skip on
	Unknown    map[string]func(sh *Process, in act.Flow, v *act.Invocation)                   // a text of the language that is not known
	Written    []func(sh *Process, file act.Word, f act.Flow)                                 // a file is written
	Redirected []func(sh *Process, file act.Word, f act.Flow, v *act.Invocation)              // by a redirection
	Nodes      map[string]func(sh *Process, src *act.Source, n *tree.Node, v *act.Invocation) // an object that stands for something
	Money      func(e *Env, v *act.Invocation) []string                                       // rules of a call of a wallet or payment client
	Run        func(sh *Process, v *act.Invocation) act.Flow                                  // one call of a program
	Match      func(e *Env, it *act.Item) bool                                                // reports the rules that hold
	Adjust     func(e *Env, r *facts.Rule, it *act.Item) (act.Level, []act.Adjustment)
}

// ReadsStatements: a client that runs what it is given on its input.
func (e *Env) ReadsStatements(exe string) bool {
	for _, w := range e.Program(exe).Carries {
		if w.Stdin && len(w.Sub) == 0 && act.StoreLanguage(w.Lang) {
			return true
		}
	}
	return false
}
