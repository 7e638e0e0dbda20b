package ledgertest

import (
	"context"
	"os"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

const pollEvery = 10 * time.Millisecond

// shared returns an error, since localpg starts no server on Windows.
func shared(context.Context) (string, error) { return "", localpg.ErrNoPostgres }

// Base returns the folder in which a server of tests would make its folder.
func Base() string { return os.TempDir() }
