package events

import (
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
)

// Types of events about keys: those that sign records, and the API keys of callers.
const (
	TypeSigningKeyActivated = "signing_key.activated"
	TypeSigningKeyRetired   = "signing_key.retired"
	TypeKeyRequested        = "key.requested"
	TypeKeyIssued           = "key.issued"
	TypeKeyRevoked          = "key.revoked"
)

var keys = []kind{
	{name: TypeSigningKeyActivated, stored: reflect.TypeFor[SigningKeyActivated](), shown: nowhere, golden: []string{
		`{"confirmation":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"integrity":{"canonicalization":"","hashAlgorithm":"","keyId":"k","payloadType":"","recordHash":"h","signature":"s","signatureAlgorithm":""},"record":{"keyId":"0123456789abcdef","previousKeyId":null,"publicKey":"a2V5","purpose":"record","reason":"first"}}`,
	}},
	{name: TypeSigningKeyRetired, stored: reflect.TypeFor[SigningKeyRetired](), shown: nowhere, golden: []string{
		`{"compromisedFrom":7,"keyId":"0123456789abcdef","reason":"compromised"}`,
		`{"keyId":"0123456789abcdef","reason":"rotated"}`,
	}},
	{name: TypeKeyRequested, stored: reflect.TypeFor[KeyRequested](), shown: nowhere, golden: []string{
		`{"id":"0123456789ab","keyId":"key_1"}`,
		`{"keyId":"key_1"}`,
	}},
	{name: TypeKeyIssued, stored: reflect.TypeFor[KeyIssued](), shown: nowhere, golden: []string{
		`{"customerId":"cus_1","email":"ada@example.com","keyId":"key_1","plan":"free","secretHash":"ff","subject":"sub_1"}`,
	}},
	{name: TypeKeyRevoked, stored: reflect.TypeFor[KeyRevoked](), shown: nowhere, golden: []string{
		`{"keyId":"key_1","reason":"leaked"}`,
	}},
}

// SigningKey is the record in signing_key.activated. The previous key of the same purpose signs
// it; the first key signs its own record.
type SigningKey struct {
	KeyID         string  `json:"keyId"`         // 16 hex digits
	Purpose       string  `json:"purpose"`       // "record" or "checkpoint"
	PublicKey     string  `json:"publicKey"`     // 32 bytes, base64
	PreviousKeyID *string `json:"previousKeyId"` // null for the first
	Reason        string  `json:"reason"`        // "first" or "rotated"
}

// SigningKeyActivated is signing_key.activated, schema version 1. Confirmation
// is the new key's own signature over the same record.
type SigningKeyActivated struct {
	Record       jsontext.Value `json:"record"`
	Integrity    seal.Integrity `json:"integrity"`
	Confirmation seal.Integrity `json:"confirmation"`
}

// SigningKeyRetired is signing_key.retired, schema version 1.
type SigningKeyRetired struct {
	KeyID           string `json:"keyId"`
	Reason          string `json:"reason"`                   // "rotated" or "compromised"
	CompromisedFrom int64  `json:"compromisedFrom,omitzero"` // position from which signatures do not count; only with "compromised"
}

// KeyRequested is key.requested, schema version 1. In the stream free_keys/<reference>/<yyyy-mm>
// it counts the free keys of an e-mail address in a month. The reference in the stream's name is a
// keyed hash of the address, and its key can be destroyed. In the stream account_keys/<customer
// id> it lists the keys of an account.
type KeyRequested struct {
	KeyID string `json:"keyId"`        // key_…
	ID    string `json:"id,omitempty"` // public part of a key in an account, which names the key's stream
}

// KeyIssued is key.issued, schema version 1, the first event of the stream key/<key id>.
type KeyIssued struct {
	KeyID      string `json:"keyId"` // key_…
	Plan       string `json:"plan"`  // "free"
	SecretHash string `json:"secretHash"`
	Email      any    `json:"email" personal:"true"`
	Subject    string `json:"subject"`              // id of the data key that encrypts calls with this key
	CustomerID string `json:"customerId,omitempty"` // cus_… of the account in which it was issued
}

// KeyRevoked is key.revoked, schema version 1, in the stream key/<key id>.
type KeyRevoked struct {
	KeyID  string `json:"keyId"`
	Reason string `json:"reason"`
}
