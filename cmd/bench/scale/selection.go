package scale

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
)

// Selection measures the export of all denied decisions of an organization, and its verification
// without the service, while the ledger grows. The cost should depend on the number of denied
// decisions and not on the length of the ledger.
type Selection struct {
	Events []int64 `help:"Lengths of the ledger, in rising order." default:"10000,100000,200000,1000000"`
	Every  int64   `help:"One event in this number is a denied decision." default:"60"`
	Runs   int     `help:"Exports of each length; the median counts." default:"3"`
}

// selected is the elapsed time and the processor time of one verification of a selection, in
// seconds.
type selected struct{ seconds, processor float64 }

// Run prints one line for each length.
func (c *Selection) Run(ctx context.Context) error {
	s, err := rig.NewScratch(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	notes, err := os.MkdirTemp("", "countersign-bench-notes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(notes)
	l, err := rig.OpenLedger(ctx, s)
	if err != nil {
		return err
	}
	defer l.Close()
	f, err := rig.NewFiller(ctx, l, make([]byte, 32), make([]byte, 32))
	if err != nil {
		return err
	}
	f.DenyEvery = c.Every / 2 // Every counts events, and half of the events are decisions
	if err := keepCheckpoints(ctx, l, notes); err != nil {
		return err
	}
	fmt.Printf("%10s %10s %10s %22s %22s %22s\n", "events", "selected", "MB", "export s (CPU)", "Go s (CPU)", "Python s (CPU)")
	for _, events := range c.Events {
		total, err := l.Total(ctx)
		if err == nil {
			err = f.Fill(ctx, events-total)
		}
		if err != nil {
			return err
		}
		if err := covered(ctx, l.Home(f.Org)); err != nil {
			return err
		}
		if err := c.measure(ctx, s, f.Org, events); err != nil {
			return fmt.Errorf("at %d events: %w", events, err)
		}
	}
	return nil
}

func (c *Selection) measure(ctx context.Context, s *rig.Scratch, org string, events int64) error {
	folder, err := os.MkdirTemp("", "countersign-bench-selection-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	exported := 0
	export, err := medianRun(c.Runs, func() (run, error) {
		exported++
		return onCores(ctx, s, 2, "make-export", s.App, "--org", org, "--decision", "deny", "--folder", filepath.Join(folder, fmt.Sprint(exported)))
	})
	if err != nil {
		return err
	}
	newest := filepath.Join(folder, fmt.Sprint(exported))
	size, err := packedSize(newest)
	if err != nil {
		return err
	}
	check, err := onCores(ctx, s, 2, "check-export", newest)
	if err != nil {
		return err
	}
	python, err := verifiedByPython(ctx, newest)
	if err != nil {
		return err
	}
	fmt.Printf("%10d %10d %10.1f %22s %22s %22s\n", events, export.Events, float64(size)/1e6,
		both(export.Seconds, (export.cpu.Process+export.cpu.Database).Seconds()),
		both(check.Seconds, check.cpu.Process.Seconds()), both(python.seconds, python.processor))
	return nil
}

func both(seconds, processor float64) string { return fmt.Sprintf("%.2f (%.2f)", seconds, processor) }

// packedSize returns the size in bytes of a bundle packed into one file.
func packedSize(folder string) (int64, error) {
	packed, err := os.CreateTemp("", "countersign-bench-bundle-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(packed.Name())
	defer packed.Close()
	if err := bundle.NewFolder(folder).Pack(packed); err != nil {
		return 0, err
	}
	at, err := packed.Stat()
	if err != nil {
		return 0, err
	}
	return at.Size(), nil
}

// verifiedByPython runs the Python verifier that is part of a bundle and uses only Python's
// standard library.
func verifiedByPython(ctx context.Context, folder string) (p selected, err error) {
	keys := folder + "-jwks.json"
	if err := writeKeys(keys); err != nil {
		return p, err
	}
	began := time.Now()
	command := exec.CommandContext(ctx, "python3", filepath.Join(folder, "verify.py"), "--keys", keys, folder)
	said, err := command.CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("verify.py: %w: %s", err, said)
	}
	if !strings.Contains(string(said), "PROVEN      without a gap") {
		return p, fmt.Errorf("verify.py does not prove that the numbers have no gap: %s", said)
	}
	used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	return selected{time.Since(began).Seconds(), used.Seconds()}, nil
}

// writeKeys writes the trusted keys to a file in the format in which the service publishes them.
func writeKeys(file string) error {
	trust, err := trusted()
	if err != nil {
		return err
	}
	var keys []map[string]any
	for _, k := range trust.Keys {
		keys = append(keys, map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": seal.KeyID(k.Public), "svc_purpose": k.Purpose,
			"x": base64.RawURLEncoding.EncodeToString(k.Public)})
	}
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
