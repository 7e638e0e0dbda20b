//go:build unix

package ledgertest

import (
	"testing"
	"time"
)

// lateRecorder is a recorder whose deadline is soon.
type lateRecorder struct{ recorder }

func (*lateRecorder) Deadline() (time.Time, bool) { return time.Now(), true }

// Until waits for its condition. If the condition never becomes true, Until fails with its name
// before the deadline of go test.
func TestUntil(t *testing.T) {
	looked := 0
	Until(t, "the third look", func() bool { looked++; return looked == 3 })
	if looked != 3 {
		t.Errorf("looked %d times", looked)
	}
	var got lateRecorder
	func() {
		defer func() { _ = recover() }()
		Until(&got, "nothing", func() bool { return false })
	}()
	if got.failed != "the condition did not become true before the deadline of the tests: nothing" {
		t.Errorf("%+v", got)
	}
}
