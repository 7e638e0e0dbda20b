package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// A batch that is not acknowledged is sent again, from the checkpoint at that time. No event is
// skipped, and the order is that of positions.
func TestSubscriberRedeliversAndSkipsNothing(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	const events = 30
	var checkpoint atomic.Int64
	subscriber := l.Partition(0).Subscriber(func(context.Context) (int64, error) { return checkpoint.Load(), nil })
	messages, err := subscriber.Subscribe(t.Context(), "events")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for i := range events {
			if _, err := l.Append(context.Background(), fixture.One("s", ledger.Any(events), fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		}
	}()
	want, nacked := int64(1), false
	for want <= events {
		m := <-messages
		batch := ledger.Batch(m)
		if batch[0].Position != want {
			t.Fatalf("a batch begins at %d, want %d", batch[0].Position, want)
		}
		if want > 5 && !nacked {
			nacked = true
			m.Nack()
			continue
		}
		for _, e := range batch {
			if e.Position != want {
				t.Fatalf("position %d, want %d", e.Position, want)
			}
			want++
		}
		checkpoint.Store(want - 1)
		m.Ack()
	}
	if err := subscriber.Close(); err != nil {
		t.Error(err)
	}
	if err := subscriber.Close(); err != nil {
		t.Error(err)
	}
	if _, open := <-messages; open {
		t.Error("the channel is open after Close")
	}
}

// A batch that Passes accepts is not sent, and the next batch follows it.
func TestSubscriberSendsNoMessageForABatchThatPasses(t *testing.T) {
	t.Parallel()
	l := fixture.Open(t, ledgertest.New(t))
	for i := range 3 {
		if _, err := l.Append(t.Context(), fixture.One("s", ledger.Any(3), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	subscriber := l.Partition(0).Subscriber(func(context.Context) (int64, error) { return 0, nil })
	passed := make(chan int64, 1)
	subscriber.Passes = func(batch []ledger.Event) bool {
		last := batch[len(batch)-1].Position
		if last == 3 {
			passed <- last
		}
		return last <= 3
	}
	messages, err := subscriber.Subscribe(t.Context(), "events")
	if err != nil {
		t.Fatal(err)
	}
	<-passed
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.Any(4), "after")); err != nil {
		t.Fatal(err)
	}
	m := <-messages
	m.Ack()
	if batch := ledger.Batch(m); len(batch) != 1 || batch[0].Position != 4 {
		t.Errorf("the first message has %d events from position %d", len(batch), batch[0].Position)
	}
	if err := subscriber.Close(); err != nil {
		t.Error(err)
	}
}

// A reader on another node gets each append.
func TestAnotherNodeIsWoken(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	writer, reader := fixture.Open(t, db), fixture.Open(t, db)
	subscriber := reader.Partition(0).Subscriber(func(context.Context) (int64, error) { return 0, nil })
	messages, err := subscriber.Subscribe(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := writer.Append(t.Context(), fixture.One("s", ledger.Any(9), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		m := <-messages
		if got := ledger.Batch(m)[0].Position; got != int64(i+1) {
			t.Fatalf("position %d, want %d", got, i+1)
		}
		m.Ack()
	}
	_ = subscriber.Close()
}

// A reader gets the same events from memory as from the table, even if another node has written in
// between.
func TestReadersSeeWhatTheTableHolds(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	nodes := []*ledger.Ledger{fixture.Open(t, db), fixture.Open(t, db)}
	const each = 40
	for i := range each {
		for n, l := range nodes {
			if i%7 == 3 && n == 1 {
				continue // vary how many events one node appends in a row
			}
			if _, err := l.Append(t.Context(), fixture.One("s", ledger.Any(2*each), fmt.Sprint(n, "/", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	head, err := nodes[0].Partition(0).Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := nodes[0].Partition(0).After(t.Context(), 0, 2*each)
	if err != nil || int64(len(want)) != head {
		t.Fatalf("%d events of %d, %v", len(want), head, err)
	}
	for _, l := range nodes {
		for from := range head {
			subscriber := l.Partition(0).Subscriber(func(context.Context) (int64, error) { return from, nil })
			messages, err := subscriber.Subscribe(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			m := <-messages
			for i, e := range ledger.Batch(m) {
				if e.Hash != want[from+int64(i)].Hash || e.Position != from+int64(i)+1 {
					t.Fatalf("after %d: position %d is another event", from, e.Position)
				}
			}
			m.Ack()
			_ = subscriber.Close()
		}
	}
}

// statements counts the statements that read events.
type statements struct{ reads atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, "from events where p = $1 and pos > $2") {
		s.reads.Add(1)
	}
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A reader that has read its own node's events to the end gets later ones without querying the
// database. It queries only at the start and when there was no news for a second.
func TestAReaderOfItsOwnNodeAsksNothing(t *testing.T) {
	t.Parallel()
	asked := &statements{}
	l, err := ledger.Open(t.Context(), ledgertest.New(t).URL, ledger.Options{Tracer: asked})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	subscriber := l.Partition(0).Subscriber(func(context.Context) (int64, error) { return 0, nil })
	messages, err := subscriber.Subscribe(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	const events = 100
	began := time.Now()
	for i := range events {
		if _, err := l.Append(t.Context(), fixture.One("s", ledger.Any(events), fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		(<-messages).Ack()
	}
	// One query at the start, one when the listener has connected, and one for each second without
	// news.
	if most := 3 + int64(time.Since(began).Seconds()); asked.reads.Load() > most {
		t.Errorf("%d events were looked for %d times in the database, at most %d are due", events, asked.reads.Load(), most)
	}
	_ = subscriber.Close()
}

// News wakes all readers of a node at once. Readers at the same position share one query, so they
// do not need one connection each.
func TestReadersThatWakeTogetherShareAnAnswer(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	if _, err := fixture.Open(t, db).Append(t.Context(), fixture.One("s", ledger.New(), "1")); err != nil {
		t.Fatal(err)
	}
	l := fixture.Open(t, db) // this node has none of the other node's events in memory
	var together sync.WaitGroup
	together.Add(8)
	var read []<-chan *message.Message
	for range 8 {
		var once sync.Once
		subscriber := l.Partition(0).Subscriber(func(context.Context) (int64, error) {
			once.Do(func() {
				together.Done()
				together.Wait()
			})
			return 0, nil
		})
		messages, err := subscriber.Subscribe(t.Context(), "events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = subscriber.Close() })
		read = append(read, messages)
	}
	for _, messages := range read {
		m := <-messages
		m.Ack()
	}
	if opened := l.Pool().Stat().NewConnsCount(); opened > 2 {
		t.Errorf("%d connections were opened", opened)
	}
}
