// Package kept contains the state that the keeper of a partition's checkpoints (package keeper)
// shares with the rest of its node. Package ledger stores it in each partition, so that readers of
// the state need not import package keeper.
package kept

import (
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/wait"
)

// State is written only by the keeper and may be read at any time.
type State struct {
	Every     time.Duration                        // time between two checkpoints
	Beginning atomic.Bool                          // the tree is still behind the head, after a start that did not wait for it
	Published atomic.Pointer[checkpoint.Published] // newest checkpoint; nil before the first
	News      wait.Broadcast                       // signalled after each new checkpoint and each new problem
	Problem   atomic.Pointer[string]               // why this node signs no checkpoints; nil if it does
	Current   atomic.Int64                         // last time when the newest checkpoint covered the head, in microseconds since 1970
}
