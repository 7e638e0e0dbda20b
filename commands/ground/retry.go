package ground

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
)

// Retry calls try until no stream has moved under it, at most maxTries times within
// triesWithin: each time everything is read, decided and appended again. Before each
// further try again refreshes what the command knows of its caller; it may be nil. The
// error is a refusal that callers may read.
func Retry[T any](ctx context.Context, a *Ground, again func(context.Context) error, try func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, TriesWithin)
	defer cancel()
	return RetryOutside(ctx, a, again, try)
}

// RetryOutside is retry for a command that asks other services between its steps. They
// have times of their own, so the ledger's is for each step and not for all of them.
func RetryOutside[T any](ctx context.Context, a *Ground, again func(context.Context) error, try func(context.Context) (T, error)) (result T, err error) {
	for n := 1; ; n++ {
		if n > 1 && again != nil {
			err = again(ctx)
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
