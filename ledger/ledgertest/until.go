package ledgertest

import (
	"testing"
	"time"
)

const (
	untilEvery  = 5 * time.Millisecond
	untilBefore = 5 * time.Second // time before go test's deadline at which Until fails; the message of go test would not name the condition
)

// Until waits until done returns true. It has no time-out of its own, because a machine may be
// slow: it fails the test shortly before the deadline of go test.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(untilEvery)
	defer tick.Stop()
	for !done() {
		if of, has := t.(interface{ Deadline() (time.Time, bool) }); has {
			if deadline, set := of.Deadline(); set && time.Until(deadline) < untilBefore {
				t.Fatalf("the condition did not become true before the deadline of the tests: %s", what)
			}
		}
		<-tick.C
	}
}
