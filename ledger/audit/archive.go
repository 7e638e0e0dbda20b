package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
)

// archivedSpan is an object of the archive with its payloads. They are nil if the audit does not
// read the archive or the object is damaged.
type archivedSpan struct {
	archive.Span
	payloads map[int64][]byte
}

// readArchive reads the objects that contain events of the range. If an object cannot be read, the
// audit ends with an error, because it can then neither confirm nor refute the events.
func (s *spanResult) readArchive(ctx context.Context, r *run) error {
	for _, of := range r.spans {
		if of.Last > s.from && of.First <= s.to {
			if err := s.readObject(ctx, r, of); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *spanResult) readObject(ctx context.Context, r *run, of archive.Span) (err error) {
	read := archivedSpan{Span: of}
	if !r.Unarchived {
		read.payloads, err = r.archive.Load(ctx, of.Object)
	}
	if errors.Is(err, ledger.ErrTampered) {
		s.fault(archiveFault(of, of.First, "%s", err))
		err = nil
	}
	s.archived = append(s.archived, read)
	return err
}

func archiveFault(of archive.Span, position int64, format string, args ...any) Fault {
	return Fault{"archives", "object " + of.Object, position, "object", fmt.Sprintf(format, args...)}
}

// unarchive sets the payload of an event whose row has none. It reports whether it found the
// payload.
func (s *spanResult) unarchive(ctx context.Context, r *run, e *ledger.Event) bool {
	holds := func(a archivedSpan) bool { return a.Holds(e.Position) }
	i := slices.IndexFunc(s.archived, holds)
	if i < 0 { // the event was archived after the audit began, or its payload is missing
		of, err := archive.Holder(ctx, r.pool, e)
		if of != nil {
			err = s.readObject(ctx, r, *of)
		}
		if err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("position %d has no payload: %w", e.Position, err))
			return false
		}
		if i = slices.IndexFunc(s.archived, holds); i < 0 {
			s.fault(eventFault(e.Position, "payload", "the payload is missing, and no object of the archive contains it"))
			return false
		}
	}
	of := s.archived[i]
	if of.payloads == nil {
		return false
	}
	if e.Payload = of.payloads[e.Position]; e.PayloadHash != sha256.Sum256(e.Payload) {
		s.fault(archiveFault(of.Span, e.Position, "the object does not contain the payload of position %d", e.Position))
		return false
	}
	return true
}
