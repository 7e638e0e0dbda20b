package ledger

import (
	"context"
	"time"

	"github.com/countersign/countersign/ledger/tree"
)

// SelfCheck is what a node found when it last verified its own ledger.
type SelfCheck struct {
	At     time.Time // when it began; zero: it has not been done yet
	Took   time.Duration
	Events int64
	Faults int    // 0: everything holds
	First  string // of the faults; or why the ledger could not be read
}

// Failed says whether something is false, or nothing could be said.
func (c SelfCheck) Failed() bool { return c.First != "" }

const (
	selfCheckFirst = time.Minute // after the start, which has enough to do
	selfCheckEvery = 24 * time.Hour
	selfCheckSpan  = 8 * tree.Width // events between two rests: short work, which appends hardly feel
)

// CheckItself verifies the ledger once a day until Close, on one core at most and
// slower while others append. kek opens personal members; nil leaves them closed.
func (l *Ledger) CheckItself(kek []byte) {
	l.done.Go(func() {
		for wait := selfCheckFirst; sleep(l.background, nil, wait); wait = selfCheckEvery {
			l.CheckItselfNow(l.background, kek)
		}
	})
}

// CheckItselfNow verifies the ledger, and remembers and logs what it found.
func (l *Ledger) CheckItselfNow(ctx context.Context, kek []byte) SelfCheck {
	check := SelfCheck{At: l.clock()}
	began := time.Now()
	audit := Audit{Origin: l.base(), KEK: kek, Workers: 1, spanEvents: selfCheckSpan}
	for _, p := range l.partitions {
		if k := p.keeper.Load(); k != nil { // what lies outside the database counts
			if _, text, err := k.options.Folder.Newest(ctx, p.origin); err == nil && text != nil {
				audit.Pins = append(audit.Pins, Pin{Name: k.options.Folder.String(), Note: text})
			}
		}
	}
	report, err := audit.all(ctx, l.pool)
	check.Took, check.Events, check.Faults = time.Since(began), report.Events, len(report.Faults)
	switch {
	case ctx.Err() != nil:
		return check // the node ends: nothing was found
	case err != nil:
		check.First = err.Error()
		l.log.Error("the ledger could not verify itself", "error", err)
	case check.Faults > 0:
		check.First = report.Faults[0].Error()
		l.log.Error("the ledger is not what was appended: run countersign verify", "faults", check.Faults, "first", check.First)
	default:
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
