package ledger_test

import (
	"context"
	"os"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
)

func TestMain(m *testing.M) {
	ledgertest.Overlap()
	ledger.VerifyAll = func(t *testing.T, l *ledger.Ledger) {
		t.Helper()
		report, err := audit.Ledger(context.WithoutCancel(t.Context()), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Faults {
			t.Error(f)
		}
	}
	os.Exit(m.Run())
}
