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

// channel is the NOTIFY channel on which nodes announce the last position of each partition.
const channel = "countersign_events"

// coalesce is the time that the notifier waits to announce several commits together, because
// commits with a NOTIFY wait for each other. Other nodes learn of a commit at most this much
// later.
const coalesce = 20 * time.Millisecond

// Changed returns a channel that is closed when any node has probably added events to the
// partition. It is only a hint: a reader must also query at least once a second.
func (p *Partition) Changed() <-chan struct{} { return p.wake.Wait() }

// committed stores the events that this node has appended and wakes the waiting readers.
func (p *Partition) committed(events []Event) {
	p.tail.add(events)
	p.ledger.own.Signal()
	p.changed()
}

// elsewhere wakes the waiting readers because another node may have appended events.
func (p *Partition) elsewhere() {
	p.foreign.Add(1)
	p.changed()
}

func (p *Partition) changed() {
	p.wake.Signal()
	p.ledger.wake.Signal()
}

// told handles a notification: a list of "partition:position", separated by commas. If the list
// cannot be parsed, told treats every partition as changed.
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
		// The readers already have the events that this node has committed. Without this check
		// each reader would query the database after each commit.
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

// news returns the text of a notification: the last position of each partition to which this node
// has appended since the last notification. It stores these positions in the list told.
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

// listen receives the notifications of other nodes on its own connection. If the connection fails,
// listen opens a new one.
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
			l.log.Warn("notification connection lost; polling continues", "error", err)
		}
		wait.For(ctx, nil, pause)
	}
}

func (l *Ledger) hear(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	l.changedEverywhere() // notifications before a reconnect may have been lost
	for {
		told, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		l.told(told.Payload)
	}
}

// notify announces this node's commits to the other nodes. It does so outside of appends, because
// PostgreSQL serializes commits with a NOTIFY. A notification is only a hint, so its commit is not
// synchronous. After a failure, the next notification contains all positions again.
func (l *Ledger) notify(ctx context.Context) {
	told := make([]int64, len(l.partitions))
	for {
		own := l.own.Wait() // taken before news, so that later commits wake this goroutine
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
