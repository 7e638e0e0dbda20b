package ledger

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

	"github.com/countersign/countersign/ledger/checkpoint"
)

const (
	archiveMemory = 64 << 20 // octets of payloads of the archive that are kept for the next who asks
	archiveWithin = 2 * time.Minute
)

// ArchiveError is an object of the archive that cannot be read now. Nothing is lost
// and nothing is false: the store is away, or is not named, or the object is gone
// from it.
type ArchiveError struct {
	Object string
	Cause  error
}

// Error names the object and what to do.
func (e *ArchiveError) Error() string {
	return fmt.Sprintf("object %s of the archive cannot be read now: %v", e.Object, e.Cause)
}

// Unwrap makes it an ErrUnavailable, with its cause.
func (e *ArchiveError) Unwrap() []error { return []error{ErrUnavailable, e.Cause} }

var errNoArchive = errors.New("its place is not named: set ARCHIVE_STORE to the folder or bucket that archive wrote to")

// ArchiveReader reads payloads that are no longer in the database, for the ledger and for an
// audit. It keeps the last objects that it has read.
type ArchiveReader struct {
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

// NewArchiveReader returns a reader of the objects in files. If files is nil it reads none,
// and its errors say how to name them.
func NewArchiveReader(files checkpoint.Files) *ArchiveReader {
	return &ArchiveReader{files: files, held: map[string]*archived{}}
}

// ArchiveOf returns the reader that a ledger was opened with, or nil.
func ArchiveOf(l *Ledger) *ArchiveReader {
	r, _ := l.Archive().(*ArchiveReader)
	return r
}

// Files are where the objects are, nil where that is not named.
func (r *ArchiveReader) Files() checkpoint.Files {
	if r == nil {
		return nil
	}
	return r.files
}

// Reads are the number of objects that this node has read or tried to read since it
// started, and the number of those that it could not read.
func (r *ArchiveReader) Reads() (reads, failures int64) {
	if r == nil {
		return 0, 0
	}
	return r.reads.Load(), r.failures.Load()
}

// ArchiveSpan is a row of the table archives: an object and the positions that it holds.
type ArchiveSpan struct {
	First, Last int64
	Object      string
	Complete    bool // the payloads are out of the database
}

// Holds says whether the object has the event of a position.
func (s ArchiveSpan) Holds(position int64) bool { return s.First <= position && position <= s.Last }

// ArchiveSpans lists the objects of a partition in order.
func ArchiveSpans(ctx context.Context, db *pgxpool.Pool, p int16) ([]ArchiveSpan, error) {
	return spans(ctx, db, p, `order by first`)
}

// spans reads rows of the table. In the condition $1 is the partition.
func spans(ctx context.Context, db *pgxpool.Pool, p int16, where string, args ...any) ([]ArchiveSpan, error) {
	rows, err := db.Query(ctx, `select first, last, object, complete from archives where p = $1 `+where, append([]any{p}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ArchiveSpan])
}

// ArchiveHolder returns the object that holds an event's payload, nil if none does.
func ArchiveHolder(ctx context.Context, db *pgxpool.Pool, e *Event) (*ArchiveSpan, error) {
	found, err := spans(ctx, db, e.Partition, `and first <= $2 order by first desc limit 1`, e.Position)
	if err != nil || len(found) == 0 || !found[0].Holds(e.Position) {
		return nil, err
	}
	return &found[0], nil
}

// Payload implements ledger.Archive.
func (r *ArchiveReader) Payload(ctx context.Context, db *pgxpool.Pool, e *Event) ([]byte, error) {
	of, err := ArchiveHolder(ctx, db, e)
	if err != nil {
		return nil, fmt.Errorf("%w: look for the archive of position %d: %w", ErrUnavailable, e.Position, err)
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
func returned(ctx context.Context, db *pgxpool.Pool, e *Event) ([]byte, error) {
	rows, err := db.Query(ctx, `select payload from events where p = $1 and pos = $2 and payload is not null`, e.Partition, e.Position)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case len(payloads) == 0 || e.PayloadHash != sha256.Sum256(Payload(payloads[0])):
		return nil, fmt.Errorf("%w: position %d has no payload, and no archive holds it", ErrTampered, e.Position)
	}
	return Payload(payloads[0]), nil
}

// payloadIn finds an event's payload among those of an object and checks its hash.
func payloadIn(payloads map[int64][]byte, object string, e *Event) ([]byte, error) {
	payload := payloads[e.Position]
	if e.PayloadHash != sha256.Sum256(payload) {
		return nil, fmt.Errorf("%w: object %s of the archive does not hold the payload of position %d", ErrTampered, object, e.Position)
	}
	return payload, nil
}

// Load reads the payloads of an object, by position. Callers that ask for one object at the
// same time share one read.
func (r *ArchiveReader) Load(ctx context.Context, object string) (map[int64][]byte, error) {
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
		return nil, &ArchiveError{object, ctx.Err()}
	}
}

func (r *ArchiveReader) fetch(ctx context.Context, object string, o *archived) {
	ctx, cancel := context.WithTimeout(ctx, archiveWithin)
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
	for r.size > archiveMemory && len(r.used) > 1 {
		r.size -= r.held[r.used[0]].size
		delete(r.held, r.used[0])
		r.used = slices.Delete(r.used, 0, 1)
	}
}

func (r *ArchiveReader) read(ctx context.Context, object string) (map[int64][]byte, error) {
	if r.files == nil {
		return nil, &ArchiveError{object, errNoArchive}
	}
	packed, err := r.files.Read(ctx, object, maxObject)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it is not in %s; bring it back there from a copy", r.files)
	}
	if err != nil {
		return nil, &ArchiveError{object, err}
	}
	o, err := unpackObject(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: object %s of the archive in %s is damaged: %w", ErrTampered, object, r.files, err)
	}
	payloads := make(map[int64][]byte, len(o.events))
	for _, e := range o.events {
		payloads[e.Position] = e.Payload
	}
	return payloads, nil
}

// Archived is what lies in the archive.
type Archived struct {
	Objects    int64 `json:"objects"`
	Events     int64 `json:"events"`     // of which they hold every column
	Incomplete int64 `json:"incomplete"` // objects whose payloads are still in the database, too: archive goes on with them
}

// Archived counts what lies in the archive.
func (l *Ledger) Archived(ctx context.Context) (a Archived, err error) {
	err = l.Row(ctx, `select count(*), coalesce(sum(last - first + 1), 0)::bigint, count(*) filter (where not complete) from archives`, nil, &a.Objects, &a.Events, &a.Incomplete)
	return a, err
}

// ReadArchive reads the newest object of each partition, to see that the store answers
// and holds it.
func (l *Ledger) ReadArchive(ctx context.Context) error {
	return l.each(func(p *Partition) error {
		newest, err := spans(ctx, l.pool, p.p, `order by first desc limit 1`)
		if err != nil || len(newest) == 0 {
			return err
		}
		_, err = ArchiveOf(l).read(ctx, newest[0].Object)
		return err
	})
}
