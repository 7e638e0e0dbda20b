package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Condition is what a node knows about its ledger: a word and, if something is wrong, a
// sentence. verify, doctor, /readyz, the pages and the refusals of appends all use it.
type Condition struct {
	Word     string // intact, unverified, altered or read-only
	Sentence string // empty if nothing is known to be wrong
	Detail   string // the first finding, for the operator and the pages
}

// Words of a condition.
const (
	Intact     = "intact"
	Unverified = "unverified"
	Altered    = "altered"
	ReadOnly   = "read-only"
)

// Sentences of a condition.
const (
	SaysAltered    = "the ledger is altered: what is stored is not what was appended"
	SaysReadOnly   = "the ledger is read only: this node appends nothing"
	SaysUnverified = "the ledger could not be verified"
)

// SelfCheck holds the findings of a verification of a node's own ledger (package audit).
type SelfCheck struct {
	At     time.Time // when it began; zero: there was none yet
	Took   time.Duration
	Events int64
	Read   bool   // every event was read
	Faults int    // 0: the ledger verifies
	First  string // of the faults; or why the ledger could not be read
	False  string // the first fault of history itself; empty if there is none
}

// Failed reports whether the check found a fault or could not read the ledger.
func (c SelfCheck) Failed() bool { return c.First != "" }

// Verified records what a verification of this ledger has found. One that found no fault
// takes back what reads have found before it.
func (l *Ledger) Verified(check SelfCheck) {
	if check.Read && check.Faults == 0 {
		l.found.Store(nil)
	}
	l.checked.Store(&check)
}

// LastCheck returns the check that Verified has recorded last.
func (l *Ledger) LastCheck() SelfCheck {
	if check := l.checked.Load(); check != nil {
		return *check
	}
	return SelfCheck{}
}

// Suspected receives when a read has found the ledger altered and a verification should
// begin at once.
func (l *Ledger) Suspected() <-chan struct{} { return l.suspicion }

// Condition combines the last verification, what reads have found since, and why appends are
// stopped. The worst of these wins.
func (l *Ledger) Condition() Condition {
	check, stopped := l.LastCheck(), l.Stopped()
	if errors.Is(stopped, ErrRollback) { // also if a verification has found the same since
		return Condition{ReadOnly, SaysReadOnly, stopped.Error()}
	}
	if found := l.found.Load(); found != nil {
		return Condition{Altered, SaysAltered, *found}
	}
	switch {
	case check.Faults > 0:
		return Condition{Altered, SaysAltered, check.First}
	case errors.Is(stopped, ErrTampered):
		return Condition{Altered, SaysAltered, stopped.Error()}
	case stopped != nil:
		return Condition{ReadOnly, SaysReadOnly, stopped.Error()}
	case check.Failed():
		return Condition{Unverified, SaysUnverified, check.First}
	case check.At.IsZero():
		return Condition{Word: Unverified}
	}
	return Condition{Word: Intact}
}

// tampered makes an ErrTampered of a read and notes it. The note stays until a verification
// finds no fault, and asks for one at once: the pages must not show an intact ledger while
// reads are refused.
func (l *Ledger) tampered(format string, args ...any) error {
	err := fmt.Errorf("%w: "+format, append([]any{ErrTampered}, args...)...)
	l.note(err)
	return err
}

func (l *Ledger) note(err error) {
	text := err.Error()
	if l.found.CompareAndSwap(nil, &text) {
		l.log.Error("a read has found the ledger altered: run countersign verify", "found", err)
		select {
		case l.suspicion <- struct{}{}:
		default: // a verification is requested already
		}
	}
}
