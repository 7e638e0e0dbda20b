package api

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestMain collects garbage less often than a service does: each test makes a whole
// service and drops it, and looking for it was a fifth of the processor time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	ledgertest.Overlap()
	os.Exit(m.Run())
}
