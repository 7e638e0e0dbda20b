package services

import (
	"context"
	"sync"
)

// turns lets one call at a time use a fund, on this node. An append is refused if the fund's
// stream got another event after it was read. So if several calls tried at the same time, only one
// would succeed and the others would have to start over.
type turns struct {
	mu    sync.Mutex // guards queue
	queue map[string]*turn
}

// turn is the queue of one fund. The call that has sent a value to the channel taken holds the
// turn.
type turn struct {
	taken chan struct{}
	users int // number of calls that hold the turn or wait for it
}

// take waits for the turn of a fund. done ends the turn.
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
