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

// Expect is the condition that an append sets for the version of a stream.
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

// Any accepts every version of the stream below limit. If the stream has limit events, Append
// returns ErrLimit. So appends with Any never give a stream more than limit events, on any number
// of nodes.
func Any(limit int64) Expect { return Expect{expectAny, limit} }

// History is a stream as a caller has read it. Only New and a History set an exact version as a
// condition, so a caller cannot name a version that it has not read.
type History struct {
	Tenant, Stream string
	Events         []Event

	before int64 // number of earlier events, which Last does not read
}

// Version returns the version of the last event, or 0 if the stream is empty.
func (h History) Version() int64 { return h.before + int64(len(h.Events)) }

// At requires that the stream has not grown since the history was read.
func (h History) At() Expect { return Expect{expectAt, h.Version()} }

// Precondition requires that the stream has not grown since the history was read. It is for a
// stream that the append reads but does not write.
func (h History) Precondition() Precondition { return Precondition{h.Tenant, h.Stream, h.Version()} }

// Precondition requires that a stream is still at Version when the append is committed. The stream
// must be in the partition of the append, because one commit covers only one partition.
type Precondition struct {
	Tenant, Stream string
	Version        int64
}

// Pending is an event before it is appended.
type Pending struct {
	Stream        string
	Expect        Expect
	ID            string // evt_…; the command chooses it, because the encryption of personal members includes the event's id
	Type          string
	SchemaVersion int
	Actor         string
	KeyID         string
	Payload       []byte // canonical JSON

	// Agent is the id of the data key of the agent that the event concerns, or empty. Only an
	// event that is numbered in a series has an agent. Append sets the field if type and payload
	// determine it (events.AgentOf).
	Agent string
	// NewAgent means that this command has just created the agent's data key. Then the agent has
	// no number in any series yet, and the sequencer does not search for one.
	NewAgent bool
}

// Append is one atomic write for one tenant: 1 to MaxEvents events, stored all together or not at
// all.
type Append struct {
	Tenant        string
	IdemKey       Hash // result of IdemKey; the zero value makes the append unique by the id of its first event
	ContentHash   Hash // hash of the request without its idempotency key
	Events        []Pending
	Preconditions []Precondition
	// Issued is the time in the payload, to the millisecond. If this node's clock is behind the
	// tenant's last event (which another node has appended) and Issued is before that event,
	// Append returns ErrMoved. The zero value means that the payload has no time.
	Issued time.Time
	// NotBefore is the time in a signed payload, for appends without Issued. The events never get
	// a time before Issued or NotBefore, even if the clock was set back after the signature. The
	// zero value means that there is no such time.
	NotBefore time.Time

	ready []readyPayload // one for each event; the caller's goroutine computes them to relieve the sequencer
}

// readyPayload is the payload of an event as its row stores it, with its hash and the series that
// number the event.
type readyPayload struct {
	stored []byte
	hash   Hash

	series  string    // empty if the event is not numbered
	inKind  seriesKey // key of the tenant's series
	inAgent seriesKey // key of the agent's series, if the event concerns an agent
	born    seriesKey // cache key that newAgentKey returns for that agent

	entries []events.Entry // entries that the directory needs for this event
}

// makeReady computes a.ready. It fails if it cannot determine the series of an event, or if an
// event names another agent than its payload.
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
				return fmt.Errorf("append %s: the agent must be the one that the payload names", d.Type)
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
	Events   []Event // in order; if Replayed, those that the first append stored
	Replayed bool    // an earlier append with the same key and content was committed
}

// Append commits the events and returns them as they are stored. If ctx ends while the request
// waits in the queue, the request is dropped. Once a batch has taken the request, the end of ctx
// does not stop it; Append then returns ErrUnknown.
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
	// If an attempt of this append was committed without an answer, the retry finds its own events
	// under the key. Then the append is not a replay.
	return Result{Events: found, Replayed: found[0].ID != a.Events[0].ID}, nil
}

func (a *Append) check() error {
	if n := len(a.Events); n == 0 || n > MaxEvents {
		return fmt.Errorf("%w: %d events, but 1 to %d are allowed", ErrTooLarge, n, MaxEvents)
	}
	octets := 0
	for _, d := range a.Events {
		if octets += len(d.Payload); len(d.Payload) > MaxPayload || octets > batchOctets {
			return fmt.Errorf("%w: the payload of %s may have at most %d bytes, and all payloads together at most %d", ErrTooLarge, d.Type, MaxPayload, batchOctets)
		}
		for _, text := range []string{a.Tenant, d.Stream, d.ID, d.Type, d.Actor, d.KeyID, d.Agent} {
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				return fmt.Errorf("append %s: tenant, stream, id, type, actor, key id and agent must be UTF-8 without NUL", d.Type)
			}
		}
		if len(d.Payload) < 2 || d.ID == "" || d.Stream == "" || d.Type == "" || a.Tenant == "" {
			return fmt.Errorf("append %s: tenant, stream, id, type and payload are required", d.Type)
		}
	}
	return nil
}

// microseconds returns the clock's time in the unit of the column occurred_us.
func microseconds(clock func() time.Time) int64 { return clock().UnixMicro() }
