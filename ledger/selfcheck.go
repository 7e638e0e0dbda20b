package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/wait"
	"github.com/countersign/countersign/ledger/tree"
)

// SelfCheck is what a node found when it last verified its own ledger.
type SelfCheck struct {
	At     time.Time // when it began; zero: it has not been done yet
	Took   time.Duration
	Events int64
	Read   bool   // to the end
	Faults int    // 0: everything holds
	First  string // of the faults; or why the ledger could not be read
	False  string // the first fault of history itself; empty if there is none
}

// Failed says whether something is false, or nothing could be said.
func (c SelfCheck) Failed() bool { return c.First != "" }

const (
	selfCheckFirst = time.Minute // after the start, which has enough to do
	selfCheckEvery = 24 * time.Hour
	selfCheckSpan  = 8 * tree.Width // events between two rests: short work, which appends hardly feel
)

// SelfChecks is how a node verifies its own ledger.
type SelfChecks struct {
	KEK    []byte            // opens personal members; nil leaves them closed
	Folder checkpoint.Folder // remembers what was found false
	GoOn   bool              // append to a ledger that is false, too
}

// CheckItself verifies the ledger once a day, and when a read has found it altered, until
// Close, on one core at most and
// slower while others append, and heeds what it finds. What lies in the archive is not
// fetched every day. Where something is remembered as false it begins at once.
func (l *Ledger) CheckItself(c SelfChecks) {
	pause := selfCheckFirst
	if remembered, _ := c.Folder.Finding(l.Base()); remembered != "" {
		pause = 0
	}
	l.done.Go(func() {
		for ; wait.For(l.background, l.suspicion, pause); pause = selfCheckEvery {
			l.Heed(c, l.CheckItselfNow(l.background, c.KEK, c.Folder))
		}
	})
}

// Heed stops appends on this node, until it is started again, where a check has found
// history itself false: decisions are made from what is read there. It is remembered,
// so that a start changes nothing, until history verifies. What only proves or hides
// events (tiles, checkpoints, data keys) and a ledger that could not be read stop
// nothing: they are made again, or may be a matter of this node's settings.
func (l *Ledger) Heed(c SelfChecks, check SelfCheck) {
	var err error
	switch {
	case check.False != "":
		err = c.Folder.KeepFinding(l.Base(), check.False)
		if !c.GoOn {
			l.Refuse(fmt.Errorf("%w: %s. countersign verify says all that is false: restore the newest copy that verifies, "+
				"run countersign verify on it and start again, or go on with it as it is by serve --accept-findings", ErrTampered, check.False))
		}
	case check.Read:
		err = c.Folder.ForgetFinding(l.Base())
	}
	if err != nil {
		l.log.Error("what the ledger's verification found could not be remembered", "error", err)
	}
}

// HeedRemembered stops appends on a node that starts on a ledger which was found false
// and has not verified since.
func (l *Ledger) HeedRemembered(c SelfChecks) error {
	remembered, err := c.Folder.Finding(l.Base())
	if err != nil {
		return fmt.Errorf("read what the last verification found: %w", err)
	}
	if remembered != "" && !c.GoOn {
		l.Refuse(fmt.Errorf("%w, as a verification found before this start: %s. Restore the newest copy that verifies, run countersign verify on it "+
			"and start again, or go on with it as it is by serve --accept-findings", ErrTampered, remembered))
	}
	return nil
}

// history are the tables whose faults make a ledger false.
var history = []string{"events", "ledger_head"}

// FalseHistory is the first fault of history itself; empty if there is none.
func (r Report) FalseHistory() string {
	if at := slices.IndexFunc(r.Faults, func(f Fault) bool { return slices.Contains(history, f.Table) }); at >= 0 {
		return r.Faults[at].Error()
	}
	return ""
}

// CheckItselfNow verifies the ledger, also against the notes outside of it, and
// remembers and logs what it found.
func (l *Ledger) CheckItselfNow(ctx context.Context, kek []byte, outside ...checkpoint.Store) SelfCheck {
	check := SelfCheck{At: l.clock()}
	began := time.Now()
	audit := Audit{Origin: l.Base(), KEK: kek, Workers: 1, Unarchived: true, Outside: outside, spanEvents: selfCheckSpan}
	report, err := audit.all(ctx, l.pool)
	check.Took, check.Events, check.Faults = time.Since(began), report.Events, len(report.Faults)
	check.Read = err == nil && ctx.Err() == nil
	switch {
	case ctx.Err() != nil:
		return check // the node ends: nothing was found
	case err != nil:
		check.First = err.Error()
		l.log.Error("the ledger could not verify itself", "error", err)
	case check.Faults > 0:
		check.First = report.Faults[0].Error()
		check.False = report.FalseHistory()
		l.log.Error("the ledger is not what was appended: run countersign verify", "faults", check.Faults, "first", check.First)
	default:
		l.found.Store(nil)
		l.log.Info("the ledger verified itself", "events", check.Events, "took", check.Took)
	}
	l.checked.Store(&check)
	return check
}

// LastCheck is what CheckItself found last.
func (l *Ledger) LastCheck() SelfCheck {
	if check := l.checked.Load(); check != nil {
		return *check
	}
	return SelfCheck{}
}
