package ledgertest

import (
	"context"
	"time"
)

// wait waits for d, or until ctx ends, and then returns ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
