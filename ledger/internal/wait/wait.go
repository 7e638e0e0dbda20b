// Package wait provides the two ways in which the ledger's goroutines wait: for a signal that
// wakes all waiting goroutines, and for a pause that can end early.
package wait

import (
	"context"
	"sync"
	"time"
)

// Broadcast wakes all goroutines that wait for it. The zero value is ready.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait returns a channel that the next Signal closes.
func (b *Broadcast) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Signal closes the channels that Wait has returned since the last Signal.
func (b *Broadcast) Signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// For waits until ch is closed or receives, or until d has passed if d is positive. It
// returns false if ctx ended first.
func For(ctx context.Context, ch <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-ch:
	case <-timer:
	}
	return true
}
