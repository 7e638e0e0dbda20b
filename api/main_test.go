package api

import (
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestMain collects garbage less often than a service does: each test makes a whole
// service and drops it, and looking for it was a fifth of the processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	ledgertest.Overlap()
	os.Exit(m.Run())
}

// sortedKeys are the names of members in the order of the alphabet.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// operations is the table without a server: what is declared of every operation.
func operations() []*op.Operation { return (&Server{}).operations() }
