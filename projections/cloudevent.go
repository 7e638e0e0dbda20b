package projections

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/canon"
)

// CloudEvent is a message to another system, in the structured JSON form of CloudEvents 1.0. It
// may arrive more than once and out of order: repeats of a message have the same ID, and
// Position gives the order.
type CloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`     // p:position, then a colon and the webhook's topic or the event's hash
	Source          string `json:"source"` // the ledger's origin, whose last part is the partition
	Type            string `json:"type"`   // "countersign." with the type of the event or of the message
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// Extensions. Numbers are strings, because an integer of CloudEvents has 32 bits.
	PartitionKey string `json:"partitionkey"` // the tenant
	Position     string `json:"position"`     // position in the ledger; for a checkpoint its size
	Data         any    `json:"data,omitzero"`
	// Instead of data that are too large for a broker: their SHA-256 in hex, and where to get
	// these bytes ("Dataref" of CloudEvents). That needs a credential of the organization with
	// the right to export.
	DataHash string `json:"datahash,omitempty"`
	DataRef  string `json:"dataref,omitempty"`
}

// CloudEventType is the media type of a CloudEvent.
const CloudEventType = "application/cloudevents+json; charset=utf-8"

func messageID(p int16, position int64) string { return fmt.Sprintf("%d:%d", p, position) }

// cloudEvent returns the envelope of a message about an event.
func cloudEvent(origin string, e ledger.Event, kind, subject string, data any) CloudEvent {
	return CloudEvent{SpecVersion: "1.0", ID: messageID(e.Partition, e.Position), Source: origin, Type: "countersign." + kind, Subject: subject,
		Time: canon.Stamp(e.Occurred()), DataContentType: "application/json", PartitionKey: e.Tenant,
		Position: strconv.FormatInt(e.Position, 10), Data: data}
}

// EventData is an event as a sink receives it: every column that its hash covers, so that a
// reader can follow the chain. Hashes are hex. Personal members of the payload are commitments,
// as in the ledger.
type EventData struct {
	Position      int64          `json:"position"`
	Tenant        string         `json:"tenant"`
	Sequence      int64          `json:"sequence"`
	Stream        string         `json:"stream"`
	Version       int64          `json:"version"`
	EventID       string         `json:"eventId"`
	Type          string         `json:"type"`
	SchemaVersion int            `json:"schemaVersion"`
	More          int            `json:"more"`
	OccurredUS    int64          `json:"occurredUs"`
	Actor         string         `json:"actor"`
	KeyID         string         `json:"keyId"`
	IdemKey       string         `json:"idemKey"`
	ContentHash   string         `json:"contentHash"`
	PayloadHash   string         `json:"payloadHash"`
	Prev          string         `json:"prev"`
	Hash          string         `json:"hash"`
	Series        string         `json:"series,omitempty"` // this member and the next five only if the event has them
	SeriesN       int64          `json:"seriesN,omitzero"`
	SeriesPrev    string         `json:"seriesPrev,omitempty"`
	Agent         string         `json:"agent,omitempty"`
	AgentN        int64          `json:"agentN,omitzero"`
	AgentPrev     string         `json:"agentPrev,omitempty"`
	Payload       jsontext.Value `json:"payload"` // canonical, byte for byte the input of payloadHash
}

// DataOf converts an event to EventData.
func DataOf(e ledger.Event) EventData {
	return EventData{
		Position: e.Position, Tenant: e.Tenant, Sequence: e.Sequence, Stream: e.Stream, Version: e.Version, EventID: e.ID,
		Type: e.Type, SchemaVersion: int(e.SchemaVersion), More: e.More, OccurredUS: e.OccurredUS, Actor: e.Actor, KeyID: e.KeyID,
		IdemKey: fmt.Sprintf("%x", e.IdemKey), ContentHash: fmt.Sprintf("%x", e.ContentHash),
		PayloadHash: e.PayloadHash.String(), Prev: e.Prev.String(), Hash: e.Hash.String(), Payload: e.Payload,
		Series: e.Series, SeriesN: e.SeriesN, SeriesPrev: fmt.Sprintf("%x", e.SeriesPrev), Agent: e.Agent, AgentN: e.AgentN, AgentPrev: fmt.Sprintf("%x", e.AgentPrev),
	}
}
