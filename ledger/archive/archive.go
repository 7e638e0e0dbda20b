// Package archive moves old payloads out of the database into objects (files in a folder or a
// bucket), and reads them from there. All other columns of an event stay in the database, so the
// chain, look-ups, preconditions and idempotency work without the archive. Payloads that the
// service needs for decisions (keys, policies, members, payments) also stay: events.Archived lists
// the types whose payloads are moved.
//
// An object can be verified without the database: it begins with a signed record, and its events
// are leaves of the tree of a signed checkpoint (object.go, Check).
package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
)

const (
	objectEvents = 1024        // events in an object; a reader of one event reads the whole object
	objectOctets = 16 << 20    // bytes of payloads in an object, after which it ends
	stepRows     = 256         // rows that one transaction changes
	moveLock     = 0x7e5a_0c1d // key of an advisory lock, which lets only one program move payloads
)

// Options are the parameters of Move and BringBack.
type Options struct {
	OwnerURL string                            // URL of a login that is countersign_owner or can become this role
	Files    checkpoint.Files                  // store of the objects
	Signer   *seal.Signer                      // signs with a record key of the ledger
	Before   time.Time                         // Move takes only events before this time
	Progress func(object string, events int64) // called after each object; may be nil
	Events   int                               // events in an object; 0 means objectEvents
}

// Errors of Move and BringBack. Each text says what the operator can do.
var (
	ErrBusy       = errors.New("another program is moving payloads: wait until it has ended")
	ErrNotCovered = errors.New("no checkpoint covers the events yet: set CHECKPOINT_KEY, let the service run, then archive again")
	errNotNamed   = errors.New("ARCHIVE_STORE is not set: set it to the folder or bucket of the archive")
)

// Move moves the payloads of old events into objects and returns the number of these events. Each
// step can be repeated after a crash: Move writes an object, reads it back and checks it, records
// its events in the database, and removes their payloads in small transactions.
func Move(ctx context.Context, l *ledger.Ledger, o Options) (moved int64, err error) {
	err = moving(ctx, o.OwnerURL, o.Files, func(conn *pgx.Conn) error {
		for _, p := range l.Partitions() {
			n, err := moveOld(ctx, conn, p, o)
			moved += n
			if err != nil {
				return err
			}
		}
		return nil
	})
	return moved, err
}

// moving runs work with the rights of the tables' owner, and locks out other programs that move
// payloads.
func moving(ctx context.Context, ownerURL string, files checkpoint.Files, work func(*pgx.Conn) error) error {
	if files == nil {
		return errNotNamed
	}
	conn, err := ledger.Connect(ctx, ownerURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var alone bool
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, moveLock).Scan(&alone); err != nil {
		return err
	}
	if !alone {
		return ErrBusy
	}
	// Release the lock first, because a session does not end as soon as its connection is closed.
	defer conn.Exec(context.WithoutCancel(ctx), `select pg_advisory_unlock($1)`, moveLock) //nolint:errcheck // the connection ends anyway
	if _, err := conn.Exec(ctx, `set role countersign_owner`); err != nil {
		return fmt.Errorf("the login may not become the owner of the tables: %w", err)
	}
	return work(conn)
}

// moveOld moves the old payloads of a partition.
func moveOld(ctx context.Context, conn *pgx.Conn, p *ledger.Partition, o Options) (moved int64, err error) {
	left, err := spans(ctx, p.Ledger().Pool(), p.Number(), `and not complete order by first`)
	if err != nil {
		return 0, err
	}
	for _, s := range left { // objects of an interrupted run
		if err := thin(ctx, conn, p, s); err != nil {
			return moved, err
		}
	}
	var last int64
	if err := conn.QueryRow(ctx, `select coalesce(max(last), 0) from archives where p = $1`, p.Number()).Scan(&last); err != nil {
		return moved, err
	}
	pace := p.Ledger().Pace()
	for {
		if err := pace.Rest(ctx); err != nil {
			return moved, err
		}
		next, err := nextObject(ctx, p, last, o)
		if err != nil || len(next) == 0 {
			return moved, err
		}
		s := Span{First: last + 1, Last: next[len(next)-1].Position}
		if s.Object, err = keepObject(ctx, p, o, next); err != nil {
			return moved, err
		}
		if _, err := conn.Exec(ctx, `insert into archives (p, first, last, object) values ($1, $2, $3, $4)`, p.Number(), s.First, s.Last, s.Object); err != nil {
			return moved, err
		}
		if err := thin(ctx, conn, p, s); err != nil {
			return moved, err
		}
		last, moved = s.Last, moved+int64(len(next))
		if o.Progress != nil {
			o.Progress(s.Object, moved)
		}
	}
}

// nextObject returns the events of the next object. It returns none if too few old events remain
// to fill an object, and ErrNotCovered if no checkpoint covers the events yet.
func nextObject(ctx context.Context, p *ledger.Partition, after int64, o Options) ([]ledger.Event, error) {
	most := o.Events
	if most == 0 {
		most = objectEvents
	}
	next, err := p.After(ctx, after, most)
	if err != nil {
		return nil, err
	}
	octets, full := 0, len(next) == most
	for i, e := range next {
		if e.OccurredUS >= o.Before.UnixMicro() {
			return nil, nil
		}
		if octets += len(e.Payload); octets >= objectOctets {
			next, full = next[:i+1], true
			break
		}
	}
	if !full {
		return nil, nil
	}
	covering, err := keeper.Newest(ctx, p)
	if err != nil {
		return nil, err
	}
	if covering == nil || covering.Size < next[len(next)-1].Position {
		return nil, ErrNotCovered
	}
	return next, nil
}

// keepObject writes an object, reads it back, checks it and returns its name. The payloads may be
// removed from the database only after that.
func keepObject(ctx context.Context, p *ledger.Partition, o Options, next []ledger.Event) (name string, err error) {
	packed, err := pack(ctx, p, o.Signer, next)
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s/%019d-%019d.jsonl.gz", checkpoint.LedgerName(p.Origin()), next[0].Position, next[len(next)-1].Position)
	if err := o.Files.Write(ctx, name, packed); err != nil {
		return "", fmt.Errorf("write object %s to %s: %w", name, o.Files, err)
	}
	back, err := o.Files.Read(ctx, name, maxObject)
	if err != nil || !bytes.Equal(back, packed) {
		return "", errors.Join(fmt.Errorf("object %s read back from %s differs from what was written; nothing was removed", name, o.Files), err)
	}
	ring, _, err := p.Keyring(ctx)
	if err != nil {
		return "", err
	}
	_, err = Check(back, ring.Public(ledger.PurposeRecord), ring.Public(ledger.PurposeCheckpoint))
	return name, err
}

// thin removes the payloads of an object's events from the database.
func thin(ctx context.Context, conn *pgx.Conn, p *ledger.Partition, s Span) error {
	for from := s.First; from <= s.Last; from += stepRows {
		_, err := conn.Exec(ctx, `update events set payload = null where p = $1 and pos between $2 and $3 and payload is not null and type = any($4)`,
			p.Number(), from, min(from+stepRows-1, s.Last), events.Archived)
		if err != nil {
			return fmt.Errorf("remove payloads from the database: %w", err)
		}
	}
	_, err := conn.Exec(ctx, `update archives set complete = true where p = $1 and first = $2`, p.Number(), s.First)
	return err
}

// BringBack restores payloads to the database. In every partition, these are the payloads of all
// objects, from the one that contains the given position to the newest. It returns the number of
// their events and does not remove the objects. It can be repeated after a crash.
func BringBack(ctx context.Context, l *ledger.Ledger, o Options, from int64) (brought int64, err error) {
	err = moving(ctx, o.OwnerURL, o.Files, func(conn *pgx.Conn) error {
		for _, p := range l.Partitions() {
			newest, err := spans(ctx, l.Pool(), p.Number(), `and last >= $2 order by first desc`, from)
			if err != nil {
				return err
			}
			for _, s := range newest {
				if err := bringBack(ctx, conn, p, o, s); err != nil {
					return err
				}
				if brought += s.Last - s.First + 1; o.Progress != nil {
					o.Progress(s.Object, brought)
				}
			}
		}
		return nil
	})
	return brought, err
}

func bringBack(ctx context.Context, conn *pgx.Conn, p *ledger.Partition, o Options, s Span) error {
	payloads, err := NewReader(o.Files).read(ctx, s.Object)
	if err != nil {
		return err
	}
	// If BringBack is interrupted, the next Move removes the payloads again.
	if _, err := conn.Exec(ctx, `update archives set complete = false where p = $1 and first = $2`, p.Number(), s.First); err != nil {
		return err
	}
	for from := s.First; from <= s.Last; from += stepRows {
		var positions []int64
		var octets [][]byte
		for position := from; position <= min(from+stepRows-1, s.Last); position++ {
			if payloads[position] == nil {
				return fmt.Errorf("%w: object %s does not contain position %d", ErrUnsound, s.Object, position)
			}
			positions, octets = append(positions, position), append(octets, payloads[position])
		}
		_, err := conn.Exec(ctx, `update events e set payload = b.payload from unnest($2::bigint[], $3::bytea[]) b (pos, payload)
			where e.p = $1 and e.pos = b.pos and e.payload is null`, p.Number(), positions, octets)
		if err != nil {
			return fmt.Errorf("restore the payloads of object %s: %w", s.Object, err)
		}
	}
	// Citus cannot combine the local table with a subquery that has no column.
	_, err = conn.Exec(ctx, `delete from archives where p = $1 and first = $2
		and not exists (select 1 from events where p = $1 and pos between $2 and $3 and payload is null)`, p.Number(), s.First, s.Last)
	return err
}
