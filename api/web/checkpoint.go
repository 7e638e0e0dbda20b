package web

import (
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/keeper"
)

// Checkpoint sums up the newest signed checkpoints of all partitions.
type Checkpoint struct {
	Size int64
	Lag  time.Duration // how long the newest event has had no checkpoint, beyond the usual time
	Note string
}

// NewestCheckpoint returns the newest checkpoints of a ledger, or nil if a partition has none yet.
func NewestCheckpoint(l *ledger.Ledger) *Checkpoint {
	shown := &Checkpoint{Lag: keeper.Lag(l)}
	for _, p := range l.Partitions() {
		c := keeper.Known(p)
		if c == nil {
			return nil
		}
		shown.Size += c.Size
		shown.Note += string(c.Note)
	}
	return shown
}
