package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/pace"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/stored"
	"github.com/countersign/countersign/ledger/tree"
)

// run is the audit of one partition. One goroutine owns all fields except set, vault and verifier,
// which have their own locks.
type run struct {
	Options
	pool   *pgxpool.Pool
	p      int16
	n      int // number of partitions of the ledger
	report Report
	ring   ledger.Keyring
	keys   []ledger.Event // signing_key events as readKeys has read them
	met    []ledger.Event // signing_key events as the walk has found them
	set    *set
	vault  *auditVault

	archive *archive.Reader
	spans   []archive.Span // objects of the archive at the start of the audit

	verifier seal.Verifier

	head struct {
		pos, epoch int64
		hash       []byte
		missing    bool
	}
	tree     tree.Builder
	treeHead storedHead
	pins     []pinned
	seen     []seenEvent

	tenants  map[string]*tenantEnd
	last     edgeEvent // last event of the previous range
	erased   []erasure
	declared int64 // epoch of the last declared rollback
	unopened int64
	unread   int64 // number of archived payloads that were not read
	void     voided

	voidNotes int64 // number of checkpoints signed by a compromised key
}

// voided counts the records that a compromised key has signed. first is the position of the first
// one.
type voided struct{ first, count int64 }

// add adds the records of a later range.
func (v *voided) add(of voided) {
	if v.count == 0 {
		v.first = of.first
	}
	v.count += of.count
}

func (o Options) partition(ctx context.Context, pool *pgxpool.Pool, p int16, n int) (Report, error) {
	r := &run{Options: o, pool: pool, p: p, n: n, archive: archive.NewReader(o.Archive), tenants: map[string]*tenantEnd{},
		report: Report{Faults: []Fault{}, Trusted: []string{}, Gaps: []string{}}}
	if r.spanEvents == 0 {
		r.spanEvents = spanLength
	}
	r.set = newSet(o.spillOctets)
	defer r.set.close()
	for _, step := range []func(context.Context) error{r.readOutside, r.begin, r.readSpans, r.readKeys, r.readPins, r.walk, r.seenEvents, r.finishTree, r.dataKeys, r.directory, r.strayRows} {
		if err := step(ctx); err != nil {
			return r.report, err
		}
	}
	if err := r.set.check(ctx, r.pace(), r.fault); err != nil {
		return r.report, err
	}
	r.conclude()
	return r.report, nil
}

func (r *run) fault(f Fault) {
	if len(r.report.Faults) >= maxFaults {
		r.report.More = true
		return
	}
	r.report.Faults = append(r.report.Faults, f)
}

func (r *run) headFault(column, format string, args ...any) {
	r.fault(Fault{"ledger_head", fmt.Sprintf("p %d", r.p), 0, column, fmt.Sprintf(format, args...)})
}

// auditShare is the share for pace.New: while there are appends, a worker works for a hundredth of
// the time. Then the 99th percentile of the appends hardly changes, because about one append in a
// hundred, or fewer, has to wait for a worker.
const auditShare = 100

// pace returns a new pace for one goroutine of the audit.
func (r *run) pace() *pace.Pace {
	if r.FullSpeed {
		return &pace.Pace{}
	}
	return pace.New(auditShare, func(ctx context.Context) (head int64, err error) {
		err = r.pool.QueryRow(ctx, `select coalesce(max(pos), 0) from ledger_head where p = $1`, r.p).Scan(&head)
		return head, err
	})
}

// begin reads the tree head and then the ledger's head. The audit ignores events after the
// ledger's head.
func (r *run) begin(ctx context.Context) error {
	err := r.pool.QueryRow(ctx, `select size, root, edge from tree_head where p = $1`, r.p).Scan(&r.treeHead.size, &r.treeHead.root, &r.treeHead.edge)
	if errors.Is(err, pgx.ErrNoRows) {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "p", "there must be a row for each partition"})
	} else if err != nil {
		return fmt.Errorf("read tree head: %w", err)
	}
	var origin string
	err = r.pool.QueryRow(ctx, `select origin, epoch, pos, last_hash from ledger_head where p = $1`, r.p).
		Scan(&origin, &r.head.epoch, &r.head.pos, &r.head.hash)
	if errors.Is(err, pgx.ErrNoRows) {
		r.head.missing = true
		r.headFault("p", "there must be a row for each partition")
		err = r.pool.QueryRow(ctx, `select coalesce(max(pos), 0) from events where p = $1`, r.p).Scan(&r.head.pos)
	}
	if err != nil {
		return fmt.Errorf("read ledger head: %w", err)
	}
	if r.Origin != "" {
		r.Origin += fmt.Sprintf("/%d", r.p)
	}
	if r.Origin == "" {
		r.Origin = origin
		r.report.Trusted = append(r.report.Trusted, "the origin, which was read from the database: give it with --origin")
	} else if origin != r.Origin {
		r.headFault("origin", "must be %s", r.Origin)
	}
	r.report.Origin = r.Origin
	return nil
}

// readSpans lists the objects of the archive. Without the right to read the table it lists none;
// then the walk reports that the payload of an archived event is missing.
func (r *run) readSpans(ctx context.Context) error {
	var may bool
	err := r.pool.QueryRow(ctx, `select coalesce(has_table_privilege(to_regclass('archives'), 'select'), false)`).Scan(&may)
	if err == nil && may {
		r.spans, err = archive.Spans(ctx, r.pool, r.p)
	}
	if err != nil {
		return fmt.Errorf("read archives: %w", err)
	}
	return nil
}

// readKeys folds the stream of signing keys before the walk, because every range needs them.
func (r *run) readKeys(ctx context.Context) error {
	var err error
	if r.keys, err = r.stream(ctx, ledger.SigningKeyStream); err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	r.ring = ledger.Keyring{}
	for _, e := range r.keys {
		if err := r.ring.Apply(e); err != nil {
			r.fault(eventFault(e.Position, "payload", "%s", err))
		}
	}
	if r.Keys == nil {
		r.report.Trusted = append(r.report.Trusted, "the signing keys, which were read from the database: give them with --keys")
	}
	for id, key := range r.ring {
		if trusted, known := r.Keys[id]; r.Keys != nil && (!known || !trusted.Equal(key.Public)) {
			r.fault(eventFault(key.From, "payload", "the key %s is activated here, but is not among the trusted keys", id))
			delete(r.ring, id)
		}
	}
	if r.vault, err = newAuditVault(r.pool, r.p, r.KEK); err != nil {
		return err
	}
	return nil
}

// stream reads a stream of the service without checking it, because the walk reports the faults of
// all rows. Of the byte columns only the payload stays valid.
func (r *run) stream(ctx context.Context, name string) ([]ledger.Event, error) {
	rows, err := r.pool.Query(ctx, `select p, `+ledger.EventColumns+` from events where p = $1 and tenant = $2 and stream = $3 and pos <= $4 order by version`,
		r.p, ledger.ServiceIn(r.p), name, r.head.pos)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e ledger.Event, err error) {
		err = rawEvent(row.RawValues(), &e, map[string]string{})
		e.Payload = stored.Payload(bytes.Clone(e.Payload))
		return e, err
	})
}

// directory adds the rows of the table directory to the set, which compares them with the events.
// Events with directory entries are never archived, so the walk has read all their payloads.
func (r *run) directory(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select d.name, d.value, d.pos, d.pos > h.pos from directory d left join ledger_head h on h.p = d.p where d.p = $1`, r.p)
	if err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	var name, value string
	var position int64
	var afterHead *bool // nil if the partition has no head row
	if _, err = pgx.ForEachRow(rows, []any{&name, &value, &position, &afterHead}, func() error {
		if afterHead != nil && *afterHead || position <= r.head.pos { // otherwise the event was appended after this audit began
			r.set.add(kindEntry, position, position, name, value)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("read the directory: %w", err)
	}
	return nil
}

// conclude makes the checks that need the whole walk, and completes the report.
func (r *run) conclude() {
	if len(r.keys) != len(r.met) || !slices.EqualFunc(r.keys, r.met, func(a, b ledger.Event) bool { return a.Hash == b.Hash && a.Position == b.Position }) {
		r.fault(Fault{"events", "stream signing_key", 0, "stream", "the events contain other signing keys than the index of the stream finds"})
	}
	if want := max(r.declared, 1); !r.head.missing && r.head.epoch != want {
		r.headFault("epoch", "must be %d, the epoch of the last declared rollback", want)
	}
	if r.unopened > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("the personal members of %d events, which were not decrypted (DATA_KEK is not given, or the members are erased)", r.unopened))
	}
	if r.unread > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("the payloads of %d archived events, which were not read (countersign verify reads them)", r.unread))
	}
	if r.void.count > 0 {
		from := fmt.Sprint(r.void.first)
		if r.n > 1 {
			from = fmt.Sprintf("%d:%d", r.p, r.void.first)
		}
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("the records of %d events from position %s on, which a compromised key signed", r.void.count, from))
	}
	if r.voidNotes > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("anything that %d checkpoints would prove, because a compromised key signed them", r.voidNotes))
	}
	r.report.Tenants, r.report.Head, r.report.Hash = len(r.tenants), r.head.pos, r.last.hash.String()
	if r.head.pos == 0 {
		r.report.Hash = ledger.Hash(ledger.Genesis(r.Origin, "")).String()
	}
	slices.SortStableFunc(r.report.Faults, func(a, b Fault) int { return int(a.Position - b.Position) })
}
