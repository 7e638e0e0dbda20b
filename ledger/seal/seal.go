// Package seal signs and verifies records: decisions, receipts, workflow receipts, attestations
// and all other records that an auditor can verify without this service.
//
// # The envelope
//
//	{
//	  "record":    { the statement itself },
//	  "integrity": { "canonicalization": "svc-stable-json-v1", "hashAlgorithm": "sha256", "recordHash": "<64 hex>",
//	                 "payloadType": "application/vnd.svc.receipt.v1+json",
//	                 "signatureAlgorithm": "Ed25519", "keyId": "<16 hex>", "signature": "<base64>" },
//	  "ledger":    { "position": 4711, "tenant": "service", "sequence": 12, "eventHash": "<64 hex>" },
//	  "verify":    { "url": "<base>/api/verify", "method": "POST" }
//	}
//
// recordHash is the SHA-256 of the record's canonical form. signature is Ed25519 (RFC 8032) over
// the DSSE v1 pre-authentication encoding
//
//	"DSSEv1" SP len(payloadType) SP payloadType SP len(record) SP record
//
// where record is the canonical form and the lengths are decimal ASCII, so each record is a valid
// DSSE payload. keyId is the first 16 hex digits of the SHA-256 of the public key. The signature
// does not cover the members ledger and verify. The event contains the signed record, so the hash
// chain covers record and signature.
//
// Example: with the seed 00 01 … 1f (keyId 56475aa75463474c), payload type
// "application/vnd.svc.receipt.v1+json" and record {"b":1,"a":"x"}, the signed bytes are
//
//	DSSEv1 35 application/vnd.svc.receipt.v1+json 15 {"a":"x","b":1}
//
// and recordHash is the SHA-256 of their last 15.
//
// A verifier must take the public key from a source that it trusts, never from the envelope.
package seal

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Payload types that this package needs. Other packages define those of their records.
const (
	TypeReceipt    = "application/vnd.svc.receipt.v1+json"
	TypeSigningKey = "application/vnd.svc.signing-key.v1+json"
	// TypeCommitted is the type of a record as it is stored, with commitments in place of personal
	// members.
	TypeCommitted = "application/vnd.svc.committed.v1+json"
)

// Integrity is the member of an envelope that describes the signature.
type Integrity struct {
	Canonicalization   string `json:"canonicalization" jsonschema_description:"Canonical form of the record."`
	HashAlgorithm      string `json:"hashAlgorithm" jsonschema_description:"Hash of the canonical record."`
	RecordHash         string `json:"recordHash" jsonschema_description:"The hash, in hexadecimal digits."`
	PayloadType        string `json:"payloadType" jsonschema_description:"Media type of record, which the signature covers."`
	SignatureAlgorithm string `json:"signatureAlgorithm" jsonschema_description:"Algorithm of the signature."`
	KeyID              string `json:"keyId" jsonschema_description:"First 16 hexadecimal digits of the SHA-256 of the public key."`
	Signature          string `json:"signature" jsonschema_description:"Base64 of the signature over the DSSE pre-authentication encoding."`
}

// HasKnownAlgorithms reports whether the algorithms are those of every record.
func (i Integrity) HasKnownAlgorithms() bool {
	return i.Canonicalization == canon.Name && i.HashAlgorithm == "sha256" && i.SignatureAlgorithm == "Ed25519"
}

// LedgerPosition identifies the ledger event that contains the record, by its position and by its hash.
type LedgerPosition struct {
	Partition int16  `json:"partition,omitzero" jsonschema_description:"Partition of the ledger."` // absent if it is 0
	Position  int64  `json:"position" jsonschema_description:"Position in the ledger."`
	Tenant    string `json:"tenant" jsonschema_description:"Organization, or service."`
	Sequence  int64  `json:"sequence" jsonschema_description:"Sequence number among the tenant's events."`
	EventHash string `json:"eventHash" jsonschema_description:"SHA-256 of the event that contains the record."`
}

// VerifyAt is the address at which anyone can verify the envelope for free.
type VerifyAt struct {
	URL    string `json:"url" jsonschema_description:"Where to send the envelope."`
	Method string `json:"method" jsonschema_description:"HTTP method."`
}

// Envelope is a signed record, its signature, and its position in the ledger.
type Envelope struct {
	Record    jsontext.Value  `json:"record" jsonschema_description:"The signed record."`
	Integrity Integrity       `json:"integrity" jsonschema_description:"Hash and signature of record."`
	Ledger    *LedgerPosition `json:"ledger,omitempty" jsonschema_description:"Position of the record in the ledger."`
	Verify    *VerifyAt       `json:"verify,omitempty" jsonschema_description:"Where to check it, free of charge."`
}

// Canonical returns the envelope in canonical form. The record must be canonical already; it is
// not parsed again.
func (e Envelope) Canonical() ([]byte, error) {
	record := e.Record
	e.Record = jsontext.Value("{}")
	text, err := canon.Marshal(e)
	if err != nil {
		return nil, err
	}
	return canon.Put(text, record, "record"), nil
}

// ErrNoSigner means that no signing key is configured or that it cannot be reached. Then no record
// may be written.
var ErrNoSigner = errors.New("seal: no signing key is available")

// Signer signs records with one Ed25519 key, which may be outside of this process. A nil Signer
// returns ErrNoSigner.
type Signer struct {
	key    crypto.Signer
	public ed25519.PublicKey
	id     string
}

// NewSigner returns a signer for an Ed25519 seed of 32 bytes (RFC 8032).
func NewSigner(seed []byte) (*Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("seal: a signing seed must have %d bytes", ed25519.SeedSize)
	}
	return Using(ed25519.NewKeyFromSeed(seed))
}

// Using returns a signer for a key that may be outside of this process: in an agent, a hardware
// module or a key service. The signer requests Ed25519 signatures of whole messages
// (crypto.Hash(0)) and never needs the private key itself.
func Using(key crypto.Signer) (*Signer, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("seal: the signing key is not an Ed25519 key")
	}
	return &Signer{key, public, KeyID(public)}, nil
}

// KeyID returns the id of a public key: the first 16 hex digits of its SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// KeyID returns the id of the signer's key, or an empty string for a nil Signer.
func (s *Signer) KeyID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// Public returns the signer's public key.
func (s *Signer) Public() ed25519.PublicKey { return s.public }

// Key returns the signing key, for signatures in other forms than an envelope.
func (s *Signer) Key() crypto.Signer { return s.key }

// Sign signs a record: any Go value that can be encoded as canonical JSON.
func (s *Signer) Sign(payloadType string, record any) (Envelope, error) {
	if s == nil {
		return Envelope{}, ErrNoSigner
	}
	canonical, err := canon.Marshal(record)
	if err != nil {
		return Envelope{}, fmt.Errorf("seal: the record has no canonical form: %w", err)
	}
	return s.SignCanonical(payloadType, canonical)
}

// SignCanonical signs a record that is already in canonical form.
func (s *Signer) SignCanonical(payloadType string, canonical []byte) (Envelope, error) {
	if s == nil {
		return Envelope{}, ErrNoSigner
	}
	signature, err := s.key.Sign(nil, preAuth(payloadType, canonical), crypto.Hash(0))
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrNoSigner, err)
	}
	return Envelope{Record: canonical, Integrity: Integrity{
		Canonicalization: canon.Name, HashAlgorithm: "sha256", RecordHash: canon.Hash(canonical),
		PayloadType: payloadType, SignatureAlgorithm: "Ed25519", KeyID: s.id,
		Signature: base64.StdEncoding.EncodeToString(signature),
	}}, nil
}

func preAuth(payloadType string, record []byte) []byte {
	return slices.Concat(preAuthHead(payloadType, record), record)
}

// preAuthHead returns the bytes of the pre-authentication encoding that precede the record.
func preAuthHead(payloadType string, record []byte) []byte {
	b := append(make([]byte, 0, 128), "DSSEv1 "...)
	b = strconv.AppendInt(b, int64(len(payloadType)), 10)
	b = append(append(append(b, ' '), payloadType...), ' ')
	b = strconv.AppendInt(b, int64(len(record)), 10)
	return append(b, ' ')
}

// Values of Check.Result.
const (
	Pass    = "pass"
	Fail    = "fail"
	Unknown = "unknown" // the check could not be made
)

// Check is the result of one check.
type Check struct {
	Name   string `json:"name" jsonschema_description:"Name of the check."`
	Result string `json:"result" jsonschema:"enum=pass,enum=fail,enum=unknown" jsonschema_description:"unknown: the check could not be made."`
	Detail string `json:"detail" jsonschema_description:"The result in one sentence."`
	Path   string `json:"path,omitempty" jsonschema_description:"JSON pointer of the checked member, if the document contains more than one record."`
}

// Keys finds trusted public keys by id. position is that of the record's event in its partition,
// or 0 if it is unknown; a key is valid from its activation to its retirement. If there is no
// valid key, whyNot says why.
type Keys interface {
	Find(keyID string, partition int16, position int64) (key ed25519.PublicKey, whyNot string)
}

// Examine makes every check that needs no ledger: algorithms, form, recordHash, key and signature.
// Good decides from the checks whether the envelope is valid.
func (e Envelope) Examine(keys Keys) []Check {
	var checks []Check
	add := func(name, result, detail string) {
		checks = append(checks, Check{Name: name, Result: result, Detail: detail})
	}
	i := e.Integrity
	if !i.HasKnownAlgorithms() {
		add("algorithms", Fail, "canonicalization, hash or signature algorithm is unknown")
	} else {
		add("algorithms", Pass, canon.Name+", sha256, Ed25519")
	}
	canonical, err := canon.Canonical(e.Record)
	if err != nil {
		add("canonicalForm", Fail, "the record has no canonical form")
		return checks
	}
	if got := canon.Hash(canonical); got != i.RecordHash {
		add("recordHash", Fail, "the record hashes to "+got)
	} else {
		add("recordHash", Pass, "the record has the hash that integrity names")
	}
	var at LedgerPosition
	if e.Ledger != nil {
		at = *e.Ledger
	}
	key, whyNot := keys.Find(i.KeyID, at.Partition, at.Position)
	if key == nil {
		add("key", Fail, whyNot)
		add("signature", Unknown, "not checked without a trusted key")
		return checks
	}
	add("key", Pass, "the key is trusted and valid for this record")
	if !Signed(key, i.PayloadType, canonical, i.Signature) {
		add("signature", Fail, "the signature does not match this key and this record")
	} else {
		add("signature", Pass, "Ed25519 over the DSSE encoding of payload type and record")
	}
	return checks
}

// Signed reports whether a key has signed a record in canonical form. The signature must be in the
// one base64 form that encoders write. Signed does not check the rest of the envelope; Examine
// does.
func Signed(key ed25519.PublicKey, payloadType string, canonical []byte, signature string) bool {
	octets, ok := oneSpelling(signature)
	return ok && ed25519.Verify(key, preAuth(payloadType, canonical), octets)
}

// Good reports whether no check failed and the signature was verified.
func Good(checks []Check) bool {
	signed := false
	for _, c := range checks {
		if c.Result == Fail {
			return false
		}
		signed = signed || c.Name == "signature" && c.Result == Pass
	}
	return signed
}
