package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

const origin = "ledger.example.com/countersign/0"

func key(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32)) }

func signer() *seal.Signer {
	s, err := seal.Using(key(1))
	if err != nil {
		panic(err)
	}
	return s
}

// trusted returns the keys of the first partition and of the fourth. Three more record keys sign
// nothing in the bundles of draw: one was retired at position 5 of the first partition, one was
// activated there, and one is only of the fourth partition.
func trusted() []bundle.Key {
	var keys []bundle.Key
	for i, purpose := range []string{"record", "checkpoint"} {
		public := key(byte(i + 1)).Public().(ed25519.PublicKey)
		keys = append(keys, bundle.Key{Purpose: purpose, Public: public, From: 1}, bundle.Key{Purpose: purpose, Public: public, Partition: 3, From: 3})
	}
	record := func(n byte, partition int, from, to int64) bundle.Key {
		return bundle.Key{Purpose: "record", Public: key(n).Public().(ed25519.PublicKey), Partition: partition, From: from, To: to}
	}
	return append(keys, record(3, 0, 1, 5), record(4, 0, 5, 0), record(5, 3, 1, 0))
}

// keySets returns five sets of keys: all keys, all except the checkpoint keys, all with the record
// key retired at position 7, all with the record key compromised from position 4 on, and all with
// the checkpoint key retired at position 7.
func keySets() [][]bundle.Key {
	return [][]bundle.Key{trusted(), slices.DeleteFunc(trusted(), func(k bundle.Key) bool { return k.Purpose != ledger.PurposeRecord }),
		retired(ledger.PurposeRecord, 7), compromised(4), retired(ledger.PurposeCheckpoint, 7)}
}

// retired returns the keys, with the key of a purpose retired at a position.
func retired(purpose string, at int64) []bundle.Key {
	keys := trusted()
	for i, k := range keys {
		if k.Purpose == purpose {
			keys[i].To = at
		}
	}
	return keys
}

// compromised returns the keys, with the record key compromised from a position on.
func compromised(from int64) []bundle.Key {
	keys := trusted()
	for i, k := range keys {
		if k.Purpose == ledger.PurposeRecord {
			keys[i].Void = from
		}
	}
	return keys
}

func jwks(trusted []bundle.Key) []byte {
	set := map[string]any{}
	var keys []any
	for _, k := range trusted {
		keys = append(keys, map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": seal.KeyID(k.Public), "svc_partition": k.Partition, "x": base64.RawURLEncoding.EncodeToString(k.Public),
			"svc_purpose": k.Purpose, "svc_from_position": k.From, "svc_to_position": k.To, "svc_void_from_position": k.Void})
	}
	set["keys"] = keys
	text, _ := json.Marshal(set)
	return text
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// draw makes a small bundle: a sealed decision with its openings and with integers beyond 2^53-1,
// a receipt, a policy, and a proof that its tree extends the one of seenSize events. In the
// ledger, an event of another tenant is between its events.
func draw() map[string][]byte {
	files, _ := drawn()
	return files
}

const seenSize = 4

// standIn takes the place of VERIFY.md and verify.py in drawn bundles. Verifiers read neither.
var standIn = []byte("#\n")

// firstTime is the time of the first event of draw, 15:00:00. The next events follow at intervals
// of one second; the last two have the same time.
const firstTime = 1_795_186_800_000_000

// seen returns a signed checkpoint of the ledger of draw at a smaller size.
func seen(size int) []byte {
	_, leaves := drawn()
	return note(int64(size), root(leaves[:size]))
}

// note returns a checkpoint that the ledger's key has signed.
func note(size int64, root tree.Hash) []byte {
	return must(checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: size, Root: root}, key(2)))
}

func drawn() (map[string][]byte, []tree.Hash) {
	files := map[string][]byte{"VERIFY.md": standIn, "verify.py": standIn, "views/report.html": []byte("<p>")}
	policy := jsontext.Value(`{"policyId":"p","version":1}`)
	files["policies/"+canon.Hash(policy)+".json"] = policy
	rules := []byte(`[{"id":"x402.https.required"}]`)
	files["rules/"+canon.Hash(rules)+".json"] = rules
	s := signer()
	salt := bytes.Repeat([]byte{5}, 32)
	sum := sha256.Sum256(slices.Concat([]byte("svc-commitment-v1\n"), salt, []byte(`"agent-ü"`)))
	full := must(s.Sign("application/vnd.svc.decision.v1+json", jsontext.Value(`{"amountUsd":1.5,"bindingHash":"b","decision":"deny","decisionId":"asd_1","manifest":{"maximum":9223372036854775807,"message_id":1308129394817110129},"orgId":"org_1","subject":{"agentId":"agent-ü"}}`)))
	stored := bytes.Replace(full.Record, []byte(`"agent-ü"`), []byte(`{"$committed":"`+hex.EncodeToString(sum[:])+`"}`), 1)
	committed := must(s.SignCanonical(seal.TypeCommitted, stored))
	receipt := must(s.Sign("application/vnd.svc.assurance-receipt.v1+json", map[string]any{"bindingHash": "b", "conformance": "violation", "decisionId": "asd_1", "decisionRecordHash": full.Integrity.RecordHash, "orgId": "org_1"}))
	payloads := []struct{ kind, stream, keyID, payload string }{
		{"policy.activated", "policy", "", `{"policy":` + string(policy) + `,"policyHash":"` + canon.Hash(policy) + `"}`},
		{"decision.recorded", "decision/asd_1", s.KeyID(), string(must(canon.Marshal(map[string]any{"record": jsontext.Value(stored), "integrity": full.Integrity, "sealed": map[string]any{"keyId": "k", "signature": committed.Integrity.Signature}})))},
		{"receipt.recorded", "decision/asd_1", s.KeyID(), string(must(canon.Marshal(map[string]any{"record": receipt.Record, "integrity": receipt.Integrity})))},
		{"member.added", "organization", "", `{"memberId":"cus_1"}`},
		{"member.added", "organization", "", `{"memberId":"cus_2"}`},
	}
	var lines []ledger.Line
	var builder tree.Builder
	var leaves []tree.Hash
	add := func(hash [32]byte) {
		leaves = append(leaves, tree.Leaf(hash))
		builder.Add(tree.Leaf(hash), func(tree.Tile) {})
	}
	prev := ledger.Hash(ledger.Genesis(origin, "org_1"))
	add([32]byte{9})
	for i, p := range payloads {
		e := ledger.Event{Position: int64(len(leaves)) + 1, Tenant: "org_1", Sequence: int64(i) + 1, Stream: p.stream, Version: int64(i) + 1, ID: fmt.Sprint("evt_", i),
			Type: p.kind, SchemaVersion: 1, OccurredUS: firstTime + 1_000_000*int64(min(i, 3)), Actor: "cus_1", KeyID: p.keyID,
			Payload: []byte(p.payload), PayloadHash: sha256.Sum256([]byte(p.payload)), Prev: prev}
		if e.Series = must(events.SeriesOf(e.Type, e.Payload)); e.Series != "" {
			e.SeriesN, e.Agent, e.AgentN = 1, "k", 1
		}
		if i == 3 {
			e.More = 1
		}
		if i != 4 {
			e.IdemKey, e.ContentHash = bytes.Repeat([]byte{byte(i + 1)}, 32), bytes.Repeat([]byte{7}, 32)
		}
		e.Hash = e.Sum()
		prev = e.Hash
		lines = append(lines, ledger.NewLine(e))
		add(e.Hash)
		if i == 1 {
			add([32]byte{8})
		}
	}
	files["events.jsonl"] = must(bundle.Lines(lines))
	files["openings.jsonl"] = must(bundle.Lines([]bundle.Opening{{EventID: "evt_1", Pointer: "/record/subject/agentId", Salt: hex.EncodeToString(salt), Value: `"agent-ü"`}}))
	files["redactions.jsonl"] = []byte{}
	files["checkpoint.txt"] = must(checkpoint.Sign(checkpoint.Checkpoint{Origin: origin, Size: builder.Size(), Root: builder.Root()}, key(2)))
	var proofs []bundle.Proof
	for _, l := range lines {
		proofs = append(proofs, bundle.NewProof(bundle.Proof{Position: l.Position}, inclusion(leaves, int(l.Position)-1)))
	}
	files["proofs/inclusion.jsonl"] = must(bundle.Lines(proofs))
	files["proofs/consistency.jsonl"] = must(bundle.Lines([]bundle.Proof{bundle.NewProof(bundle.Proof{From: seenSize}, consistency(leaves, seenSize, true))}))
	sign(files, bundle.Manifest{Schema: bundle.Schema, ExportID: "exp_1", Origin: origin, Tenant: "org_1", FirstSequence: 1, Count: 5,
		PrevBeforeFirst: ledger.Hash(ledger.Genesis(origin, "org_1")).String(), LastHash: prev.String(), CheckpointSize: builder.Size(), PriorDecisions: map[string]string{}})
	return files, leaves
}

// consistency computes the proof by the definition in RFC 6962, section 2.1.2.
func consistency(leaves []tree.Hash, m int, known bool) []tree.Hash {
	if m == len(leaves) {
		if known {
			return nil
		}
		return []tree.Hash{root(leaves)}
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	if m <= k {
		return append(consistency(leaves[:k], m, known), root(leaves[k:]))
	}
	return append(consistency(leaves[k:], m-k, false), root(leaves[:k]))
}

// inclusion computes the proof by the definition in RFC 6962, section 2.1.1.
func inclusion(leaves []tree.Hash, m int) []tree.Hash {
	if len(leaves) == 1 {
		return nil
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	if m < k {
		return append(inclusion(leaves[:k], m), root(leaves[k:]))
	}
	return append(inclusion(leaves[k:], m-k), root(leaves[:k]))
}

func root(leaves []tree.Hash) tree.Hash {
	var b tree.Builder
	for _, l := range leaves {
		b.Add(l, func(tree.Tile) {})
	}
	return b.Root()
}

// sign completes and signs the manifest for the files, as an insider with the key could.
func sign(files map[string][]byte, m bundle.Manifest) {
	m.Files = map[string]string{}
	for name, text := range files {
		if name != "manifest.json" {
			sum := sha256.Sum256(text)
			m.Files[name] = hex.EncodeToString(sum[:])
		}
	}
	signRecord(files, m)
}

// signRecord writes a manifest with a signed record of any form.
func signRecord(files map[string][]byte, record any) {
	envelope := must(signer().Sign(bundle.PayloadType, record))
	files["manifest.json"] = append(must(canon.Marshal(map[string]any{"record": envelope.Record, "integrity": envelope.Integrity})), '\n')
}

// write writes a bundle's files to a folder.
func write(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// verified verifies files in a folder.
func verified(t *testing.T, files map[string][]byte, pin []byte) bundle.Result {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, files)
	return verifiedIn(t, folder, pin)
}

func verifiedIn(t *testing.T, folder string, pin []byte) bundle.Result {
	t.Helper()
	r, err := verdictIn(t, folder, trusted(), pin)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verdictIn verifies the bundle in a folder. It returns the error of the verification together
// with the result, which also lists what could not be checked.
func verdictIn(t *testing.T, folder string, keys []bundle.Key, pin []byte) (bundle.Result, error) {
	t.Helper()
	b, err := bundle.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return bundle.Verify(t.Context(), b, bundle.Trust{Keys: keys, Pin: pin}, nil)
}

func TestAGoodBundleVerifies(t *testing.T) {
	files := draw()
	if r := verified(t, files, nil); !r.Valid || r.Events != 5 || len(r.Gaps) != 1 {
		t.Errorf("%+v", r)
	}
	if r := verified(t, files, files["checkpoint.txt"]); !r.Valid || len(r.Gaps) != 1 || !strings.Contains(r.Gaps[0], "does not know this tenant") {
		t.Errorf("with its own pin: %+v", r)
	} else if r := verified(t, files, r.Pin); !r.Valid || len(r.Gaps) != 0 {
		t.Errorf("with the pin that it left: %+v", r)
	}
	c := must(checkpoint.Parse(files["checkpoint.txt"]))
	for reason, pin := range map[string]checkpoint.Checkpoint{
		"pin: ROLLBACK": {Origin: origin, Size: c.Size + 1, Root: c.Root}, "pin: FORK": {Origin: origin, Size: c.Size, Root: tree.Hash{1}},
	} {
		if r := verified(t, files, must(checkpoint.Sign(pin, key(2)))); r.Valid || r.Reason != reason {
			t.Errorf("%s: %+v", reason, r)
		}
	}
	for _, name := range []string{"events.jsonl", "VERIFY.md", "views/report.html"} {
		changed := maps.Clone(files)
		changed[name] = append(bytes.Clone(files[name]), ' ')
		if r := verified(t, changed, nil); r.Reason != name+": hash" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	extra := maps.Clone(files)
	extra["note.txt"] = nil
	if r := verified(t, extra, nil); r.Reason != "files: note.txt is not in the manifest" {
		t.Errorf("an extra file: %+v", r)
	}
}

// A bundle that does not extend the checkpoint of the pin is not valid. If only the proof is
// missing, the result is Unchecked.
func TestABundleContinuesThePinOrIsNotVerified(t *testing.T) {
	uncovered := signedAnew(draw(), func(m *bundle.Manifest) { m.CheckpointSize = 0 })
	for name, c := range map[string]struct {
		files  map[string][]byte
		pin    []byte
		reason string
		err    string
	}{
		"a proof leads from it":   {draw(), seen(seenSize), "", ""},
		"another history":         {draw(), note(seenSize, tree.Hash{1}), "pin: FORK", ""},
		"no proof begins with it": {draw(), seen(3), "", "pin: this bundle has no proof that its 7 events continue the 3 you have seen"},
		"another, and no proof":   {draw(), note(3, tree.Hash{1}), "", "pin: this bundle has no proof"},
		"no checkpoint":           {uncovered, seen(3), "", "pin: no checkpoint covers"},
		"no note":                 {draw(), []byte("nonsense"), "", "pin: it must be a checkpoint"},
		"empty":                   {draw(), []byte{}, "", "pin: it must be a checkpoint"},
	} {
		folder := t.TempDir()
		write(t, folder, c.files)
		r, err := verdictIn(t, folder, trusted(), c.pin)
		if got := fmt.Sprint(err); c.err == "" && err != nil || !strings.HasPrefix(got, c.err) && c.err != "" || r.Reason != c.reason || r.Valid != (c.err == "" && c.reason == "") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// signedAnew changes the record of a manifest and signs it again, as an insider with the key
// could.
func signedAnew(files map[string][]byte, change func(*bundle.Manifest)) map[string][]byte {
	var envelope struct{ Record bundle.Manifest }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		panic(err)
	}
	change(&envelope.Record)
	sign(files, envelope.Record)
	return files
}

// A retired key may not sign a manifest whose checkpoint covers its retirement. A newer key may
// sign a manifest with an older checkpoint.
func TestARetiredKeySignsNoManifest(t *testing.T) {
	folder, uncovered := t.TempDir(), t.TempDir()
	write(t, folder, draw())
	write(t, uncovered, signedAnew(draw(), func(m *bundle.Manifest) { m.CheckpointSize = 0 }))
	for _, c := range []struct {
		folder   string
		from, to int64
		reason   string
	}{
		{folder, 1, 8, ""}, {folder, 1, 7, "manifest.json: key"}, {uncovered, 1, 8, ""}, {uncovered, 1, 7, "manifest.json: key"}, {folder, 9, 0, "events.jsonl line 2: key"},
	} {
		keys := trusted()
		for i, k := range keys {
			if k.Purpose == ledger.PurposeRecord && k.Partition == 0 {
				keys[i].From, keys[i].To = c.from, c.to
			}
		}
		if r, err := verdictIn(t, c.folder, keys, nil); err != nil || r.Reason != c.reason {
			t.Errorf("valid from %d below %d: %+v, %v", c.from, c.to, r, err)
		}
	}
}

// A note of a tree that contains the retirement of its key is false for every verifier. A smaller
// tree may be signed with the key, and a newer key may sign either.
func TestARetiredKeySignsNoNoteOverItsRetirement(t *testing.T) {
	const size = 7 // size of the note's tree
	newer := func(keys []bundle.Key) []bundle.Key {
		return append(keys, bundle.Key{Purpose: ledger.PurposeCheckpoint, Public: key(8).Public().(ed25519.PublicKey), From: 6})
	}
	both := draw()
	c := must(checkpoint.Parse(both["checkpoint.txt"]))
	_, line, _ := bytes.Cut(must(checkpoint.Sign(c, key(8))), []byte("\n\n"))
	both["checkpoint.txt"] = slices.Concat(both["checkpoint.txt"], line)
	both = signedAnew(both, func(*bundle.Manifest) {})
	var names []string
	var questions []question
	var verdicts []verdict
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		keys   []bundle.Key
		reason string
	}{
		{"at the size", draw(), retired(ledger.PurposeCheckpoint, size), "checkpoint.txt: key"},
		{"below the size", draw(), retired(ledger.PurposeCheckpoint, 3), "checkpoint.txt: key"},
		{"after the size", draw(), retired(ledger.PurposeCheckpoint, size+1), ""},
		{"with a newer key that has not signed", draw(), newer(retired(ledger.PurposeCheckpoint, size)), "checkpoint.txt: key"},
		{"with a newer key that has signed, too", both, newer(retired(ledger.PurposeCheckpoint, size)), ""},
	} {
		q := question{folder: t.TempDir(), keys: c.keys}
		write(t, q.folder, c.files)
		says := goSays(t, q)
		if says.Reason != c.reason || (says.Verdict == "valid") != (c.reason == "") {
			t.Errorf("%s: %+v", c.name, says)
		}
		names, questions, verdicts = append(names, c.name), append(questions, q), append(verdicts, says)
	}
	allSay(t, names, questions, verdicts)
}

// Without a record key, or without a checkpoint key for an existing checkpoint, the result is
// Unchecked: the bundle is neither valid nor invalid.
func TestWithoutAKeyNothingIsChecked(t *testing.T) {
	folder, uncovered := t.TempDir(), t.TempDir()
	write(t, folder, draw())
	write(t, uncovered, signedAnew(draw(), func(m *bundle.Manifest) { m.CheckpointSize = 0 }))
	of := func(purpose string) []bundle.Key {
		return slices.DeleteFunc(trusted(), func(k bundle.Key) bool { return k.Purpose != purpose })
	}
	for _, c := range []struct {
		folder string
		keys   []bundle.Key
		err    string
	}{
		{folder, nil, "keys: there is no record key"}, {folder, of("checkpoint"), "keys: there is no record key"},
		{folder, of("record"), "keys: there is no checkpoint key"}, {uncovered, of("record"), ""},
	} {
		r, err := verdictIn(t, c.folder, c.keys, nil)
		if c.err == "" && (err != nil || !r.Valid) || c.err != "" && !strings.HasPrefix(fmt.Sprint(err), c.err) {
			t.Errorf("%d keys: %+v, %v", len(c.keys), r, err)
		}
	}
}

// Records signed by a compromised key are not proven, but the bundle is still valid, because the
// events themselves are intact. From the declared position on, the key's signatures on manifests
// and notes are refused.
func TestWhatACompromisedKeySigned(t *testing.T) {
	folder := t.TempDir()
	files := draw()
	write(t, folder, files)
	for from, reason := range map[int64]string{4: "manifest.json: key", 7: "manifest.json: key", 8: ""} {
		if r, err := verdictIn(t, folder, compromised(from), nil); err != nil || r.Reason != reason {
			t.Errorf("compromised from %d, as the manifest's: %+v, %v", from, r, err)
		}
	}
	var envelope struct{ Record bundle.Manifest }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		t.Fatal(err)
	}
	next := must(seal.Using(key(3)))
	manifest := must(next.Sign(bundle.PayloadType, envelope.Record))
	files["manifest.json"] = append(must(canon.Marshal(map[string]any{"record": manifest.Record, "integrity": manifest.Integrity})), '\n')
	write(t, folder, files)
	keys := append(compromised(5), bundle.Key{Purpose: "record", Public: next.Public(), From: 7})
	r, err := verdictIn(t, folder, keys, nil)
	want := "the records of 1 events from position 5 on, which a compromised key signed"
	if err != nil || !r.Valid || !slices.Contains(r.Gaps, want) {
		t.Errorf("%+v, %v", r, err)
	}
	heads := slices.Clone(keys)
	for i, k := range heads {
		if k.Purpose == "checkpoint" {
			heads[i].Void = 7
		}
	}
	if r, err := verdictIn(t, folder, heads, nil); err != nil || r.Reason != "checkpoint.txt: key" {
		t.Errorf("a note by a compromised key: %+v, %v", r, err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	tool := t.TempDir()
	write(t, tool, map[string][]byte{"verify.py": bundle.VerifierPy, "keys.json": jwks(keys), "heads.json": jwks(heads)})
	for name, want := range map[string]string{"keys.json": "NOT PROVEN  " + want, "heads.json": "FALSE       checkpoint.txt: key"} {
		if out, _ := exec.CommandContext(t.Context(), python, filepath.Join(tool, "verify.py"), "--keys", filepath.Join(tool, name), folder).CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// A manifest with an additional unsigned member is refused.
func TestUnsignedMembersOfAManifestAreRefused(t *testing.T) {
	for _, c := range []struct{ old, new string }{{`{"integrity":`, `{"auditedBy":"KPMG","integrity":`}, {`{"integrity":{`, `{"integrity":{"auditedBy":"KPMG",`}} {
		files := draw()
		files["manifest.json"] = bytes.Replace(files["manifest.json"], []byte(c.old), []byte(c.new), 1)
		if r := verified(t, files, nil); r.Reason != "manifest.json: form" {
			t.Errorf("%s: %+v", c.new, r)
		}
	}
}

// A manifest that lacks a member that the verifiers need is not valid, even if it is signed.
func TestAManifestHasEveryMemberThatIsRestedOn(t *testing.T) {
	for _, name := range []string{"schema", "origin", "tenant", "partition", "firstSequence", "count", "prevBeforeFirst", "lastHash", "checkpointSize", "priorDecisions", "filters", "withheld", "files"} {
		files := draw()
		var envelope struct{ Record map[string]any }
		if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
			t.Fatal(err)
		}
		delete(envelope.Record, name)
		signRecord(files, envelope.Record)
		if r := verified(t, files, nil); r.Reason != "manifest.json: record" {
			t.Errorf("without %s: %+v", name, r)
		}
	}
}

// A key is valid only in the partitions in which it was activated, unless the verifier trusts it
// in any partition.
func TestKeysOfAnotherPartitionSignNothing(t *testing.T) {
	files := draw()
	var envelope struct{ Record bundle.Manifest }
	if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
		t.Fatal(err)
	}
	m := envelope.Record
	m.Partition = 1
	files["events.jsonl"] = bytes.ReplaceAll(files["events.jsonl"], []byte(`"p":0,`), []byte(`"p":1,`)) // p is not part of the hash
	sign(files, m)
	folder := t.TempDir()
	write(t, folder, files)
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	if r := must(bundle.Verify(t.Context(), b, bundle.Trust{Keys: trusted()}, nil)); r.Reason != "manifest.json: key" {
		t.Errorf("with keys of other partitions: %+v", r)
	}
	anywhere := trusted()
	for i := range anywhere {
		anywhere[i].Partition, anywhere[i].From = bundle.AnyPartition, 0
	}
	if r := must(bundle.Verify(t.Context(), b, bundle.Trust{Keys: anywhere}, nil)); !r.Valid {
		t.Errorf("with keys trusted anywhere: %+v", r)
	}
}

// oddJSON lists values that some JSON readers accept and others refuse.
var oddJSON = []string{`"\ud800"`, `"\ud83d\ude00"`, `1e999`, `-0`, `01`, `1.`, strings.Repeat("9", 5000), ` 1`, "1\t", `NaN`, `-Infinity`, `"\u0000"`, `"\x41"`, `{"a":1,"a":2}`,
	strings.Repeat("[", 62) + strings.Repeat("]", 62), strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 3000) + strings.Repeat("]", 3000), `[`, `"`, `1}{`, `null,"record":null`, `1,"integrity":{},"record":{}`,
	`1,"integrity":{"keyId":""},"record":{"orgId":1e999}`, `1,"integrity":[],"record":{}`, `1,"\u0069ntegrity":{},"\u0072ecord":{}`}

// oddLines lists signature lines of a note, without the dash at the beginning.
var oddLines = []string{"w.example AAAAAAAAAAA=", "w\u00a0example AAAAAAAAAAA=", "w\u3000x AAAAAAAAAAA=", "w\u0085x AAAAAAAAAAA=", "w\u2028x AAAAAAAAAAA=", "w\u200bx AAAAAAAAAAA=", "w+x AAAAAAAAAAA=", "w\x1cx AAAAAAAAAAA=",
	"w\xffx AAAAAAAAAAA=", "w  AAAAAAAAAAA=", "w AAAAAAAAAAB=", "w AAAAAA==", "w ", "w AAAAAAAAAAA=\r", origin + " AAAAAAAAAAA=", "w AAAA AAAAAAA=", "w AAAAAAAAAAA=\n"}

// mutate changes one detail of a bundle. In half of the cases it signs the manifest again, as an
// insider could.
func mutate(r *rand.Rand, files map[string][]byte) map[string][]byte {
	files = maps.Clone(files)
	names := slices.Sorted(maps.Keys(files))
	weighted := []string{"manifest.json", "checkpoint.txt", "openings.jsonl", "proofs/inclusion.jsonl", "events.jsonl", "events.jsonl", "events.jsonl", "events.jsonl", names[r.IntN(len(names))]}
	name := weighted[r.IntN(len(weighted))]
	text := bytes.Clone(files[name])
	switch r.IntN(12) {
	case 11: // a line of a witness that is not known, or of another form
		odd := oddLines[r.IntN(len(oddLines))]
		files["checkpoint.txt"] = append(bytes.Clone(files["checkpoint.txt"]), "— "+odd+"\n"...)
		return resign(r, files)
	case 9, 10: // a member of another type, or too large for some readers
		return otherMember(r, files, name)
	case 8: // a payload that JSON readers interpret differently, with correct hashes
		odd := oddJSON[r.IntN(len(oddJSON))]
		member := must(json.Marshal(`{"memberId":"cus_1"`))
		changed := must(json.Marshal(`{"memberId":"cus_1","x":` + odd))
		files["events.jsonl"] = rehash(bytes.Replace(files["events.jsonl"], member[1:len(member)-1], changed[1:len(changed)-1], 1))
		return resign(r, files)
	case 0, 1: // change a byte
		if len(text) > 0 {
			text[r.IntN(len(text))] ^= byte(1 << r.IntN(7))
		}
	case 2: // replace a digit or letter
		for range 50 {
			if len(text) == 0 {
				break
			}
			at := r.IntN(len(text))
			if text[at] >= '0' && text[at] <= '9' || text[at] >= 'a' && text[at] <= 'f' {
				text[at] = "0123456789abcdef"[r.IntN(16)]
				break
			}
		}
	case 3: // remove a line
		lines := bytes.SplitAfter(text, []byte("\n"))
		at := r.IntN(len(lines))
		text = bytes.Join(slices.Delete(lines, at, at+1), nil)
	case 4: // swap two lines
		lines := bytes.SplitAfter(text, []byte("\n"))
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		text = bytes.Join(lines, nil)
	case 5: // truncate
		text = text[:r.IntN(len(text)+1)]
	case 6: // a duplicate member, other letter case, a float, a null
		swaps := []struct{ old, new string }{{`"pos":`, `"pos":1,"pos":`}, {`"tenant":`, `"Tenant":`}, {`"more":0`, `"more":0.0`}, {`"version":1`, `"version":null`}, {`"tseq":2`, `"tseq":true`}, {`"payload":"`, `"payload":null,"x":"`}, {`\"`, `\u0022`}, {`org_1`, `org_2`}, {`"more":1`, `"more":2`}, {`"more":0`, `"more":1`},
			{`"series_n":1`, `"series_n":2`}, {`"series":"decision/deny"`, `"series":"decision/allow"`}, {`"series":`, `"agent_prev":null,"series":`}, {`"agent":"k"`, `"agent":"j"`},
			{`"first":2`, `"first":1`}, {`"last":3`, `"last":2`}, {`"newest":4`, `"newest":5`}, {`"through":8`, `"through":7`}, {`"claim":9`, `"claim":8`}, {`sub_k`, `sub_j`},
			{`svc-selection-v1`, `svc-export-v1`}, {`"series_n":3`, `"series_n":4`}, {`"agent_n":2`, `"agent_n":3`}, {`"agent":"a-k",`, ``}, {`"to":"2026-11-20T15:00:05Z"`, `"to":"2026-11-20T15:00:07Z"`},
			{`"agent_n":1`, `"agent_n":0`}, {`"agent":"k",`, ``}, {`"agent":"k","agent_n":1,`, ``}, {`"series":"decision/deny","series_n":1,`, ``}}
		s := swaps[r.IntN(len(swaps))]
		text = []byte(strings.Replace(string(text), s.old, s.new, 1+r.IntN(3)))
	case 7: // remove a file, or add one
		if r.IntN(2) == 0 {
			delete(files, name)
			return resign(r, files)
		}
		files["extra"] = []byte("x")
		return resign(r, files)
	}
	files[name] = text
	if name == "events.jsonl" && r.IntN(3) == 0 {
		files[name] = rehash(text)
	}
	return resign(r, files)
}

// otherMembers lists canonical values of all kinds.
var otherMembers = []string{`null`, `true`, `""`, `"x"`, `[]`, `{}`, `[1]`, `{"a":"b"}`, `-1`, `0`, `1`, `3`, `32768`, `2147483648`, `9007199254740991`, `9007199254740993`, `18446744073709551615`, `{"a":1}`, `0.5`, `1e+21`}

// otherMember replaces, removes or adds one member of a line, at the top or one level below. It
// then recomputes hashes and signatures.
func otherMember(r *rand.Rand, files map[string][]byte, name string) map[string][]byte {
	lines := bytes.SplitAfter(bytes.TrimSuffix(files[name], []byte("\n")), []byte("\n"))
	at := r.IntN(len(lines))
	var whole map[string]any
	if json.Unmarshal(lines[at], &whole) != nil || len(whole) == 0 {
		return files
	}
	within := whole
	if below, ok := whole[[]string{"record", "integrity", "record"}[r.IntN(3)]].(map[string]any); ok && r.IntN(8) > 0 {
		within = below
	}
	names := append(slices.Sorted(maps.Keys(within)), "extra")
	member := names[r.IntN(len(names))]
	if other := otherMembers[r.IntN(len(otherMembers))]; r.IntN(5) > 0 {
		within[member] = jsontext.Value(other)
	} else {
		delete(within, member)
	}
	lines[at] = append(must(canon.Marshal(whole)), '\n')
	files[name] = bytes.Join(lines, nil)
	switch name {
	case "manifest.json":
		if record, ok := whole["record"].(map[string]any); ok && within[member] != nil && r.IntN(4) > 0 {
			signRecord(files, record)
		}
		return files
	case "events.jsonl":
		if r.IntN(3) > 0 {
			files[name] = rehash(files[name])
		}
	}
	return resign(r, files)
}

// rehash recomputes the hashes of all lines that can be parsed.
func rehash(text []byte) []byte {
	var lines []ledger.Line
	prev := ledger.Hash(ledger.Genesis(origin, "org_1"))
	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var l ledger.Line
		if canon.Decode(line, &l) != nil || l.Payload == nil {
			return text
		}
		e, _ := l.Event() // an incomplete number stays incomplete
		e.Sequence, e.PayloadHash, e.Prev = int64(len(lines))+1, sha256.Sum256([]byte(*l.Payload)), prev
		e.Hash = e.Sum()
		prev = e.Hash
		lines = append(lines, ledger.NewLine(e))
	}
	again, err := bundle.Lines(lines)
	if err != nil {
		return text
	}
	return again
}

func resign(r *rand.Rand, files map[string][]byte) map[string][]byte {
	if r.IntN(4) == 0 {
		return files
	}
	var envelope struct{ Record bundle.Manifest }
	if json.Unmarshal(files["manifest.json"], &envelope) != nil {
		return files
	}
	m := envelope.Record
	lines := bytes.Split(bytes.TrimSuffix(files["events.jsonl"], []byte("\n")), []byte("\n"))
	if r.IntN(2) == 0 { // update count and last hash, too
		var last ledger.Line
		if json.Unmarshal(lines[len(lines)-1], &last) == nil {
			m.Count, m.LastHash = int64(len(lines)), last.Hash
		}
	}
	sign(files, m)
	return files
}

// verify.py ignores none of its arguments. If it cannot use one, it exits with code 2 and an
// explanation; code 1 means that the bundle is not valid.
func TestVerifyPyRefusesWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	folder := t.TempDir()
	write(t, folder, map[string][]byte{"verify.py": bundle.VerifierPy, "jwks.json": jwks(trusted()), "list.json": []byte("[]"), "number.json": []byte(`{"keys":[1]}`),
		"empty.json": []byte(`{"keys":[]}`), "none.json": []byte(`{}`), "kinds.json": []byte(`{"keys":[{"crv":"Ed25519","kid":[],"x":1,"svc_partition":{}}]}`),
		"deep.json": []byte(strings.Repeat("[", 100_000)), "twice.json": []byte(`{"keys":[],"keys":[]}`), "pin.txt": seen(seenSize), "bad.txt": []byte("nonsense")})
	write(t, filepath.Join(folder, "export"), draw())
	const usage = "usage: verify.py"
	for line, want := range map[string]struct {
		code  int
		words string
	}{
		"--keys jwks.json export":                   {0, "VALID"},
		"--keys=jwks.json --pin=pin.txt export":     {0, "VALID"},
		"export --pin pin.txt --keys jwks.json":     {0, "VALID"},
		"--keys missing.json export":                {2, "missing.json"},
		"--keys jwks.json --pin missing.txt export": {2, "missing.txt"},
		"--keys jwks.json --pin=bad.txt export":     {2, "pin: it must be a checkpoint"},
		"--keys list.json export":                   {2, "keys: want a JSON Web Key Set"},
		"--keys number.json export":                 {2, "keys: want a JSON Web Key Set"},
		"--keys none.json export":                   {2, "keys: want a JSON Web Key Set"},
		"--keys kinds.json export":                  {2, "keys: want a JSON Web Key Set"},
		"--keys deep.json export":                   {2, "keys: want a JSON Web Key Set"},
		"--keys twice.json export":                  {2, "keys: want a JSON Web Key Set"},
		"--keys empty.json export":                  {2, "keys: there is no record key"},
		"--keys jwks.json --strict export":          {2, usage},
		"--keys jwks.json --pi pin.txt export":      {2, usage},
		"--keys jwks.json export export":            {2, usage},
		"--keys jwks.json":                          {2, usage},
		"export":                                    {2, usage},
		"--keys jwks.json missing":                  {2, "missing is no folder"},
		"--keys jwks.json jwks.json":                {2, "unpack the export first"},
	} {
		command := exec.CommandContext(t.Context(), python, append([]string{"verify.py"}, strings.Fields(line)...)...)
		command.Dir = folder
		out, _ := command.CombinedOutput() // the exit code is checked below
		if got := command.ProcessState.ExitCode(); got != want.code || !strings.Contains(string(out), want.words) || strings.Contains(string(out), "Traceback") {
			t.Errorf("%s: exit %d, want %d and %q: %s", line, got, want.code, want.words, out)
		}
	}
}

// drawLong makes a bundle of count events without records, of 8 KiB each.
func drawLong(count int) map[string][]byte {
	payload := must(canon.Marshal(map[string]any{"pad": strings.Repeat("x", 8<<10)}))
	genesis := ledger.Hash(ledger.Genesis(origin, "org_1"))
	prev := genesis
	var lines []ledger.Line
	for i := range int64(count) {
		e := ledger.Event{Position: i + 1, Tenant: "org_1", Sequence: i + 1, Stream: fmt.Sprint("s/", i), Version: 1, ID: fmt.Sprint("evt_", i), Type: "member.added",
			SchemaVersion: 1, Actor: "cus_1", IdemKey: bytes.Repeat([]byte{1}, 32), ContentHash: bytes.Repeat([]byte{7}, 32),
			Payload: payload, PayloadHash: sha256.Sum256(payload), Prev: prev}
		e.Hash = e.Sum()
		prev = e.Hash
		lines = append(lines, ledger.NewLine(e))
	}
	files := map[string][]byte{"events.jsonl": must(bundle.Lines(lines))}
	sign(files, bundle.Manifest{Schema: bundle.Schema, Origin: origin, Tenant: "org_1", FirstSequence: 1, Count: int64(count),
		PrevBeforeFirst: genesis.String(), LastHash: prev.String(), PriorDecisions: map[string]string{}})
	return files
}

// The memory of verify.py does not grow with the bundle: it needs about the same for 35 MB of
// events as for 3.5 MB.
func TestVerifyPyReadsABundleInBoundedMemory(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says how much memory a process has had")
	}
	peak := func(events int) (kilobytes int) {
		folder := t.TempDir()
		for name, text := range map[string][]byte{"verify.py": bundle.VerifierPy, "jwks.json": jwks(trusted())} {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(folder, "bundle"), drawLong(events))
		command := exec.CommandContext(t.Context(), python, "-c", `import re, sys
sys.path.insert(0, sys.argv[1])
import verify
keys = verify.read_keys(open(sys.argv[1] + "/jwks.json", "rb").read())
assert verify.verdict(sys.argv[1] + "/bundle", keys)[:2] == ("valid", "")
print(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read()).group(1))`, folder)
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		return must(strconv.Atoi(strings.TrimSpace(string(out))))
	}
	small, large := peak(400), peak(4000)
	t.Logf("%d KiB, then %d", small, large)
	if large > small+6<<10 {
		t.Errorf("%d KiB for ten times the events, %d before", large, small)
	}
}

// packed returns a tar.gz with these entries, as an attacker may send one.
func packed(entries ...tar.Header) []byte {
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		if err := archive.WriteHeader(&e); err != nil {
			panic(err)
		}
		if e.Size < 1<<20 {
			_, _ = archive.Write(make([]byte, e.Size))
		}
	}
	_ = archive.Flush()
	_ = compressed.Close()
	return text.Bytes()
}

func unpacked(text []byte) []byte {
	return must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(text)))))
}

func compressed(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// endless is a context that ends after a number of calls of Err.
type endless struct {
	context.Context
	left int
}

// Err implements context.Context.
func (c *endless) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// If a caller cancels the unpacking or the verification of an export, the call returns at once,
// and no file of the export stays on disk.
func TestAStoppedVerificationLeavesNothing(t *testing.T) {
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	folder := t.TempDir()
	write(t, folder, draw())
	var archive bytes.Buffer
	if err := bundle.NewFolder(folder).Pack(&archive); err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for asked := range 1000 {
		ctx := &endless{t.Context(), asked}
		b, err := bundle.Unpack(ctx, bytes.NewReader(archive.Bytes()), nil)
		if err == nil {
			var r bundle.Result
			if r, err = bundle.Verify(ctx, b, bundle.Trust{Keys: trusted(), Pin: seen(seenSize)}, nil); err == nil && !r.Valid {
				t.Fatalf("stopped after %d: %+v", asked, r)
			}
			b.Close()
		}
		if left := must(os.ReadDir(scratch)); len(left) > 0 {
			t.Fatalf("stopped after %d: %s is left", asked, left[0].Name())
		}
		if err == nil {
			break
		}
		if stopped++; !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d: %v", asked, err)
		}
	}
	if stopped < 20 {
		t.Errorf("it could be stopped at %d places", stopped)
	}
}

// sparse returns an archive with a sparse file: its map says that it has only zeros. Package tar
// reads such archives and does not write them.
func sparse(name string, size int) []byte {
	var text []byte
	add := func(kind byte, name string, content []byte) {
		header := make([]byte, 512)
		for at, field := range map[int]string{0: name, 100: "0000600\x00", 124: fmt.Sprintf("%011o\x00", len(content)), 148: "        ", 156: string(kind), 257: "ustar\x0000"} {
			copy(header[at:], field)
		}
		sum := 0
		for _, b := range header {
			sum += int(b)
		}
		copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
		text = append(append(text, header...), content...)
		text = append(text, make([]byte, -len(text)&511)...)
	}
	var records []byte
	for _, record := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprint("GNU.sparse.realsize=", size)} {
		length := len(record) + 4 // two digits, a space and a line feed
		records = fmt.Appendf(records, "%d %s\n", length, record)
	}
	add('x', "pax", records)
	add('0', "sparse", append(fmt.Appendf(nil, "1\n%d\n0\n", size), make([]byte, 500)...)[:512])
	return compressed(append(text, make([]byte, 1024)...))
}

// Archives that are not bundles are refused early: links, names outside of the folder, duplicate
// names, excessive sizes.
func TestHostileArchivesAreRefused(t *testing.T) {
	good := tar.Header{Name: "export/manifest.json", Typeflag: tar.TypeReg, Size: 1, Mode: 0o600}
	with := func(change func(*tar.Header)) tar.Header {
		h := good
		change(&h)
		return h
	}
	path := filepath.Join(t.TempDir(), "export.tar.gz")
	opened := func(text []byte) error {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Open(t.Context(), path, nil)
		if err == nil {
			b.Close()
		}
		return err
	}
	for name, text := range map[string][]byte{"as it is": packed(good), "with its folder": packed(tar.Header{Name: "export/", Typeflag: tar.TypeDir, Mode: 0o700}, good),
		"packed again as ./export": packed(tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}, tar.Header{Name: "./export/", Typeflag: tar.TypeDir, Mode: 0o700}, with(func(h *tar.Header) { h.Name = "./export/manifest.json" })),
		"packed again on a Mac":    packed(with(func(h *tar.Header) { h.Name = "./._export" }), good, with(func(h *tar.Header) { h.Name = "export/._manifest.json" })),
		"packed again by git":      packed(tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "x"}}, good),
		"padded":                   compressed(append(unpacked(packed(good)), make([]byte, 10<<10)...))} {
		if err := opened(text); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name, text := range map[string][]byte{
		"empty":             {},
		"no gzip":           []byte("export/manifest.json"),
		"cut":               packed(good)[:20],
		"symbolic link":     packed(with(func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, "/etc/passwd", 0 })),
		"hard link":         packed(with(func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = tar.TypeLink, "/etc/passwd", 0 })),
		"device":            packed(with(func(h *tar.Header) { h.Typeflag, h.Size = tar.TypeChar, 0 })),
		"outside":           packed(with(func(h *tar.Header) { h.Name = "../manifest.json" })),
		"absolute":          packed(with(func(h *tar.Header) { h.Name = "/etc/passwd" })),
		"twice":             packed(good, good),
		"twice, two ways":   packed(good, with(func(h *tar.Header) { h.Name = "./export/manifest.json" })),
		"out of its folder": packed(with(func(h *tar.Header) { h.Name = "export/../../manifest.json" })),
		"a link as a Mac's": packed(with(func(h *tar.Header) {
			h.Name, h.Typeflag, h.Linkname, h.Size = "._export", tar.TypeSymlink, "/etc/passwd", 0
		})),
		"a large Mac's file": packed(with(func(h *tar.Header) { h.Name, h.Size = "._export", 1<<40 })),
		"a terabyte":         packed(with(func(h *tar.Header) { h.Size = 1 << 40 })),
		"another's folder":   packed(tar.Header{Name: "src/", Typeflag: tar.TypeDir, Mode: 0o700}, good),
		"more behind it":     compressed(append(unpacked(packed(good)), "more"...)),
		"cut check sum":      packed(good)[:len(packed(good))-4],
		"a cut tail":         packed(good)[:len(packed(good))-1],
		"text behind it":     append(packed(good), "more"...),
		"zeros without end":  compressed(append(unpacked(packed(good)), make([]byte, 2<<20)...)),
		"a sparse file":      sparse("export/events.jsonl", 1<<20),
		"another's archive":  packed(with(func(h *tar.Header) { h.Name = "src/main.go" })),
	} {
		if err := opened(text); err == nil {
			t.Errorf("%s: it was opened", name)
		}
	}
	// A decompression bomb is stopped while it is read: the output is much larger than the input.
	t.Setenv("TMPDIR", t.TempDir())
	bomb := packed(with(func(h *tar.Header) { h.Name, h.Size = "export/events.jsonl", 1<<30 }))
	bomb = compressed(append(unpacked(bomb)[:512], make([]byte, 200<<20)...))
	if err := opened(bomb); err == nil || !strings.Contains(err.Error(), "100 times its size") {
		t.Errorf("a bomb of %d octets: %v", len(bomb), err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	folder := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(folder, "manifest.json")); err != nil {
		t.Skip(err)
	}
	b, err := bundle.Open(t.Context(), folder, nil)
	if err != nil {
		return
	}
	defer b.Close()
	if text, err := b.Text("manifest.json"); err == nil {
		t.Errorf("a link to a file outside was read: %d octets", len(text))
	}
}

// If one file of a bundle is changed, the bundle is not valid. If the manifest is then signed
// again, the verdict has a reason of at most 300 bytes exactly if the bundle is not valid.
func FuzzVerify(f *testing.F) {
	good := draw()
	for name, text := range good {
		if len(text) < 4096 {
			f.Add(name, text)
		}
	}
	f.Add("events.jsonl", rehash(bytes.Replace(good["events.jsonl"], []byte("org_1"), []byte("org_2"), 1)))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		before, was := good[name]
		if !was {
			name = "further.txt"
		}
		files := maps.Clone(good)
		files[name] = text
		r := verified(t, files, nil)
		if r.Valid != (was && bytes.Equal(before, text)) || r.Valid != (r.Reason == "") {
			t.Errorf("%s: %+v", name, r)
		}
		if name == "manifest.json" {
			return
		}
		var envelope struct{ Record bundle.Manifest }
		if err := json.Unmarshal(good["manifest.json"], &envelope); err != nil {
			t.Fatal(err)
		}
		sign(files, envelope.Record)
		if r := verified(t, files, nil); r.Valid != (r.Reason == "") || len(r.Reason) > 300 || r.Valid && r.Events != 5 {
			t.Errorf("signed anew, %s: %+v", name, r)
		}
	})
}
