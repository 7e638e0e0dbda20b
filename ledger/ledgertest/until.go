package ledgertest

import (
	"testing"
	"time"
)

const (
	untilEvery  = 5 * time.Millisecond
	untilBefore = 5 * time.Second // the deadline of go test, which would not say what was waited for
)

// Until waits until done returns true. It has no time-out of its own, since a machine may be
// slow: it fails the test only shortly before go test would end all tests.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(untilEvery)
	defer tick.Stop()
	for !done() {
		if of, has := t.(interface{ Deadline() (time.Time, bool) }); has {
			if deadline, set := of.Deadline(); set && time.Until(deadline) < untilBefore {
				t.Fatalf("until the deadline of the tests it did not come about: %s", what)
			}
		}
		<-tick.C
	}
}
