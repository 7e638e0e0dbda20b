package ground

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
)

// Tries says how a command is tried again.
type Tries struct {
	// Again refreshes what the command knows of its caller, before each further try. Nil: the
	// command has no caller.
	Again func(context.Context) error
	// Outside says that the command asks other services between its steps. They have times of
	// their own, so the ledger's is for each step and not for all of them.
	Outside bool
}

// Retry calls try until no stream has moved under it, at most maxTries times within
// TriesWithin: each time everything is read, decided and appended again. The error is a
// refusal that callers may read.
func Retry[T any](ctx context.Context, a *Ground, tries Tries, try func(context.Context) (T, error)) (result T, err error) {
	if !tries.Outside {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, TriesWithin)
		defer cancel()
	}
	for n := 1; ; n++ {
		if n > 1 && tries.Again != nil {
			err = tries.Again(ctx)
		}
		if err == nil {
			result, err = try(ctx)
		}
		if !errors.Is(err, ledger.ErrMoved) {
			return result, Refusal(err)
		}
		a.signing.forget()
		if n == maxTries || ctx.Err() != nil {
			return result, Refusal(err)
		}
		err = nil
	}
}
