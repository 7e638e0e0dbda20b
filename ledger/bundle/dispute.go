package bundle

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// DisputeSchema is the schema of a manifest with a Dispute. Its bundle contains only the events
// about one purchase.
const DisputeSchema = "svc-dispute-v1"

// Dispute is the manifest's member dispute. It lists the streams about a purchase. The bundle
// contains every event that these streams had up to Through, each with its payload and its
// inclusion proof.
type Dispute struct {
	Through int64    `json:"through"` // last position of the ledger when the streams were read
	Streams []Stream `json:"streams"`
}

// Stream is a stream of a Dispute. Versions count from 1, so the versions 1 to Events are all of
// its events.
type Stream struct {
	Stream string `json:"stream"`
	Events int64  `json:"events"`

	n int64 // version of the last event that a verification has read
}

func (d *Dispute) has(stream string) bool {
	return slices.ContainsFunc(d.Streams, func(s Stream) bool { return s.Stream == stream })
}

// disputeForm parses the manifest's member dispute. The text must be exactly what the service
// would write, and the manifest may have no filter except noPersonal.
func (v *verifier) disputeForm(text jsontext.Value) bool {
	d := &Dispute{}
	if !decodes(text, d) || d.Through < 1 || v.m.CheckpointSize < d.Through || len(d.Streams) == 0 {
		return false
	}
	names := map[string]bool{}
	for _, s := range d.Streams {
		if s.Events < 1 || s.Stream == "" || names[s.Stream] {
			return false
		}
		names[s.Stream] = true
	}
	v.dispute = d
	return v.m.Filters == Filters{NoPersonal: v.m.Filters.NoPersonal}
}

// disputed verifies the events of a dispute pack.
func (v *verifier) disputed(ctx context.Context) error {
	wanted, err := v.proven(ctx)
	if err != nil {
		return err
	}
	count, last := int64(0), ""
	if err := v.lines(ctx, eventsFile, func(n int, text []byte) error {
		bad := func(what string) error { return falsef("%s line %d: %s", eventsFile, n, what) }
		l, e, no := v.listed(text)
		if no != "" {
			return bad(no)
		}
		// The event must be the next one of a listed stream and show its payload.
		i := slices.IndexFunc(v.dispute.Streams, func(s Stream) bool { return s.Stream == l.Stream })
		switch {
		case i < 0:
			return bad("stream")
		case l.Position > v.dispute.Through:
			return bad("pos")
		case l.Version != v.dispute.Streams[i].n+1 || l.Version > v.dispute.Streams[i].Events:
			return bad("version")
		case l.Payload == nil:
			return bad("payload")
		}
		v.dispute.Streams[i].n = l.Version
		count, last = count+1, l.Hash
		v.remember(&l, &e, wanted)
		v.ends[l.Position] = true
		if no := v.record(l, v.m.PriorDecisions); no != "" {
			return bad(no)
		}
		v.meet(&l)
		return nil
	}); err != nil {
		return err
	}
	// Each stream must be complete, and the manifest must match the events.
	for _, s := range v.dispute.Streams {
		if s.n < s.Events {
			return falsef("%s: event %d is missing", Shown(s.Stream), s.n+1)
		}
	}
	switch {
	case count != v.m.Count:
		return falsef("%s: count", eventsFile)
	case last != v.m.LastHash:
		return falsef("%s: lastHash", eventsFile)
	case v.m.Withheld != 0:
		return falsef("manifest.json: withheld")
	}
	v.sayHidden(0)
	for _, s := range v.dispute.Streams {
		v.result.Proven = append(v.result.Proven, fmt.Sprintf("whole: %s: events 1 to %d", Shown(s.Stream), s.Events))
		v.result.Stated = append(v.result.Stated, fmt.Sprintf("up to position %d: %s has no event after %d", v.dispute.Through, Shown(s.Stream), s.Events))
	}
	return nil
}
