package ledgertest

import (
	"context"
	"os"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

const pollEvery = 10 * time.Millisecond

// shared returns an error, because localpg starts no server on Windows.
func shared(context.Context) (string, error) { return "", localpg.ErrNoPostgres }

// Base returns the folder for temporary files.
func Base() string { return os.TempDir() }
