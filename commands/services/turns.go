package services

import (
	"context"
	"sync"
)

// turns lets what draws on one fund go one after the other on this node. Its
// stream is appended to at the version read, so all but one at a time would only
// move it under each other.
type turns struct {
	mu    sync.Mutex // guards queue
	queue map[string]*turn
}

// turn is one fund's. Who has put something into taken has the turn.
type turn struct {
	taken chan struct{}
	users int // who has it or waits for it
}

// take waits for the turn of a fund; done gives it on.
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
