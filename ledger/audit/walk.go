package audit

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/pace"
)

// tenantEnd is the state of a tenant's chain after the ranges joined so far.
type tenantEnd struct {
	chainEnd
	policy string // hash of the active policy
}

// walk checks the ranges in parallel and joins them in order.
func (r *run) walk(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Start the workers, which check ranges. They end when the next goroutine closes jobs.
	n := r.workers()
	turns := make(chan chan spanResult, n*spansAhead)
	jobs := make(chan func(*pace.Pace))
	for range n {
		go func() {
			pace := r.pace()
			for job := range jobs {
				job(pace)
			}
		}()
	}
	// This goroutine distributes the ranges. It puts the channel of each result into turns, in
	// order, and ends after the last range or with ctx.
	go func() {
		defer close(turns)
		defer close(jobs)
		for from := int64(0); from < r.head.pos; from += r.spanEvents {
			turn := make(chan spanResult, 1)
			from, to := from, min(from+r.spanEvents, r.head.pos)
			select {
			case turns <- turn:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- func(pace *pace.Pace) { turn <- r.span(ctx, pace, from, to) }:
			case <-ctx.Done():
				turn <- spanResult{err: ctx.Err()}
				return
			}
		}
	}()
	// Join the results in order.
	for turn := range turns {
		found := <-turn
		if found.err != nil {
			return fmt.Errorf("read events: %w", found.err)
		}
		if err := r.join(ctx, &found); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.report.Events, r.head.pos)
		}
	}
	// The last event must match the head row and must be the last of its append.
	if r.last.more > 0 {
		r.fault(eventFault(r.last.position, "more", "the last append lacks %d events", r.last.more))
	}
	if r.last.position != r.head.pos {
		r.headFault("pos", "the last event is at position %d", r.last.position)
	}
	want := ledger.Genesis(r.Origin, "")
	if r.head.pos > 0 {
		want = r.last.hash
	}
	if !r.head.missing && !bytes.Equal(r.head.hash, want[:]) {
		r.headFault("last_hash", "must be %s, the hash of the event at position %d", want, r.head.pos)
	}
	return nil
}

// join appends a range to the previous ones and checks the link between them.
func (r *run) join(ctx context.Context, s *spanResult) error {
	for _, f := range s.faults {
		r.fault(f)
	}
	r.report.Events += int64(len(s.hashes))
	r.report.Records += s.records
	r.unopened += s.unopened
	r.unread += s.unread
	r.void.add(s.void)
	for tenant, span := range s.tenants {
		r.joinTenant(tenant, span)
	}
	if s.first.position > 0 {
		if f := groupFault(r.last, s.first); f != nil {
			r.fault(*f)
		}
		r.last = s.last
	}
	r.met = append(r.met, s.keys...)
	r.erased = append(r.erased, s.erased...)
	for _, epoch := range s.declared {
		if epoch <= max(r.declared, 1) {
			r.fault(eventFault(s.to, "payload", "a declared rollback names epoch %d after epoch %d", epoch, max(r.declared, 1)))
		}
		r.declared = epoch
	}
	return r.growTree(ctx, s)
}

func (r *run) joinTenant(tenant string, s *tenantSpan) {
	end := r.tenants[tenant]
	if end == nil {
		if home := ledger.Home(tenant, r.n); home != r.p {
			r.fault(eventFault(s.first.position, "p", "must be %d of %d partitions, because of tenant %s", home, r.n, tenant))
		}
		end = &tenantEnd{chainEnd: chainEnd{hash: ledger.Genesis(r.Origin, tenant)}}
		r.tenants[tenant] = end
	}
	for _, f := range chainFaults(s.first, end.chainEnd, tenant) {
		r.fault(f)
	}
	if s.needs.policy != "" && s.needs.policy != end.policy {
		r.fault(eventFault(s.needs.position, "payload", "the decision names policy %s, but the active one was %q", s.needs.policy, end.policy))
	}
	end.chainEnd = s.last
	if s.policy != "" {
		end.policy = s.policy
	}
}

// strayRows reports rows outside the positions of the partition. The audit of the first partition
// also reports rows of partitions that do not exist.
func (r *run) strayRows(ctx context.Context) error {
	if r.p == 0 {
		if err := r.strayPartitions(ctx); err != nil {
			return err
		}
	}
	// One statement sees head and events at the same moment, so an event after that head was never
	// appended.
	rows, err := r.pool.Query(ctx, `select e.pos from ledger_head h join events e on e.p = h.p and e.pos > h.pos where h.p = $1
		union all select pos from events where p = $1 and pos < 1 limit 20`, r.p)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var position int64
	if _, err = pgx.ForEachRow(rows, []any{&position}, func() error {
		r.fault(eventFault(position, "pos", "must be from 1 to the position of the head"))
		return nil
	}); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}

func (r *run) strayPartitions(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select p, pos from events where p >= $1 union all select p, pos from events where p < 0 limit 20`, r.n)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var p int16
	var position int64
	if _, err = pgx.ForEachRow(rows, []any{&p, &position}, func() error {
		r.fault(Fault{"events", fmt.Sprintf("p %d, pos %d", p, position), position, "p", fmt.Sprintf("must be 0 to %d: there are no other partitions", r.n-1)})
		return nil
	}); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for _, table := range []string{"ledger_head", "tree_head", "tiles", "checkpoints", "subject_keys", "directory"} {
		if err := r.pool.QueryRow(ctx, `select count(*) from `+table+` where p >= $1 or p < 0`, r.n).Scan(&position); err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if position > 0 {
			r.fault(Fault{table, fmt.Sprintf("%d rows", position), 0, "p", fmt.Sprintf("must be 0 to %d: there are no other partitions", r.n-1)})
		}
	}
	return nil
}
