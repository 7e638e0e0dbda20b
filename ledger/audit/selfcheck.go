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
	selfCheckFirst = time.Minute // after the start of a node
	selfCheckEvery = 24 * time.Hour
	selfCheckSpan  = 8 * tree.Width // events between two rests: so few that appends hardly notice
)

// SelfChecks say how a node verifies its own ledger.
type SelfChecks struct {
	KEK    []byte            // opens personal members; nil: they are not opened
	Folder checkpoint.Folder // remembers a finding over a restart
	GoOn   bool              // appends go on although history is false (serve --accept-findings)
}

// Daily runs SelfCheck and Heed once a day, and when a read has found the ledger altered,
// until the ledger is closed. It begins at once if a finding is remembered. A check uses
// one core, goes slower while others append, and does not read the archive.
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

// Heed stops appends on this node, until it is started again, if a check has found history
// itself false: the service decides from what it reads there. The finding is remembered
// until history verifies, so that a restart does not lift it. Faults in what only proves or
// hides events (tiles, checkpoints, data keys) and a ledger that could not be read do not
// stop appends: the former can be rebuilt, the latter may come from this node's settings.
func Heed(l *ledger.Ledger, c SelfChecks, check ledger.SelfCheck) {
	var err error
	switch {
	case check.False != "":
		err = c.Folder.KeepFinding(l.Base(), check.False)
		if !c.GoOn {
			_ = l.Refuse(fmt.Errorf("%w: %s. countersign verify says all that is false: restore the newest copy that verifies, "+
				"run countersign verify on it and start again, or go on with it as it is by serve --accept-findings", ledger.ErrTampered, check.False))
		}
	case check.Read:
		err = c.Folder.ForgetFinding(l.Base())
	}
	if err != nil {
		l.Log().Error("what the ledger's verification found could not be remembered", "error", err)
	}
}

// HeedRemembered stops appends on a node that starts on a ledger which was found false
// and has not verified since.
func HeedRemembered(l *ledger.Ledger, c SelfChecks) error {
	remembered, err := c.Folder.Finding(l.Base())
	if err != nil {
		return fmt.Errorf("read what the last verification found: %w", err)
	}
	if remembered != "" && !c.GoOn {
		_ = l.Refuse(fmt.Errorf("%w, as a verification found before this start: %s. Restore the newest copy that verifies, run countersign verify on it "+
			"and start again, or go on with it as it is by serve --accept-findings", ledger.ErrTampered, remembered))
	}
	return nil
}

// SelfCheck verifies the ledger, also against the newest notes in outside. It logs the
// result and records it with the ledger, which shows it in its condition.
func SelfCheck(ctx context.Context, l *ledger.Ledger, kek []byte, outside ...checkpoint.Store) ledger.SelfCheck {
	check := ledger.SelfCheck{At: l.Now()}
	began := time.Now()
	audit := Options{Origin: l.Base(), KEK: kek, Workers: 1, Unarchived: true, Outside: outside, spanEvents: selfCheckSpan}
	report, err := On(ctx, l.Pool(), audit)
	check.Took, check.Events, check.Faults = time.Since(began), report.Events, len(report.Faults)
	check.Read = err == nil && ctx.Err() == nil
	switch {
	case ctx.Err() != nil:
		return check // the node ends: there is no result
	case err != nil:
		check.First = err.Error()
		l.Log().Error("the ledger could not verify itself", "error", err)
	case check.Faults > 0:
		check.First = report.Faults[0].Error()
		check.False = report.FalseHistory()
		l.Log().Error("the ledger is not what was appended: run countersign verify", "faults", check.Faults, "first", check.First)
	default:
		l.Log().Info("the ledger verified itself", "events", check.Events, "took", check.Took)
	}
	l.Verified(check)
	return check
}
