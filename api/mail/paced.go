package mail

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// paced sends messages about notes of one kind, such as decisions that wait for a review. Notes
// have a key: the first note of a key is sent at once, and then at most one message per key and 10
// minutes is sent, so that an agent in a loop does not flood a mailbox. A message is lost if the
// process stops before sending it.
type paced[N any] struct {
	write  func(ctx context.Context, since []N) error // sends one message about notes of one key, of which the last is the newest
	failed func(note N, err error)                    // is called with the newest note if write returned an error

	mu      sync.Mutex // protects the fields below, except running
	waiting map[string]*waiting[N]
	closed  bool
	running sync.WaitGroup // counts the messages that are being sent
}

// waiting contains the notes of a key for which a message was sent less than 10 minutes ago.
type waiting[N any] struct {
	timer *time.Timer // triggers the next message
	since []N         // newest notes since the last message
}

// tell announces a note.
func (m *paced[N]) tell(key string, n N) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[key]; w != nil {
		if w.since = append(w.since, n); len(w.since) > keptNotes {
			w.since = slices.Delete(w.since, 0, 1)
		}
		return
	}
	if m.closed {
		return
	}
	if m.waiting == nil {
		m.waiting = map[string]*waiting[N]{}
	}
	m.waiting[key] = &waiting[N]{timer: time.AfterFunc(messageEvery, func() { m.later(key) })}
	m.send([]N{n})
}

// later sends a message about the notes since the last message. If there are none, it removes the
// key from waiting.
func (m *paced[N]) later(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.waiting[key]
	switch {
	case w == nil || m.closed:
	case len(w.since) == 0:
		delete(m.waiting, key)
	default:
		m.send(w.since)
		w.since = nil
		w.timer.Reset(messageEvery)
	}
}

// Close stops the timers. It waits until the messages in progress are sent, or ctx ends.
func (m *paced[N]) Close(ctx context.Context) {
	m.mu.Lock()
	m.closed = true
	for _, w := range m.waiting {
		w.timer.Stop()
	}
	m.mu.Unlock()
	over := make(chan struct{})
	go func() {
		m.running.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// send sends a message about these notes in the background. The caller holds the lock.
func (m *paced[N]) send(since []N) {
	m.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), messageTimeout)
		defer cancel()
		if err := m.write(ctx, since); err != nil {
			m.failed(since[len(since)-1], err)
		}
	})
}

// sendEach sends a message to each address. It stops at the first address that fails.
func sendEach(ctx context.Context, sender Sender, message Message, addresses []string) error {
	for _, message.To = range addresses {
		if err := sender.Send(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

// Sent is for tests. It waits until the messages in progress are sent. If now is set, it first
// sends the next message of every key immediately.
func (m *paced[N]) Sent(now bool) {
	if now {
		m.mu.Lock()
		keys := slices.Collect(maps.Keys(m.waiting))
		m.mu.Unlock()
		for _, key := range keys {
			m.later(key)
		}
	}
	m.running.Wait()
}
