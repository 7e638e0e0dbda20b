package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/migrations"
)

// Audit is how a database is verified. The zero value takes origin and keys from
// the database itself, and the report says so.
type Audit struct {
	Origin      string                       // without the partition: ledger.example.com/countersign
	Keys        map[string]ed25519.PublicKey // that the auditor holds, by id, of both purposes; nil: the database's
	Pins        []Pin                        // notes that the auditor has kept
	Outside     []checkpoint.Store           // places whose newest note is read, too, whatever else is brought
	KEK         []byte                       // opens personal members; nil: what they hide is not checked
	ChainOnly   bool                         // no records and signatures: chain, tree and head alone
	Workers     int                          // 0: one for each core
	FullSpeed   bool                         // also while others append, who lose what it takes
	Archive     checkpoint.Files             // where the archive lies; nil: what was archived cannot be read, which is an error
	Unarchived  bool                         // only what is in the database: of what was archived the chain alone
	Progress    func(events, head int64)     // told now and then
	spanEvents  int64                        // of one range; 0: auditSpan
	spillOctets int                          // of one bucket before it goes to a file; 0: spillOctets
}

// Pin is a checkpoint.Pin that an auditor kept outside of the database.
type Pin struct {
	Name  string // for people: where it came from
	Note  []byte // the pin's text: a note, and the last event seen of each tenant
	epoch int64  // of a note of Outside; 0: not known
}

const (
	// auditSpan is a range's length: a whole number of tiles, read in one short
	// statement. Nothing holds a snapshot over the walk: that would keep dead head
	// rows alive and slow every append down.
	auditSpan = 32 * tree.Width
	// auditAhead are ranges that may be done before their turn, per worker.
	auditAhead = 2
)

// AuditDatabase verifies a ledger, each partition from its first event to the head
// as it is at the start. It writes nothing, needs only the right to select, and
// takes no word of the database for granted that the audit brings itself. The error
// is of what could not be read; what is false is in the report.
func AuditDatabase(ctx context.Context, databaseURL string, a Audit) (Report, error) {
	cfg, err := migrations.ParsePoolURL(databaseURL)
	if err != nil {
		return Report{}, err
	}
	cfg.MaxConns = max(cfg.MaxConns, int32(a.workers())+4)
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set default_transaction_read_only = on; set enable_seqscan = off; set enable_bitmapscan = off`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return Report{}, fmt.Errorf("connect to the database: %w", err)
	}
	defer pool.Close()
	return a.all(ctx, pool)
}

// VerifyDatabase audits this ledger's own database, trusting what it says about
// its origin and keys, but not against the notes outside of it. progress, if not nil,
// hears the number of events now and then.
func (l *Ledger) VerifyDatabase(ctx context.Context, progress func(events, head int64), outside ...checkpoint.Store) (Report, error) {
	var report Report
	err := l.Reading(ctx, func() (err error) { // a pool may hold connections to a server that was restarted
		// Short ranges: this pool's statements end after 5 s.
		report, err = Audit{Origin: l.Base(), Archive: l.archive.files, Outside: outside, Progress: progress, spanEvents: 8 * tree.Width}.all(ctx, l.pool)
		return err
	})
	return report, err
}

func (a Audit) workers() int {
	if a.Workers > 0 {
		return a.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// pace is for one goroutine of the audit.
func (r *audit) pace() *Pace {
	if r.FullSpeed {
		return &Pace{}
	}
	return &Pace{head: func(ctx context.Context) (head int64, err error) {
		err = r.pool.QueryRow(ctx, `select coalesce(max(pos), 0) from ledger_head where p = $1`, r.p).Scan(&head)
		return head, err
	}}
}

// audit is one run. Its goroutine owns everything here but set, vault and verifier,
// which guard themselves.
type audit struct {
	Audit
	pool   *pgxpool.Pool
	p      int16
	n      int // partitions of the ledger
	report Report
	ring   Keyring
	keys   []Event // the signing_key stream as it was read first
	met    []Event // and as the walk met it
	set    *set
	vault  *auditVault

	archive *archive
	spans   []span // of the archive, when the audit began

	verifier seal.Verifier

	head struct {
		pos, epoch int64
		hash       Hash
	}
	tree     tree.Builder
	treeHead storedHead
	pins     []pinned
	seen     []seenEvent

	tenants  map[string]*tenantEnd
	last     edgeEvent // the last event of the range before
	erased   []erasure
	declared int64 // epoch of the last declared rollback
	unopened int64
	unread   int64 // payloads of the archive
	void     voided

	voidNotes int64 // checkpoints whose key is compromised
}

// voided are records that a compromised key signed.
type voided struct{ first, count int64 }

// add adds those of a later range.
func (v *voided) add(of voided) {
	if v.count == 0 {
		v.first = of.first
	}
	v.count += of.count
}

type storedHead struct {
	size       int64
	root, edge []byte
}

// pinned is a note to be met at its size.
type pinned struct {
	Pin
	checkpoint.Checkpoint
	met bool
}

// seenEvent is an event of a tenant that a pin knows.
type seenEvent struct {
	pin, tenant string
	checkpoint.Seen
}

// tenantEnd is a tenant's chain as far as the walk has come.
type tenantEnd struct {
	tenantHead
	policy string // hash of the active policy
}

func (a Audit) run(ctx context.Context, pool *pgxpool.Pool, p int16, n int) (Report, error) {
	r := &audit{Audit: a, pool: pool, p: p, n: n, archive: newArchive(a.Archive, pool), tenants: map[string]*tenantEnd{},
		report: Report{Faults: []Fault{}, Trusted: []string{}, Gaps: []string{}}}
	if r.spanEvents == 0 {
		r.spanEvents = auditSpan
	}
	r.set = newSet(a.spillOctets)
	defer r.set.close()
	for _, step := range []func(context.Context) error{r.readOutside, r.begin, r.readSpans, r.readKeys, r.readPins, r.walk, r.seenEvents, r.finishTree, r.dataKeys, r.strayRows} {
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

func (r *audit) fault(f Fault) {
	if len(r.report.Faults) >= maxFaults {
		r.report.More = true
		return
	}
	r.report.Faults = append(r.report.Faults, f)
}

// readOutside reads the newest note of each place outside of the database. It comes
// before begin reads the head, so that no note can be ahead of it on a good ledger.
func (r *audit) readOutside(ctx context.Context) error {
	if len(r.Outside) == 0 {
		return nil
	}
	origin := fmt.Sprintf("%s/%d", r.Origin, r.p)
	if r.Origin == "" {
		err := r.pool.QueryRow(ctx, `select origin from ledger_head where p = $1`, r.p).Scan(&origin)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // begin says so
		} else if err != nil {
			return fmt.Errorf("read ledger head: %w", err)
		}
	}
	r.Pins = slices.Clone(r.Pins)
	for _, store := range r.Outside {
		epoch, text, err := store.Newest(ctx, origin)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.othersIn(store, origin)
		case err != nil:
			r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("that no checkpoint in %s knows more: it could not be read: %v", store, err))
		default:
			r.Pins = append(r.Pins, Pin{store.String(), text, epoch})
		}
	}
	return nil
}

// othersIn says that a folder has checkpoints of other ledgers and none of this one: who
// replaces a ledger as a whole gives the new one another origin.
func (r *audit) othersIn(store checkpoint.Store, origin string) {
	folder, ok := store.(checkpoint.Folder)
	if !ok || r.p > 0 {
		return
	}
	if others := folder.Ledgers(); len(others) > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("that %s is the ledger it was: %s has no checkpoint of it, and has some of %s", origin, folder, others[0]))
	}
}

// begin notes the tree head and then the head: what is appended later is not looked
// at.
func (r *audit) begin(ctx context.Context) error {
	err := r.pool.QueryRow(ctx, `select size, root, edge from tree_head where p = $1`, r.p).Scan(&r.treeHead.size, &r.treeHead.root, &r.treeHead.edge)
	if errors.Is(err, pgx.ErrNoRows) {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "p", "want a row for each partition"})
	} else if err != nil {
		return fmt.Errorf("read tree head: %w", err)
	}
	var origin string
	err = r.pool.QueryRow(ctx, `select origin, epoch, pos, last_hash from ledger_head where p = $1`, r.p).
		Scan(&origin, &r.head.epoch, &r.head.pos, &r.head.hash)
	if errors.Is(err, pgx.ErrNoRows) {
		r.fault(Fault{"ledger_head", fmt.Sprintf("p %d", r.p), 0, "p", "want a row for each partition"})
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
		r.report.Trusted = append(r.report.Trusted, "the origin, which the database gave: name it with --origin")
	} else if origin != r.Origin {
		r.headFault("origin", "want %s", r.Origin)
	}
	r.report.Origin = r.Origin
	return nil
}

// readSpans lists what lies in the archive. Who may not ask needs no archive, or meets
// an event without a payload and hears so then.
func (r *audit) readSpans(ctx context.Context) error {
	var may bool
	err := r.pool.QueryRow(ctx, `select coalesce(has_table_privilege(to_regclass('archives'), 'select'), false)`).Scan(&may)
	if err == nil && may {
		r.spans, err = r.archive.spans(ctx, r.p, `order by first`)
	}
	if err != nil {
		return fmt.Errorf("read archives: %w", err)
	}
	return nil
}

func (r *audit) headFault(column, format string, args ...any) {
	r.fault(Fault{"ledger_head", fmt.Sprintf("p %d", r.p), 0, column, fmt.Sprintf(format, args...)})
}

// readKeys folds the signing keys first: every range needs them.
func (r *audit) readKeys(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select p, `+EventColumns+` from events where p = $1 and tenant = $2 and stream = $3 and pos <= $4 order by version`,
		r.p, ServiceIn(r.p), SigningKeyStream, r.head.pos)
	if err == nil {
		r.keys, err = pgx.CollectRows(rows, ScanEvent)
	}
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	r.ring = Keyring{}
	for _, e := range r.keys {
		if err := r.ring.Apply(e); err != nil {
			r.fault(eventFault(e.Position, "payload", "%s", err))
		}
	}
	if r.Keys == nil {
		r.report.Trusted = append(r.report.Trusted, "the signing keys, which the database gave: bring them with --keys")
	}
	for id, key := range r.ring {
		if trusted, known := r.Keys[id]; r.Keys != nil && (!known || !trusted.Equal(key.Public)) {
			r.fault(eventFault(key.From, "payload", "the key %s is activated here, and it is not among those you trust", id))
			delete(r.ring, id)
		}
	}
	if r.vault, err = newAuditVault(r.pool, r.p, r.KEK); err != nil {
		return err
	}
	return nil
}

// readPins opens the notes that were kept outside.
func (r *audit) readPins(ctx context.Context) error {
	for _, pin := range r.Pins {
		kept, err := checkpoint.ParsePin(pin.Note)
		if err != nil {
			r.fault(Fault{"checkpoints", "pinned by " + pin.Name, 0, "note", err.Error()})
			continue
		}
		for tenant, seen := range kept.Tenants {
			if Home(tenant, r.n) == r.p {
				r.seen = append(r.seen, seenEvent{pin.Name, tenant, seen})
			}
		}
		if err := r.readPin(ctx, pin, kept.Note); err != nil {
			return err
		}
	}
	if len(r.Pins) == 0 {
		r.report.Gaps = append(r.report.Gaps, "that history was not replaced before you first saw it (no --pin given)")
	}
	slices.SortFunc(r.pins, func(a, b pinned) int { return int(a.Size - b.Size) })
	return nil
}

func (r *audit) readPin(ctx context.Context, pin Pin, note []byte) error {
	c, void, err := r.ring.OpenNote(note, r.Origin)
	if err == nil && pin.epoch > 0 && pin.epoch < r.head.epoch { // kept before a rollback that was declared since
		if declared, err := r.declaredLoss(ctx, c.Size); declared || err != nil {
			return err
		}
	}
	if err != nil {
		r.fault(Fault{"checkpoints", "pinned by " + pin.Name, 0, "note", err.Error()})
		if pin.epoch == 0 || c.Size <= r.head.pos {
			return nil
		} // a ledger from before its checkpoint key was activated does not know the key of its own note
	}
	switch {
	case void:
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("anything by the note of %s, which a compromised key signed", pin.Name))
	case c.Size > r.head.pos:
		r.fault(Fault{"events", fmt.Sprintf("pos %d to %d", r.head.pos+1, c.Size), r.head.pos + 1, "pos",
			fmt.Sprintf("ROLLBACK: they are missing; %s has a checkpoint of %d events", pin.Name, c.Size)})
	case pin.epoch > r.head.epoch:
		r.headFault("epoch", "ROLLBACK: %s has a checkpoint of epoch %d", pin.Name, pin.epoch)
	default:
		r.pins = append(r.pins, pinned{Pin: pin, Checkpoint: c})
	}
	return nil
}

// declaredLoss says whether an accepted rollback covers the loss of a size. The walk
// checks who signed it.
func (r *audit) declaredLoss(ctx context.Context, size int64) (bool, error) {
	rows, err := r.pool.Query(ctx, `select p, `+EventColumns+` from events where p = $1 and tenant = $2 and stream = $3 and pos <= $4 order by version`,
		r.p, ServiceIn(r.p), CheckpointStream, r.head.pos)
	if err != nil {
		return false, fmt.Errorf("read declared rollbacks: %w", err)
	}
	stored, err := pgx.CollectRows(rows, ScanEvent)
	if err != nil {
		return false, fmt.Errorf("read declared rollbacks: %w", err)
	}
	return slices.ContainsFunc(stored, func(e Event) bool {
		loss, ok := declaration(e)
		return ok && loss.LostFrom <= size && size <= loss.LostTo
	}), nil
}

// seenEvents looks for the events that pins know by tenant and sequence.
func (r *audit) seenEvents(ctx context.Context) error {
	for _, seen := range r.seen {
		var hash Hash
		var position int64
		err := r.pool.QueryRow(ctx, `select pos, hash from events where p = $1 and tenant = $2 and tseq = $3`, r.p, seen.tenant, seen.Sequence).Scan(&position, &hash)
		row := fmt.Sprintf("tenant %s, tseq %d", seen.tenant, seen.Sequence)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			r.fault(Fault{"events", row, 0, "tseq", fmt.Sprintf("ROLLBACK: it is missing; %s has seen it", seen.pin)})
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		case hash.String() != seen.Hash:
			r.fault(Fault{"events", row, position, "hash", fmt.Sprintf("FORK: %s has seen another event with this sequence: %s", seen.pin, seen.Hash)})
		}
	}
	return nil
}

// walk reads the ranges in parallel and joins them in order.
func (r *audit) walk(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	n := r.workers()
	turns := make(chan chan spanResult, n*auditAhead)
	jobs := make(chan func())
	for range n {
		go func() {
			pace := r.pace()
			for job := range jobs {
				_ = pace.Rest(ctx) // what fails here fails the job, too, which says so
				job()
			}
		}()
	}
	go func() {
		defer close(turns)
		defer close(jobs)
		for from := int64(0); from < r.head.pos; from += r.spanEvents {
			turn := make(chan spanResult, 1)
			from, to := from, min(from+r.spanEvents, r.head.pos)
			select {
			case turns <- turn:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- func() { turn <- r.span(ctx, from, to) }:
			case <-ctx.Done():
				turn <- spanResult{err: ctx.Err()}
				return
			}
		}
	}()
	for turn := range turns {
		found := <-turn
		if found.err != nil {
			return fmt.Errorf("read events: %w", found.err)
		}
		if err := r.join(ctx, &found); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.report.Events, r.head.pos)
		}
	}
	if r.last.more > 0 {
		r.fault(eventFault(r.last.position, "more", "the ledger ends within an append of which %d events are missing", r.last.more))
	}
	if r.last.position != r.head.pos {
		r.headFault("pos", "the last event is at %d", r.last.position)
	}
	want := Genesis(r.Origin, "")
	if r.head.pos > 0 {
		want = r.last.hash
	}
	if r.head.hash != want {
		r.headFault("last_hash", "want %s, the hash of the event at %d", want, r.head.pos)
	}
	return nil
}

// join puts a range behind those before it.
func (r *audit) join(ctx context.Context, s *spanResult) error {
	for _, f := range s.faults {
		r.fault(f)
	}
	r.report.Events += int64(len(s.hashes))
	r.report.Records += s.records
	r.unopened += s.unopened
	r.unread += s.unread
	r.void.add(s.void)
	for tenant, span := range s.tenants {
		r.joinTenant(tenant, span)
	}
	if s.first.position > 0 {
		if f := groupFault(r.last, s.first); f != nil {
			r.fault(*f)
		}
		r.last = s.last
	}
	r.met = append(r.met, s.keys...)
	r.erased = append(r.erased, s.erased...)
	for _, epoch := range s.declared {
		if epoch <= max(r.declared, 1) {
			r.fault(eventFault(s.to, "payload", "a declared rollback names epoch %d after epoch %d", epoch, max(r.declared, 1)))
		}
		r.declared = epoch
	}
	return r.growTree(ctx, s)
}

func (r *audit) joinTenant(tenant string, s *tenantSpan) {
	end := r.tenants[tenant]
	if end == nil {
		if home := Home(tenant, r.n); home != r.p {
			r.fault(eventFault(s.first.position, "p", "want %d of %d, where tenant %s is at home", home, r.n, tenant))
		}
		end = &tenantEnd{tenantHead: tenantHead{hash: Genesis(r.Origin, tenant)}}
		r.tenants[tenant] = end
	}
	for _, f := range chainFaults(s.first, end.tenantHead, tenant) {
		r.fault(f)
	}
	if s.needs.policy != "" && s.needs.policy != end.policy {
		r.fault(eventFault(s.needs.position, "payload", "the decision names policy %s, and the active one was %q", s.needs.policy, end.policy))
	}
	end.tenantHead = s.last
	if s.policy != "" {
		end.policy = s.policy
	}
}

// conclude compares what only the end of the walk knows.
func (r *audit) conclude() {
	if len(r.keys) != len(r.met) || !slices.EqualFunc(r.keys, r.met, func(a, b Event) bool { return a.Hash == b.Hash && a.Position == b.Position }) {
		r.fault(Fault{"events", "stream signing_key", 0, "stream", "the walk met other signing keys than the look-up by stream"})
	}
	if want := max(r.declared, 1); r.head.epoch != 0 && r.head.epoch != want {
		r.headFault("epoch", "want %d, that of the last declared rollback", want)
	}
	if r.unopened > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("the personal members of %d events, which were not opened (DATA_KEK is not given, or they are erased)", r.unopened))
	}
	if r.unread > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("what stands in the payloads of %d archived events, which were not read (countersign verify reads them)", r.unread))
	}
	if r.void.count > 0 {
		from := fmt.Sprint(r.void.first)
		if r.n > 1 {
			from = fmt.Sprintf("%d:%d", r.p, r.void.first)
		}
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("the records of %d events from position %s on, which a compromised key signed", r.void.count, from))
	}
	if r.voidNotes > 0 {
		r.report.Gaps = append(r.report.Gaps, fmt.Sprintf("anything by %d checkpoints, which a compromised key signed", r.voidNotes))
	}
	r.report.Tenants, r.report.Head, r.report.Hash = len(r.tenants), r.head.pos, r.last.hash.String()
	if r.head.pos == 0 {
		r.report.Hash = Hash(Genesis(r.Origin, "")).String()
	}
	slices.SortStableFunc(r.report.Faults, func(a, b Fault) int { return int(a.Position - b.Position) })
}

// strayRows looks for rows where none may be. The first partition looks for those of
// partitions that the ledger does not have.
func (r *audit) strayRows(ctx context.Context) error {
	if r.p == 0 {
		if err := r.strayPartitions(ctx); err != nil {
			return err
		}
	}
	// One statement sees one state: an event behind the head was never appended.
	rows, err := r.pool.Query(ctx, `select e.pos from ledger_head h join events e on e.p = h.p and e.pos > h.pos where h.p = $1 limit 20`, r.p)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var position int64
	if _, err = pgx.ForEachRow(rows, []any{&position}, func() error {
		r.fault(eventFault(position, "pos", "it stands behind the head"))
		return nil
	}); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	return nil
}

func (r *audit) strayPartitions(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select e.p, e.pos from events e where e.p >= $1 limit 20`, r.n)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	var p int16
	var position int64
	if _, err = pgx.ForEachRow(rows, []any{&p, &position}, func() error {
		r.fault(Fault{"events", fmt.Sprintf("p %d, pos %d", p, position), position, "p", fmt.Sprintf("want less than %d, the number of partitions", r.n)})
		return nil
	}); err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for _, table := range []string{"ledger_head", "tree_head", "tiles", "checkpoints", "subject_keys"} {
		if err := r.pool.QueryRow(ctx, `select count(*) from `+table+` where p >= $1`, r.n).Scan(&position); err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if position > 0 {
			r.fault(Fault{table, fmt.Sprintf("%d rows", position), 0, "p", fmt.Sprintf("want less than %d, the number of partitions", r.n)})
		}
	}
	return nil
}

// growTree adds the leaves of a range, comparing every tile, checkpoint and pin on
// the way.
func (r *audit) growTree(ctx context.Context, s *spanResult) error {
	notes, err := r.readNotes(ctx, s.from, s.to)
	if err != nil {
		return err
	}
	var full []tree.Tile
	for _, hash := range s.hashes {
		r.tree.Add(tree.Leaf(hash), func(t tree.Tile) { full = append(full, t) })
		size := r.tree.Size()
		for len(notes) > 0 && notes[0].size == size {
			r.checkNote(notes[0])
			notes = notes[1:]
		}
		for i := range r.pins {
			if pin := &r.pins[i]; pin.Size == size {
				pin.met = true
				if pin.Root != r.tree.Root() {
					r.fault(Fault{"events", fmt.Sprintf("pos 1 to %d", size), 0, "hash", "FORK: they are not the events that the checkpoint of " + pin.Name + " vouches for"})
				}
			}
		}
		if size == r.treeHead.size {
			r.checkTreeHead()
			if err := r.compareTiles(ctx, r.tree.Tiles(), true); err != nil {
				return err
			}
		}
	}
	if limit := r.treeHead.size; r.tree.Size() > limit { // tiles are made up to the tree head
		full = slices.DeleteFunc(full, func(t tree.Tile) bool { return (t.N+1)<<(tree.Height*(t.Level+1)) > limit })
	}
	return r.compareTiles(ctx, full, false)
}

type storedNote struct {
	size int64
	root []byte
	note string
}

func (r *audit) readNotes(ctx context.Context, from, to int64) ([]storedNote, error) {
	rows, err := r.pool.Query(ctx, `select size, root, note from checkpoints where p = $1 and size > $2 and size <= $3 order by size`, r.p, from, to)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	notes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n storedNote, err error) {
		return n, row.Scan(&n.size, &n.root, &n.note)
	})
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return notes, nil
}

func (r *audit) checkNote(n storedNote) {
	r.report.Checkpoints++
	row, root := fmt.Sprintf("size %d", n.size), r.tree.Root()
	if !bytes.Equal(n.root, root[:]) {
		r.fault(Fault{"checkpoints", row, n.size, "root", fmt.Sprintf("the events have the root %x", root)})
	}
	c, void, err := r.ring.OpenNote([]byte(n.note), r.Origin)
	if void {
		r.voidNotes++
	}
	switch {
	case err != nil:
		r.fault(Fault{"checkpoints", row, n.size, "note", err.Error()})
	case c.Size != n.size || c.Root != root:
		r.fault(Fault{"checkpoints", row, n.size, "note", "it is a note of another size or root"})
	}
}

func (r *audit) checkTreeHead() {
	root := r.tree.Root()
	var edge []byte
	for _, h := range r.tree.Edge() {
		edge = append(edge, h[:]...)
	}
	row := fmt.Sprintf("p %d", r.p)
	if !bytes.Equal(r.treeHead.root, root[:]) {
		r.fault(Fault{"tree_head", row, 0, "root", fmt.Sprintf("the first %d events have the root %x", r.treeHead.size, root)})
	}
	if !bytes.Equal(r.treeHead.edge, edge) {
		r.fault(Fault{"tree_head", row, 0, "edge", fmt.Sprintf("it is not the edge of %d events", r.treeHead.size)})
	}
}

// compareTiles compares stored tiles with those the events give. A partial one may
// have grown since the tree head was read.
func (r *audit) compareTiles(ctx context.Context, want []tree.Tile, partial bool) error {
	if len(want) == 0 {
		return nil
	}
	found, err := readTiles(ctx, r.pool, r.p, want)
	if err != nil {
		return err
	}
	for i, w := range want {
		got := found[i].Data
		if partial && len(got) > len(w.Data) {
			var size int64
			if err := r.pool.QueryRow(ctx, `select size from tree_head where p = $1`, r.p).Scan(&size); err != nil {
				return fmt.Errorf("read tree head: %w", err)
			}
			if size > r.treeHead.size {
				got = got[:len(w.Data)]
			}
		}
		row := fmt.Sprintf("level %d, n %d", w.Level, w.N)
		switch {
		case len(got) == 0:
			r.fault(Fault{"tiles", row, 0, "data", "want a tile: every proof rests on it"})
		case !bytes.Equal(got, w.Data):
			r.fault(Fault{"tiles", row, 0, "data", "it does not hold the hashes of these events"})
		}
	}
	return nil
}

// finishTree looks at what lies beyond the events: a tree head, tiles, checkpoints
// and pins for which there are none.
func (r *audit) finishTree(ctx context.Context) error {
	if r.treeHead.size == 0 {
		r.checkTreeHead0()
	}
	if r.treeHead.size > r.head.pos {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "size", fmt.Sprintf("the ledger ends at position %d", r.head.pos)})
	}
	for _, pin := range r.pins {
		if !pin.met && pin.Size > 0 {
			r.fault(Fault{"events", fmt.Sprintf("pos %d", pin.Size), pin.Size, "pos", "the checkpoint of " + pin.Name + " was not met"})
		}
	}
	var beyond int64
	if err := r.pool.QueryRow(ctx, `select count(*) from checkpoints c where p = $1 and size > (select pos from ledger_head h where h.p = c.p)`, r.p).Scan(&beyond); err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	if beyond > 0 {
		r.fault(Fault{"checkpoints", fmt.Sprintf("%d rows", beyond), 0, "size", "they are of more events than there are"})
	}
	if err := r.pool.QueryRow(ctx, `select count(*) from checkpoints where p = $1 and size = 0`, r.p).Scan(&beyond); err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	if beyond > 0 {
		r.fault(Fault{"checkpoints", "size 0", 0, "size", "nobody signs an empty ledger"})
	}
	return r.strayTiles(ctx)
}

func (r *audit) checkTreeHead0() {
	empty := tree.Empty()
	if len(r.treeHead.edge) > 0 || !bytes.Equal(r.treeHead.root, empty[:]) {
		r.fault(Fault{"tree_head", fmt.Sprintf("p %d", r.p), 0, "root", "want the root and the edge of no events"})
	}
}

// strayTiles finds tiles that the tree does not have. Both are read at one moment: a
// tree that grows beside the audit has tiles that an earlier head did not know.
func (r *audit) strayTiles(ctx context.Context) error {
	rows, err := r.pool.Query(ctx, `select level, n, size from tiles, (select coalesce(max(size), 0) size from tree_head where p = $1) head where p = $1
		and (level > 7 or n * 256 >= (size >> (8 * least(level, 7)))) order by level, n limit 20`, r.p)
	if err != nil {
		return fmt.Errorf("read tiles: %w", err)
	}
	var level int16
	var n, size int64
	if _, err = pgx.ForEachRow(rows, []any{&level, &n, &size}, func() error {
		r.fault(Fault{"tiles", fmt.Sprintf("level %d, n %d", level, n), 0, "n", fmt.Sprintf("a tree of %d events has no such tile", size)})
		return nil
	}); err != nil {
		return fmt.Errorf("read tiles: %w", err)
	}
	return nil
}
