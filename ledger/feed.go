package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Subscriber is a partition as a Watermill message.Subscriber: the table is the
// outbox, there is no second copy of the events. One message is one batch of up
// to 1,000 events in order; Batch takes them out of its context. A Nack sends
// the batch again, from the checkpoint as it is then, after a back-off of 50 to
// 500 ms. The topic is ignored.
type Subscriber struct {
	partition  *Partition
	checkpoint func(context.Context) (int64, error)

	mu      sync.Mutex
	stop    []context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// Subscriber makes a subscriber that starts behind the position that checkpoint
// returns.
func (p *Partition) Subscriber(checkpoint func(context.Context) (int64, error)) *Subscriber {
	return &Subscriber{partition: p, checkpoint: checkpoint}
}

type batchKey struct{}

// Batch is the events of a message, in order.
func Batch(m *message.Message) []Event {
	events, _ := m.Context().Value(batchKey{}).([]Event)
	return events
}

// Subscribe starts sending; the channel is closed when ctx ends or at Close.
func (s *Subscriber) Subscribe(ctx context.Context, _ string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("subscribe: the subscriber is closed")
	}
	ctx, stop := context.WithCancel(ctx)
	s.stop = append(s.stop, stop)
	out := make(chan *message.Message)
	s.running.Go(func() {
		defer close(out)
		s.send(ctx, out)
	})
	return out, nil
}

// Close ends every subscription and waits for it. It may be called twice.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, stop := range s.stop {
		stop()
	}
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

func (s *Subscriber) send(ctx context.Context, out chan<- *message.Message) {
	position, known, pause := int64(0), false, feedFirstPause
	var told time.Time
	for ctx.Err() == nil {
		changed := s.partition.Changed() // before reading: what comes later wakes us
		events, err := s.next(ctx, &position, &known)
		switch {
		case err != nil:
			if ctx.Err() == nil && time.Since(told) >= feedTell {
				told = time.Now()
				s.partition.ledger.log.Warn("feed: read events", "error", err)
			}
			sleep(ctx, nil, pause)
			pause = min(2*pause, feedLastPause)
		case len(events) == 0:
			// Who has nothing to do looks again where its reader stands: another node or
			// a crash may have put the checkpoint back.
			idle := time.Now()
			sleep(ctx, changed, pollInterval)
			known = known && time.Since(idle) < pollInterval
			// Under load a moment's patience makes one batch of many small ones.
			sleep(ctx, nil, gather)
		case s.deliver(ctx, out, events):
			position, pause = events[len(events)-1].Position, feedFirstPause
			if len(events) >= busyFeed && len(events) < feedBatch {
				sleep(ctx, nil, gatherBusy)
			}
		default:
			known = false // another node may have moved the checkpoint
			sleep(ctx, nil, pause)
			pause = min(2*pause, feedLastPause)
		}
	}
}

func (s *Subscriber) next(ctx context.Context, position *int64, known *bool) ([]Event, error) {
	if !*known {
		at, err := s.checkpoint(ctx)
		if err != nil {
			return nil, err
		}
		*position, *known = at, true
	}
	if events := s.partition.tail.after(*position); len(events) > 0 {
		return events, nil
	}
	return s.partition.After(ctx, *position, feedBatch)
}

// tail is the last events this node has committed to a partition, without a gap: readers at the
// end of the ledger need not ask the database for what the process still holds.
// Its events are shared and never changed.
type tail struct {
	mu     sync.Mutex // guards events
	events []Event
}

func (t *tail) add(events []Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.events); n > 0 && t.events[n-1].Position+1 != events[0].Position {
		t.events = nil // another node was in between
	}
	if t.events = append(t.events, events...); len(t.events) > 2*tailLength {
		t.events = slices.Clone(t.events[len(t.events)-tailLength:])
	}
}

// last is the position of the last event this node has committed; 0 for none.
func (t *tail) last() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == 0 {
		return 0
	}
	return t.events[len(t.events)-1].Position
}

// after returns up to a batch of events above a position, none if it does not
// hold the next one.
func (t *tail) after(position int64) []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.events) == 0 {
		return nil
	}
	skip := position + 1 - t.events[0].Position
	if skip < 0 || skip >= int64(len(t.events)) {
		return nil
	}
	return slices.Clip(t.events[skip:min(skip+feedBatch, int64(len(t.events)))])
}

// deliver sends one batch and says whether it was acknowledged.
func (s *Subscriber) deliver(ctx context.Context, out chan<- *message.Message, events []Event) bool {
	m := message.NewMessage(fmt.Sprintf("%d:%d-%d", s.partition.p, events[0].Position, events[len(events)-1].Position), nil)
	m.SetContext(context.WithValue(ctx, batchKey{}, events))
	select {
	case out <- m:
	case <-ctx.Done():
		return false
	}
	select {
	case <-m.Acked():
		return true
	case <-m.Nacked():
		return false
	case <-ctx.Done():
		return false
	}
}
