// Package kept has what the keeper of a partition's checkpoints (package keeper) tells the
// rest of its node. Package ledger has it for each partition, so that its callers can ask
// without knowing the keeper.
package kept

import (
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/wait"
)

// State is written by the keeper alone and may be read at any time.
type State struct {
	Every     time.Duration                        // between two checkpoints
	Beginning atomic.Bool                          // the tree is being brought to the head since a start that did not wait for it
	Published atomic.Pointer[checkpoint.Published] // the newest checkpoint, nil before the first
	News      wait.Broadcast                       // after each new checkpoint
	Current   atomic.Int64                         // unix microseconds when the newest checkpoint last covered the head
}
