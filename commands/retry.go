package commands

import (
	"context"
	"errors"

	"github.com/countersign/countersign/ledger"
)

// attempt is what one try of a command rests on beside the streams that it reads
// itself. The zero value is a command that nobody in particular gives.
type attempt struct {
	principal *Principal // who acts for an organization; nil for nobody
	right     Right      // which the principal must have, each time
	call      *Call      // of a service; nil for none

	// key and content are by which an equal request is known: it gets the stored
	// answer. A zero key makes every request its own.
	key, content ledger.Hash

	// outside says that somebody outside is asked between the steps, who has a time
	// of his own: the ledger's is for each step, not for all of them.
	outside bool
}

// refresh reads again for whom an attempt is, since what has moved may be that.
func (t attempt) refresh(ctx context.Context, a *App) error {
	if t.call != nil {
		call, err := a.currentCall(ctx, *t.call)
		if err != nil {
			return err
		}
		*t.call = call
	}
	if t.principal == nil {
		return nil
	}
	p, err := a.currentPrincipal(ctx, *t.principal)
	if err != nil {
		return err
	}
	*t.principal = p
	return p.May(t.right)
}

// retry is the one place where a command is tried again: when a stream has moved
// under it, everything is read, decided and appended anew, at most maxTries times
// within triesWithin. Before each further try the principal and the call of the
// attempt are as they are then; what is known of others is not forgotten. What is
// left is a refusal.
func retry[T any](ctx context.Context, a *App, t attempt, try func(context.Context) (T, error)) (result T, err error) {
	if !t.outside {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, triesWithin)
		defer cancel()
	}
	for n := 1; ; n++ {
		if n > 1 {
			err = t.refresh(ctx, a)
		}
		if err == nil {
			result, err = try(ctx)
		}
		if !errors.Is(err, ledger.ErrMoved) {
			return result, refusal(err)
		}
		a.signing.forget()
		if n == maxTries || ctx.Err() != nil {
			return result, refusal(err)
		}
		err = nil
	}
}
