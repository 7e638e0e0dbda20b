package ledger

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that has failed for a long time, for example because its read model was locked or the
// database was unreachable, continues soon after the cause is gone: a query waits at most 2 s for
// a read model.
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

// Readers pause to collect events only while no caller waits for their read model.
func TestWhoWaitsIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Partition
		gathered := func() time.Duration {
			began := time.Now()
			p.patience(t.Context(), time.Hour)
			return time.Since(began)
		}
		gathering := make(chan time.Duration)
		go func() { gathering <- gathered() }()
		time.Sleep(time.Minute)
		done, another := p.Await(), p.Await()
		if took := <-gathering; took != time.Minute {
			t.Errorf("a reader gathered for %v, and was awaited after a minute", took)
		}
		another()
		if took := gathered(); took != 0 {
			t.Errorf("a reader gathered for %v while somebody waited", took)
		}
		done()
		if took := gathered(); took != time.Hour {
			t.Errorf("a reader gathered for %v where nobody waited", took)
		}
	})
}
