package audit

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/internal/sealing"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// auditedPayload contains the members of a payload that the audit needs.
type auditedPayload struct {
	Record     jsontext.Value
	Integrity  *seal.Integrity
	Sealed     *sealing.Sealed
	Policy     jsontext.Value
	PolicyHash string
	KeyID      string
}

// readAudited parses these members of a canonical payload and skips the others.
func readAudited(payload []byte) (p auditedPayload, err error) {
	return p, canon.Walk(payload, func(name string, value jsontext.Value) error {
		switch name {
		case "record":
			p.Record = value
		case "policy":
			p.Policy = value
		case "integrity":
			if value.Kind() == 'n' {
				return nil
			}
			p.Integrity = &seal.Integrity{}
			return readIntegrity(value, p.Integrity)
		case "sealed":
			return json.Unmarshal(value, &p.Sealed)
		case "policyHash":
			return readText(value, &p.PolicyHash)
		case "keyId":
			return readText(value, &p.KeyID)
		}
		return nil
	})
}

func readIntegrity(object jsontext.Value, i *seal.Integrity) error {
	return canon.Walk(object, func(name string, value jsontext.Value) error {
		switch name {
		case "canonicalization":
			return readText(value, &i.Canonicalization)
		case "hashAlgorithm":
			return readText(value, &i.HashAlgorithm)
		case "recordHash":
			return readText(value, &i.RecordHash)
		case "payloadType":
			return readText(value, &i.PayloadType)
		case "signatureAlgorithm":
			return readText(value, &i.SignatureAlgorithm)
		case "keyId":
			return readText(value, &i.KeyID)
		case "signature":
			return readText(value, &i.Signature)
		}
		return nil
	})
}

// readText parses a member that must be a string. It decodes only strings with escapes, which are
// rare.
func readText(value jsontext.Value, into *string) error {
	if inside := len(value) - 1; inside > 0 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		*into = string(value[1:inside])
		return nil
	}
	return json.Unmarshal(value, into)
}

// auditedRecord contains the members of a signed record that the audit needs.
type auditedRecord struct {
	OrgID, DecisionID, BindingHash, DecisionRecordHash, IssuedAt, ReceivedAt string

	PolicyHash string // from the member policy
}

func readRecord(object jsontext.Value) (r auditedRecord, err error) {
	return r, canon.Walk(object, func(name string, value jsontext.Value) error {
		switch name {
		case "orgId":
			return readText(value, &r.OrgID)
		case "decisionId":
			return readText(value, &r.DecisionID)
		case "bindingHash":
			return readText(value, &r.BindingHash)
		case "decisionRecordHash":
			return readText(value, &r.DecisionRecordHash)
		case "issuedAt":
			return readText(value, &r.IssuedAt)
		case "receivedAt":
			return readText(value, &r.ReceivedAt)
		case "policy":
			if start, end, found := canon.Find(value, "policyHash"); found {
				return readText(value[start:end], &r.PolicyHash)
			}
		}
		return nil
	})
}
