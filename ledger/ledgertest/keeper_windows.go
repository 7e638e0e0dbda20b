package ledgertest

import (
	"context"
	"os"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

const pollEvery = 10 * time.Millisecond

// shared has nothing to offer where localpg starts no server.
func shared(context.Context) (string, error) { return "", localpg.ErrNoPostgres }

// Base is where a server would keep its own.
func Base() string { return os.TempDir() }
