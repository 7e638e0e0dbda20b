package keeper_test

import (
	"os"
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

func TestMain(m *testing.M) {
	ledgertest.Overlap()
	os.Exit(m.Run())
}
