// Package ledger is the append-only, hash-chained table of events in PostgreSQL on which all other
// packages depend. Every decision, signed record, payment and receipt of countersign is an event
// here. The package appends and reads events. The packages in its folder do the rest: for example,
// vault encrypts personal data, keeper signs checkpoints, archive moves old payloads out of the
// database, and audit verifies everything.
//
// # Promises
//
// An acknowledged append is durable and is never lost, changed, reordered or doubled. Positions
// are dense (1, 2, 3 …) and become visible in order, so that a reader who asks for the events
// after n never skips one. An idempotency key has at most one content and one result, for ever. If
// it is not known whether an append was committed, the result is ErrUnknown and never a success; a
// retry with the same key finds out.
//
// # Hashes, byte for byte
//
// S(x) is the length of x in bytes as 4 bytes big-endian, then x. U(n) is n as 8 bytes big-endian.
// ‖ joins. Text is UTF-8 without NUL. An absent idem_key or content_hash is S("").
//
//	genesis(tenant) = SHA-256( "svc-ledger-genesis-v1\0" ‖ S(origin) ‖ S(tenant) )           prev of the event with tseq 1
//	payload_hash    = SHA-256( payload )
//	hash            = SHA-256( "svc-ledger-event-v1\0" ‖ S(prev) ‖ S(tenant) ‖ U(tseq) ‖ S(stream) ‖ U(version)
//	                           ‖ S(event_id) ‖ S(type) ‖ U(schema_version) ‖ U(more) ‖ U(occurred_us)
//	                           ‖ S(actor) ‖ S(key_id) ‖ S(idem_key) ‖ S(content_hash) ‖ S(payload_hash) )
//	idem_key        = SHA-256( "svc-idem-v1\n" ‖ S(operation) ‖ S(key) )
//	content_hash    = SHA-256( canonical request without its idempotencyKey )
//	leaf            = SHA-256( 0x00 ‖ hash )        node = SHA-256( 0x01 ‖ left ‖ right )     RFC 6962; leaf index = pos - 1
//
// If an event is numbered in a series, the first line below follows S(payload_hash). If it is also
// numbered for an agent, the second line follows the first:
//
//	‖ S(series) ‖ U(series_n) ‖ S(series_prev)
//	‖ S(agent) ‖ U(agent_n) ‖ S(agent_prev)
//
// series_prev and agent_prev are S("") at number 1. Each field before these lines has a fixed or
// stated length, and their number is fixed, so the three forms cannot be mistaken for each other.
//
// prev is the hash of the tenant's previous event. pos and p are not in the preimage: the leaf
// index in the tree binds pos, and the origin, which ends in "/" and the partition, binds p
// through the genesis hash. Order, widths and domain strings never change; a change would be
// svc-ledger-event-v2, chosen by position.
//
// Worked example: origin ledger.example.com/countersign/0, tenant org_01JD3Z8W5T0000000000000000,
// actor cus_01JD3Z8W5T0000000000000002, schema_version 1, more 0, key_id empty.
//
//	                 event 1 (pos 1, tseq 1)                 event 2 (pos 2, tseq 2)
//	stream, version  organization, 1                         policy, 1
//	event_id         evt_01JD3Z8W5T0000000000000001          evt_01JD3Z8W5T0000000000000003
//	type             organization.created                    policy.drafted
//	occurred_us      1795186800000000                        1795186801000000
//	payload          {"name":"Acme","plan":"team"}           {"policyId":"default","version":1}
//	idem_key         operation organization, key acme-1      absent
//	content_hash     of {"name":"Acme","owner":"ada@example.com","plan":"team"}   absent
//	preimage length  350 bytes                               274 bytes
//	hash             fc3623f93e30aab3876faaa6fb2d252b        ad3dc2483add25f130d6888ca5692a63
//	                 9e59dc74f0e25337243d44b2ee8f991d        97179547310af6833e8ebefa46ba6558
//
// Two decisions follow in the same tenant, by the same actor. Both have the payload
// {"decision":"deny"}, version 1, no idem_key and no content_hash, the series decision/deny and
// the agent sub_01JD3Z8W5T0000000000000006.
//
//	                 event 3, number 1 in both series        event 4, number 2 in both series
//	stream           decision/asd_01JD3Z8W5T0000000000000004 decision/asd_01JD3Z8W5T0000000000000007
//	event_id         evt_01JD3Z8W5T0000000000000005          evt_01JD3Z8W5T0000000000000008
//	type             decision.recorded                       decision.recorded
//	occurred_us      1795186802000000                        1795186803000000
//	preimage length  385 bytes                               449 bytes
//	hash             2c1cdf105daa85fb6f0231c9e56643f4        5ae67e9f6af5474fc81c21c38fc7efc8
//	                 721d5548efcf3b91ef5d42c615d1e6e9        5b2ed0e461b38ab6cf46de4a17c088df
//
// # Series
//
// Decisions, approvals, receipts, requests for exports and erasures are numbered, so that a
// selection of them shows by itself that nothing is missing. A series is a kind of event with its
// outcome, for example decision/deny, in a tenant; package ledger/events lists all series. An
// event that is about an agent has a second number, in the series of the same name of that agent.
// The agent is the id of its data key (package ledger/vault). Numbers are dense from 1, and each
// event names the hash of the event with the number before, so a series is a chain of its own.
//
// # Tenants, partitions and streams
//
// A tenant is an organization, or a service tenant for events that belong to none: "service" in
// partition 0 and "service/<p>" in partition p. Each tenant has its own linear chain. A stream is
// the unit of consistency. Its name is <noun>/<id>, or one word if a tenant has only one of its
// kind.
//
// A ledger has one or more partitions; the number is fixed when the ledger is created. Each
// partition has its own positions, tree and checkpoints. Home finds the partition of a tenant.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/pooler"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/migrations"
)

// ServiceTenant is the tenant of events that belong to no organization.
const ServiceTenant = "service"

// Event is one committed row of the table events.
type Event struct {
	Partition     int16
	Position      int64 // dense in the partition, from 1
	Tenant        string
	Sequence      int64 // dense in the tenant's chain, from 1 (column tseq)
	Stream        string
	Version       int64 // dense in the stream, from 1
	ID            string
	Type          string
	SchemaVersion int
	More          int   // number of events that follow in the same append
	OccurredUS    int64 // microseconds since 1970 UTC; never decreases within a tenant
	Actor         string
	KeyID         string // id of the key that signed the record in the payload, or empty
	IdemKey       []byte // 32 bytes on the first event of an append, otherwise nil
	ContentHash   []byte // 32 bytes on the first event of an append, otherwise nil
	Payload       []byte // canonical JSON: exactly the bytes that were hashed
	PayloadHash   Hash
	Prev          Hash
	Hash          Hash

	// The event's numbers in two series: the tenant's and the agent's. All six fields are zero for
	// an event without a series, and the last three for an event without an agent.
	Series     string // name, from events.SeriesOf
	SeriesN    int64  // dense in the tenant's series, from 1
	SeriesPrev []byte // hash of the event with the previous number; nil at number 1
	Agent      string // id of the agent's data key
	AgentN     int64  // dense in the agent's series, from 1
	AgentPrev  []byte // hash of the event with the previous number; nil at number 1
}

// Occurred returns the time of the event by the clock of the node that appended it. It is never
// before the tenant's previous event, nor before Append.Issued and Append.NotBefore.
func (e Event) Occurred() time.Time { return time.UnixMicro(e.OccurredUS).UTC() }

// Number returns the event's number in the series of its agent, or in the series of its tenant if
// agent is empty. prev is the hash of the event with the previous number.
func (e Event) Number(agent string) (n int64, prev []byte) {
	if agent == "" {
		return e.SeriesN, e.SeriesPrev
	}
	return e.AgentN, e.AgentPrev
}

// LedgerPosition returns the position of the event in the form that envelopes of records use.
func (e Event) LedgerPosition() seal.LedgerPosition {
	return seal.LedgerPosition{Partition: e.Partition, Position: e.Position, Tenant: e.Tenant, Sequence: e.Sequence, EventHash: e.Hash.String()}
}

// Read decodes the payload into stored, a pointer to the current struct of the event's type. It
// accepts every schema version (package ledger/events).
func (e Event) Read(stored any) error { return events.Read(e.Type, e.SchemaVersion, e.Payload, stored) }

// Stored decodes the payload, as Read does, and returns the struct as a value.
func (e Event) Stored() (any, error) { return events.Stored(e.Type, e.SchemaVersion, e.Payload) }

// Signed returns the signed record in an event of any type. signed is false if the event has none.
func (e Event) Signed() (s events.Signed, signed bool, err error) {
	return events.ReadSigned(e.Type, e.SchemaVersion, e.Payload)
}

// Errors that callers branch on. After every error except ErrUnknown, nothing was appended.
var (
	ErrMoved       = errors.New("ledger: a stream that the append depends on has changed")
	ErrElsewhere   = errors.New("ledger: a precondition is in another partition than the append")
	ErrKeyReused   = errors.New("ledger: the idempotency key was used with other content")
	ErrLimit       = errors.New("ledger: the stream has reached its limit")
	ErrTooLarge    = errors.New("ledger: the append is too large")
	ErrBusy        = errors.New("ledger: too many appends are waiting")
	ErrRefused     = errors.New("ledger: the database does not accept appends now")
	ErrUnknown     = errors.New("ledger: it is not known whether the append was committed")
	ErrStopped     = errors.New("ledger: appends are stopped on this node")
	ErrUnavailable = errors.New("ledger: the database cannot be read now")
	ErrTampered    = errors.New("ledger: stored data was altered")
	ErrRollback    = errors.New("ledger: the database is older than its checkpoints") // every keeper.Rollback is this error
)

// Options are the settings of a ledger. The zero value suits production.
type Options struct {
	Clock func() time.Time // nil: the clock of the machine
	Log   *slog.Logger     // nil: the default logger
	// Partitions is the number of partitions that the ledger must have; 0 accepts any number.
	Partitions int
	// Tracer is called before and after each statement of this node. It may be nil.
	Tracer pgx.QueryTracer
	// Archive reads payloads that were moved out of the database. If it is nil, reading such an
	// event fails.
	Archive Archive
}

// Archive reads payloads that were moved out of the database. It is an interface because its only
// implementation, in package archive, imports this package.
type Archive interface {
	// Payload returns the payload of an event whose row has none. db is the ledger's pool.
	Payload(ctx context.Context, db *pgxpool.Pool, e *Event) ([]byte, error)
}

// Ledger gives one node access to the table of events. It is safe for concurrent use.
type Ledger struct {
	pool       *pgxpool.Pool
	resets     atomic.Int64 // number of times that the pool was reset
	clock      func() time.Time
	log        *slog.Logger
	partitions []*Partition   // indexed by number
	wake       wait.Broadcast // signalled after every commit of this node, and when another node may have appended
	own        wait.Broadcast // signalled after every commit of this node
	stop       context.CancelFunc
	done       sync.WaitGroup // waits for the listener, the notifier and the functions that Go has started
	turn       chan struct{}  // semaphore of InTurn
	archive    Archive        // nil: payloads outside the database cannot be read
	stats      Stats
	broken     atomic.Pointer[error] // reason why this node has stopped appends in all partitions

	background context.Context // ends with Close
	checked    atomic.Pointer[SelfCheck]
	found      atomic.Pointer[string] // first fault that a read has found since the last verification without faults
	suspicion  chan struct{}          // a value requests a verification
}

// Open connects to a migrated database with the rights of the application role, and starts the
// sequencers, the listener and the notifier. Close ends them.
func Open(ctx context.Context, databaseURL string, o Options) (*Ledger, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	pool, err := openPool(ctx, databaseURL, o.Tracer)
	if err != nil {
		return nil, err
	}
	l := &Ledger{pool: pool, clock: o.Clock, log: o.Log, archive: o.Archive, turn: make(chan struct{}, 1), suspicion: make(chan struct{}, 1)}
	origins, err := readPartitions(ctx, pool, o.Partitions)
	if err != nil {
		pool.Close()
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.background = stop, background
	for number, origin := range origins {
		p := &Partition{ledger: l, p: int16(number), origin: origin}
		p.seq = newSequencer(p, pool.Config().ConnConfig)
		l.partitions = append(l.partitions, p)
	}
	l.done.Go(func() { l.listen(background) })
	l.done.Go(func() { l.notify(background) })
	return l, nil
}

// Connect opens one connection with the role in the URL. Commands of the operator use it for work
// that the ledger's own role may not do.
func Connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	config, err := migrations.ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return conn, nil
}

func openPool(ctx context.Context, databaseURL string, tracer pgx.QueryTracer) (*pgxpool.Pool, error) {
	cfg, err := migrations.ParsePoolURL(databaseURL)
	if err != nil {
		return nil, err
	}
	var direct atomic.Bool // true once a connection has shown that there is no pooler
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if !direct.Load() {
			if err := pooler.Refuse(ctx, conn.PgConn(), &cfg.ConnConfig.Config); err != nil {
				return err
			}
			direct.Store(true)
		}
		return asApplication(ctx, conn)
	}
	cfg.ConnConfig.Tracer = tracer
	cfg.MaxConns = max(cfg.MaxConns, poolSize)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		if err = pool.Ping(ctx); err != nil {
			pool.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	return pool, nil
}

// asApplication switches the connection to the role that can insert events but not change them,
// and sets time-outs for stuck statements. It also stops the planner from choosing scans of the
// whole table and JIT compilation. Every statement of the ledger is a few index look-ups. But the
// planner's statistics lag behind a table that grows by thousands of rows a second, so it would
// scan the table, or compile the statement, which takes a tenth of a second.
func asApplication(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		set role countersign_app;
		set synchronous_commit = on;
		set enable_seqscan = off;
		set enable_bitmapscan = off;
		set jit = off;
		set default_transaction_isolation = 'read committed';
		set statement_timeout = '5s';
		set lock_timeout = '3s';
		set idle_in_transaction_session_timeout = '5s'`)
	return err
}

// Close refuses new appends, commits the waiting ones (for at most 5 s), and ends all goroutines
// and connections of the ledger. It may be called twice.
func (l *Ledger) Close() {
	var closing sync.WaitGroup
	for _, p := range l.partitions {
		closing.Go(p.seq.close)
	}
	closing.Wait()
	l.stop()
	l.done.Wait()
	l.pool.Close()
}

// Archive returns the archive that the ledger was opened with, or nil.
func (l *Ledger) Archive() Archive { return l.archive }

// Go runs a function of another package in the background. Close cancels its context and waits
// until it returns.
func (l *Ledger) Go(work func(context.Context)) { l.done.Go(func() { work(l.background) }) }

// Log returns the logger for messages to the operator.
func (l *Ledger) Log() *slog.Logger { return l.log }

// Now returns the time of the ledger's clock.
func (l *Ledger) Now() time.Time { return l.clock() }

// Pool returns the connection pool of the read models, which change their rows and their
// checkpoint in one transaction. No code may write events with it.
func (l *Ledger) Pool() *pgxpool.Pool { return l.pool }

// InTurn runs a short query of a reader that follows the ledger. It allows one query at a time on
// this node: a commit wakes all readers at once, and each would otherwise open a connection.
func (l *Ledger) InTurn(ctx context.Context, ask func() error) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		return ask()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refuse stops appends in all partitions of this node until the node is restarted. It returns the
// error that refused appends get. Reads continue.
func (l *Ledger) Refuse(reason error) error { return l.partitions[0].seq.halt(reason) }

// Stopped returns the reason why this node has stopped appends, or nil. Reads continue. A reason
// found in one partition stops the appends of all partitions, because it means that the database
// is not the expected one.
func (l *Ledger) Stopped() error {
	if err := l.broken.Load(); err != nil {
		return *err
	}
	return nil
}
