package ledgertest

import (
	"context"
	"time"
)

// wait lets some time pass, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
