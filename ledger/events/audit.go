package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Types of events about the ledger itself and about audits.
const (
	TypeCheckpointsBegun = "ledger.checkpoints_begun"
	TypeRollbackDeclared = "ledger.rollback_declared"
	TypeSubjectErased    = "subject.erased"
	TypeExportRequested  = "export.requested"
	TypeExportCreated    = "export.created"
	TypeExportVerified   = "export.verified"
	TypePersonalOpened   = "personal.opened"
)

var audit = []kind{
	{name: TypeCheckpointsBegun, stored: reflect.TypeFor[CheckpointsBegun](), shown: nowhere, golden: []string{
		`{"keyId":"0123456789abcdef","root":"aa","size":7,"statement":"s"}`,
	}},
	{name: TypeRollbackDeclared, stored: reflect.TypeFor[RollbackDeclared](), shown: nowhere, golden: []string{
		`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"record":{"epoch":2,"lastNote":"n","lostFrom":5,"lostTo":7,"schema":"svc-rollback-v1"}}`,
	}},
	{name: TypeSubjectErased, stored: reflect.TypeFor[SubjectErased](), shown: in("access"), about: "keyId", inSQL: true, series: numbered{name: "erasure"}, golden: []string{
		`{"approvedBy":"cus_2","keyId":"sub_1","reason":"asked for","requestedBy":"cus_1"}`,
	}},
	{name: TypeExportRequested, stored: reflect.TypeFor[ExportRequested](), shown: in("access"), about: "exportId", inRecord: []string{"/record/filters/agent"}, series: numbered{name: "export"}, golden: []string{
		`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"record":{"schema":"svc-export-request-v1"},"verifyUrl":"u"}`,
	}},
	{name: TypeExportCreated, stored: reflect.TypeFor[ExportCreated](), shown: in("access"), about: "exportId", inRecord: []string{"/record/filters/agent"}, golden: []string{
		`{"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"record":{"schema":"x"},"verifyUrl":"u"}`,
	}},
	{name: TypeExportVerified, stored: reflect.TypeFor[ExportVerified](), shown: in("access"), about: "exportId", golden: []string{
		`{"exportId":"exp_1","valid":true}`, `{"exportId":"exp_1","reason":"pin: ROLLBACK","valid":false}`,
	}},
	{name: TypePersonalOpened, stored: reflect.TypeFor[PersonalOpened](), shown: in("access"), about: "place", golden: []string{
		`{"day":"2026-11-26","place":"decisions"}`,
	}},
}

// CheckpointsBegun is ledger.checkpoints_begun, schema version 1, once in the stream checkpoints
// of the tenant service. It states which events the first checkpoint of a ledger covers.
type CheckpointsBegun struct {
	Size      int64  `json:"size"` // number of events before this append
	Root      string `json:"root"` // root of the tree over these events, in hex
	KeyID     string `json:"keyId"`
	Statement string `json:"statement"`
}

// RollbackDeclared is ledger.rollback_declared, schema version 1, in the stream checkpoints of the
// tenant service. It means that an operator continued with a database that lacks events which a
// checkpoint outside of it covers. Record is a Rollback.
type RollbackDeclared struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
}

// Rollback is the record in ledger.rollback_declared. If the history is not shorter but different,
// LostFrom is 1, because the position of the first different event is unknown.
type Rollback struct {
	Schema   string `json:"schema"` // "svc-rollback-v1"
	LostFrom int64  `json:"lostFrom"`
	LostTo   int64  `json:"lostTo"`
	LastNote string `json:"lastNote"` // newest note outside the database, in full
	Epoch    int64  `json:"epoch"`    // epoch that starts with this event
}

// SubjectErased is subject.erased, schema version 1, in the stream subject/<key id> of the
// subject's tenant. The append of this event destroys the data key. Reason and names are personal
// too: they are encrypted with a data key that the tenant keeps for its erasures, never with the
// destroyed one. KeyID is not encrypted, because the database function erase_subject reads it.
type SubjectErased struct {
	KeyID       string `json:"keyId"` // id of the data key, sub_…
	Reason      Text   `json:"reason" personal:"true"`
	RequestedBy Text   `json:"requestedBy" personal:"true"`
	ApprovedBy  Text   `json:"approvedBy" personal:"true"`
}

// ExportRequested is export.requested, schema version 1, the first event of the stream
// export/<export id> if the export is a selection. Record is the claim (package ledger/bundle): the
// newest number of each series when the export was requested. Its filters.agent is stored as a
// commitment, under the agent's data key.
type ExportRequested struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
}

// ExportCreated is export.created, schema version 1, in the stream export/<export id> of the
// exported tenant. Record is the bundle's manifest. Its filters.agent is stored as a commitment,
// under the agent's data key.
type ExportCreated struct {
	Record    jsontext.Value `json:"record"`
	Integrity seal.Integrity `json:"integrity"`
	VerifyURL string         `json:"verifyUrl"`
}

// ExportVerified is export.verified, schema version 1, in the stream verification/<export id> of
// the tenant. The service has verified an export that it had made, at a caller's request.
type ExportVerified struct {
	ExportID string `json:"exportId"`
	Valid    bool   `json:"valid"`
	Reason   string `json:"reason,omitempty"` // first check that failed
}

// PersonalOpened is personal.opened, schema version 1, in the stream opened/<actor>: the event's
// actor has been shown decrypted personal members, once or more often. There is one event for each
// actor, place and day, because this happens often. It names no subject.
type PersonalOpened struct {
	Day   string `json:"day"`   // day in UTC, such as 2026-11-26
	Place string `json:"place"` // part of the service that showed them, such as "decisions"
}
