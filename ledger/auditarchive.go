package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// archivedSpan is an object of the archive and its payloads, nil where they are not to
// be read, or cannot be trusted.
type archivedSpan struct {
	span
	payloads map[int64][]byte
}

// readArchive reads the objects that hold events of the range. One that cannot be read
// ends the audit: nothing false was found, and nothing can be said.
func (s *spanResult) readArchive(ctx context.Context, r *audit) error {
	for _, of := range r.spans {
		if of.Last > s.from && of.First <= s.to {
			if err := s.readObject(ctx, r, of); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *spanResult) readObject(ctx context.Context, r *audit, of span) (err error) {
	read := archivedSpan{span: of}
	if !r.Unarchived {
		read.payloads, err = r.archive.load(ctx, of.Object)
	}
	if errors.Is(err, ErrTampered) {
		s.fault(archiveFault(of, of.First, "%s", err))
		err = nil
	}
	s.archived = append(s.archived, read)
	return err
}

func archiveFault(of span, position int64, format string, args ...any) Fault {
	return Fault{"archives", "object " + of.Object, position, "object", fmt.Sprintf(format, args...)}
}

// unarchive finds the payload of an event whose row has none, and says whether it did.
func (s *spanResult) unarchive(ctx context.Context, r *audit, e *Event) bool {
	holds := func(a archivedSpan) bool { return a.holds(e.Position) }
	i := slices.IndexFunc(s.archived, holds)
	if i < 0 { // it left the database after the audit began, or nobody archived it
		of, err := r.archive.holder(ctx, e)
		if of != nil {
			err = s.readObject(ctx, r, *of)
		}
		if err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("position %d has no payload: %w", e.Position, err))
			return false
		}
		if i = slices.IndexFunc(s.archived, holds); i < 0 {
			s.fault(eventFault(e.Position, "payload", "it is gone, and no archive holds it"))
			return false
		}
	}
	of := s.archived[i]
	if of.payloads == nil {
		return false
	}
	if e.Payload = of.payloads[e.Position]; e.PayloadHash != sha256.Sum256(e.Payload) {
		s.fault(archiveFault(of.span, e.Position, "it does not hold the payload of position %d", e.Position))
		return false
	}
	return true
}
