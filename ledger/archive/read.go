package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/stored"
)

const (
	keptOctets = 64 << 20        // bytes of payloads that a reader keeps in memory
	readWithin = 2 * time.Minute // bounds the read of an object
)

// Error means that an object of the archive cannot be read now: the store cannot be reached or
// is not named, or the object is missing from it. It does not mean that events are lost or
// false.
type Error struct {
	Object string
	Cause  error
}

// Error names the object and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("object %s of the archive cannot be read now: %v", e.Object, e.Cause)
}

// Unwrap makes it a ledger.ErrUnavailable, with its cause.
func (e *Error) Unwrap() []error { return []error{ledger.ErrUnavailable, e.Cause} }

var errNoArchive = errors.New("its place is not named: set ARCHIVE_STORE to the folder or bucket that archive wrote to")

// Reader reads payloads that are no longer in the database, for the ledger and for an
// audit. It keeps the last objects that it has read.
type Reader struct {
	files checkpoint.Files // nil: not named

	reads, failures atomic.Int64 // of objects

	mu   sync.Mutex // guards the rest
	held map[string]*archived
	used []string // objects that are held, the first that was read in front
	size int      // bytes that are held
}

// archived are the payloads of an object, by position, once ready is closed.
type archived struct {
	ready    chan struct{}
	payloads map[int64][]byte
	size     int
	err      error
}

// NewReader returns a reader of the objects in files. If files is nil it reads none,
// and its errors say how to name them.
func NewReader(files checkpoint.Files) *Reader {
	return &Reader{files: files, held: map[string]*archived{}}
}

// Of returns the reader that a ledger was opened with, or one that reads nothing if it was
// opened without.
func Of(l *ledger.Ledger) *Reader {
	if r, ok := l.Archive().(*Reader); ok {
		return r
	}
	return NewReader(nil)
}

// Files returns the store of the objects, nil if none is named.
func (r *Reader) Files() checkpoint.Files { return r.files }

// Reads returns the number of objects that this node has read or tried to read since it
// started, and the number of those that it could not read.
func (r *Reader) Reads() (reads, failures int64) {
	return r.reads.Load(), r.failures.Load()
}

// Span is a row of the table archives: an object and the positions that it holds.
type Span struct {
	First, Last int64
	Object      string
	Complete    bool // the payloads are out of the database
}

// Holds says whether the object has the event of a position.
func (s Span) Holds(position int64) bool { return s.First <= position && position <= s.Last }

// Spans lists the objects of a partition in order.
func Spans(ctx context.Context, db *pgxpool.Pool, p int16) ([]Span, error) {
	return spans(ctx, db, p, `order by first`)
}

// spans reads rows of the table. In the condition $1 is the partition.
func spans(ctx context.Context, db *pgxpool.Pool, p int16, where string, args ...any) ([]Span, error) {
	rows, err := db.Query(ctx, `select first, last, object, complete from archives where p = $1 `+where, append([]any{p}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Span])
}

// Holder returns the object that holds an event's payload, nil if none does.
func Holder(ctx context.Context, db *pgxpool.Pool, e *ledger.Event) (*Span, error) {
	found, err := spans(ctx, db, e.Partition, `and first <= $2 order by first desc limit 1`, e.Position)
	if err != nil || len(found) == 0 || !found[0].Holds(e.Position) {
		return nil, err
	}
	return &found[0], nil
}

// Payload implements ledger.Archive.
func (r *Reader) Payload(ctx context.Context, db *pgxpool.Pool, e *ledger.Event) ([]byte, error) {
	of, err := Holder(ctx, db, e)
	if err != nil {
		return nil, fmt.Errorf("%w: look for the archive of position %d: %w", ledger.ErrUnavailable, e.Position, err)
	}
	if of == nil {
		return returned(ctx, db, e)
	}
	payloads, err := r.Load(ctx, of.Object)
	if err != nil {
		return nil, err
	}
	return payloadIn(payloads, of.Object, e)
}

// returned reads the payload of an event that no archive holds: it came back into the
// database after its row was read.
func returned(ctx context.Context, db *pgxpool.Pool, e *ledger.Event) ([]byte, error) {
	rows, err := db.Query(ctx, `select payload from events where p = $1 and pos = $2 and payload is not null`, e.Partition, e.Position)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	case len(payloads) == 0 || e.PayloadHash != sha256.Sum256(stored.Payload(payloads[0])):
		return nil, fmt.Errorf("%w: position %d has no payload, and no archive holds it", ledger.ErrTampered, e.Position)
	}
	return stored.Payload(payloads[0]), nil
}

// payloadIn finds an event's payload among those of an object and checks its hash.
func payloadIn(payloads map[int64][]byte, object string, e *ledger.Event) ([]byte, error) {
	payload := payloads[e.Position]
	if e.PayloadHash != sha256.Sum256(payload) {
		return nil, fmt.Errorf("%w: object %s of the archive does not hold the payload of position %d", ledger.ErrTampered, object, e.Position)
	}
	return payload, nil
}

// Load reads the payloads of an object, by position. Callers that ask for one object at the
// same time share one read.
func (r *Reader) Load(ctx context.Context, object string) (map[int64][]byte, error) {
	r.mu.Lock()
	o, known := r.held[object]
	if !known {
		o = &archived{ready: make(chan struct{})}
		r.held[object] = o
	}
	r.mu.Unlock()
	if !known {
		go r.fetch(context.WithoutCancel(ctx), object, o) // ends with its time-out, since other callers may wait for it
	}
	select {
	case <-o.ready:
		return o.payloads, o.err
	case <-ctx.Done():
		return nil, &Error{object, ctx.Err()}
	}
}

func (r *Reader) fetch(ctx context.Context, object string, o *archived) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	defer close(o.ready)
	r.reads.Add(1)
	if o.payloads, o.err = r.read(ctx, object); o.err != nil {
		r.failures.Add(1)
	}
	for _, payload := range o.payloads {
		o.size += len(payload)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.err != nil {
		delete(r.held, object) // the next caller tries again
		return
	}
	r.used, r.size = append(r.used, object), r.size+o.size
	for r.size > keptOctets && len(r.used) > 1 {
		r.size -= r.held[r.used[0]].size
		delete(r.held, r.used[0])
		r.used = slices.Delete(r.used, 0, 1)
	}
}

func (r *Reader) read(ctx context.Context, object string) (map[int64][]byte, error) {
	if r.files == nil {
		return nil, &Error{object, errNoArchive}
	}
	packed, err := r.files.Read(ctx, object, maxObject)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it is not in %s; bring it back there from a copy", r.files)
	}
	if err != nil {
		return nil, &Error{object, err}
	}
	o, err := unpackObject(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: object %s of the archive in %s is damaged: %w", ledger.ErrTampered, object, r.files, err)
	}
	payloads := make(map[int64][]byte, len(o.events))
	for _, e := range o.events {
		payloads[e.Position] = e.Payload
	}
	return payloads, nil
}

// Counts say how much is in the archive.
type Counts struct {
	Objects    int64 `json:"objects"`
	Events     int64 `json:"events"`     // in these objects, with every column
	Incomplete int64 `json:"incomplete"` // objects whose payloads are in the database too: the next Move removes them
}

// Count counts what is in the archive.
func Count(ctx context.Context, l *ledger.Ledger) (a Counts, err error) {
	err = l.Row(ctx, `select count(*), coalesce(sum(last - first + 1), 0)::bigint, count(*) filter (where not complete) from archives`, nil, &a.Objects, &a.Events, &a.Incomplete)
	return a, err
}

// ReadNewest reads the newest object of each partition, to check that the store answers and
// has it.
func ReadNewest(ctx context.Context, l *ledger.Ledger) error {
	for _, p := range l.Partitions() {
		newest, err := spans(ctx, l.Pool(), p.Number(), `order by first desc limit 1`)
		if err != nil {
			return err
		}
		if len(newest) > 0 {
			if _, err = Of(l).read(ctx, newest[0].Object); err != nil {
				return err
			}
		}
	}
	return nil
}
