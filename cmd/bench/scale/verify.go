package scale

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// Verify measures an auditor's verify compared with a bare read of the same rows, on its own
// PostgreSQL. It also measures how much verify slows appends down, the cost of checkpoints, and
// the rebuild of read models.
type Verify struct {
	Only   []string      `help:"Parts to measure: ${enum}. Default: all." enum:"tree,appends,checkpoints,signatures,rebuild,archive"`
	Events []int64       `help:"Sizes at which chain and tree are verified; memory should not grow with them." default:"10000,100000,1000000"`
	Signed int           `help:"Signed decisions to verify with their signatures." default:"20000"`
	Agents []int         `help:"Numbers of agents; their ids are encrypted, so that each decision needs a second signature. 0: decisions without an agentId." default:"0,100"`
	Runs   int           `help:"Number of runs of each measurement. Medians are printed, and percentiles of all latencies." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`

	Profile string `help:"Write a CPU profile of the verification with signatures to this file."`
}

// wants reports whether at least one of these parts is to be measured.
func (c *Verify) wants(parts ...string) bool {
	return len(c.Only) == 0 || slices.ContainsFunc(parts, func(part string) bool { return slices.Contains(c.Only, part) })
}

// Run prints one line for each size, and then the other costs.
func (c *Verify) Run(ctx context.Context) error {
	if c.wants("tree", "appends", "checkpoints") {
		if err := c.plain(ctx); err != nil {
			return err
		}
	}
	for _, agents := range c.Agents {
		if c.wants("signatures", "rebuild", "archive") {
			if err := c.signed(ctx, agents); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain measures the parts that need no signatures, on a ledger of small events.
func (c *Verify) plain(ctx context.Context) error {
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if c.wants("tree") {
		if err := c.sizes(ctx, s); err != nil {
			return err
		}
	}
	if err := fill(ctx, s, c.Events[0]); err != nil { // fill the ledger if the part "tree" was not measured
		return err
	}
	if c.wants("appends") {
		if err := appendsWhile(ctx, s, "verify", c.Runs, c.During, "audit", s.App, "--repeat"); err != nil {
			return err
		}
	}
	if c.wants("checkpoints") {
		return c.checkpoints(ctx, s)
	}
	return nil
}

// sizes verifies chain and tree while the ledger grows, on one core.
func (c *Verify) sizes(ctx context.Context, s *rig.Scratch) error {
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "verified/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Events {
		if err := c.size(ctx, s, size); err != nil {
			return err
		}
	}
	return nil
}

func (c *Verify) size(ctx context.Context, s *rig.Scratch, size int64) error {
	if err := fill(ctx, s, size); err != nil {
		return err
	}
	if err := cover(ctx, s); err != nil {
		return err
	}
	var reads, audits []run
	for range c.Runs {
		for kind, into := range map[string]*[]run{"read": &reads, "audit": &audits} {
			r, err := onCores(ctx, s, 1, kind, s.App)
			if err != nil {
				return err
			}
			*into = append(*into, r)
		}
	}
	printCompared(middle(reads), middle(audits))
	return nil
}

// checkpoints compares three rates: 64 concurrent appends while checkpoints are written, the same
// appends without checkpoints, and the anchor. The order alternates between rounds. It also prints
// the lag: the time from an append until a signed checkpoint covers it.
func (c *Verify) checkpoints(ctx context.Context, s *rig.Scratch) error {
	var costs, ratios []float64
	var lags []time.Duration
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	for round := range c.Runs {
		var a, without, with rig.Sample
		steps := []func() error{
			func() (err error) { a, err = rig.Anchor(ctx, s, 64, c.During); return err },
			func() (err error) { without, err = rig.AppendLoad(ctx, s, 1, 64, c.During, rig.Payload); return err },
			func() error {
				measured, waited, err := checkpointed(ctx, s, c.During, notes)
				with, lags = measured, append(lags, waited...)
				return err
			},
		}
		if round%2 == 1 {
			slices.Reverse(steps)
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		cost, ratio := 100*(1-with.PerSecond/without.PerSecond), with.PerSecond/a.PerSecond
		fmt.Printf("appends, 64 in flight, round %d: anchor %.0f/s, without checkpoints %.0f/s, with %.0f/s: cost %.0f %%, %.2f x the anchor\n",
			round+1, a.PerSecond, without.PerSecond, with.PerSecond, cost, ratio)
		costs, ratios = append(costs, cost), append(ratios, ratio)
	}
	slices.Sort(lags)
	if len(lags) == 0 {
		return errors.New("no checkpoint was made in that time: use a longer --during")
	}
	slices.Sort(costs)
	slices.Sort(ratios)
	fmt.Printf("checkpoints: median cost %.0f %%, %.2f x the anchor with them; lag p50 %s s, max %s s\n",
		costs[len(costs)/2], ratios[len(ratios)/2], seconds(lags[len(lags)/2]), seconds(lags[len(lags)-1]))
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

// checkpointed runs a load of appends on a ledger for which checkpoints are written. It returns
// the result and the lags.
func checkpointed(ctx context.Context, s *rig.Scratch, during time.Duration, notes string) (rig.Sample, []time.Duration, error) {
	l, err := rig.OpenLedger(ctx, s)
	if err != nil {
		return rig.Sample{}, nil, err
	}
	defer l.Close()
	if err := keepCheckpoints(ctx, l, notes); err != nil {
		return rig.Sample{}, nil, err
	}
	// First wait until earlier events are covered, so that their checkpoints do not count in this
	// measurement.
	if err := covered(ctx, l.Home(ledger.ServiceTenant)); err != nil {
		return rig.Sample{}, nil, err
	}
	name := fmt.Sprint("bench/", time.Now().UnixNano())
	appended := func(caller, n int) (int64, error) {
		stream := fmt.Sprintf("%s/%d/%d", name, caller, n)
		r, err := l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Events: []ledger.Pending{rig.Event(stream, rig.Payload)}})
		if err != nil {
			return 0, err
		}
		return r.Events[0].Position, nil
	}
	const watchers = 8
	var mu sync.Mutex // guards lags
	var lags []time.Duration
	var watching sync.WaitGroup
	ends, stop := context.WithCancel(ctx)
	for watcher := range watchers {
		watching.Go(func() {
			for n := 0; ends.Err() == nil; n++ {
				position, err := appended(-1-watcher, n)
				began := time.Now()
				if err == nil && keeper.Covered(ends, l.Home(ledger.ServiceTenant), position) != nil {
					mu.Lock()
					lags = append(lags, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	result, err := rig.Load(64, during, func(caller, n int) error { _, err := appended(caller, n); return err })
	stop()
	watching.Wait()
	return result, lags, err
}

// signed verifies decisions with their signatures on one core and on two. It compares the time
// with that of a bare read, and with that of a bare check of as many signatures. Then it rebuilds
// the read models.
func (c *Verify) signed(ctx context.Context, agents int) error {
	service, err := decided(ctx, c.Signed, agents)
	if err != nil {
		return err
	}
	defer service.Close()
	read, err := medianRun(c.Runs, func() (run, error) { return onCores(ctx, service.Scratch, 1, "read", service.Scratch.App) })
	if err != nil {
		return err
	}
	if c.wants("signatures") {
		if err := c.signatures(ctx, service, read); err != nil {
			return err
		}
	}
	if c.wants("rebuild") {
		if err := c.rebuild(ctx, service); err != nil {
			return err
		}
	}
	if c.wants("archive") {
		return archived(ctx, service)
	}
	return nil
}

// archived moves the payloads of all signed events to an archive in a folder and prints the rate.
func archived(ctx context.Context, service *decidedService) error {
	folder, err := os.MkdirTemp("", "countersign-archive-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := cover(ctx, service.Scratch); err != nil {
		return err
	}
	var moved int64
	began := time.Now()
	used, err := service.Scratch.Spent(func() (err error) {
		moved, err = archive.Move(ctx, service.App.Ledger, archive.Options{OwnerURL: service.Scratch.Owner, Files: checkpoint.Folder{Path: folder},
			Signer: service.App.Signer, Before: began.Add(time.Hour)})
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("archive move: %d events, %.0f/s, us of CPU %s\n", moved, float64(moved)/time.Since(began).Seconds(), used.Per(int(moved)))
	return nil
}

// rebuild adds receipts and workflows to the ledger, rebuilds each read model alone and prints its
// line.
func (c *Verify) rebuild(ctx context.Context, service *decidedService) error {
	if err := service.everyday(ctx); err != nil {
		return err
	}
	read, err := medianRun(c.Runs, func() (run, error) { return onCores(ctx, service.Scratch, 1, "read", service.Scratch.App) })
	if err != nil {
		return err
	}
	fmt.Printf("%-16s %10s %14s %14s %8s\n", "read model", "events", "bare read/s", "rebuilt/s", "ratio")
	for _, name := range projections.Names() {
		r, err := medianRun(c.Runs, func() (run, error) {
			began := time.Now()
			position, err := projections.Rebuild(ctx, service.App.Ledger, slog.New(slog.DiscardHandler), name)
			return run{Events: position, Seconds: time.Since(began).Seconds()}, err
		})
		if err != nil {
			return err
		}
		fmt.Printf("%-16s %10d %14.0f %14.0f %8.2f\n", name, r.Events, read.perSecond(), r.perSecond(), r.perSecond()/read.perSecond())
	}
	return nil
}

// signatures prints one line for each number of cores.
func (c *Verify) signatures(ctx context.Context, service *decidedService, read run) error {
	alone, err := medianRun(c.Runs, func() (run, error) { return onCores(ctx, service.Scratch, 1, "check-signatures", service.Scratch.App) })
	if err != nil {
		return err
	}
	signed := map[bool]string{true: "once", false: "twice"}[service.agents == 0]
	fmt.Printf("%-12s %8s %6s %14s %16s %14s %24s %10s\n", "events", "signed", "cores", "bare read/s", "bare Ed25519/s", "verified/s", "us of CPU, program + db", "peak MB")
	for cores := 1; cores <= min(2, runtime.NumCPU()); cores++ {
		r, err := medianRun(c.Runs, func() (run, error) {
			return onCores(ctx, service.Scratch, cores, "audit", service.Scratch.App, "--signatures", "--profile="+c.Profile)
		})
		if err != nil {
			return err
		}
		fmt.Printf("%-12d %8s %6d %14.0f %16.0f %14.0f %24s %10d\n", r.Events, signed, cores, read.perSecond(), alone.perSecond(), r.perSecond(),
			r.cpuPerEvent(), r.PeakMB)
	}
	return nil
}

// medianRun runs a measurement several times and returns the median.
func medianRun(runs int, once func() (run, error)) (run, error) {
	var all []run
	for range runs {
		r, err := once()
		if err != nil {
			return r, err
		}
		all = append(all, r)
	}
	return middle(all), nil
}

// cover writes checkpoints until one covers every event of the scratch ledger.
func cover(ctx context.Context, s *rig.Scratch) error {
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	l, err := rig.OpenLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := keepCheckpoints(ctx, l, notes); err != nil {
		return err
	}
	return covered(ctx, l.Home(ledger.ServiceTenant))
}

// covered waits until a checkpoint covers every event of the partition.
func covered(ctx context.Context, p *ledger.Partition) error {
	head, err := p.Head(ctx)
	if err == nil && keeper.Covered(ctx, p, head) == nil {
		err = errors.New("no checkpoint covers the events")
	}
	return err
}

// checkpointSeed is the seed of the key that signs checkpoints.
var checkpointSeed = append(make([]byte, 31), 1)

func keepCheckpoints(ctx context.Context, l *ledger.Ledger, notes string) error {
	signer, err := seal.NewSigner(checkpointSeed)
	if err != nil {
		return err
	}
	app := commands.New(&ground.Ground{Ledger: l, Clock: time.Now})
	return keeper.Start(ctx, l, keeper.Options{Signer: signer, Folder: checkpoint.Folder{Path: notes}}, func() string { return app.NewID("evt_") })
}

// fill adds small events until the ledger has this number. It calculates hashes and chain itself
// and copies the rows into the table, because appending five million events would take longer than
// all measurements. The verification that follows checks that the rows are correct.
func fill(ctx context.Context, s *rig.Scratch, size int64) error {
	conn, err := pgx.Connect(ctx, s.Owner)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var head int64
	for {
		if err := conn.QueryRow(ctx, `select pos from ledger_head where p = 0`).Scan(&head); err != nil || head >= size {
			return err
		}
		if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return fillOnce(ctx, tx, min(size-head, 50_000)) }); err != nil {
			return err
		}
		rig.Progress("made", head, size)
	}
}

// fillOnce appends this number of equal events by COPY. It locks the row of the head first.
func fillOnce(ctx context.Context, tx pgx.Tx, count int64) error {
	var origin string
	var head, sequence int64
	var prev []byte
	if err := tx.QueryRow(ctx, `select origin, pos from ledger_head where p = 0 for update`).Scan(&origin, &head); err != nil {
		return err
	}
	err := tx.QueryRow(ctx, `select tseq, hash from events where p = 0 and tenant = $1 order by tseq desc limit 1`, ledger.ServiceTenant).Scan(&sequence, &prev)
	if errors.Is(err, pgx.ErrNoRows) {
		genesis := ledger.Genesis(origin, ledger.ServiceTenant)
		prev, err = genesis[:], nil
	}
	if err != nil {
		return err
	}
	e := ledger.Event{Tenant: ledger.ServiceTenant, Version: 1, Type: "bench.happened", SchemaVersion: 1, Actor: "key_01JD3Z8W5T0000000000000000",
		OccurredUS: time.Now().UnixMicro(), ContentHash: make([]byte, 32), Payload: rig.Payload, PayloadHash: sha256.Sum256(rig.Payload), Hash: ledger.Hash(prev)}
	made := int64(0)
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"public", "events"}, []string{"p", "pos", "tenant", "tseq", "stream", "version", "event_id", "type", "schema_version",
		"more", "occurred_us", "actor", "key_id", "idem_key", "content_hash", "payload", "payload_hash", "prev", "hash"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if made == count {
				return nil, nil
			}
			made++
			e.Position, e.Sequence, e.Prev = head+made, sequence+made, e.Hash
			e.Stream = fmt.Sprintf("fill/%d", e.Position)
			e.ID = "evt_" + e.Stream
			key := ledger.IdemKey("event", e.ID)
			e.IdemKey = key[:]
			e.Hash = e.Sum()
			return []any{e.Partition, e.Position, e.Tenant, e.Sequence, e.Stream, e.Version, e.ID, e.Type, e.SchemaVersion, e.More, e.OccurredUS, e.Actor, e.KeyID,
				e.IdemKey, e.ContentHash, e.Payload, e.PayloadHash[:], e.Prev[:], e.Hash[:]}, nil
		})); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update ledger_head set pos = $1, last_hash = $2 where p = 0`, head+made, e.Hash[:])
	return err
}
