package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/stored"
)

// Expect is the version that an append requires of a stream.
type Expect struct {
	kind  expectKind
	value int64
}

type expectKind uint8

const (
	expectAt expectKind = iota
	expectAny
)

// New requires that the stream has no event yet.
func New() Expect { return Expect{expectAt, 0} }

// Any accepts every version of the stream below limit; at the limit the append is ErrLimit. So
// the version of a stream is an exact counter on any number of nodes.
func Any(limit int64) Expect { return Expect{expectAny, limit} }

// History is a stream as it was read. Only a history can require a version, so that no append
// can leave a gap.
type History struct {
	Tenant, Stream string
	Events         []Event

	before int64 // events that Last has not read
}

// Version of the last event, 0 for none.
func (h History) Version() int64 { return h.before + int64(len(h.Events)) }

// At requires that the stream still ends where the history does.
func (h History) At() Expect { return Expect{expectAt, h.Version()} }

// Precondition requires the same of a stream that the append does not write to.
func (h History) Precondition() Precondition { return Precondition{h.Tenant, h.Stream, h.Version()} }

// Precondition is a stream that must still be at this version when the append is committed. It
// must be in the append's own partition, since versions of another partition cannot be
// compared at the position of the append.
type Precondition struct {
	Tenant, Stream string
	Version        int64
}

// Pending is an event before it is appended.
type Pending struct {
	Stream        string
	Expect        Expect
	ID            string // evt_…, made by the command since sealed members are bound to it
	Type          string
	SchemaVersion int
	Actor         string
	KeyID         string
	Payload       []byte // canonical JSON

	// Agent is the data key of the agent that a numbered event is about, or empty. Append sets
	// it where it follows from type and payload (events.AgentOf), as the series does.
	Agent string
	// NewAgent says that this command has just made the data key, so the agent has no number
	// yet and the sequencer need not look for one.
	NewAgent bool
}

// Append is one atomic step of one tenant: 1 to 64 events, all or nothing.
type Append struct {
	Tenant        string
	IdemKey       Hash // of IdemKey; the zero value makes the append unique by its first event id
	ContentHash   Hash // of the request without its idempotency key
	Events        []Pending
	Preconditions []Precondition
	// Issued is the time in the payload, to the millisecond. If this node's clock is behind
	// the tenant's last event, which another node has appended, Issued must not be before
	// that event: otherwise the append is ErrMoved. The zero value means no time.
	Issued time.Time
	// NotBefore is the time in a signed payload if Issued is not set. The time of the events
	// is never before Issued or NotBefore, even if the clock was put back after the
	// signature. The zero value means no time.
	NotBefore time.Time

	ready []readyPayload // of the events; the caller's goroutine makes them, so that the sequencer's has less work
}

// readyPayload is the payload of an event as its row stores it, its hash, and the series in
// which the event is numbered.
type readyPayload struct {
	stored []byte
	hash   Hash

	series  string    // empty: the event is not numbered
	inKind  seriesKey // the series of the tenant
	inAgent seriesKey // the series of the agent, if it is about one
	born    seriesKey // newAgentKey of the agent

	entries []events.Entry // in the directory
}

// makeReady prepares the events. An event whose series is not known, or that names another agent
// than its payload, is an error.
func (a *Append) makeReady() error {
	a.ready = make([]readyPayload, len(a.Events))
	for i := range a.Events {
		d := &a.Events[i]
		series, err := events.SeriesOf(d.Type, d.Payload)
		if err != nil {
			return fmt.Errorf("append: %w", err)
		}
		if agent, ofDecision := events.AgentOf(d.Type, d.Payload); !ofDecision {
			if d.Agent != "" && d.Agent != agent {
				return fmt.Errorf("append %s: the agent is not that of the payload", d.Type)
			}
			d.Agent = agent
		}
		ready := readyPayload{stored: stored.Form(d.Type, d.Payload), hash: sha256.Sum256(d.Payload), series: series,
			entries: events.EntriesOf(d.Type, a.Tenant, d.Stream, d.Actor, d.Payload)}
		if series != "" {
			ready.inKind = keyOfSeries(a.Tenant, "", series)
		}
		if d.Agent != "" {
			ready.inAgent, ready.born = keyOfSeries(a.Tenant, d.Agent, series), newAgentKey(a.Tenant, d.Agent)
		}
		a.ready[i] = ready
	}
	return nil
}

// Result is the result of an append.
type Result struct {
	Events   []Event // in order; those stored first if Replayed
	Replayed bool    // an append with the same key and content was committed before
}

// Append commits the events and returns them as they are stored. If ctx ends while the request
// waits in the queue, it is dropped; once a batch has taken it, it is carried through.
func (l *Ledger) Append(ctx context.Context, a Append) (Result, error) {
	home := l.Home(a.Tenant)
	if err := a.check(); err != nil {
		return Result{}, err
	}
	for _, g := range a.Preconditions {
		if l.Home(g.Tenant) != home {
			return Result{}, fmt.Errorf("%w: %s", ErrElsewhere, g.Stream)
		}
	}
	if err := a.makeReady(); err != nil {
		return Result{}, err
	}
	if a.IdemKey == (Hash{}) {
		a.IdemKey = IdemKey("event", a.Events[0].ID)
		a.ContentHash = a.ready[0].hash
	}
	if deadline, has := ctx.Deadline(); !has || time.Until(deadline) > budget {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, budget)
		defer cancel()
	}
	out, err := home.seq.submit(ctx, &a)
	if err != nil {
		return Result{}, err
	}
	if !out.replayed {
		return Result{Events: out.events}, nil
	}
	found, err := home.group(ctx, out.position)
	if err != nil {
		return Result{}, fmt.Errorf("read the stored events of a replayed append: %w", err)
	}
	// After an unknown commit this append finds its own events under its key. That is the
	// first append and not a replay.
	return Result{Events: found, Replayed: found[0].ID != a.Events[0].ID}, nil
}

func (a *Append) check() error {
	if n := len(a.Events); n == 0 || n > MaxEvents {
		return fmt.Errorf("%w: %d events", ErrTooLarge, n)
	}
	octets := 0
	for _, d := range a.Events {
		if octets += len(d.Payload); len(d.Payload) > MaxPayload || octets > batchOctets {
			return fmt.Errorf("%w: payload of %s", ErrTooLarge, d.Type)
		}
		for _, text := range []string{a.Tenant, d.Stream, d.ID, d.Type, d.Actor, d.KeyID, d.Agent} {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				return fmt.Errorf("append %s: a column is not UTF-8 without NUL", d.Type)
			}
		}
		if len(d.Payload) < 2 || d.ID == "" || d.Stream == "" || d.Type == "" || a.Tenant == "" {
			return fmt.Errorf("append %s: the event is incomplete", d.Type)
		}
	}
	return nil
}

// microseconds of a clock, as occurred_us holds them.
func microseconds(clock func() time.Time) int64 { return clock().UnixMicro() }
