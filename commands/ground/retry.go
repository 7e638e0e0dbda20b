package ground

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
)

// Tries configures how a command is retried.
type Tries struct {
	// Again reads the state of the command's caller again, before each further try. It is nil if
	// the command has no caller.
	Again func(context.Context) error
	// Outside is true for a command that calls other services between its steps. Those calls have
	// time limits of their own, so TriesWithin does not limit the command as a whole.
	Outside bool
}

// Begin starts the tries of a command. It returns their context and a function. The caller calls
// this function after each try; it reports whether to make another. It permits another if a stream
// that the try depends on has new events, at most maxTries tries within TriesWithin. Each try
// reads, decides and appends everything again. After the last try, the function turns the error
// into a refusal.
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

// Retry calls try until it succeeds or Begin permits no further try.
func Retry[T any](ctx context.Context, a *Ground, tries Tries, try func(context.Context) (T, error)) (T, error) {
	ctx, again := tries.Begin(ctx, a)
	for {
		result, err := try(ctx)
		if !again(&err) {
			return result, err
		}
	}
}
