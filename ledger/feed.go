package ledger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/countersign/countersign/ledger/internal/wait"
)

// Subscriber makes a partition a Watermill message.Subscriber. The table of events is itself the
// outbox: the events have no second copy. One message is a batch of up to 1,000 events in order,
// which Batch returns. After a Nack the subscriber waits 50 to 500 ms, reads the checkpoint again
// and sends the events after it. It ignores the topic.
type Subscriber struct {
	// Passes, if set before Subscribe, reports whether a batch needs no message. It is called
	// between two messages, as checkpoint is.
	Passes func([]Event) bool

	partition  *Partition
	checkpoint func(context.Context) (int64, error)

	mu      sync.Mutex
	stop    []context.CancelFunc
	closed  bool
	running sync.WaitGroup
}

// Subscriber returns a subscriber that starts after the position that checkpoint returns.
func (p *Partition) Subscriber(checkpoint func(context.Context) (int64, error)) *Subscriber {
	return &Subscriber{partition: p, checkpoint: checkpoint}
}

type batchKey struct{}

// Batch returns the events of a message, in order.
func Batch(m *message.Message) []Event {
	events, _ := m.Context().Value(batchKey{}).([]Event)
	return events
}

// Subscribe starts sending. The channel is closed when ctx ends or Close is called.
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

// Close ends all subscriptions and waits for their goroutines. It may be called twice.
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

// reading is the state of one subscription.
type reading struct {
	position int64
	known    bool   // position was read from the checkpoint and is still valid
	looked   bool   // the last query returned all events that the database had
	told     uint64 // value of partition.foreign at that query
}

func (s *Subscriber) send(ctx context.Context, out chan<- *message.Message) {
	at, pause := reading{}, feedFirstPause
	var told time.Time
	for ctx.Err() == nil {
		changed := s.partition.Changed() // taken before the read, so that events after the read wake this goroutine
		events, err := s.next(ctx, &at)
		switch {
		case err != nil:
			if ctx.Err() == nil && time.Since(told) >= feedTell {
				told = time.Now()
				s.partition.ledger.log.Warn("feed: read events", "error", err)
			}
			wait.For(ctx, nil, pause)
			pause = min(2*pause, feedLastPause)
		case len(events) == 0:
			// An idle subscription reads its checkpoint again, because another node or a crash may
			// have moved it back.
			idle := time.Now()
			wait.For(ctx, changed, pollInterval)
			if time.Since(idle) >= pollInterval {
				at.known, at.looked = false, false
			}
			// A short pause lets small batches arrive together.
			s.partition.patience(ctx, gather)
		case s.Passes != nil && s.Passes(events), s.deliver(ctx, out, events):
			at.position, pause = events[len(events)-1].Position, feedFirstPause
			if len(events) >= busyFeed && len(events) < feedBatch {
				s.partition.patience(ctx, gatherBusy)
			}
		default:
			at.known = false // another node may have moved the checkpoint
			wait.For(ctx, nil, pause)
			pause = min(2*pause, feedLastPause)
		}
	}
}

// patience waits up to d for more events. It returns at once if a caller of Await needs the events
// that exist already.
func (p *Partition) patience(ctx context.Context, d time.Duration) {
	asked := p.asked.Wait()
	if p.awaited.Load() == 0 {
		wait.For(ctx, asked, d)
	}
}

// Await makes the partition's readers skip their pauses until done is called.
func (p *Partition) Await() (done func()) {
	p.awaited.Add(1)
	p.asked.Signal()
	return func() { p.awaited.Add(-1) }
}

// next returns the next events. It queries the database only if this node does not have the events
// in memory and other nodes may have added some.
func (s *Subscriber) next(ctx context.Context, at *reading) ([]Event, error) {
	p := s.partition
	if !at.known {
		position, err := s.checkpoint(ctx)
		if err != nil {
			return nil, err
		}
		at.position, at.known = position, true
	}
	told := p.foreign.Load()
	if events := p.tail.after(at.position); len(events) > 0 {
		return events, nil
	}
	if at.looked && at.told == told && at.position == p.tail.last() {
		return nil, nil
	}
	events, err := p.shared(ctx, at.position, told)
	at.looked, at.told = err == nil && len(events) < feedBatch, told
	return events, err
}

// shared queries the database once for all readers at the same position, because a notification
// wakes all of them. told is part of the key: a reader with a later notification makes its own
// query.
func (p *Partition) shared(ctx context.Context, position int64, told uint64) ([]Event, error) {
	events, err, _ := p.reads.Do(fmt.Sprint(position, " ", told), func() (any, error) { return p.After(ctx, position, feedBatch) })
	return events.([]Event), err
}

// tail keeps the last events that this node has committed to a partition, without a gap, so that
// readers near the end need no query. The events are shared and never changed. They are in blocks:
// a reader that keeps its last batch keeps only one block in memory.
type tail struct {
	mu     sync.Mutex // guards blocks
	blocks [][]Event  // oldest first; no block is empty
}

func (t *tail) add(events []Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.lastPosition(); last > 0 && last+1 != events[0].Position {
		t.blocks = nil // another node has appended events after the last one here
	}
	for len(events) > 0 {
		if n := len(t.blocks); n == 0 || len(t.blocks[n-1]) == tailBlock {
			t.blocks = append(t.blocks, make([]Event, 0, tailBlock))
		}
		block := &t.blocks[len(t.blocks)-1]
		n := min(len(events), tailBlock-len(*block))
		*block, events = append(*block, events[:n]...), events[n:]
	}
	if over := len(t.blocks) - tailBlocks; over > 0 {
		t.blocks = slices.Clone(t.blocks[over:])
	}
}

// last returns the position of the last event that this node has committed, or 0.
func (t *tail) last() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lastPosition()
}

func (t *tail) lastPosition() int64 {
	if len(t.blocks) == 0 {
		return 0
	}
	block := t.blocks[len(t.blocks)-1]
	return block[len(block)-1].Position
}

// Recent returns events after a position, as far as this node has committed them itself and still
// keeps them in memory. It returns none if the next event is not in memory. The caller must not
// change them.
func (p *Partition) Recent(position int64) []Event { return p.tail.after(position) }

// after returns the events after a position, up to the end of their block. It returns none if the
// next event is not in the tail.
func (t *tail) after(position int64) []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.blocks) == 0 {
		return nil
	}
	skip := position + 1 - t.blocks[0][0].Position // works because every block except the last is full
	if skip < 0 || position >= t.lastPosition() {
		return nil
	}
	return slices.Clip(t.blocks[skip/tailBlock][skip%tailBlock:])
}

// deliver sends one batch and reports whether it was acknowledged.
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
