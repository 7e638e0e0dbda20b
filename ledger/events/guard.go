package events

import "reflect"

// TypeGuardReported is the type of the events in the stream guard/<machine> of an organization.
const TypeGuardReported = "guard.reported"

var guard = []kind{
	{name: TypeGuardReported, stored: reflect.TypeFor[GuardReported](), shown: nowhere, archived: true, golden: []string{
		`{"before":"","counts":{"deny":1,"pass":1},"first":1,"head":"aa","last":2,"lines":[],"machine":"34750f98bd59fcfc","publicKey":"k","signature":"s"}`,
	}},
}

// GuardReported is guard.reported, schema version 1: a part of the log of a coding agent's guard,
// signed by the machine that wrote the log (policy/guardlog). Before is the head of the previous
// event in the stream, so that a missing part is detected.
type GuardReported struct {
	Machine   string         `json:"machine"`   // id of the machine: 16 hex digits, derived from its key
	PublicKey string         `json:"publicKey"` // base64
	First     int64          `json:"first"`     // number of the first line
	Last      int64          `json:"last"`
	Before    string         `json:"before"` // hash of the line before the first; empty at the beginning of the log
	Head      string         `json:"head"`   // hash of the last line
	Signature string         `json:"signature"`
	Counts    map[string]int `json:"counts"`                // number of lines by decision
	Lines     any            `json:"lines" personal:"true"` // of type []guardlog.Line
}
