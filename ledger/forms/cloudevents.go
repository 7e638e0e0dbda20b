package forms

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/policy/canon"
)

// CloudEvent is a message in the structured JSON form of CloudEvents 1.0. An event of the ledger
// has the same id, source and type in every message about it: in an export, from a sink and to a
// webhook. So a reader of several of them knows that the messages are about one event. A message
// may arrive more than once and out of order: Position gives the order.
type CloudEvent struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`     // of the event, evt_…; of a checkpoint "checkpoint:" and its size
	Source          string `json:"source"` // the ledger's origin, whose last part is the partition
	Type            string `json:"type"`   // "countersign." with the type of the event
	Subject         string `json:"subject,omitempty"`
	Time            string `json:"time"`
	DataContentType string `json:"datacontenttype"`
	// Extensions. Numbers are strings, because an integer of CloudEvents has 32 bits.
	PartitionKey string `json:"partitionkey"`    // the tenant
	Position     string `json:"position"`        // position in the ledger; for a checkpoint its size
	Topic        string `json:"topic,omitempty"` // of a webhook, whose data are a summary; empty: the data are EventData
	Data         any    `json:"data,omitzero"`
	// Instead of data that are too large for a broker: their SHA-256 in hex, and where to get
	// these bytes ("Dataref" of CloudEvents). That needs a credential of the organization with
	// the right to export.
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

// EventData is an event as an export and a sink have it: every column that its hash covers, so
// that a reader can follow the chain. Hashes are hex. Personal members of the payload are
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
