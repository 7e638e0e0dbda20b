package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// The test vectors of VERIFY.md are those that this test computes.
func TestTheVectorsOfTheFormat(t *testing.T) {
	before := sha256.Sum256([]byte("the event before"))
	e := ledger.Event{Position: 1, Tenant: "org_1", Sequence: 4, Stream: "decision/asd_1", Version: 1, ID: "evt_1", Type: "decision.recorded", SchemaVersion: 1,
		OccurredUS: 1795186803000000, Actor: "cus_1", KeyID: "0123456789abcdef", IdemKey: before[:], ContentHash: before[:], Payload: []byte(`{"a":"ü"}`), Prev: before,
		Series: "decision/deny", SeriesN: 2, SeriesPrev: before[:], Agent: "sub_1", AgentN: 1}
	e.PayloadHash = sha256.Sum256(e.Payload)
	e.Hash = e.Sum()
	opening := bundle.Opening{EventID: "evt_1", Pointer: "/record/subject/agentId", Salt: strings.Repeat("07", 32), Value: `"agent-ü"`}
	record := `{"b":"ü"}`
	encoding := fmt.Sprintf("DSSEv1 %d %s %d %s", len(seal.TypeCommitted), seal.TypeCommitted, len(record), record)
	public := key(2).Public().(ed25519.PublicKey)
	want := string(must(canon.Marshal(ledger.NewLine(e)))) + "\n\n" + string(must(canon.Marshal(opening))) + "\n" + must(opening.Commitment()) + "\n\n" +
		encoding + "\n" + base64.StdEncoding.EncodeToString(ed25519.Sign(key(2), []byte(encoding))) + "\n\n" + string(note(1, tree.Leaf(e.Hash))) + "\n" +
		base64.RawURLEncoding.EncodeToString(public) + " (kid " + seal.KeyID(public) + ")\n"
	if good := must(signer().SignCanonical(seal.TypeCommitted, []byte(record))); !ed25519.Verify(key(1).Public().(ed25519.PublicKey), []byte(encoding), must(base64.StdEncoding.DecodeString(good.Integrity.Signature))) {
		t.Errorf("a record is not signed over %q", encoding)
	}
	if _, vectors, _ := bytes.Cut(bundle.Format, []byte("## Test vectors\n")); !bytes.Contains(vectors, []byte("```\n"+want+"```\n")) {
		t.Errorf("VERIFY.md has other vectors than\n%s", want)
	}
}
