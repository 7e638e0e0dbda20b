//go:build unix

package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// clockJumps sets the clock of one of two nodes back by an hour and then ahead by a day, while
// clients call both nodes.
func clockJumps(ctx context.Context, w *world) error {
	jumping, err := w.options.built(ctx, jumpingRelease)
	if err != nil {
		return err
	}
	clock, err := os.Create(filepath.Join(w.dir, "clock"))
	if err != nil {
		return err
	}
	defer clock.Close()
	if err := putClock(clock, 0); err != nil {
		return err
	}
	if err := w.serve(ctx, 2); err != nil {
		return err
	}
	n := w.nodes[1]
	n.stop()
	n.program, n.more = jumping, append(n.more, "CLOCK_JUMP="+clock.Name())
	if err := w.start(ctx, n); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		w.wrongClock.Store(true)
		for _, jump := range []time.Duration{-time.Hour, 24 * time.Hour, 0} {
			if err := putClock(clock, jump); err != nil {
				return err
			}
			if err := w.until(ctx, "readiness to report a clock that is off by "+jump.String(), func() bool { return w.degraded(n, "clock") == (jump != 0) }); err != nil {
				return err
			}
			if err := w.answeredMore(ctx, "calls with a clock that is off by "+jump.String(), kindGate, kindDecision); err != nil {
				return err
			}
		}
		w.wrongClock.Store(false)
		return w.adjusted()
	})
}

// putClock writes the offset of the clock to the file that a node of jumpingRelease reads.
func putClock(file *os.File, off time.Duration) error {
	var size [8]byte
	binary.NativeEndian.PutUint64(size[:], uint64(int64(off/time.Second)))
	_, err := file.WriteAt(size[:], 0)
	return err
}

// adjusted checks that a decision reports the wrong clock. The ledger's time never decreases, so a
// decision after an event with a date in the future must say that its time was adjusted.
func (w *world) adjusted() error {
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	for _, a := range w.journal.known {
		if a.Kind == kindDecision && strings.Contains(a.Answer, `"clock.adjusted"`) {
			return nil
		}
	}
	return errors.New("no decision reports the wrong clock")
}
