package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign/countersign/ledger/events"
)

// sequencer commits this node's appends to one partition in batches. No other code appends events.
//
// A caller that finds the sequencer idle commits in its own goroutine, because handing the request
// to another goroutine and back costs as much as a small commit. Requests that arrive meanwhile
// wait in the queue, and the sequencer's goroutine commits them. The mutex turn lets one goroutine
// at a time use the connection, the cached heads and the recent keys.
//
// Each node has its own sequencer. If several nodes append at the same time, the head row of the
// partition decides which of them is first: by compare-and-swap (fast path) or by a lock on the
// row (lock path).
type sequencer struct {
	partition *Partition
	config    *pgx.ConnConfig
	origin    string
	clock     func() time.Time
	log       *slog.Logger

	queue   chan *request
	mu      sync.RWMutex // guards closed: after close no request enters the queue
	closed  bool
	end     chan struct{}           // closed by close
	done    chan struct{}           // closed when the goroutine has ended
	waiting atomic.Int32            // requests in the queue that no batch has taken
	broken  *atomic.Pointer[error]  // reason why the whole node has stopped appends
	failure atomic.Pointer[failure] // error of the last batch, or nil if it was committed

	turn     sync.Mutex // guards the following fields; locked while a batch is committed
	conn     *pgx.Conn
	cluster  bool      // the connection is to a server of a Citus cluster
	dialled  time.Time // time when conn was opened
	heads    *heads    // nil if unknown
	recent   *recent
	entered  map[events.Entry]bool // directory entries that this sequencer has written
	skipFast int                   // number of batches that must still use the lock path
	seen     int64                 // highest position seen in this epoch
	epoch    int64
	last     int // number of requests in the last batch

	stats *Stats // shared by all sequencers of the node
	sql   statements
}

type request struct {
	*Append
	at     time.Time    // time of arrival
	waits  bool         // the request was put into the queue
	taken  time.Time    // time when a batch took the request; set by the sequencer, read after the answer
	state  atomic.Int32 // queued, then taken or cancelled
	answer chan outcome // buffered, so that the sequencer never waits for a caller
}

const (
	queued int32 = iota
	taken
	cancelled
)

func newSequencer(p *Partition, config *pgx.ConnConfig) *sequencer {
	s := &sequencer{
		partition: p, config: config, origin: p.origin, clock: p.ledger.clock, log: p.ledger.log,
		stats: &p.ledger.stats, broken: &p.ledger.broken, sql: statementsOf(p.p),
		queue: make(chan *request, queueLength), end: make(chan struct{}), done: make(chan struct{}),
		recent: newRecent(), entered: map[events.Entry]bool{},
	}
	go s.run()
	return s
}

// submit commits an append, or queues it if the sequencer is busy, and waits for its outcome.
func (s *sequencer) submit(ctx context.Context, a *Append) (outcome, error) {
	r := &request{Append: a, at: time.Now(), answer: make(chan outcome, 1)}
	trace := beginTrace(ctx, a)
	defer trace.end()
	idle, err := s.enqueue(r)
	if err != nil {
		return outcome{}, err
	}
	if idle {
		s.commit(r)
	}
	select {
	case out := <-r.answer:
		trace.answered(r, out)
		return out, out.err
	case <-ctx.Done():
		if r.state.CompareAndSwap(queued, cancelled) {
			return outcome{}, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
		}
		return outcome{}, ErrUnknown
	}
}

// enqueue puts a request into the queue. If the sequencer is idle, enqueue takes the turn instead
// and returns true; then the caller must commit the request.
func (s *sequencer) enqueue(r *request) (idle bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.stopped(); err != nil {
		return false, err
	}
	if s.closed {
		return false, fmt.Errorf("%w: shutting down", ErrStopped)
	}
	if s.waiting.Load() == 0 && s.turn.TryLock() {
		return true, nil
	}
	r.waits = true
	s.waiting.Add(1)
	select {
	case s.queue <- r:
		return false, nil
	default:
		s.waiting.Add(-1)
		return false, ErrBusy
	}
}

// halt stops appends on this node until the node is restarted, after a failure that a retry cannot
// repair.
func (s *sequencer) halt(why error) error {
	err := fmt.Errorf("%w: %w", ErrStopped, why)
	if s.broken.CompareAndSwap(nil, &err) {
		s.log.Error("ledger appends stopped on this node; reads continue", "reason", why)
	}
	return err
}

func (s *sequencer) stopped() error { return s.partition.ledger.Stopped() }

func (s *sequencer) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.end)
	}
	s.mu.Unlock()
	<-s.done
}

func (s *sequencer) run() {
	defer close(s.done)
	for ended := false; !ended; {
		select {
		case first := <-s.queue:
			s.turn.Lock()
			s.commit(first)
		case <-s.end:
			ended = true
		}
	}
	// No more requests enter the queue. Commit the waiting ones as far as time allows.
	for deadline := time.Now().Add(budget); len(s.queue) > 0; {
		if r := <-s.queue; time.Now().Before(deadline) {
			s.turn.Lock()
			s.commit(r)
		} else {
			r.answer <- outcome{err: ErrStopped}
		}
	}
	s.turn.Lock() // a caller may still be committing
	defer s.turn.Unlock()
	s.disconnect()
}

// take collects a batch: the given request, the waiting ones and, if the last batch was large,
// those that arrive within a moment. A single caller never waits for others.
func (s *sequencer) take(first *request) []*request {
	var batch []*request
	events, octets := 0, 0
	add := func(r *request) {
		if r.waits {
			s.waiting.Add(-1)
		}
		if !r.state.CompareAndSwap(queued, taken) {
			return
		}
		batch = append(batch, r)
		r.taken = time.Now()
		s.stats.Waits.count(r.taken.Sub(r.at).Microseconds())
		events += len(r.Events)
		for _, d := range r.Events {
			octets += len(d.Payload)
		}
	}
	add(first)
	var wait <-chan time.Time
	if s.last > lingerAbove {
		timer := time.NewTimer(linger)
		defer timer.Stop()
		wait = timer.C
	}
	for events < batchEvents && octets < batchOctets {
		select {
		case r := <-s.queue:
			add(r)
			continue
		default:
		}
		if wait == nil || len(batch) >= s.last {
			break
		}
		select {
		case r := <-s.queue:
			add(r)
			continue
		case <-wait:
			wait = nil
		}
	}
	s.last = len(batch)
	return batch
}

// commit commits a request together with the waiting ones, answers all of them and ends the turn.
// It gives no answer before the commit, not even a refusal or a replay, because these may depend
// on rows of the batch. After a panic the state of the ledger is unknown: the node stops appends,
// and the requests time out.
func (s *sequencer) commit(first *request) {
	defer s.turn.Unlock()
	defer func() {
		if p := recover(); p != nil {
			_ = s.halt(fmt.Errorf("panic: %v", p))
		}
	}()
	batch := s.take(first)
	if len(batch) == 0 {
		return
	}
	s.stats.Batches.Add(1)
	began := time.Now()
	defer s.stats.Commits.since(began)
	deadline := began.Add(budget)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	appends := make([]*Append, len(batch))
	for i, r := range batch {
		appends[i] = r.Append
	}
	var outcomes []outcome
	err := s.stopped() // appends may have been stopped while the requests waited
	if err == nil {
		s.lookAgain()
		if outcomes, err = s.fastPath(ctx, appends); err != nil {
			outcomes, err = s.lockPath(ctx, appends, errors.Is(err, ErrUnknown))
		}
	}
	s.failed(err)
	for i, r := range batch {
		if err != nil {
			r.answer <- outcome{err: err}
		} else {
			r.answer <- outcomes[i]
		}
	}
}

// errSlow means that the batch needs the lock path. Nothing was written.
var errSlow = errors.New("the fast path does not apply")

// fastPath commits a batch with one statement that compares and swaps the head row. It returns
// only the errors errSlow and ErrUnknown.
func (s *sequencer) fastPath(ctx context.Context, appends []*Append) ([]outcome, error) {
	if s.skipFast > 0 {
		s.skipFast--
		return nil, errSlow
	}
	if s.heads == nil || s.conn == nil {
		return nil, errSlow
	}
	p, err := makePlan(s.partition.p, s.origin, microseconds(s.clock), s.heads, appends)
	if err != nil || p.erases() || s.enters(&p) {
		return nil, errSlow
	}
	if len(p.events) > 0 {
		sql, args := s.sql.swap(s.heads, &p, s.cluster)
		tag, err := s.conn.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == int64(len(p.events)) {
			err = s.readBack(ctx, p.head.position)
		}
		switch {
		case err != nil && !certainlyNot(err):
			s.stats.Unknown.Add(1)
			s.disconnect()
			return nil, ErrUnknown
		case err != nil, tag.RowsAffected() != int64(len(p.events)):
			return nil, errSlow
		}
		s.stats.FastPath.Add(1)
	}
	s.keep(&p)
	return p.outcomes, nil
}

// enters reports whether the plan has a directory entry that this node has not written yet. Such
// an entry needs a second statement, which only the lock path can run.
func (s *sequencer) enters(p *plan) bool {
	return slices.ContainsFunc(p.entries, func(e entry) bool { return !s.entered[e.Entry] })
}

// keep updates the caches after a committed plan and wakes the readers.
func (s *sequencer) keep(p *plan) {
	s.heads.advance(&p.head, p.counted)
	for k, hit := range p.head.keys.(keyMap) {
		s.recent.add(k, hit)
	}
	if len(s.entered) > cachedEntries {
		clear(s.entered)
	}
	for _, e := range p.entries {
		s.entered[e.Entry] = true
	}
	s.seen = s.heads.position
	p.settle()
	if len(p.events) > 0 {
		s.stats.Events.Add(int64(len(p.events)))
		s.stats.BatchEvents.count(int64(len(p.events)))
		s.partition.committed(p.events)
	}
}

// lockPath commits a batch under the lock of the head row. It also works after a lost connection:
// taking the lock waits until the lost session has ended, and the look-up of the keys shows which
// appends that session has committed. unknown means that an earlier attempt may have been
// committed.
func (s *sequencer) lockPath(ctx context.Context, appends []*Append, unknown bool) ([]outcome, error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		outcomes, err := s.locked(ctx, appends)
		switch {
		case err == nil:
			return outcomes, nil
		case errors.Is(err, ErrStopped):
			return nil, err
		case errors.Is(err, errGone):
			continue // retry with a new connection, which never returns errGone
		case errors.Is(err, ErrUnknown):
			unknown = true
			s.stats.Unknown.Add(1)
		case !unknown && !errors.Is(err, errLocked):
			s.log.Warn("append refused", "error", err)
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if unknown {
				return nil, ErrUnknown
			}
			return nil, fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
}

// errLocked means that a lock or a statement timed out. Nothing was written.
var errLocked = errors.New("the head row is locked")

// errGone means that a connection had ended before this attempt wrote anything, for example
// because the database was restarted. At most the head row was locked, and the end of the session
// released that lock.
var errGone = errors.New("the connection had ended")

// locked makes one attempt of the lock path.
func (s *sequencer) locked(ctx context.Context, appends []*Append) (_ []outcome, err error) {
	made := s.conn == nil
	if made {
		if err := s.connect(ctx); err != nil {
			return nil, fmt.Errorf("connect: %w", err) // nothing was sent, so nothing was committed
		}
	}
	sent := false // once the commit is sent, an error does not show whether it was committed
	defer func() {
		if err != nil && !errors.Is(err, ErrStopped) {
			err = s.gaveUp(err, made, sent)
		}
	}()
	h, since, err := s.readHeads(ctx, appends)
	if err != nil {
		return nil, err
	}
	s.stats.LockPath.Add(1)
	if s.heads != nil && s.heads.position != h.position {
		s.stats.LostSwaps.Add(1)
		s.skipFast = backOff
		s.catchUp(since, h)
	}
	p, err := makePlan(s.partition.p, s.origin, microseconds(s.clock), h, appends)
	if err != nil {
		return nil, err
	}
	sent = true
	if err = s.writeLocked(ctx, &p); err == nil {
		err = s.readBack(ctx, p.head.position)
	}
	if err != nil {
		return nil, err
	}
	s.learn(h, p.counted)
	s.keep(&p)
	return p.outcomes, nil
}

// catchUp updates the cached heads with the events that other nodes have appended up to the locked
// head. It drops the cache only if there are too many of these events or if they do not lead to
// that head: if it always dropped the cache, two busy nodes would stay on the lock path.
func (s *sequencer) catchUp(since []Event, locked *heads) {
	after := newHeads(s.heads.position, s.heads.hash, s.heads.epoch, nil)
	if len(since) <= mostMissed {
		for i := range since {
			after.follow(&since[i])
		}
	}
	if after.position != locked.position || after.hash != locked.hash {
		s.heads = nil
		return
	}
	s.heads.advance(after, nil)
}

// learn adds heads and keys that were read under the lock to the caches.
func (s *sequencer) learn(h *heads, counted map[streamName]bool) {
	if s.heads == nil {
		s.heads = newHeads(0, Hash{}, h.epoch, s.recent)
	}
	s.heads.advance(h, counted)
	for k, hit := range h.keys.(keyMap) {
		s.recent.add(k, hit) // a request that is repeated once is often repeated again
	}
}

// gaveUp closes the connection of a failed attempt, which ends its transaction, and classifies the
// error. made means that this attempt opened the connection.
func (s *sequencer) gaveUp(err error, made, sent bool) error {
	defer s.disconnect()
	switch {
	case sent && !certainlyNot(err):
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case !sent && !made && s.conn.IsClosed():
		return fmt.Errorf("%w: %w", errGone, err)
	case pgCode(err) == "55P03" || pgCode(err) == "57014":
		return fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}

// certainlyNot reports whether a failed statement has certainly changed nothing: the server itself
// has answered, and its session continues. Internal errors (class XX) do not count as such an
// answer, because the coordinator of a Citus cluster uses them when it has lost a worker's answer
// to a commit.
func certainlyNot(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return pgconn.SafeToRetry(err)
	}
	return refused.SeverityUnlocalized == "ERROR" && refused.Code[:2] != "08" && refused.Code[:2] != "XX" && refused.Code != "40003"
}

func pgCode(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func (s *sequencer) connect(ctx context.Context) error {
	conn, cluster, err := s.dial(ctx)
	if err != nil {
		return err
	}
	err = asApplication(ctx, conn)
	if err == nil && !cluster {
		// Batches differ only in their length, so generic plans are good. Otherwise the planner
		// would plan batches with preconditions again each time, from wrong estimates. In a cluster
		// plans depend on the values.
		_, err = conn.Exec(ctx, `set plan_cache_mode = force_generic_plan`)
	}
	if err != nil {
		_ = conn.Close(ctx)
		return err
	}
	s.conn, s.cluster, s.dialled = conn, cluster, s.clock()
	return nil
}

func (s *sequencer) disconnect() {
	s.heads = nil
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.conn.Close(ctx)
		s.conn = nil
	}
}
