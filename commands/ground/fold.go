package ground

import (
	"context"

	"github.com/countersign/countersign/ledger"
)

// State is the state of a stream, computed from its events. Apply returns the state after one more
// event. It must not change the receiver, because states are cached and shared.
type State[S any] interface {
	Apply(ledger.Event) (S, error)
}

// Fold reads a stream and applies its events to state, in their order. An append that depends on
// the result uses the returned history as a precondition.
func Fold[S State[S]](ctx context.Context, a *Ground, tenant, stream string, state S) (S, ledger.History, error) {
	history, err := a.Ledger.Read(ctx, tenant, stream)
	if err != nil {
		return state, history, err
	}
	state, err = Folded(history, state)
	return state, history, err
}

// Folded applies the events of a history to state, in their order.
func Folded[S State[S]](history ledger.History, state S) (S, error) {
	var err error
	for _, e := range history.Events {
		if state, err = state.Apply(e); err != nil {
			break
		}
	}
	return state, err
}
