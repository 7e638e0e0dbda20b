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

// archive finds the payloads that are no longer in the database.
type archive struct {
	files checkpoint.Files // nil: not named
	db    querier

	reads, failures atomic.Int64 // of objects

	mu   sync.Mutex // guards the rest
	held map[string]*archived
	used []string // objects that are held, the one that was read first in front
	size int      // octets that are held
}

// archived are the payloads of an object, by position, once ready is closed.
type archived struct {
	ready    chan struct{}
	payloads map[int64][]byte
	size     int
	err      error
}

func newArchive(files checkpoint.Files, db querier) *archive {
	return &archive{files: files, db: db, held: map[string]*archived{}}
}

// span is a row of the table archives.
type span struct {
	First, Last int64
	Object      string
	Complete    bool
}

func (s span) holds(position int64) bool { return s.First <= position && position <= s.Last }

const selectArchives = `select first, last, object, complete from archives where p = $1 `

// spans reads rows of the table. In the condition $1 is the partition.
func (a *archive) spans(ctx context.Context, p int16, where string, args ...any) ([]span, error) {
	rows, err := a.db.Query(ctx, selectArchives+where, append([]any{p}, args...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[span])
}

// payload is that of an event whose row has none.
func (a *archive) payload(ctx context.Context, e *Event) ([]byte, error) {
	of, err := a.holder(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("%w: look for the archive of position %d: %w", ErrUnavailable, e.Position, err)
	}
	if of == nil {
		return a.returned(ctx, e)
	}
	payloads, err := a.load(ctx, of.Object)
	if err != nil {
		return nil, err
	}
	return payloadIn(payloads, of.Object, e)
}

// holder is the object that has an event's payload; nil: none has.
func (a *archive) holder(ctx context.Context, e *Event) (*span, error) {
	found, err := a.spans(ctx, e.Partition, `and first <= $2 order by first desc limit 1`, e.Position)
	if err != nil || len(found) == 0 || !found[0].holds(e.Position) {
		return nil, err
	}
	return &found[0], nil
}

// returned is the payload of an event that no archive holds: it came back after the
// row was read.
func (a *archive) returned(ctx context.Context, e *Event) ([]byte, error) {
	rows, err := a.db.Query(ctx, `select payload from events where p = $1 and pos = $2 and payload is not null`, e.Partition, e.Position)
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

// payloadIn takes an event's payload out of those of an object, if it is the one that
// was hashed.
func payloadIn(payloads map[int64][]byte, object string, e *Event) ([]byte, error) {
	payload := payloads[e.Position]
	if e.PayloadHash != sha256.Sum256(payload) {
		return nil, fmt.Errorf("%w: object %s of the archive does not hold the payload of position %d", ErrTampered, object, e.Position)
	}
	return payload, nil
}

// load reads an object, once for all who ask for it at a time.
func (a *archive) load(ctx context.Context, object string) (map[int64][]byte, error) {
	a.mu.Lock()
	o, known := a.held[object]
	if !known {
		o = &archived{ready: make(chan struct{})}
		a.held[object] = o
	}
	a.mu.Unlock()
	if !known {
		go a.fetch(context.WithoutCancel(ctx), object, o) // ends with its time-out; others may wait for it, too
	}
	select {
	case <-o.ready:
		return o.payloads, o.err
	case <-ctx.Done():
		return nil, &ArchiveError{object, ctx.Err()}
	}
}

func (a *archive) fetch(ctx context.Context, object string, o *archived) {
	ctx, cancel := context.WithTimeout(ctx, archiveWithin)
	defer cancel()
	defer close(o.ready)
	a.reads.Add(1)
	if o.payloads, o.err = a.read(ctx, object); o.err != nil {
		a.failures.Add(1)
	}
	for _, payload := range o.payloads {
		o.size += len(payload)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if o.err != nil {
		delete(a.held, object) // whoever asks next tries again
		return
	}
	a.used, a.size = append(a.used, object), a.size+o.size
	for a.size > archiveMemory && len(a.used) > 1 {
		a.size -= a.held[a.used[0]].size
		delete(a.held, a.used[0])
		a.used = slices.Delete(a.used, 0, 1)
	}
}

func (a *archive) read(ctx context.Context, object string) (map[int64][]byte, error) {
	if a.files == nil {
		return nil, &ArchiveError{object, errNoArchive}
	}
	packed, err := a.files.Read(ctx, object, maxObject)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it is not in %s; bring it back there from a copy", a.files)
	}
	if err != nil {
		return nil, &ArchiveError{object, err}
	}
	o, err := unpackObject(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: object %s of the archive in %s is damaged: %w", ErrTampered, object, a.files, err)
	}
	payloads := make(map[int64][]byte, len(o.events))
	for _, e := range o.events {
		payloads[e.Position] = e.Payload
	}
	return payloads, nil
}

// fill puts payloads back that lie in the archive.
func (p *Partition) fill(ctx context.Context, events []Event) error {
	for i := range events {
		if e := &events[i]; e.Payload == nil {
			payload, err := p.ledger.archive.payload(ctx, e)
			if err != nil {
				return err
			}
			e.Payload = payload
		}
	}
	return nil
}

// Archived is what lies in the archive.
type Archived struct {
	Objects    int64 `json:"objects"`
	Events     int64 `json:"events"`     // of which they hold every column
	Incomplete int64 `json:"incomplete"` // objects whose payloads are still in the database, too: archive goes on with them
}

// ArchiveReads is how many objects this node has read since it started, or tried to,
// and how many of them it could not.
func (l *Ledger) ArchiveReads() (reads, failures int64) {
	return l.archive.reads.Load(), l.archive.failures.Load()
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
		newest, err := l.archive.spans(ctx, p.p, `order by first desc limit 1`)
		if err != nil || len(newest) == 0 {
			return err
		}
		_, err = l.archive.read(ctx, newest[0].Object)
		return err
	})
}
