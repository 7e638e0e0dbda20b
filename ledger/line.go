package ledger

import "encoding/hex"

// Line is an event as a line of JSON in a file. It has every column. Hashes are in hex. The
// payload is one string, which keeps its exact bytes in any language, or null if the file does not
// show it. The numbers in series are omitted if the event has none.
type Line struct {
	P             int16   `json:"p"`
	Position      int64   `json:"pos"`
	Tenant        string  `json:"tenant"`
	Sequence      int64   `json:"tseq"`
	Stream        string  `json:"stream"`
	Version       int64   `json:"version"`
	ID            string  `json:"event_id"`
	Type          string  `json:"type"`
	SchemaVersion int     `json:"schema_version"`
	More          int     `json:"more"`
	OccurredUS    int64   `json:"occurred_us"`
	Actor         string  `json:"actor"`
	KeyID         string  `json:"key_id"`
	IdemKey       *string `json:"idem_key"`
	ContentHash   *string `json:"content_hash"`
	Payload       *string `json:"payload"`
	PayloadHash   string  `json:"payload_hash"`
	Prev          string  `json:"prev"`
	Hash          string  `json:"hash"`
	Series        string  `json:"series,omitempty"`
	SeriesN       int64   `json:"series_n,omitzero"`
	SeriesPrev    *string `json:"series_prev,omitempty"`
	Agent         string  `json:"agent,omitempty"`
	AgentN        int64   `json:"agent_n,omitzero"`
	AgentPrev     *string `json:"agent_prev,omitempty"`
}

// NewLine converts an event to a line.
func NewLine(e Event) Line {
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := hex.EncodeToString(b)
		return &s
	}
	payload := string(e.Payload)
	return Line{e.Partition, e.Position, e.Tenant, e.Sequence, e.Stream, e.Version, e.ID, e.Type, e.SchemaVersion, e.More, e.OccurredUS,
		e.Actor, e.KeyID, text(e.IdemKey), text(e.ContentHash), &payload, e.PayloadHash.String(), e.Prev.String(), e.Hash.String(),
		e.Series, e.SeriesN, text(e.SeriesPrev), e.Agent, e.AgentN, text(e.AgentPrev)}
}

// Event converts a line to an event. ok is false if a hash is malformed, or if only a part of a
// number in a series is present.
func (l Line) Event() (e Event, ok bool) {
	ok = true
	octets := func(text *string) []byte {
		if text == nil {
			return nil
		}
		b, err := hex.DecodeString(*text)
		ok = ok && err == nil && len(b) == 32 && hex.EncodeToString(b) == *text
		return b
	}
	hash := func(text string) (h Hash) {
		copy(h[:], octets(&text))
		return h
	}
	e = Event{Partition: l.P, Position: l.Position, Tenant: l.Tenant, Sequence: l.Sequence, Stream: l.Stream, Version: l.Version,
		ID: l.ID, Type: l.Type, SchemaVersion: l.SchemaVersion, More: l.More, OccurredUS: l.OccurredUS, Actor: l.Actor, KeyID: l.KeyID,
		IdemKey: octets(l.IdemKey), ContentHash: octets(l.ContentHash), PayloadHash: hash(l.PayloadHash), Prev: hash(l.Prev), Hash: hash(l.Hash),
		Series: l.Series, SeriesN: l.SeriesN, SeriesPrev: octets(l.SeriesPrev), Agent: l.Agent, AgentN: l.AgentN, AgentPrev: octets(l.AgentPrev)}
	if l.Payload != nil {
		e.Payload = []byte(*l.Payload)
	}
	return e, ok && e.HalfNumber() == ""
}
