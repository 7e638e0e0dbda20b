package ledger

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that was refused for long, by a lock on its read model or by a database
// that was away, goes on as soon as it can: a query waits for it no longer than 2 s.
func TestAReaderGoesOnSoonAfterALongRefusal(t *testing.T) {
	for _, refusedFor := range []time.Duration{time.Millisecond, time.Second, 12 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			p := &Partition{ledger: &Ledger{}}
			p.tail.add([]Event{{Position: 1}})
			s := p.Subscriber(func(context.Context) (int64, error) { return 0, nil })
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			messages, err := s.Subscribe(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			for m := range messages {
				if time.Since(begun) >= refusedFor {
					m.Ack()
					break
				}
				m.Nack()
			}
			if late := time.Since(begun) - refusedFor; late > feedLastPause {
				t.Errorf("refused for %v, and tried again %v later", refusedFor, late)
			}
			stop()
			s.running.Wait()
		})
	}
}
