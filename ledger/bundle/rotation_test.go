package bundle_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

var commitmentForm = regexp.MustCompile(`\{"\$committed":"[0-9a-f]{64}"\}`)

// signedWith signs the record of a line again, with another key.
func signedWith(l *ledger.Line, n byte) {
	s := must(seal.Using(key(n)))
	members := must(canon.Members([]byte(*l.Payload)))
	var was seal.Integrity
	if err := canon.Decode(members["integrity"], &was); err != nil {
		panic(err)
	}
	open := commitmentForm.ReplaceAll(members["record"], []byte(`"agent-ü"`))
	members["integrity"] = must(canon.Marshal(must(s.SignCanonical(was.PayloadType, open)).Integrity))
	if members["sealed"] != nil {
		members["sealed"] = must(canon.Marshal(map[string]any{"keyId": "k", "signature": must(s.SignCanonical(seal.TypeCommitted, members["record"])).Integrity.Signature}))
	}
	text := string(canon.Object(members))
	l.Payload, l.KeyID = &text, s.KeyID()
}

// The records of one history can have signatures of several keys. Each key counts only for its
// purpose, in its partition, and from its activation to its retirement.
func TestSeveralKeysInAHistory(t *testing.T) { bothSay(t, severalKeys()) }

func severalKeys() map[string]altered {
	// The decision has position 3, and the receipt has position 5.
	events := func(decision, receipt byte) map[string][]byte {
		return withLines(func(lines []ledger.Line) []ledger.Line {
			signedWith(&lines[1], decision)
			signedWith(&lines[2], receipt)
			return lines
		})
	}
	manifestOf := func(files map[string][]byte, n byte) map[string][]byte {
		members := must(canon.Members(bytes.TrimSuffix(files["manifest.json"], []byte("\n"))))
		envelope := must(must(seal.Using(key(n))).SignCanonical(bundle.PayloadType, members["record"]))
		files["manifest.json"] = append(must(canon.Marshal(map[string]any{"record": jsontext.Value(envelope.Record), "integrity": envelope.Integrity})), '\n')
		return files
	}
	manifest := func(n byte) map[string][]byte { return manifestOf(draw(), n) }
	noted := draw()
	noted["checkpoint.txt"] = must(checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: 7, Root: tree.Hash{1}}, key(1)))
	const decision, receipt, signer = "events.jsonl line 2: key", "events.jsonl line 3: key", "manifest.json: key"
	return map[string]altered{
		"one key":                                  {files: events(1, 1)},
		"a rotation between the two":               {files: events(3, 4)},
		"a rotation, and one key for all time":     {files: events(3, 1)},
		"a receipt by the key that it retired":     {files: events(3, 3), reason: receipt},
		"a decision by a key that is not active":   {files: events(4, 4), reason: decision},
		"a decision by a checkpoint key":           {files: events(2, 1), reason: decision},
		"a receipt by a checkpoint key":            {files: events(1, 2), reason: receipt},
		"a decision by a key of another partition": {files: events(5, 1), reason: decision},
		"a decision by an unknown key":             {files: events(7, 1), reason: decision},
		"a manifest by the newer key":              {files: manifest(4)},
		"a manifest by the retired key":            {files: manifest(3), reason: signer},
		"a manifest of no checkpoint by that key":  {files: manifestOf(events(1, 1), 3), reason: signer},
		"a manifest by a checkpoint key":           {files: manifest(2), reason: signer},
		"a manifest by a key of another partition": {files: manifest(5), reason: signer},
		"a manifest by an unknown key":             {files: manifest(7), reason: signer},
		"a checkpoint by a record key":             {files: signedAnew(noted, func(*bundle.Manifest) {}), reason: "checkpoint.txt: note"},
	}
}
