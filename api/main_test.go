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

// TestMain makes the garbage collector run less often. Each test creates and drops a complete
// service, and the collector took a fifth of the processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	ledgertest.Overlap()
	os.Exit(m.Run())
}

// sortedKeys returns the names of members in alphabetical order.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// operations returns the table of declared operations without a server.
func operations() []*op.Operation { return (&Server{}).operations() }
