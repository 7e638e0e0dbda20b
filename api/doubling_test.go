package api

import (
	"iter"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api/largebody"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/schema"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/guardlog"
)

// Sizes in bytes of the part of a body that grows. At these sizes superlinear work is visible, and
// thousands of bodies take seconds.
const (
	smallPart = 1 << 10
	largePart = 8 * smallPart
)

// Limits of the work after three doublings: 2.2 times per doubling, plus a constant number of
// bytes and allocations, because lists and tables grow in steps.
const (
	mostTimes = 2.2 * 2.2 * 2.2
	leap      = 48 << 10
	leaps     = 200
)

// TestTwiceTheBodyIsAboutTwiceTheWork checks that everything that scans a body does work
// proportional to its length. Each service, the parse, the canonical form, the schema and the
// guard's log get bodies in which one list, text or unrestricted value has grown. Work is measured
// in allocated bytes and allocations instead of time. TestNoScanIsQuadratic covers scanners that
// allocate nothing.
func TestTwiceTheBodyIsAboutTwiceTheWork(t *testing.T) {
	if bodies := eachGrown(t, smallPart, largePart, compareWork); bodies < 2000 {
		t.Errorf("only %d bodies were tried", bodies)
	}
}

// eachGrown compares the cost of processing each body with a small and with a large part. few and
// many are the sizes of this part in bytes.
func eachGrown(t *testing.T, few, many int, compare func(t *testing.T, name string, small, large func())) (bodies int) {
	t.Helper()
	for _, o := range operations() {
		evaluate := scannerOf(o)
		if evaluate == nil {
			continue
		}
		s, err := schema.New(o.Input)
		if err != nil {
			t.Fatal(err)
		}
		var example any
		if err := json.Unmarshal([]byte(o.Example), &example); err != nil {
			t.Fatal(err)
		}
		read := func(body string) {
			if canonical, err := canon.Canonical([]byte(body)); err == nil && s.Validate([]byte(body)) == nil {
				evaluate(canonical)
			}
		}
		tried := map[string]bool{}
		grown, stop := iter.Pull2(largebody.Grown(s.Document, example, many))
		for name, small := range largebody.Grown(s.Document, example, few) {
			same, large, _ := grown()
			if same != name {
				t.Fatalf("%s: %s and %s are not one shape", o.ID, name, same)
			}
			if tried[small] {
				continue // the same body as another shape: a list of numbers, for example, contains no text to grow
			}
			tried[small] = true
			bodies++
			compare(t, o.ID+" "+name, func() { read(small) }, func() { read(large) })
		}
		stop()
	}
	return bodies
}

// scannerOf returns the function by which an operation processes a valid body. It returns nil for
// an operation that only stores or reads.
func scannerOf(o *op.Operation) func(canonical []byte) {
	switch {
	case o.Service != nil:
		return func(canonical []byte) { _, _ = o.Service.EvaluateCanonical(canonical) }
	case o.ID == "report_guard_log":
		return func(canonical []byte) {
			var report guardlog.Report
			if canon.DecodeChecked(canonical, &report) == nil {
				_ = report.Check()
			}
		}
	}
	return nil
}

// compareWork fails the test if the work for a large body is not proportional to its length. It
// measures again if the result is too large, because other goroutines may have interfered.
func compareWork(t *testing.T, name string, small, large func()) {
	t.Helper()
	var one, eight work
	for range 3 {
		one, eight = workOf(small), workOf(large)
		if float64(eight.octets) <= mostTimes*float64(one.octets)+leap && float64(eight.pieces) <= mostTimes*float64(one.pieces)+leaps {
			return
		}
	}
	t.Errorf("%s: %d octets in %d pieces, of eight times the body %d in %d", name, one.octets, one.pieces, eight.octets, eight.pieces)
}

// work is the memory that a function allocates.
type work struct{ octets, pieces uint64 }

func workOf(do func()) work {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return work{after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs}
}
