package seal_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

type keys map[string]ed25519.PublicKey

func (k keys) Find(id string, _ int16, _ int64) (ed25519.PublicKey, string) {
	return k[id], "not trusted"
}

func testSigner(t *testing.T) *seal.Signer {
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = byte(i)
	}
	s, err := seal.NewSigner(seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The example of the package comment is checked with only the standard library.
func TestTheExampleOfThePackageComment(t *testing.T) {
	s := testSigner(t)
	if s.KeyID() != "56475aa75463474c" {
		t.Errorf("keyId %s", s.KeyID())
	}
	e, err := s.Sign(seal.TypeReceipt, jsontext.Value(`{"b":1,"a":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	signed := `DSSEv1 35 application/vnd.svc.receipt.v1+json 15 {"a":"x","b":1}`
	signature, _ := base64.StdEncoding.DecodeString(e.Integrity.Signature)
	if !ed25519.Verify(s.Public(), []byte(signed), signature) {
		t.Error("the signature is not over the documented octets")
	}
	if want := canon.Hash([]byte(signed[len(signed)-15:])); e.Integrity.RecordHash != want {
		t.Errorf("recordHash %s, want %s", e.Integrity.RecordHash, want)
	}
}

func TestExamineFindsEveryChange(t *testing.T) {
	s := testSigner(t)
	good, err := s.Sign(seal.TypeReceipt, map[string]any{"decision": "allow", "n": 1})
	if err != nil {
		t.Fatal(err)
	}
	trusted := keys{s.KeyID(): s.Public()}
	if checks := good.Examine(trusted); !seal.Good(checks) {
		t.Fatalf("a good record fails: %v", checks)
	}
	for name, change := range map[string]func(*seal.Envelope){
		"record":             func(e *seal.Envelope) { e.Record = []byte(strings.Replace(string(e.Record), "allow", "bllow", 1)) },
		"record unparsable":  func(e *seal.Envelope) { e.Record = []byte(`{"a":1,"a":2}`) },
		"canonicalization":   func(e *seal.Envelope) { e.Integrity.Canonicalization = "other" },
		"hashAlgorithm":      func(e *seal.Envelope) { e.Integrity.HashAlgorithm = "md5" },
		"signatureAlgorithm": func(e *seal.Envelope) { e.Integrity.SignatureAlgorithm = "none" },
		"recordHash":         func(e *seal.Envelope) { e.Integrity.RecordHash = strings.Repeat("0", 64) },
		"payloadType":        func(e *seal.Envelope) { e.Integrity.PayloadType = seal.TypeSigningKey },
		"keyId":              func(e *seal.Envelope) { e.Integrity.KeyID = "0000000000000000" },
		"signature": func(e *seal.Envelope) {
			e.Integrity.Signature = e.Integrity.Signature[1:2] + e.Integrity.Signature[:1] + e.Integrity.Signature[2:]
		},
		"signature encoding": func(e *seal.Envelope) { e.Integrity.Signature += "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			changed := good
			change(&changed)
			if checks := changed.Examine(trusted); seal.Good(checks) {
				t.Errorf("the change was not found: %v", checks)
			}
		})
	}
	if seal.Good(good.Examine(keys{})) {
		t.Error("a record of an untrusted key is good")
	}
}

func TestWithoutAKeyNothingIsSigned(t *testing.T) {
	var none *seal.Signer
	if _, err := none.Sign(seal.TypeReceipt, 1); err != seal.ErrNoSigner {
		t.Errorf("got %v", err)
	}
}
