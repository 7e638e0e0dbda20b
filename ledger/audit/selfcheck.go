package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/tree"
)

const (
	selfCheckFirst = time.Minute // time from the start of a node to its first check
	selfCheckEvery = 24 * time.Hour
	selfCheckSpan  = 8 * tree.Width // events between two pauses: few enough that appends hardly slow down
)

// SelfChecks are the settings with which a node verifies its own ledger.
type SelfChecks struct {
	KEK    []byte            // key-encryption key for personal members; if nil, they are not checked
	Folder checkpoint.Folder // stores a finding, so that it survives a restart
	GoOn   bool              // do not stop appends because of a finding (serve --accept-findings)
}

// Daily runs SelfCheck and Heed once a day, and whenever a read has found the ledger altered,
// until the ledger is closed. If a finding is stored, the first check starts at once. A check uses
// one core, slows down while others append, and does not read the archive.
func Daily(l *ledger.Ledger, c SelfChecks) {
	pause := selfCheckFirst
	if remembered, _ := c.Folder.Finding(l.Base()); remembered != "" {
		pause = 0
	}
	l.Go(func(ctx context.Context) {
		for ; wait.For(ctx, l.Suspected(), pause); pause = selfCheckEvery {
			Heed(l, c, SelfCheck(ctx, l, c.KEK, c.Folder))
		}
	})
}

// Heed stops appends on this node until its restart if a check has found altered events, because
// the service makes its decisions from the events. It stores the finding until a complete check
// finds the events intact, so that a restart alone does not permit appends again.
//
// Other failures do not stop appends: tiles and checkpoints can be rebuilt, data keys can be
// restored from a backup, and a ledger that cannot be read may be due to this node's settings.
func Heed(l *ledger.Ledger, c SelfChecks, check ledger.SelfCheck) {
	var err error
	switch {
	case check.False != "":
		err = c.Folder.KeepFinding(l.Base(), check.False)
		if !c.GoOn {
			_ = l.Refuse(fmt.Errorf("%w: %s. countersign verify lists all faults. Restore the newest copy that verifies, "+
				"run countersign verify on it and start again; or continue with this ledger by serve --accept-findings", ledger.ErrTampered, check.False))
		}
	case check.Read:
		err = c.Folder.ForgetFinding(l.Base())
	}
	if err != nil {
		l.Log().Error("the finding of the ledger's verification could not be stored", "error", err)
	}
}

// HeedRemembered stops appends on a node that starts with a stored finding.
func HeedRemembered(l *ledger.Ledger, c SelfChecks) error {
	remembered, err := c.Folder.Finding(l.Base())
	if err != nil {
		return fmt.Errorf("read the finding of the last verification: %w", err)
	}
	if remembered != "" && !c.GoOn {
		_ = l.Refuse(fmt.Errorf("%w, as a verification found before this start: %s. Restore the newest copy that verifies, run countersign verify on it "+
			"and start again; or continue with this ledger by serve --accept-findings", ledger.ErrTampered, remembered))
	}
	return nil
}

// SelfCheck verifies the ledger, including the newest notes in outside. It logs the result and
// passes it to Ledger.Verified.
func SelfCheck(ctx context.Context, l *ledger.Ledger, kek []byte, outside ...checkpoint.Store) ledger.SelfCheck {
	check := ledger.SelfCheck{At: l.Now()}
	began := time.Now()
	audit := Options{Origin: l.Base(), KEK: kek, Workers: 1, Unarchived: true, Outside: outside, spanEvents: selfCheckSpan}
	report, err := On(ctx, l.Pool(), audit)
	check.Took, check.Events, check.Faults = time.Since(began), report.Events, len(report.Faults)
	check.Read = err == nil && ctx.Err() == nil
	switch {
	case ctx.Err() != nil:
		return check // the node is shutting down: there is no result
	case err != nil:
		check.First = err.Error()
		l.Log().Error("the ledger could not verify itself", "error", err)
	case check.Faults > 0:
		check.First = report.Faults[0].Error()
		check.False = report.FalseHistory()
		l.Log().Error("the ledger was altered: run countersign verify", "faults", check.Faults, "first", check.First)
	default:
		l.Log().Info("the ledger verified itself", "events", check.Events, "took", check.Took)
	}
	l.Verified(check)
	return check
}
