package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel carries "this partition has events up to this position" between the nodes of one
// database.
const channel = "countersign_events"

// coalesce is how long the notifier waits for more commits before it tells the
// other nodes: commits that carry a NOTIFY queue up behind each other, and under
// load a reader waits as long anyway (gatherBusy).
const coalesce = 20 * time.Millisecond

// broadcast wakes everybody who waits. The zero value is ready.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that is closed by the next signal.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Changed returns a channel that is closed when events are likely to have been
// added, by this node or another. It is a hint: whoever needs certainty reads
// at least once a second, too.
func (p *Partition) Changed() <-chan struct{} { return p.wake.wait() }

// committed tells whoever waits of what this node has appended.
func (p *Partition) committed(events []Event) {
	p.tail.add(events)
	p.ledger.own.signal()
	p.changed()
}

func (p *Partition) changed() {
	p.wake.signal()
	p.ledger.wake.signal()
}

// told takes note of a notification, "partition:position" and more of them after
// commas. One that cannot be read wakes everybody.
func (l *Ledger) told(payload string) {
	for _, part := range strings.Split(payload, ",") {
		number, text, _ := strings.Cut(part, ":")
		n, err1 := strconv.ParseInt(number, 10, 16)
		position, err2 := strconv.ParseInt(text, 10, 64)
		p := l.Partition(int16(n))
		if err1 != nil || err2 != nil || p == nil {
			l.changedEverywhere()
			return
		}
		// What this node has committed itself its readers know already: without
		// this each of them would ask the database after each commit, for nothing.
		if position > p.tail.last() {
			p.changed()
		}
	}
}

func (l *Ledger) changedEverywhere() {
	for _, p := range l.partitions {
		p.changed()
	}
}

// news is what told reads, of the partitions that this node has appended to since
// the last time.
func (l *Ledger) news(told []int64) string {
	var parts []string
	for i, p := range l.partitions {
		if last := p.tail.last(); last > told[i] {
			told[i] = last
			parts = append(parts, fmt.Sprintf("%d:%d", p.p, last))
		}
	}
	return strings.Join(parts, ",")
}

// listen hears of the other nodes' commits, on a connection of its own.
func (l *Ledger) listen(ctx context.Context) {
	l.keepConnected(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
			return err
		}
		l.changedEverywhere() // also after a reconnect: something may have been missed
		for {
			told, err := conn.WaitForNotification(ctx)
			if err != nil {
				return err
			}
			l.told(told.Payload)
		}
	})
}

// notify tells the other nodes of this node's commits, never inside an append:
// commits with NOTIFY are serialised in the whole cluster.
func (l *Ledger) notify(ctx context.Context) {
	l.keepConnected(ctx, func(conn *pgx.Conn) error {
		told := make([]int64, len(l.partitions))
		if _, err := conn.Exec(ctx, `set synchronous_commit = off`); err != nil {
			return err
		}
		for {
			if !sleep(ctx, l.own.wait(), 0) || !sleep(ctx, nil, coalesce) {
				return ctx.Err()
			}
			if _, err := conn.Exec(ctx, `select pg_notify($1, $2)`, channel, l.news(told)); err != nil {
				return err
			}
		}
	})
}

// keepConnected runs work on a connection, and again on a new one when it fails.
func (l *Ledger) keepConnected(ctx context.Context, work func(*pgx.Conn) error) {
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		conn, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig.Copy())
		if err == nil {
			pause = 50 * time.Millisecond
			err = work(conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = conn.Close(closing)
			cancel()
		}
		if ctx.Err() == nil {
			l.log.Warn("notification connection lost; polling goes on", "error", err)
		}
		sleep(ctx, nil, pause)
	}
}

// sleep waits for the channel or, if d is positive, for at most d. It is false
// when the context ended.
func sleep(ctx context.Context, ch <-chan struct{}, d time.Duration) bool {
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
