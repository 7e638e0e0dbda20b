package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// verifyCmd measures the auditor's verify on a PostgreSQL of its own, beside a bare
// read of the same rows; what appends lose to it; what checkpoints cost; and how
// fast a read model is rebuilt.
type verifyCmd struct {
	Events []int64       `help:"Sizes at which chain and tree are verified; memory should not grow with them." default:"10000,100000,1000000"`
	Signed int           `help:"Signed decisions to verify with their signatures." default:"20000"`
	Agents int           `help:"Different agents whose ids are sealed, which takes a second signature; 0 for decisions without an agentId." default:"100"`
	Runs   int           `help:"Runs of each; the median counts." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`

	Profile string `help:"Write a CPU profile of the verification with signatures to this file."`
}

// exportCmd measures the export of an organization's history.
type exportCmd struct {
	Signed []int         `help:"Signed decisions that are exported; memory should not grow with them." default:"2000,20000"`
	Runs   int           `help:"Runs of each; the median counts." default:"3"`
	During time.Duration `help:"Length of each run with appends." default:"5s"`
}

// Run prints a line per size, and then what the rest costs.
func (c *verifyCmd) Run(ctx context.Context) error {
	s, err := newScratch(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	l, err := openLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	if err := c.sizes(ctx, s, l, notes); err != nil {
		return err
	}
	if err := besideAppends(ctx, s, "verify", c.Runs, c.During, "audit", s.app, "--repeat"); err != nil {
		return err
	}
	if err := c.checkpoints(ctx, s, l); err != nil {
		return err
	}
	return c.signed(ctx)
}

// sizes verifies chain and tree of ledgers of growing size, on one core.
func (c *verifyCmd) sizes(ctx context.Context, s *scratch, l *ledger.Ledger, notes string) error {
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "verified/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Events {
		head, err := fill(ctx, l, size)
		if err != nil {
			return err
		}
		if l.Checkpoint() == nil {
			if err := keepCheckpoints(ctx, l, notes); err != nil {
				return err
			}
		}
		if l.Covered(ctx, head) == nil {
			return errors.New("no checkpoint covers the events")
		}
		var reads, audits []run
		for range c.Runs {
			for kind, into := range map[string]*[]run{"read": &reads, "audit": &audits} {
				r, err := oneCore(ctx, s, kind, s.app)
				if err != nil {
					return err
				}
				*into = append(*into, r)
			}
		}
		read, audit := middle(reads), middle(audits)
		fmt.Printf("%-12d %14.0f %14.0f %8.2f %24s %14d\n", audit.Events, read.perSecond(), audit.perSecond(), audit.perSecond()/read.perSecond(),
			fmt.Sprintf("%.1f + %.1f", audit.perEvent(audit.cpu.process), audit.perEvent(audit.cpu.database)), audit.PeakMB)
	}
	return nil
}

// run is one child process: what it said, and what it used.
type run struct {
	Events  int64
	Seconds float64
	PeakMB  int64 // of memory; 0 where the system does not say
	cpu     cpu
}

func (r run) perSecond() float64 { return float64(r.Events) / r.Seconds }

// perEvent is microseconds.
func (r run) perEvent(used time.Duration) float64 {
	return float64(used.Microseconds()) / float64(r.Events)
}

func middle(runs []run) run {
	slices.SortFunc(runs, func(a, b run) int { return int(a.perSecond() - b.perSecond()) })
	return runs[len(runs)/2]
}

// oneCore runs a hidden command of this program in a process of its own that may use
// one core, so that its memory is its own.
func oneCore(ctx context.Context, s *scratch, arguments ...string) (r run, err error) {
	before := s.cpuNow()
	command := child(ctx, arguments...)
	answer, err := command.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w", arguments[0], err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, err
	}
	r.cpu = cpu{command.ProcessState.UserTime() + command.ProcessState.SystemTime(), s.cpuNow().database - before.database}
	return r, nil
}

func child(ctx context.Context, arguments ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env, command.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}

// childCmd is what runs in such a process, and prints one line of JSON.
type childCmd struct {
	Database   string `arg:""`
	Signatures bool
	Org        string
	Repeat     bool // until it is interrupted
	Profile    string
}

type auditChild struct{ childCmd }
type readChild struct{ childCmd }
type exportChild struct{ childCmd }

func (c *childCmd) during(ctx context.Context, once func() (int64, error)) error {
	defer profiled(c.Profile)()
	for {
		began := time.Now()
		n, err := once()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !c.Repeat {
			return json.NewEncoder(os.Stdout).Encode(run{Events: n, Seconds: time.Since(began).Seconds(), PeakMB: peakMB()})
		}
	}
}

// peakMB is the most memory that this process has had, as Linux tells.
func peakMB() (mb int64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, _ = fmt.Sscan(rest, &mb)
	return mb >> 10
}

// Run verifies.
func (c *auditChild) Run(ctx context.Context) error {
	a := ledger.Audit{ChainOnly: !c.Signatures, Workers: 1}
	if c.Signatures {
		a.KEK, _ = ledger.DeriveKEK(make([]byte, 32))
	}
	return c.during(ctx, func() (int64, error) {
		report, err := ledger.AuditDatabase(ctx, c.Database, a)
		if err == nil && len(report.Faults) > 0 {
			err = report.Faults[0]
		}
		return report.Events, err
	})
}

// Run reads every row and throws it away: the anchor.
func (c *readChild) Run(ctx context.Context) error {
	return c.during(ctx, func() (int64, error) { return readRows(ctx, c.Database) })
}

// readRows reads every event in the ranges in which verify reads them.
func readRows(ctx context.Context, url string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	const span = 8192
	for {
		rows, err := conn.Query(ctx, `select * from events where p = 0 and pos > $1 and pos <= $1 + $2 order by pos`, n, span)
		if err != nil {
			return n, err
		}
		before := n
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil || n == before {
			return n, err
		}
	}
}

// Run exports.
func (c *exportChild) Run(ctx context.Context) error {
	app, end, err := openApp(ctx, c.Database)
	if err != nil {
		return err
	}
	defer end()
	return c.during(ctx, func() (int64, error) {
		folder, err := os.MkdirTemp("", "countersign-bench-export-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(folder)
		manifest, err := app.ExportHistory(ctx, commands.Export{Tenant: c.Org, Actor: "operator", Folder: folder})
		if err != nil {
			return 0, err
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return 0, err
		}
		defer null.Close()
		return manifest.Count, bundle.NewFolder(folder).Pack(app.Ledger.Pace().Writer(ctx, null))
	})
}

// besideAppends compares 64 appends in flight alone and while a child process works.
func besideAppends(ctx context.Context, s *scratch, name string, runs int, during time.Duration, arguments ...string) error {
	var alone, beside []sample
	for range runs {
		a, err := appendLoad(ctx, s, 1, 64, during, payload)
		if err != nil {
			return err
		}
		working, stop := context.WithCancel(ctx)
		command := child(working, arguments...)
		if err := command.Start(); err != nil {
			stop()
			return err
		}
		b, err := appendLoad(ctx, s, 1, 64, during, payload)
		stop()
		if err := errors.Join(err, ignoreExit(command.Wait())); err != nil {
			return err
		}
		alone, beside = append(alone, a), append(beside, b)
	}
	a, b := median(alone), median(beside)
	fmt.Printf("appends, 64 in flight: %.0f/s alone, %.0f/s during %s: %.2f\n", a.perSecond, b.perSecond, name, b.perSecond/a.perSecond)
	return nil
}

// ignoreExit passes over how an interrupted child has ended.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// checkpoints compares 64 appends in flight without and with checkpoints, and both
// with the anchor; lag is how long an appended event waited for a signed note.
func (c *verifyCmd) checkpoints(ctx context.Context, s *scratch, l *ledger.Ledger) error {
	l.Close() // its keeper ends: from here on none runs but that of the measured ledger
	var anchors, without, with []sample
	var lags []time.Duration
	notes, err := os.MkdirTemp("", "countersign-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	for range c.Runs {
		a, err := anchor(ctx, s, 64, c.During)
		if err != nil {
			return err
		}
		b, err := appendLoad(ctx, s, 1, 64, c.During, payload)
		if err != nil {
			return err
		}
		d, lag, err := checkpointed(ctx, s, c.During, notes)
		if err != nil {
			return err
		}
		anchors, without, with, lags = append(anchors, a), append(without, b), append(with, d), append(lags, lag...)
	}
	slices.Sort(lags)
	if len(lags) == 0 {
		return errors.New("no checkpoint was made in that time: give the runs more of it (--during)")
	}
	a, b, d := median(anchors), median(without), median(with)
	fmt.Printf("appends, 64 in flight: anchor %.0f/s, without checkpoints %.0f/s, with %.0f/s: cost %.0f %%, %.2f x the anchor; lag p50 %s s, max %s s\n",
		a.perSecond, b.perSecond, d.perSecond, 100*(1-d.perSecond/b.perSecond), d.perSecond/a.perSecond,
		seconds(lags[len(lags)/2]), seconds(lags[len(lags)-1]))
	return nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) }

// checkpointed is a load of appends on a ledger that keeps checkpoints.
func checkpointed(ctx context.Context, s *scratch, during time.Duration, notes string) (sample, []time.Duration, error) {
	l, err := openLedger(ctx, s)
	if err != nil {
		return sample{}, nil, err
	}
	defer l.Close()
	if err := keepCheckpoints(ctx, l, notes); err != nil {
		return sample{}, nil, err
	}
	name := fmt.Sprint("bench/", time.Now().UnixNano())
	appended := func(caller, n int) (int64, error) {
		stream := fmt.Sprintf("%s/%d/%d", name, caller, n)
		r, err := l.Append(ctx, ledger.Append{Tenant: ledger.ServiceTenant, Drafts: []ledger.Draft{benchEvent(stream)}})
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
				if err == nil && l.Covered(ends, position) != nil {
					mu.Lock()
					lags = append(lags, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	result, err := load(64, during, func(caller, n int) error { _, err := appended(caller, n); return err })
	stop()
	watching.Wait()
	return result, lags, err
}

// signed verifies decisions with their signatures, and rebuilds their read model.
func (c *verifyCmd) signed(ctx context.Context) error {
	service, err := decided(ctx, c.Signed, c.Agents)
	if err != nil {
		return err
	}
	defer service.close()
	var audits []run
	for range c.Runs {
		r, err := oneCore(ctx, service.scratch, "audit", service.scratch.app, "--signatures", "--profile="+c.Profile)
		if err != nil {
			return err
		}
		audits = append(audits, r)
	}
	r := middle(audits)
	fmt.Printf("with signatures, openings and what the records say: %.0f events/s (%d events, signed %s), us of CPU %.1f + %.1f\n",
		r.perSecond(), r.Events, map[bool]string{true: "once", false: "twice"}[c.Agents == 0], r.perEvent(r.cpu.process), r.perEvent(r.cpu.database))
	for _, name := range []string{"history", "organizations"} {
		began := time.Now()
		position, err := projections.Rebuild(ctx, service.app.Ledger, slog.New(slog.DiscardHandler), name)
		if err != nil {
			return err
		}
		fmt.Printf("rebuild of %s: %.0f events/s (%d events)\n", name, float64(position)/time.Since(began).Seconds(), position)
	}
	return nil
}

// decided is a service whose only organization has made a number of decisions.
func decided(ctx context.Context, decisions, agents int) (*decidedService, error) {
	service, err := startService(ctx)
	if err != nil {
		return nil, err
	}
	d := &decidedService{benchService: service, agents: agents}
	if d.token, err = service.organization(ctx); err == nil {
		err = d.until(ctx, decisions)
	}
	if err != nil {
		service.close()
		return nil, err
	}
	return d, nil
}

type decidedService struct {
	*benchService
	token  string
	agents int
	made   int
}

// until decides until there are so many decisions.
func (d *decidedService) until(ctx context.Context, decisions int) error {
	for d.made < decisions {
		s, err := d.decide(ctx, d.token, 32, d.agents, time.Second)
		if err != nil {
			return err
		}
		d.made += len(s.latencies)
		progress("decided", int64(d.made), int64(decisions))
	}
	return nil
}

// Run prints a line per size, and what appends lose to an export.
func (c *exportCmd) Run(ctx context.Context) error {
	service, err := decided(ctx, 1, 100)
	if err != nil {
		return err
	}
	defer service.close()
	var org string
	if err := service.app.Ledger.Pool().QueryRow(ctx, `select tenant from events where p = 0 and type = 'decision.recorded' limit 1`).Scan(&org); err != nil {
		return err
	}
	fmt.Printf("%-12s %14s %14s %8s %24s %14s\n", "events", "bare read/s", "exported/s", "ratio", "us of CPU, program + db", "peak MB")
	for _, size := range c.Signed {
		if err := service.until(ctx, size); err != nil {
			return err
		}
		var reads, exports []run
		for range c.Runs {
			r, err := oneCore(ctx, service.scratch, "read", service.scratch.app)
			if err != nil {
				return err
			}
			e, err := oneCore(ctx, service.scratch, "make-export", service.scratch.app, "--org", org)
			if err != nil {
				return err
			}
			reads, exports = append(reads, r), append(exports, e)
		}
		read, export := middle(reads), middle(exports)
		fmt.Printf("%-12d %14.0f %14.0f %8.2f %24s %14d\n", export.Events, read.perSecond(), export.perSecond(), export.perSecond()/read.perSecond(),
			fmt.Sprintf("%.1f + %.1f", export.perEvent(export.cpu.process), export.perEvent(export.cpu.database)), export.PeakMB)
	}
	if err := c.verified(ctx, service, org); err != nil {
		return err
	}
	return besideAppends(ctx, service.scratch, "export", c.Runs, c.During, "make-export", service.scratch.app, "--org", org, "--repeat")
}

// verified verifies an export of everything, offline.
func (c *exportCmd) verified(ctx context.Context, service *decidedService, org string) error {
	folder, err := os.MkdirTemp("", "countersign-bench-export-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if _, err := service.app.ExportHistory(ctx, commands.Export{Tenant: org, Actor: "operator", Folder: folder}); err != nil {
		return err
	}
	r, err := oneCore(ctx, service.scratch, "check-export", folder)
	if err != nil {
		return err
	}
	fmt.Printf("verification of the export of %d events, offline: %.0f/s, us of CPU %.1f, peak MB %d\n", r.Events, r.perSecond(), r.perEvent(r.cpu.process), r.PeakMB)
	return nil
}

// checkExportChild verifies a folder with an export of this program's service.
type checkExportChild struct {
	Folder string `arg:""`
}

// Run verifies.
func (c *checkExportChild) Run(ctx context.Context) error {
	signer, err := seal.NewSigner(make([]byte, 32))
	if err != nil {
		return err
	}
	return (&childCmd{}).during(ctx, func() (int64, error) {
		b, err := bundle.Open(c.Folder)
		if err != nil {
			return 0, err
		}
		defer b.Close()
		r, err := bundle.Verify(b, map[string]bundle.Key{signer.KeyID(): {Purpose: ledger.PurposeRecord, Public: signer.Public()}}, nil)
		if err == nil && !r.Valid {
			err = errors.New(r.Reason)
		}
		return r.Events, err
	})
}

// openLedger opens a scratch's ledger.
func openLedger(ctx context.Context, s *scratch) (*ledger.Ledger, error) {
	return ledger.Open(ctx, s.app, ledger.Options{Log: slog.New(slog.DiscardHandler)})
}

// openApp opens the commands of a scratch's ledger, with the keys of serve.
func openApp(ctx context.Context, url string) (*commands.App, func(), error) {
	l, err := ledger.Open(ctx, url, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	app := &commands.App{Ledger: l, Clock: time.Now, BaseURL: "http://localhost"}
	kek, err := ledger.DeriveKEK(make([]byte, 32))
	if err == nil {
		app.Vault, err = l.OpenVault(ctx, kek)
	}
	if err == nil {
		app.Signer, err = seal.NewSigner(make([]byte, 32))
	}
	return app, l.Close, err
}

func keepCheckpoints(ctx context.Context, l *ledger.Ledger, notes string) error {
	signer, err := seal.NewSigner(append(make([]byte, 31), 1))
	if err != nil {
		return err
	}
	app := &commands.App{Ledger: l, Clock: time.Now}
	return l.KeepCheckpoints(ctx, ledger.Checkpoints{Signer: signer, Folder: checkpoint.Folder{Path: notes}}, func() string { return app.NewID("evt_") })
}

func benchEvent(stream string) ledger.Draft {
	return ledger.Draft{Stream: stream, Expect: ledger.New(), ID: "evt_" + stream, Type: "bench.happened", SchemaVersion: 1,
		Actor: "key_01JD3Z8W5T0000000000000000", Payload: payload}
}

// fill appends small events, 64 at a time, until there are so many, and returns the
// last position.
func fill(ctx context.Context, l *ledger.Ledger, size int64) (int64, error) {
	var head atomic.Int64
	start, err := l.Head(ctx)
	if err != nil {
		return 0, err
	}
	head.Store(start)
	const callers, each = 16, 64
	_, err = load(callers, time.Hour, func(caller, n int) error {
		if head.Load() >= size {
			return errFull
		}
		order := ledger.Append{Tenant: ledger.ServiceTenant}
		for i := range each {
			order.Drafts = append(order.Drafts, benchEvent(fmt.Sprintf("fill/%d/%d/%d/%d", start, caller, n, i)))
		}
		r, err := l.Append(ctx, order)
		if err != nil {
			return err
		}
		for last := r.Events[each-1].Position; ; {
			if seen := head.Load(); seen >= last || head.CompareAndSwap(seen, last) {
				break
			}
		}
		if caller == 0 {
			progress("appended", head.Load(), size)
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return head.Load(), err
}

var errFull = errors.New("there are enough events")

// progress is told on a terminal's standard error.
func progress(what string, done, total int64) {
	fmt.Fprintf(os.Stderr, "\r%s %d of %d  ", what, done, total)
	if done >= total {
		fmt.Fprintln(os.Stderr)
	}
}
