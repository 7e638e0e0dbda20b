package actionrisk

import (
	"os"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestNoBombStalls: no text of 2,000 characters and none of 65,536 takes long, whatever
// is repeated in it, whichever language reads it, however it is doubled and carried.
// It measures the work itself and not the steps that were counted. A sample of the
// bombs is tried, and the limits leave room for slow and busy machines; with
// BOMBS=strict they are tried against 2 and 50 milliseconds.
func TestNoBombStalls(t *testing.T) {
	Assess(act.Action{Command: "ls"})
	strict := os.Getenv("BOMBS") == "strict"
	for _, size := range [...]struct {
		characters, every int
		limit, strict     time.Duration
	}{
		{2000, 23, 60 * time.Millisecond, 2 * time.Millisecond}, // machines differ threefold; what is quadratic takes more
		{65536, 307, 250 * time.Millisecond, 50 * time.Millisecond},
	} {
		if strict {
			size.limit = size.strict
		}
		tried, worst, name := 0, time.Duration(0), ""
		for b := range hostileTexts(size.characters, size.every) {
			took := stallOf(b.command, size.limit)
			if tried++; took > worst {
				worst, name = took, b.name
			}
			if took > size.limit {
				t.Errorf("%d characters, %q: %s", size.characters, b.name, took)
			}
		}
		t.Logf("%d texts of %d characters, the slowest %s: %q", tried, size.characters, worst, name)
	}
}

// stallOf is the processor time that an assessment takes, the best of some tries where
// the first is over the limit.
func stallOf(command string, limit time.Duration) time.Duration {
	lockThread()
	defer unlockThread()
	best := time.Duration(1 << 62)
	for range 8 {
		began := threadTime()
		ScoreAction(act.Action{Command: command}) // what is shown is masked, too
		if best = min(best, threadTime()-began); best <= limit || best > 64*max(limit, 1e6) {
			break
		}
	}
	return best
}
