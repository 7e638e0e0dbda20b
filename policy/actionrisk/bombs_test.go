package actionrisk

import (
	"os"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk/act"
)

// TestNoBombStalls checks that judging a hostile text of 2,000 or 65,536 characters does not take
// long. It measures processor time, not counted steps. It tries a sample of all combinations of
// piece, growth and carrier (see hostileTexts), with limits that leave room for slow and busy
// machines. BOMBS=strict sets the limits to 2 and 50 milliseconds.
func TestNoBombStalls(t *testing.T) {
	Assess(act.Action{Command: "ls"})
	strict := os.Getenv("BOMBS") == "strict"
	for _, size := range [...]struct {
		characters, every int
		limit, strict     time.Duration
	}{
		{2000, 23, 60 * time.Millisecond, 2 * time.Millisecond}, // machines differ by a factor of three; quadratic work exceeds even this limit
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

// stallOf returns the processor time of one evaluation. If the first try is over the limit, it
// returns the best of up to eight.
func stallOf(command string, limit time.Duration) time.Duration {
	lockThread()
	defer unlockThread()
	best := time.Duration(1 << 62)
	for range 8 {
		began := threadTime()
		ScoreAction(act.Action{Command: command}) // includes masking the excerpts
		if best = min(best, threadTime()-began); best <= limit || best > 64*max(limit, 1e6) {
			break
		}
	}
	return best
}
