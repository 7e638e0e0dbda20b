package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Condition is the state of a ledger as this node knows it: one word and, if something is wrong, a
// sentence. verify, doctor, /readyz, the pages and the errors of refused appends show it.
type Condition struct {
	Word     string // one of Intact, Unverified, Altered and ReadOnly
	Sentence string // empty if no fault is known
	Detail   string // first finding, for the operator and the pages
}

// Values of Condition.Word.
const (
	Intact     = "intact"
	Unverified = "unverified"
	Altered    = "altered"
	ReadOnly   = "read-only"
)

// Values of Condition.Sentence.
const (
	SaysAltered    = "the ledger was altered: stored events differ from those that were appended"
	SaysReadOnly   = "the ledger is read only: this node appends nothing"
	SaysUnverified = "the ledger could not be verified"
)

// SelfCheck is the result of a node's verification of its own ledger (package audit).
type SelfCheck struct {
	At     time.Time // start of the check; zero if no check has ended yet
	Took   time.Duration
	Events int64
	Read   bool   // every event was read
	Faults int    // number of faults; 0 if the ledger verifies
	First  string // first fault, or the reason why the ledger could not be read
	False  string // first fault in the events themselves; empty if there is none
}

// Failed reports whether the check found a fault or could not read the ledger.
func (c SelfCheck) Failed() bool { return c.First != "" }

// Verified records the result of a verification of this ledger. A complete verification without
// faults also clears the fault that an earlier read has found.
func (l *Ledger) Verified(check SelfCheck) {
	if check.Read && check.Faults == 0 {
		l.found.Store(nil)
	}
	l.checked.Store(&check)
}

// LastCheck returns the result that Verified recorded last, or the zero value.
func (l *Ledger) LastCheck() SelfCheck {
	if check := l.checked.Load(); check != nil {
		return *check
	}
	return SelfCheck{}
}

// Suspected returns a channel that receives a value when a read finds the ledger altered. The
// receiver should start a verification at once.
func (l *Ledger) Suspected() <-chan struct{} { return l.suspicion }

// Condition combines the last verification, the findings of later reads, and the reason why
// appends are stopped. It returns the worst of these.
func (l *Ledger) Condition() Condition {
	check, stopped := l.LastCheck(), l.Stopped()
	if errors.Is(stopped, ErrRollback) { // even if a verification has found the rollback too
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

// tampered returns an ErrTampered and records it. The record stays until a verification finds no
// fault, so that pages do not show an intact ledger while reads fail. It also requests a
// verification.
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
		default: // a verification was requested before
		}
	}
}
