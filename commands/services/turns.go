package services

import (
	"context"
	"sync"
)

// turns makes the calls on this node that draw on one fund wait for each other. An append
// requires the version of the fund's stream that was read, so if several calls tried at once,
// all but one would have to start over.
type turns struct {
	mu    sync.Mutex // guards queue
	queue map[string]*turn
}

// turn is the turn of one fund. The call that has put a value into taken has it.
type turn struct {
	taken chan struct{}
	users int // calls that have the turn or wait for it
}

// take waits for the turn of a fund. done passes it on.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	own := t.queue[name]
	if own == nil {
		if t.queue == nil {
			t.queue = map[string]*turn{}
		}
		own = &turn{taken: make(chan struct{}, 1)}
		t.queue[name] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.queue, name)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
