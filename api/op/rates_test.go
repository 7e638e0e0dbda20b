package op

import (
	"fmt"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestAFloodDoesNotFreeWhoIsLimited checks that a flood from many networks removes only counts of
// that flood. Other callers remain limited.
func TestAFloodDoesNotFreeWhoIsLimited(t *testing.T) {
	t.Parallel()
	clock := ledgertest.NewClock(ledgertest.Present())
	r := NewRates(true, clock.Now)
	once := Limit{"do it", time.Hour, 1}
	if !r.Allow(once, "ada") || r.Allow(once, "ada") {
		t.Fatal("once is not once")
	}
	for i := range RateLimitEntries - 1 {
		r.Allow(once, fmt.Sprint(i))
	}
	if r.Allow(once, "ada") {
		t.Error("the flood freed who was seen just now")
	}
	r.Allow(once, "one more")
	if r.Allow(once, "ada") {
		t.Error("the flood freed who was seen just now")
	}
	if len(r.limiters) > RateLimitEntries {
		t.Errorf("%d are remembered", len(r.limiters))
	}
}
