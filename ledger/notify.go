package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/internal/wait"
)

// channel is where the nodes of one database tell each other up to which position each
// partition has events.
const channel = "countersign_events"

// coalesce is how long the notifier waits for more commits before it notifies the other
// nodes, since commits with a NOTIFY wait for each other. The readers of other nodes learn of
// a commit at most this much later.
const coalesce = 20 * time.Millisecond

// Changed returns a channel that is closed when this node or another has probably added
// events. It is a hint: a reader must also query at least once a second.
func (p *Partition) Changed() <-chan struct{} { return p.wake.Wait() }

// committed keeps the events that this node has appended and wakes those who wait for them.
func (p *Partition) committed(events []Event) {
	p.tail.add(events)
	p.ledger.own.Signal()
	p.changed()
}

// elsewhere wakes those who wait for events: another node has, or may have, appended some.
func (p *Partition) elsewhere() {
	p.foreign.Add(1)
	p.changed()
}

func (p *Partition) changed() {
	p.wake.Signal()
	p.ledger.wake.Signal()
}

// told handles a notification: a list of "partition:position" with commas. One that cannot be
// read counts as news of every partition.
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
		// The readers already know what this node has committed itself. Without this check
		// each of them would query the database after each commit.
		if position > p.tail.last() {
			p.elsewhere()
		}
	}
}

func (l *Ledger) changedEverywhere() {
	for _, p := range l.partitions {
		p.elsewhere()
	}
}

// news is the text of a notification about the partitions that this node has appended to since
// the last one.
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

// listen receives the notifications of other nodes on a connection of its own, and makes a new
// one when that fails.
func (l *Ledger) listen(ctx context.Context) {
	for pause := 50 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 5*time.Second) {
		conn, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig.Copy())
		if err == nil {
			pause = 50 * time.Millisecond
			err = l.hear(ctx, conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = conn.Close(closing)
			cancel()
		}
		if ctx.Err() == nil {
			l.log.Warn("notification connection lost; polling goes on", "error", err)
		}
		wait.For(ctx, nil, pause)
	}
}

func (l *Ledger) hear(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	l.changedEverywhere() // after a reconnect notifications may have been missed
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		l.told(told.Payload)
	}
}

// notify tells the other nodes of this node's commits. It does so outside of appends, since
// PostgreSQL serializes commits with a NOTIFY. A notification is a hint, so its commit is not
// synchronous; if it fails, the next one repeats it.
func (l *Ledger) notify(ctx context.Context) {
	told := make([]int64, len(l.partitions))
	for {
		own := l.own.Wait() // before news, so that later commits wake this goroutine
		if news := l.news(told); news != "" {
			err := l.Reading(ctx, func() error {
				_, err := l.pool.Exec(ctx, `select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`, channel, news)
				return err
			})
			if err != nil {
				clear(told)
			}
		}
		if !wait.For(ctx, own, 0) || !wait.For(ctx, nil, coalesce) {
			return
		}
	}
}
