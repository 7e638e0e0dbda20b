package forms

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/canon"
)

// CloudEvent is a message in the structured JSON form of CloudEvents 1.0. An event of the ledger
// has the same id, source and type in every message: in an export, from a sink and to a webhook.
// So a recipient of several messages can see that they are about one event. Messages may arrive
// more than once and out of order; Position gives the order.
type CloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`     // id of the event, evt_…; for a checkpoint "checkpoint:" and its size
	Source          string `json:"source"` // origin of the ledger, whose last part is the partition
	Type            string `json:"type"`   // "countersign." and the type of the event
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// The following members are extensions. Numbers are strings, because an integer of CloudEvents
	// has only 32 bits.
	PartitionKey string `json:"partitionkey"`    // tenant of the event
	Position     string `json:"position"`        // position in the ledger; for a checkpoint its size
	Topic        string `json:"topic,omitempty"` // topic of a webhook message, whose data are a summary; if it is empty, the data are EventData
	Data         any    `json:"data,omitzero"`
	// If the data are too large for a broker, these replace them: the SHA-256 of the data in hex,
	// and the URL of the data ("Dataref" of CloudEvents). Reading that URL requires a credential
	// of the organization with the right to export.
	DataHash string `json:"datahash,omitempty"`
	DataRef  string `json:"dataref,omitempty"`
}

// CloudEventType is the media type of a CloudEvent.
const CloudEventType = "application/cloudevents+json; charset=utf-8"

// NewCloudEvent returns the message about an event of the ledger with this origin.
func NewCloudEvent(origin string, e ledger.Event, data any) CloudEvent {
	return CloudEvent{SpecVersion: "1.0", ID: e.ID, Source: origin, Type: "countersign." + e.Type, Subject: e.Stream,
		Time: canon.Stamp(e.Occurred()), DataContentType: "application/json", PartitionKey: e.Tenant,
		Position: strconv.FormatInt(e.Position, 10), Data: data}
}

// EventData is an event in exports and sinks. It has every column that the event's hash covers, so
// that a recipient can verify the chain. Hashes are in hex. Personal members of the payload are
// commitments, as in the ledger.
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
	Series        string         `json:"series,omitempty"` // this and the next five members are present only in numbered events
	SeriesN       int64          `json:"seriesN,omitzero"`
	SeriesPrev    string         `json:"seriesPrev,omitempty"`
	Agent         string         `json:"agent,omitempty"`
	AgentN        int64          `json:"agentN,omitzero"`
	AgentPrev     string         `json:"agentPrev,omitempty"`
	Payload       jsontext.Value `json:"payload"` // canonical JSON: exactly the bytes whose SHA-256 is payloadHash
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
