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
	keptOctets = 64 << 20        // largest size in bytes of the payloads that a reader caches
	readWithin = 2 * time.Minute // time limit for reading an object
)

// Error means that an object of the archive cannot be read now: the store is not configured or
// cannot be reached, or it lacks the object. It does not mean that events are lost or altered.
type Error struct {
	Object string
	Cause  error
}

// Error returns a text with the object and the cause.
func (e *Error) Error() string {
	return fmt.Sprintf("object %s of the archive cannot be read now: %v", e.Object, e.Cause)
}

// Unwrap makes the error a ledger.ErrUnavailable and exposes its cause.
func (e *Error) Unwrap() []error { return []error{ledger.ErrUnavailable, e.Cause} }

var errNoArchive = errors.New("no archive is configured: set ARCHIVE_STORE to the folder or bucket of the archive")

// Reader reads payloads that were moved out of the database, for the ledger and for audits. It
// caches the objects that were read last.
type Reader struct {
	files checkpoint.Files // nil if no store is configured

	reads, failures atomic.Int64 // number of objects that the reader has tried to read, and of those that it could not read

	mu   sync.Mutex // guards the following fields
	held map[string]*archived
	used []string // names of the cached objects, oldest first
	size int      // bytes in the cache
}

// archived contains the payloads of an object by position. They may be read once ready is closed.
type archived struct {
	ready    chan struct{}
	payloads map[int64][]byte
	size     int
	err      error
}

// NewReader returns a reader of the objects in files. If files is nil, every read fails with an
// error that says how to configure the archive.
func NewReader(files checkpoint.Files) *Reader {
	return &Reader{files: files, held: map[string]*archived{}}
}

// Of returns the reader with which a ledger was opened. If the ledger has none, it returns a
// reader whose reads fail.
func Of(l *ledger.Ledger) *Reader {
	if r, ok := l.Archive().(*Reader); ok {
		return r
	}
	return NewReader(nil)
}

// Files returns the store of the objects, or nil.
func (r *Reader) Files() checkpoint.Files { return r.files }

// Reads returns the number of objects that this node has tried to read since it started, and the
// number of those that it could not read.
func (r *Reader) Reads() (reads, failures int64) {
	return r.reads.Load(), r.failures.Load()
}

// Span is a row of the table archives: an object and the positions of its events.
type Span struct {
	First, Last int64
	Object      string
	Complete    bool // the payloads were removed from the database
}

// Holds reports whether the object contains the event at a position.
func (s Span) Holds(position int64) bool { return s.First <= position && position <= s.Last }

// Spans lists the objects of a partition in order.
func Spans(ctx context.Context, db *pgxpool.Pool, p int16) ([]Span, error) {
	return spans(ctx, db, p, `order by first`)
}

// spans reads rows of the table archives. $1 in the condition is the partition.
func spans(ctx context.Context, db *pgxpool.Pool, p int16, where string, args ...any) ([]Span, error) {
	rows, err := db.Query(ctx, `select first, last, object, complete from archives where p = $1 `+where, append([]any{p}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Span])
}

// Holder returns the object that contains an event, or nil.
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
		return nil, fmt.Errorf("%w: find the object with position %d: %w", ledger.ErrUnavailable, e.Position, err)
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

// returned reads the payload of an event that is in no object any more: BringBack restored the
// payload to the database after the caller had read the row.
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
		return nil, fmt.Errorf("%w: position %d has no payload, and no object of the archive contains it", ledger.ErrTampered, e.Position)
	}
	return stored.Payload(payloads[0]), nil
}

// payloadIn returns the payload of an event from an object and checks its hash.
func payloadIn(payloads map[int64][]byte, object string, e *ledger.Event) ([]byte, error) {
	payload := payloads[e.Position]
	if e.PayloadHash != sha256.Sum256(payload) {
		return nil, fmt.Errorf("%w: object %s of the archive does not contain the payload of position %d", ledger.ErrTampered, object, e.Position)
	}
	return payload, nil
}

// Load returns the payloads of an object by position. Concurrent calls for one object share one
// read.
func (r *Reader) Load(ctx context.Context, object string) (map[int64][]byte, error) {
	r.mu.Lock()
	o, known := r.held[object]
	if !known {
		o = &archived{ready: make(chan struct{})}
		r.held[object] = o
	}
	r.mu.Unlock()
	if !known {
		go r.fetch(context.WithoutCancel(ctx), object, o) // not cancelled with ctx, because other callers may wait for the result; it has its own time limit
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
		err = fmt.Errorf("the object is not in %s: restore it there from a copy", r.files)
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

// Counts describes the size of the archive.
type Counts struct {
	Objects    int64 `json:"objects"`
	Events     int64 `json:"events"`     // number of events in these objects
	Incomplete int64 `json:"incomplete"` // objects whose payloads may still be in the database; the next Move removes those
}

// Count reads the size of the archive from the database.
func Count(ctx context.Context, l *ledger.Ledger) (a Counts, err error) {
	err = l.Row(ctx, `select count(*), coalesce(sum(last - first + 1), 0)::bigint, count(*) filter (where not complete) from archives`, nil, &a.Objects, &a.Events, &a.Incomplete)
	return a, err
}

// ReadNewest reads the newest object of each partition, to check that the store answers and has
// the object.
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
