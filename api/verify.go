package api

import (
	"net/http"
	"reflect"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// verification is what POST /api/verify answers.
type verification struct {
	Valid     bool         `json:"valid"`
	Checks    []seal.Check `json:"checks"`
	Inclusion *inclusion   `json:"inclusion" jsonschema:"nullable" jsonschema_description:"The Merkle proof, once a checkpoint covers the record."`
}

// inclusion proves that a checkpoint's tree holds the record's event (RFC 6962).
// There are no checkpoints yet, so none is given.
type inclusion struct {
	Size   int64    `json:"size"`
	Root   string   `json:"root"`
	Hashes []string `json:"hashes"`
}

var verifyRecord = &operation{
	id: "verify_record", method: http.MethodPost, path: "/api/verify",
	cors:    true,
	summary: "Check a signed record: form, hash, key, signature, and its place in the ledger. Free.",
	input:   reflect.TypeFor[seal.Envelope](), output: reflect.TypeFor[verification](),
	limit: limitVerify, errors: []int{400, 413, 503},
	run: func(s *Server, c *call) (reply, error) {
		var envelope seal.Envelope
		if err := canon.Decode(c.body, &envelope); err != nil {
			return reply{}, err
		}
		keys, _, err := s.app.Ledger.Keyring(c.request.Context())
		if err != nil {
			return reply{}, unavailable(err)
		}
		checks := append(envelope.Examine(keys), s.app.Ledger.Locate(c.request.Context(), envelope))
		return reply{value: verification{Valid: seal.Good(checks), Checks: checks},
			header: http.Header{"Cache-Control": {"private, no-store"}, "Access-Control-Allow-Origin": {"*"}}}, nil
	},
}
