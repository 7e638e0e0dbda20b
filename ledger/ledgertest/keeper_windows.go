package ledgertest

import (
	"context"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

const pollEvery = 10 * time.Millisecond

// shared has nothing to offer where localpg starts no server.
func shared(context.Context) (string, error) { return "", localpg.ErrNoPostgres }
