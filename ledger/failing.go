package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// failure is the error of a sequencer's last batch, which was not committed.
type failure struct {
	err error
	at  time.Time
}

// failed stores how a batch ended. It ignores errors that the request itself has caused (classes
// 22 and 23 of SQLSTATE), because they do not concern the node.
func (s *sequencer) failed(err error) {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code[:2] == "22" || refused.Code[:2] == "23") {
		return
	}
	if err == nil {
		s.failure.Store(nil)
		return
	}
	s.failure.Store(&failure{err, time.Now()})
}

// Failing returns the reason why this node cannot append now, or nil. After a failure it writes a
// trial row: a load balancer sends no requests to a failing node, so no append would show that the
// node has recovered.
func (l *Ledger) Failing(ctx context.Context) error {
	if err := l.Stopped(); err != nil {
		return err
	}
	return l.each(func(p *Partition) error { return p.failing(ctx) })
}

func (p *Partition) failing(ctx context.Context) error {
	last := p.seq.failure.Load()
	if last == nil {
		return nil
	}
	if err := p.tryToWrite(ctx); err != nil {
		return err
	}
	var refused *pgconn.PgError
	if errors.As(last.err, &refused) && !passing(refused) && time.Since(last.at) < distrust {
		return last.err // the trial cannot reproduce this error
	}
	p.seq.failure.CompareAndSwap(last, nil)
	return nil
}

// passing reports whether tryToWrite would meet the same error if it persisted. These are errors
// of connections, transactions, resources (a full disk), locks, operator intervention and the
// system.
func passing(refused *pgconn.PgError) bool {
	switch refused.Code[:2] {
	case "08", "40", "53", "55", "57", "58":
		return true
	}
	return false
}

// tryToWrite makes the kinds of write that an append makes and rolls them back: it locks the head
// row, and inserts incompressible bytes into a derived table, so that new pages are needed.
func (p *Partition) tryToWrite(ctx context.Context) error {
	filler := make([]byte, trialOctets)
	_, _ = rand.Read(filler) // Read never fails
	tx, err := p.ledger.pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("try to append: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	batch := &pgx.Batch{}
	batch.Queue(`select from ledger_head where p = $1 for update`, p.p)
	batch.Queue(`insert into projection_dead (name, p, pos, tenant, stream, attempts, error, parked_us)
		values ('trial', $1, 1, '', '', 0, encode($2, 'base64'), 1)`, p.p, filler)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("try to append: %w", err)
	}
	return nil
}
