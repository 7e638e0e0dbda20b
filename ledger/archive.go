package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
)

const (
	archiveEvents = 1024        // of an object: a record that is asked for brings so many with it
	archiveOctets = 16 << 20    // of payloads after which an object ends earlier
	archiveStep   = 256         // rows of one transaction that thins them
	archiveLock   = 0x7e5a_0c1d // advisory: one at a time moves payloads
)

// Archiving moves payloads out of the database. All else of an event stays: chain,
// look-ups, guards and idempotency need no more, and whoever reads an event finds its
// payload in the object again. The payloads of what the service looks at to decide
// (keys, policies, members, payments) stay, too: events.Archived lists what goes.
type Archiving struct {
	OwnerURL string           // a login that is, or may become, countersign_owner
	Files    checkpoint.Files // where the objects go
	Signer   *seal.Signer     // a record key of the ledger
	Before   time.Time        // only events of before
	Progress func(object string, events int64)
	Events   int // of an object; 0: as many as suit who asks for one record
}

// Errors of Archive and BringBack, each of which says what to do.
var (
	ErrArchiving    = errors.New("another program moves payloads now: let it end")
	ErrNotCovered   = errors.New("no checkpoint covers the events: archive needs checkpoints, set CHECKPOINT_KEY and let the service run")
	errArchiveNames = errors.New("ARCHIVE_STORE is not set: name the folder or bucket of the archive")
)

// Archive moves the payloads of old events into objects and returns how many events
// those hold. Each step is finished before the next begins, and any may be repeated
// after a crash: the object is written, read back and checked; the database notes that
// it holds the events; small transactions take the payloads out.
func (l *Ledger) Move(ctx context.Context, a Archiving) (moved int64, err error) {
	err = l.moving(ctx, a.OwnerURL, a.Files, func(conn *pgx.Conn) error {
		return l.each(func(p *Partition) error {
			n, err := p.archiveOld(ctx, conn, a)
			moved += n
			return err
		})
	})
	return moved, err
}

// moving runs work as the owner, alone.
func (l *Ledger) moving(ctx context.Context, ownerURL string, files checkpoint.Files, work func(*pgx.Conn) error) error {
	if files == nil {
		return errArchiveNames
	}
	conn, err := Connect(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var alone bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, archiveLock).Scan(&alone); err != nil {
		return err
	}
	if !alone {
		return ErrArchiving
	}
	// A session that is closed may last for a moment.
	defer conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, archiveLock) //nolint:errcheck // the connection ends anyway
	if _, err := conn.Exec(ctx, `set role countersign_owner`); err != nil {
		return fmt.Errorf("the login may not become the owner of the tables: %w", err)
	}
	return work(conn)
}

func (p *Partition) archiveOld(ctx context.Context, conn *pgx.Conn, a Archiving) (moved int64, err error) {
	left, err := spans(ctx, p.ledger.pool, p.p, `and not complete order by first`)
	if err != nil {
		return 0, err
	}
	for _, s := range left { // by one that did not come to its end
		if err := p.thin(ctx, conn, s); err != nil {
			return moved, err
		}
	}
	var last int64
	if err := conn.QueryRow(ctx, `select coalesce(max(last), 0) from archives where p = $1`, p.p).Scan(&last); err != nil {
		return moved, err
	}
	pace := p.ledger.Pace()
	for {
		if err := pace.Rest(ctx); err != nil {
			return moved, err
		}
		next, err := p.nextObject(ctx, last, a)
		if err != nil || len(next) == 0 {
			return moved, err
		}
		s := ArchiveSpan{First: last + 1, Last: next[len(next)-1].Position}
		if s.Object, err = p.keepObject(ctx, a, next); err != nil {
			return moved, err
		}
		if _, err := conn.Exec(ctx, `insert into archives (p, first, last, object) values ($1, $2, $3, $4)`, p.p, s.First, s.Last, s.Object); err != nil {
			return moved, err
		}
		if err := p.thin(ctx, conn, s); err != nil {
			return moved, err
		}
		last, moved = s.Last, moved+int64(len(next))
		if a.Progress != nil {
			a.Progress(s.Object, moved)
		}
	}
}

// nextObject are the events of the next object, none unless all of them are old and
// covered: what fills no object yet stays.
func (p *Partition) nextObject(ctx context.Context, after int64, a Archiving) ([]Event, error) {
	most := a.Events
	if most == 0 {
		most = archiveEvents
	}
	next, err := p.After(ctx, after, most)
	if err != nil {
		return nil, err
	}
	octets, full := 0, len(next) == most
	for i, e := range next {
		if e.OccurredUS >= a.Before.UnixMicro() {
			return nil, nil
		}
		if octets += len(e.Payload); octets >= archiveOctets {
			next, full = next[:i+1], true
			break
		}
	}
	if !full {
		return nil, nil
	}
	covering, err := p.NewestCheckpoint(ctx)
	if err != nil {
		return nil, err
	}
	if covering == nil || covering.Size < next[len(next)-1].Position {
		return nil, ErrNotCovered
	}
	return next, nil
}

// keepObject writes an object and returns its name once it was read back and found
// sound: after that the database may forget what it holds.
func (p *Partition) keepObject(ctx context.Context, a Archiving, next []Event) (name string, err error) {
	packed, err := p.packObject(ctx, a.Signer, next)
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s/%019d-%019d.jsonl.gz", checkpoint.LedgerName(p.origin), next[0].Position, next[len(next)-1].Position)
	if err := a.Files.Write(ctx, name, packed); err != nil {
		return "", fmt.Errorf("write object %s to %s: %w", name, a.Files, err)
	}
	back, err := a.Files.Read(ctx, name, maxObject)
	if err != nil || !bytes.Equal(back, packed) {
		return "", errors.Join(fmt.Errorf("object %s does not come back from %s as it was written; nothing was removed", name, a.Files), err)
	}
	ring, _, err := p.Keyring(ctx)
	if err != nil {
		return "", err
	}
	_, err = CheckArchive(back, ring.Public(PurposeRecord), ring.Public(PurposeCheckpoint))
	return name, err
}

// thin takes the payloads of an object's events out of the database.
func (p *Partition) thin(ctx context.Context, conn *pgx.Conn, s ArchiveSpan) error {
	for from := s.First; from <= s.Last; from += archiveStep {
		_, err := conn.Exec(ctx, `update events set payload = null where p = $1 and pos between $2 and $3 and payload is not null and type = any($4)`,
			p.p, from, min(from+archiveStep-1, s.Last), events.Archived)
		if err != nil {
			return fmt.Errorf("take payloads out of the database: %w", err)
		}
	}
	_, err := conn.Exec(ctx, `update archives set complete = true where p = $1 and first = $2`, p.p, s.First)
	return err
}

// BringBack puts the payloads of the newest archived events, from the object that
// holds a position on, back into the database, in every partition. The objects stay
// where they are. It may be repeated after a crash.
func (l *Ledger) BringBack(ctx context.Context, a Archiving, from int64) (brought int64, err error) {
	err = l.moving(ctx, a.OwnerURL, a.Files, func(conn *pgx.Conn) error {
		return l.each(func(p *Partition) error {
			newest, err := spans(ctx, l.pool, p.p, `and last >= $2 order by first desc`, from)
			for _, s := range newest {
				if err == nil {
					err = p.bringBack(ctx, conn, a, s)
				}
				if err != nil {
					return err
				}
				if brought += s.Last - s.First + 1; a.Progress != nil {
					a.Progress(s.Object, brought)
				}
			}
			return err
		})
	})
	return brought, err
}

func (p *Partition) bringBack(ctx context.Context, conn *pgx.Conn, a Archiving, s ArchiveSpan) error {
	payloads, err := NewArchiveReader(a.Files).read(ctx, s.Object)
	if err != nil {
		return err
	}
	// From now on archive would take them out again, were this to end half-way.
	if _, err := conn.Exec(ctx, `update archives set complete = false where p = $1 and first = $2`, p.p, s.First); err != nil {
		return err
	}
	for from := s.First; from <= s.Last; from += archiveStep {
		var positions []int64
		var octets [][]byte
		for position := from; position <= min(from+archiveStep-1, s.Last); position++ {
			if payloads[position] == nil {
				return fmt.Errorf("%w: object %s does not hold position %d", ErrNotArchived, s.Object, position)
			}
			positions, octets = append(positions, position), append(octets, payloads[position])
		}
		_, err := conn.Exec(ctx, `update events e set payload = b.payload from unnest($2::bigint[], $3::bytea[]) b (pos, payload)
			where e.p = $1 and e.pos = b.pos and e.payload is null`, p.p, positions, octets)
		if err != nil {
			return fmt.Errorf("bring object %s back: %w", s.Object, err)
		}
	}
	_, err = conn.Exec(ctx, `delete from archives where p = $1 and first = $2
		and not exists (select from events where p = $1 and pos between $2 and $3 and payload is null)`, p.p, s.First, s.Last)
	return err
}
