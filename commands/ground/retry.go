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

// Begin begins the tries of a command. It returns the context of all of them, and a function
// that is asked after each: whether to try again. That is so if a stream has moved under the
// try, at most maxTries times within TriesWithin. Each try reads, decides and appends
// everything again. After the last one the error is a refusal that callers may read.
//
//	ctx, again := tries.Begin(ctx, a.Ground)
//	for {
//		result, err := a.try(ctx)
//		if !again(&err) {
//			return result, err
//		}
//	}
func (t Tries) Begin(ctx context.Context, a *Ground) (within context.Context, again func(*error) bool) {
	end := func() {}
	if !t.Outside {
		ctx, end = context.WithTimeout(ctx, TriesWithin)
	}
	n := 1
	return ctx, func(err *error) bool {
		for errors.Is(*err, ledger.ErrMoved) {
			a.signing.forget()
			if n == maxTries || ctx.Err() != nil {
				break
			}
			n++
			if t.Again == nil {
				return true
			}
			if *err = t.Again(ctx); *err == nil {
				return true
			}
		}
		end()
		*err = Refusal(*err)
		return false
	}
}

// Retry calls try as long as its tries go on (Begin).
func Retry[T any](ctx context.Context, a *Ground, tries Tries, try func(context.Context) (T, error)) (T, error) {
	ctx, again := tries.Begin(ctx, a)
	for {
		result, err := try(ctx)
		if !again(&err) {
			return result, err
		}
	}
}
