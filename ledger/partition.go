package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"github.com/countersign/countersign/ledger/internal/kept"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/pace"
	"github.com/countersign/countersign/migrations"
)

// Home returns the partition of a tenant in a ledger of n partitions. It never changes:
//
//	first 4 bytes of SHA-256( "svc-partition-v1\n" ‖ tenant ), big-endian, modulo n
//
// except that "service" is in partition 0 and "service/<p>" in partition p, so that each
// partition has a tenant for events that belong to no organization and for the signing keys
// that are valid in it. With one partition every tenant is in 0.
func Home(tenant string, n int) int16 {
	if tenant == ServiceTenant || n == 1 {
		return 0
	}
	if number, ok := strings.CutPrefix(tenant, ServiceTenant+"/"); ok {
		if p, err := strconv.Atoi(number); err == nil && p > 0 && p < n && tenant == ServiceIn(int16(p)) {
			return int16(p)
		}
	}
	sum := sha256.Sum256([]byte("svc-partition-v1\n" + tenant))
	return int16(binary.BigEndian.Uint32(sum[:4]) % uint32(n))
}

// ServiceIn returns the tenant of a partition's signing keys and of all its events that belong
// to no organization.
func ServiceIn(p int16) string {
	if p == 0 {
		return ServiceTenant
	}
	return ServiceTenant + "/" + strconv.Itoa(int(p))
}

// IsService says whether a tenant is the service's own, in whatever partition.
func IsService(tenant string) bool {
	return tenant == ServiceTenant || strings.HasPrefix(tenant, ServiceTenant+"/")
}

// Partition is one of the parts of a ledger. It has its own sequence of positions, head, tree
// and checkpoints. A tenant is in one partition.
type Partition struct {
	ledger  *Ledger
	p       int16
	origin  string
	seq     *sequencer
	wake    wait.Broadcast             // after every commit of this node here, and on every NOTIFY
	reads   singleflight.Group         // of the readers, by position
	asked   wait.Broadcast             // when a caller of Await begins to wait
	awaited atomic.Int32               // callers of Await that wait
	tail    tail                       // what this node has committed last
	foreign atomic.Uint64              // grows when others may have committed something
	kept    atomic.Pointer[kept.State] // nil: this node keeps no checkpoints
}

// Kept returns the state of the keeper of the partition's checkpoints. It points to nil if this
// node keeps no checkpoints.
func (p *Partition) Kept() *atomic.Pointer[kept.State] { return &p.kept }

// Partitions returns all partitions of the ledger, by number.
func (l *Ledger) Partitions() []*Partition { return l.partitions }

// Partition returns a partition by its number, nil if the ledger does not have it.
func (l *Ledger) Partition(p int16) *Partition {
	if p < 0 || int(p) >= len(l.partitions) {
		return nil
	}
	return l.partitions[p]
}

// Home returns the partition of a tenant.
func (l *Ledger) Home(tenant string) *Partition {
	return l.partitions[Home(tenant, len(l.partitions))]
}

// Service returns the tenant for an event that belongs to no organization and is found by an
// id, for example a payment's. All such ids of one partition share a tenant.
func (l *Ledger) Service(name string) string { return l.Home(name).Service() }

// Service returns the partition's tenant for everything that belongs to no organization.
func (p *Partition) Service() string { return ServiceIn(p.p) }

// Ledger is the ledger that the partition is part of.
func (p *Partition) Ledger() *Ledger { return p.ledger }

// Number is the partition's number, from 0.
func (p *Partition) Number() int16 { return p.p }

// Origin names this partition for ever, for example "ledger.example.com/countersign/0".
func (p *Partition) Origin() string { return p.origin }

// ErrPartitions means that a ledger has another number of partitions than the settings.
var ErrPartitions = errors.New("the number of partitions of a ledger is fixed when it is made")

// readPartitions reads the origins of a ledger's partitions and checks that they belong
// together. wanted is the number of partitions in the settings, 0 for any.
func readPartitions(ctx context.Context, db *pgxpool.Pool, wanted int) ([]string, error) {
	rows, err := db.Query(ctx, `select p, origin from ledger_head order by p`)
	if err != nil {
		return nil, fmt.Errorf("read ledger head (was the database migrated?): %w", err)
	}
	var origins []string
	var p int16
	var origin string
	if _, err = pgx.ForEachRow(rows, []any{&p, &origin}, func() error {
		origins = append(origins, origin)
		if base, ok := strings.CutSuffix(origin, "/"+strconv.Itoa(len(origins)-1)); !ok || int(p) != len(origins)-1 || !strings.HasPrefix(origins[0], base+"/") {
			return fmt.Errorf("%w: the head row of partition %d does not follow the others; run countersign verify for details", ErrTampered, p)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read ledger head: %w", err)
	}
	switch n := len(origins); {
	case n == 0:
		return nil, errors.New("read ledger head (was the database migrated?): there is none")
	case n > migrations.MaxPartitions:
		return nil, fmt.Errorf("%w: %d head rows", ErrTampered, n)
	case wanted != 0 && wanted != n:
		return nil, fmt.Errorf("%w: this ledger has %d, but LEDGER_PARTITIONS is %d. Unset it, or create a new ledger and keep the old one readable", ErrPartitions, n, wanted)
	}
	return origins, nil
}

// each runs work on every partition, in order, until one fails.
func (l *Ledger) each(work func(*Partition) error) error {
	for _, p := range l.partitions {
		if err := work(p); err != nil {
			return err
		}
	}
	return nil
}

// Origin names this ledger for ever: the origin of its only partition or, if there are
// several, what their origins have in common.
func (l *Ledger) Origin() string {
	if len(l.partitions) == 1 {
		return l.partitions[0].origin
	}
	return l.Base()
}

// Base returns the origin without the number of a partition.
func (l *Ledger) Base() string { return strings.TrimSuffix(l.partitions[0].origin, "/0") }

// Changed returns a channel that is closed when this node or another has probably added events
// to any partition.
func (l *Ledger) Changed() <-chan struct{} { return l.wake.Wait() }

// Heads returns the positions of the last events of all partitions, by number.
func (l *Ledger) Heads(ctx context.Context) ([]int64, error) {
	heads := make([]int64, len(l.partitions))
	err := l.Reading(ctx, func() error {
		rows, err := l.pool.Query(ctx, `select p, pos from ledger_head order by p`)
		if err != nil {
			return err
		}
		var p int16
		var position int64
		_, err = pgx.ForEachRow(rows, []any{&p, &position}, func() error {
			if l.Partition(p) == nil {
				return fmt.Errorf("%w: there is a head row of partition %d", ErrTampered, p)
			}
			heads[p] = position
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger head: %w", err)
	}
	return heads, nil
}

// Total returns the number of events in the ledger.
func (l *Ledger) Total(ctx context.Context) (int64, error) {
	heads, err := l.Heads(ctx)
	total := int64(0)
	for _, position := range heads {
		total += position
	}
	return total, err
}

// Pace returns a pace for reading this ledger's own history.
func (l *Ledger) Pace() *pace.Pace { return pace.New(l.Total) }

// Directory returns the values of the entries under a name (events.EntriesOf), in the order of
// their events. An entry only says which events to read, and is itself no evidence.
func (p *Partition) Directory(ctx context.Context, name string) (values []string, err error) {
	err = p.ledger.Reading(ctx, func() error {
		rows, err := p.ledger.pool.Query(ctx, `select value from directory where p = $1 and name = $2 order by pos`, p.p, name)
		if err == nil {
			values, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the directory: %w", err)
	}
	return values, nil
}

// Directory returns the values of all partitions under a name, sorted.
func (l *Ledger) Directory(ctx context.Context, name string) ([]string, error) {
	var all []string
	err := l.each(func(p *Partition) error {
		here, err := p.Directory(ctx, name)
		all = append(all, here...)
		return err
	})
	slices.Sort(all)
	return all, err
}
