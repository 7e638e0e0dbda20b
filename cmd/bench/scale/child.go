package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
)

// run is the result of one child process and the resources that the process used.
type run struct {
	Events  int64
	Seconds float64
	PeakMB  int64 // peak memory; 0 if the system does not report it
	cpu     rig.CPU
}

func (r run) perSecond() float64 { return float64(r.Events) / r.Seconds }

// perEvent divides a processor time by the number of events, in microseconds.
func (r run) perEvent(used time.Duration) float64 {
	return float64(used.Microseconds()) / float64(r.Events)
}

// cpuPerEvent formats the processor time per event in microseconds: of the program, and of the
// database.
func (r run) cpuPerEvent() string {
	return fmt.Sprintf("%.1f + %.1f", r.perEvent(r.cpu.Process), r.perEvent(r.cpu.Database))
}

// printCompared prints a line that compares a run with a bare read of the same rows.
func printCompared(read, r run) {
	fmt.Printf("%-12d %14.0f %14.0f %8.2f %24s %14d\n", r.Events, read.perSecond(), r.perSecond(), r.perSecond()/read.perSecond(), r.cpuPerEvent(), r.PeakMB)
}

func middle(runs []run) run {
	slices.SortFunc(runs, func(a, b run) int { return int(a.perSecond() - b.perSecond()) })
	return runs[len(runs)/2]
}

// onCores runs a hidden command of this program as a child process on this number of cores. It
// needs a process of its own, because the system reports peak memory only for a whole process.
func onCores(ctx context.Context, s *rig.Scratch, cores int, arguments ...string) (r run, err error) {
	before := s.CPUNow()
	command := child(ctx, cores, arguments...)
	answer, err := command.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w", arguments[0], err)
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return r, err
	}
	r.cpu = rig.CPU{Process: command.ProcessState.UserTime() + command.ProcessState.SystemTime(), Database: s.CPUNow().Database - before.Database}
	return r, nil
}

func child(ctx context.Context, cores int, arguments ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env, command.Stderr = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", cores)), os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}

// childCmd has the settings of the hidden commands that run as child processes. Such a command
// prints its result as one line of JSON.
type childCmd struct {
	Database   string `arg:""`
	Signatures bool
	Org        string
	Decision   string // export only the decisions with this verdict; empty exports all
	Folder     string // folder in which the export is left; if empty, the export is deleted
	Repeat     bool   // repeat until interrupted, without a result
	Profile    string
}

// AuditChild verifies the ledger of a database.
type AuditChild struct{ childCmd }

// ReadChild reads every row of a database.
type ReadChild struct{ childCmd }

// SignaturesChild checks signatures and does nothing else.
type SignaturesChild struct{ childCmd }

// ExportChild exports the history of one organization.
type ExportChild struct{ childCmd }

func (c *childCmd) during(ctx context.Context, once func() (int64, error)) error {
	defer rig.Profiled(c.Profile)()
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

// peakMB returns the peak memory of this process in MB, or 0 on a system other than Linux.
func peakMB() (mb int64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, _ = fmt.Sscan(rest, &mb)
	return mb >> 10
}

// Run verifies the ledger.
func (c *AuditChild) Run(ctx context.Context) error {
	a := audit.Options{ChainOnly: !c.Signatures}
	if c.Signatures {
		a.KEK = make([]byte, 32)
	}
	return c.during(ctx, func() (int64, error) {
		report, err := audit.Database(ctx, c.Database, a)
		if err == nil && len(report.Faults) > 0 {
			err = report.Faults[0]
		}
		return report.Events, err
	})
}

// decisionSize is the approximate size in bytes of the payload of a decision's event.
const decisionSize = 3050

// Run checks one signature per event. A verification with signatures is compared with this time.
func (c *SignaturesChild) Run(ctx context.Context) error {
	return c.during(ctx, func() (n int64, err error) {
		signer, err := seal.NewSigner(make([]byte, 32))
		if err != nil {
			return 0, err
		}
		record := rig.Padded(decisionSize)
		e, err := signer.SignCanonical(seal.TypeCommitted, record)
		for ; err == nil && n < 20_000; n++ {
			if !seal.Signed(signer.Public(), seal.TypeCommitted, record, e.Integrity.Signature) {
				err = errors.New("a valid signature was rejected")
			}
		}
		return n, err
	})
}

// Run reads every row and discards it. Verification and export are compared with this time.
func (c *ReadChild) Run(ctx context.Context) error {
	return c.during(ctx, func() (int64, error) { return readRows(ctx, c.Database) })
}

// readRows reads all events with the queries that verify uses, and returns their number.
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

// Run exports the history and packs it. If Repeat is set, Run repeats this until it is
// interrupted.
func (c *ExportChild) Run(ctx context.Context) error {
	app, end, err := openApp(ctx, c.Database)
	if err != nil {
		return err
	}
	defer end()
	if c.Decision != "" { // the export of a selection waits for a checkpoint that covers the request, so something must write checkpoints
		notes, err := os.MkdirTemp("", "countersign-bench-notes-")
		if err == nil {
			defer os.RemoveAll(notes)
			err = keepCheckpoints(ctx, app.Ledger, notes)
		}
		if err != nil {
			return err
		}
	}
	return c.during(ctx, func() (int64, error) {
		folder := c.Folder
		if folder == "" {
			made, err := os.MkdirTemp("", "countersign-bench-export-")
			if err != nil {
				return 0, err
			}
			defer os.RemoveAll(made)
			folder = made
		}
		manifest, err := app.ExportHistory(ctx, evidence.Export{Tenant: c.Org, Filters: bundle.Filters{Decision: c.Decision}, Actor: "operator", Folder: folder})
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

// offered is the rate of appends per second that appendsWhile offers for its latencies.
const offered = 500

// appendsWhile compares appends alone with appends while a child process runs: the rate of 64
// concurrent callers, and the latency of appends that are offered at a fixed rate.
func appendsWhile(ctx context.Context, s *rig.Scratch, name string, runs int, during time.Duration, arguments ...string) error {
	for _, load := range []struct {
		print func(alone, together rig.Sample)
		sum   func([]rig.Sample) rig.Sample
		once  func() (rig.Sample, error)
	}{
		{func(a, b rig.Sample) {
			fmt.Printf("appends, 64 in flight: %.0f/s alone, %.0f/s during %s: %.2f\n", a.PerSecond, b.PerSecond, name, b.PerSecond/a.PerSecond)
		}, rig.Median, func() (rig.Sample, error) { return rig.AppendLoad(ctx, s, 1, 64, during, rig.Payload) }},
		{func(a, b rig.Sample) {
			fmt.Printf("appends, %d/s offered: p50/p99 ms %s alone, %s during %s: p99 %.2f\n", offered, a.P50P99(), b.P50P99(), name,
				float64(b.Quantile(.99))/float64(a.Quantile(.99)))
		}, pooled, func() (rig.Sample, error) { return rig.AppendOffered(ctx, s, offered, during) }},
	} {
		var alone, together []rig.Sample
		for range runs {
			a, err := load.once()
			if err != nil {
				return err
			}
			b, err := besideChild(ctx, load.once, arguments)
			if err != nil {
				return err
			}
			alone, together = append(alone, a), append(together, b)
		}
		load.print(load.sum(alone), load.sum(together))
	}
	return nil
}

// pooled returns the latencies of all runs as one sample. A 99th percentile of one run is the
// latency of a few calls, and differs by half from run to run.
func pooled(runs []rig.Sample) (all rig.Sample) {
	for _, r := range runs {
		all.Latencies = append(all.Latencies, r.Latencies...)
	}
	slices.Sort(all.Latencies)
	return all
}

// besideChild measures a load while a child process runs.
func besideChild(ctx context.Context, load func() (rig.Sample, error), arguments []string) (rig.Sample, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	command := child(working, 1, arguments...)
	if err := command.Start(); err != nil {
		return rig.Sample{}, err
	}
	sample, err := load()
	stop()
	return sample, errors.Join(err, ignoreExit(command.Wait()))
}

// ignoreExit returns nil for the exit status of an interrupted child, and other errors unchanged.
func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// CheckExportChild verifies an export in a folder with the keys of this program's services.
type CheckExportChild struct {
	Folder string `arg:""`
}

// Run verifies the export.
func (c *CheckExportChild) Run(ctx context.Context) error {
	return (&childCmd{}).during(ctx, func() (int64, error) {
		trust, err := trusted()
		if err != nil {
			return 0, err
		}
		b, err := bundle.Open(ctx, c.Folder, nil)
		if err != nil {
			return 0, err
		}
		defer b.Close()
		r, err := bundle.Verify(ctx, b, trust, nil)
		if err == nil && !r.Valid {
			err = errors.New(r.Reason)
		}
		return r.Events, err
	})
}

// trusted returns the public keys of the ledgers that are measured.
func trusted() (t bundle.Trust, err error) {
	for _, key := range []struct {
		purpose string
		seed    []byte
	}{{ledger.PurposeRecord, make([]byte, 32)}, {ledger.PurposeCheckpoint, checkpointSeed}} {
		signer, err := seal.NewSigner(key.seed)
		if err != nil {
			return t, err
		}
		t.Keys = append(t.Keys, bundle.Key{Purpose: key.purpose, Public: signer.Public()})
	}
	return t, nil
}

// openApp returns the commands for a scratch ledger, with the keys that a service started by Serve
// uses.
func openApp(ctx context.Context, url string) (*commands.App, func(), error) {
	l, err := ledger.Open(ctx, url, ledger.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	app := commands.New(&ground.Ground{Ledger: l, Clock: time.Now, BaseURL: "http://localhost"})
	if app.Vault, err = vault.Open(ctx, l, make([]byte, 32)); err == nil {
		app.Signer, err = seal.NewSigner(make([]byte, 32))
	}
	return app, l.Close, err
}
