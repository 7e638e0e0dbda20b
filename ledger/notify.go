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

// channel carries "this partition has events up to this position" between the nodes of one
// database.
const channel = "countersign_events"

// coalesce is how long the notifier waits for more commits before it tells the
// other nodes: commits that carry a NOTIFY queue up behind each other. The readers
// there learn of a commit so much later, at the most.
const coalesce = 20 * time.Millisecond

// Changed returns a channel that is closed when events are likely to have been
// added, by this node or another. It is a hint: whoever needs certainty reads
// at least once a second, too.
func (p *Partition) Changed() <-chan struct{} { return p.wake.Wait() }

// committed tells whoever waits of what this node has appended.
func (p *Partition) committed(events []Event) {
	p.tail.add(events)
	p.ledger.own.Signal()
	p.changed()
}

// elsewhere tells of what others have, or may have, appended.
func (p *Partition) elsewhere() {
	p.foreign.Add(1)
	p.changed()
}

func (p *Partition) changed() {
	p.wake.Signal()
	p.ledger.wake.Signal()
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
			p.elsewhere()
		}
	}
}

func (l *Ledger) changedEverywhere() {
	for _, p := range l.partitions {
		p.elsewhere()
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

// listen hears of the other nodes' commits, on a connection of its own, and on a new
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
	l.changedEverywhere() // also after a reconnect: something may have been missed
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		l.told(told.Payload)
	}
}

// notify tells the other nodes of this node's commits, never inside an append:
// commits with NOTIFY are serialised in the whole cluster. It is a hint, so nobody
// waits until it lies on a disk, and what was not told is told with the next commit.
func (l *Ledger) notify(ctx context.Context) {
	told := make([]int64, len(l.partitions))
	for {
		own := l.own.Wait() // before the news: what comes later wakes us
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
