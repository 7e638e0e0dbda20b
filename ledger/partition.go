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

// Home returns the partition of a tenant in a ledger of n partitions. The rule never changes:
//
//	first 4 bytes of SHA-256( "svc-partition-v1\n" ‖ tenant ), big-endian, modulo n
//
// There are two exceptions: "service" is in partition 0, and "service/<p>" in partition p. So each
// partition has a tenant for its signing keys and for events that belong to no organization. With
// one partition every tenant is in partition 0.
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

// ServiceIn returns the service tenant of a partition. It has the partition's signing keys and all
// its events that belong to no organization.
func ServiceIn(p int16) string {
	if p == 0 {
		return ServiceTenant
	}
	return ServiceTenant + "/" + strconv.Itoa(int(p))
}

// IsService reports whether a tenant is the service tenant of any partition.
func IsService(tenant string) bool {
	return tenant == ServiceTenant || strings.HasPrefix(tenant, ServiceTenant+"/")
}

// Partition is one part of a ledger. It has its own positions, head, tree and checkpoints. All
// events of a tenant are in one partition.
type Partition struct {
	ledger  *Ledger
	p       int16
	origin  string
	seq     *sequencer
	wake    wait.Broadcast             // signalled after every commit of this node to this partition, and when another node may have appended to it
	reads   singleflight.Group         // joins equal queries of readers
	asked   wait.Broadcast             // signalled when a caller of Await begins to wait
	awaited atomic.Int32               // number of callers of Await that wait
	tail    tail                       // last events that this node has committed
	foreign atomic.Uint64              // grows when other nodes may have committed events
	kept    atomic.Pointer[kept.State] // nil if this node keeps no checkpoints
}

// Kept returns the state of the partition's checkpoint keeper. The pointer is nil if this node
// keeps no checkpoints.
func (p *Partition) Kept() *atomic.Pointer[kept.State] { return &p.kept }

// Partitions returns all partitions of the ledger, indexed by number.
func (l *Ledger) Partitions() []*Partition { return l.partitions }

// Partition returns the partition with this number, or nil.
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

// Service returns the service tenant for events that are found by an id, for example the id of a
// payment. The id determines the partition.
func (l *Ledger) Service(name string) string { return l.Home(name).Service() }

// Service returns the partition's tenant for events that belong to no organization.
func (p *Partition) Service() string { return ServiceIn(p.p) }

// Ledger returns the ledger of the partition.
func (p *Partition) Ledger() *Ledger { return p.ledger }

// Number returns the partition's number, from 0.
func (p *Partition) Number() int16 { return p.p }

// Origin returns the permanent name of this partition, for example
// "ledger.example.com/countersign/0".
func (p *Partition) Origin() string { return p.origin }

// ErrPartitions means that the ledger does not have the number of partitions in the settings.
var ErrPartitions = errors.New("the number of partitions of a ledger is fixed when the ledger is created")

// readPartitions reads the origins of all partitions and checks that they belong to one ledger.
// wanted is the number of partitions in the settings; 0 accepts any number.
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
			return fmt.Errorf("%w: the number or origin of the head row of partition %d does not match the other head rows; run countersign verify for details", ErrTampered, p)
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read ledger head: %w", err)
	}
	switch n := len(origins); {
	case n == 0:
		return nil, errors.New("read ledger head (was the database migrated?): there is none")
	case n > migrations.MaxPartitions:
		return nil, fmt.Errorf("%w: there are %d head rows", ErrTampered, n)
	case wanted != 0 && wanted != n:
		return nil, fmt.Errorf("%w: this ledger has %d, but LEDGER_PARTITIONS is %d. Unset it, or create a new ledger and keep the old one readable", ErrPartitions, n, wanted)
	}
	return origins, nil
}

// each calls work for every partition, in order, until one call fails.
func (l *Ledger) each(work func(*Partition) error) error {
	for _, p := range l.partitions {
		if err := work(p); err != nil {
			return err
		}
	}
	return nil
}

// Origin returns the permanent name of this ledger: the origin of its only partition or, if there
// are several, Base.
func (l *Ledger) Origin() string {
	if len(l.partitions) == 1 {
		return l.partitions[0].origin
	}
	return l.Base()
}

// Base returns the origin without the partition number.
func (l *Ledger) Base() string { return strings.TrimSuffix(l.partitions[0].origin, "/0") }

// Changed returns a channel that is closed when any node has probably added events to any
// partition.
func (l *Ledger) Changed() <-chan struct{} { return l.wake.Wait() }

// Heads returns the position of each partition's last event, indexed by partition.
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
				return fmt.Errorf("%w: there is an unknown head row of partition %d", ErrTampered, p)
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

// readShare is the share for pace.New: while others append, an export or the archive works for a
// twentieth of the time. An audit works for less. But people wait for an export, and the archive
// must be faster than the appends.
const readShare = 20

// Pace returns a pace that slows reads of this ledger's own history while others append.
func (l *Ledger) Pace() *pace.Pace { return pace.New(readShare, l.Total) }

// Directory returns the values of the directory entries with a name (events.EntriesOf), in the
// order of their events. An entry is no evidence: it only shows which events to read.
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

// Directory returns the values with this name from all partitions, sorted.
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
