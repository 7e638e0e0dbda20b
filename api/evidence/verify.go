// Package evidence lets an auditor check the service without trusting it. It verifies records,
// serves the signed heads of the ledger with proofs and tiles, publishes the public keys, and
// serves exports and events.
package evidence

import (
	"context"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	invopop "github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/seal"
)

// verification is the answer of POST /api/verify.
type verification struct {
	seal.Examination
	Inclusion *Inclusion `json:"inclusion" jsonschema:"nullable" jsonschema_description:"The Merkle proof; null until a checkpoint covers the record."`
}

// Inclusion proves that the tree of a checkpoint contains the event of a record (RFC 6962). If a
// document has several records, the proof is for the first one that the ledger contains.
type Inclusion struct {
	Partition  int16    `json:"partition,omitzero"` // absent for the first partition
	Position   int64    `json:"position"`
	Size       int64    `json:"size"`
	Root       string   `json:"root"`
	Hashes     []string `json:"hashes"`
	Checkpoint string   `json:"checkpoint" jsonschema_description:"The signed note of this size and root (C2SP tlog-checkpoint)."`
}

// signedDocument describes the documents that can be verified: an envelope, an answer with a
// receipt, a status record, or a list of these. Package seal parses them.
type signedDocument struct {
	Record    jsontext.Value       `json:"record,omitempty"`
	Integrity *seal.Integrity      `json:"integrity,omitempty"`
	Ledger    *seal.LedgerPosition `json:"ledger,omitempty"`
	Verify    *seal.VerifyAt       `json:"verify,omitempty"`
	Receipt   *seal.Envelope       `json:"receipt,omitempty" jsonschema_description:"The receipt in a service's answer. The other members of the answer are compared with it."`
}

// JSONSchemaExtend allows the other members that an answer may have.
func (signedDocument) JSONSchemaExtend(s *invopop.Schema) {
	s.AdditionalProperties = invopop.TrueSchema
	s.Description = "A signed record, the whole answer of a service, a status record, or a list of these. It must contain the members record and integrity of at least one signed record."
}

// maxVerified is the largest number of records in one document. Each needs a look-up in the
// ledger.
const maxVerified = 200

// maxUnsigned is the largest number of unsigned members that are reported. Each is a line of the
// answer.
const maxUnsigned = 10_000

// VerifyRecord is the operation that verifies a signed record or answer.
var VerifyRecord = &op.Operation{
	ID: "verify_record", Method: http.MethodPost, Path: "/api/verify",
	CORS:    true,
	Summary: "Verify a signed record, or a whole answer with its receipt. Every member is compared with the signed record or named as not covered. Free.",
	Input:   reflect.TypeFor[signedDocument](), Parses: true, Output: reflect.TypeFor[verification](),
	Query: []op.Parameter{{Name: "wait", Description: "proof waits up to 2 s for a checkpoint that covers the record.", Schema: op.Object{"type": "string", "enum": []any{"proof"}}}},
	Limit: op.LimitVerify, Errors: []int{400, 413, 429, 503},
	Refuses: []string{"missing_field", "wrong_type", "too_many_items", "out_of_range"},
}

// Verifier verifies signed records and answers.
type Verifier struct {
	Ground  *ground.Ground // includes the ledger and its keys
	Proofs  *Proofs
	Callers *request.Callers
}

// Operations lists the operation that verifies records.
func (s *Verifier) Operations() []*op.Operation {
	return []*op.Operation{VerifyRecord.Does(s.verifyRecord)}
}

func (s *Verifier) verifyRecord(c *op.Call) (op.Reply, error) {
	if err := s.Callers.MayAsk(op.ToVerify, c); err != nil {
		return op.Reply{}, err
	}
	ctx := c.Request.Context()
	var position *seal.LedgerPosition // position of the first record that is in the ledger
	found, err := s.Examine(ctx, c.Text, func(e seal.Envelope) seal.Check {
		check := audit.Locate(ctx, s.Ground.Ledger, e)
		if check.Result == seal.Pass && position == nil {
			position = e.Ledger
		}
		return check
	})
	if err != nil {
		return op.Reply{}, err
	}
	result := verification{Examination: found}
	if position != nil {
		if result.Inclusion, err = s.Proofs.include(ctx, *position, c.Request.URL.Query().Get("wait") == "proof"); err != nil {
			return op.Reply{}, ground.Unreadable(err)
		}
	}
	return op.Reply{Value: result,
		Header: http.Header{"Cache-Control": {"private, no-store"}, "Access-Control-Allow-Origin": {"*"}}}, nil
}

// Examine verifies a document with the ledger's own keys.
func (s *Verifier) Examine(ctx context.Context, text []byte, locate func(seal.Envelope) seal.Check) (found seal.Examination, err error) {
	keys, err := s.Ground.Ledger.Keyrings(ctx)
	if err != nil {
		return found, ground.Unreadable(err)
	}
	examiner := seal.Examiner{Keys: keys, Most: maxVerified, Rest: maxUnsigned, Locate: locate}
	err = s.Ground.Within(ctx, len(text), func() (err error) { found, err = examiner.Examine(text); return err })
	return found, err
}
