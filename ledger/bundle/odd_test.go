package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/canon"
)

// An insider can sign texts that JSON readers, note readers and file systems interpret in different
// ways, and a history without events. Every verifier must give the same verdict.
func TestTextsThatReadersInterpretDifferently(t *testing.T) {
	bothSay(t, differentlyRead())
	const named = "anything about the file export/manifest.json (only its hash is compared with the manifest)"
	if r := verified(t, differentlyRead()["a second manifest"].files, nil); !slices.Contains(r.Gaps, named) {
		t.Errorf("of a second manifest: %q", r.Gaps)
	}
}

func differentlyRead() map[string]altered {
	const form, record = "manifest.json: form", "manifest.json: record"
	cases := map[string]altered{}
	// Numbers in a manifest that are not integers.
	for name, number := range map[string]any{"a fraction": 0.5, "a small fraction": 1e-7, "a large number": 1e21} {
		for _, member := range []string{"count", "generator", "ruleSets"} {
			files := draw()
			var envelope struct{ Record map[string]any }
			if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
				panic(err)
			}
			envelope.Record[member] = number
			signRecord(files, envelope.Record)
			cases[name+" as "+member] = altered{files: files, reason: form}
		}
	}
	// Histories without events: the period is never compared with an event.
	empty := func(change func(*bundle.Manifest)) map[string][]byte {
		files := draw()
		for _, name := range []string{"events.jsonl", "openings.jsonl", "proofs/inclusion.jsonl"} {
			files[name] = []byte{}
		}
		return signedAnew(files, func(m *bundle.Manifest) {
			m.Count = 0
			change(m)
			m.LastHash = m.PrevBeforeFirst
		})
	}
	cases["no event at all"] = altered{files: empty(func(*bundle.Manifest) {}), reason: record}
	cases["no event, after the period"] = altered{files: empty(func(m *bundle.Manifest) {
		m.FirstSequence, m.PrevBeforeFirst, m.Filters.From = 6, m.LastHash, onTheDay("15:00:01")
	}), reason: record}
	// Signature lines of unknown keys, which are ignored if their form is right.
	for name, c := range map[string]altered{
		"a name with a no-break space":      {reason: "a\u00a0b AAAAAAAAAAA="},
		"a name with an ideographic space":  {reason: "a\u3000b AAAAAAAAAAA="},
		"a name with a next line":           {reason: "a\u0085b AAAAAAAAAAA="},
		"a name with a line separator":      {reason: "a\u2028b AAAAAAAAAAA="},
		"a name with a plus sign":           {reason: "a+b AAAAAAAAAAA="},
		"a name that is not UTF-8":          {reason: "a\xffb AAAAAAAAAAA="},
		"two spaces":                        {reason: "a  AAAAAAAAAAA="},
		"another spelling of the same bits": {reason: "a AAAAAAAAAAB="},
		"a short signature":                 {reason: "a AAAAAA=="},
	} {
		files := draw()
		files["checkpoint.txt"] = append(bytes.Clone(files["checkpoint.txt"]), "— "+c.reason+"\n"...)
		cases["a signature line with "+name] = altered{files: signedAnew(files, func(*bundle.Manifest) {}), reason: "checkpoint.txt: note"}
	}
	for name, line := range map[string]string{"a zero-width space": "a\u200bb AAAAAAAAAAA=", "a delete character": "a\x7fb AAAAAAAAAAA=", "the name of the ledger": origin + " AAAAAAAAAAA="} {
		files := draw()
		files["checkpoint.txt"] = append(bytes.Clone(files["checkpoint.txt"]), "— "+line+"\n"...)
		cases["a signature line with "+name] = altered{files: signedAnew(files, func(*bundle.Manifest) {})}
	}
	// Files that the manifest names and that no check reads.
	with := func(name string, text []byte) map[string][]byte {
		files := draw()
		files[name] = text
		return signedAnew(files, func(*bundle.Manifest) {})
	}
	cases["a second manifest"] = altered{files: with("export/manifest.json", draw()["manifest.json"])}
	cases["an opinion in the folder"] = altered{files: with("opinion\nVALID.txt", []byte("all is well\n"))}
	cases["a second manifest that is not named"] = altered{files: func() map[string][]byte {
		files := maps.Clone(draw())
		files["MANIFEST.json"] = files["manifest.json"]
		return files
	}(), reason: "files: MANIFEST.json is not in the manifest"}
	// Names of an agent that look alike.
	opened := func(o []bundle.Opening) []bundle.Opening { return o[len(o)-1:] }
	cases["an agent's name in another Unicode form"] = altered{files: told{filters: bundle.Filters{Agent: "é", Decision: "deny"}, open: opened,
		say: func(m *bundle.Manifest) { m.Filters.Agent = "e\u0301" }}.draw(), reason: "openings.jsonl line 1: agent"}
	// Signatures and lines of another spelling.
	signature := func(change func(string) string) map[string][]byte {
		files := draw()
		var envelope struct {
			Record    json.RawMessage   `json:"record"`
			Integrity map[string]string `json:"integrity"`
		}
		if err := json.Unmarshal(files["manifest.json"], &envelope); err != nil {
			panic(err)
		}
		envelope.Integrity["signature"] = change(envelope.Integrity["signature"])
		files["manifest.json"] = slices.Concat([]byte(`{"integrity":`), must(json.Marshal(envelope.Integrity)), []byte(`,"record":`), envelope.Record, []byte("}\n"))
		return files
	}
	cases["a line feed in a signature"] = altered{files: signature(func(s string) string { return s[:10] + "\n" + s[10:] }), reason: "manifest.json: signature"}
	// Who has the key can sign with the neutral point, which has a second encoding (its y plus 2^255-19).
	cases["a signature with another encoding of a point"] = altered{files: signature(func(string) string {
		order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
		littleEndian := func(b []byte) *big.Int { b = bytes.Clone(b); slices.Reverse(b); return new(big.Int).SetBytes(b) }
		secret := sha512.Sum512(key(1).Seed())
		secret[0], secret[31] = secret[0]&248, secret[31]&127|64
		point := append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 31)...)
		point[31] = 0x7f
		record := must(canon.Members(bytes.TrimSuffix(draw()["manifest.json"], []byte("\n"))))["record"]
		signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(bundle.PayloadType), bundle.PayloadType, len(record), record)
		challenge := sha512.Sum512(slices.Concat(point, key(1).Public().(ed25519.PublicKey), signed))
		scalar := new(big.Int).Mul(littleEndian(challenge[:]), littleEndian(secret[:32]))
		half := scalar.Mod(scalar, order).FillBytes(make([]byte, 32))
		slices.Reverse(half)
		return base64.StdEncoding.EncodeToString(append(point, half...))
	}), reason: "manifest.json: signature"}
	cases["a signature without padding"] = altered{files: signature(func(s string) string { return strings.TrimRight(s, "=") }), reason: "manifest.json: signature"}
	proofs := string(draw()["proofs/inclusion.jsonl"])
	for name, position := range map[string]string{"an exponent": "2e0", "a fraction": "2.0", "a minus zero": "-0", "two positions": `2,"pos":2`} {
		cases["a proof with "+name] = altered{files: with("proofs/inclusion.jsonl", []byte(strings.Replace(proofs, `"pos":2`, `"pos":`+position, 1))), reason: "proofs/inclusion.jsonl line 1: form"}
	}
	return cases
}

// The verifiers in Go and Python read the same keys from a key set: names of members have one
// spelling, and no key is of every partition.
func TestKeySetsAreReadAlike(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here; .ci/bundle/run has one")
	}
	folder, tool, good := t.TempDir(), t.TempDir(), string(jwks(trusted()))
	write(t, folder, draw())
	write(t, tool, map[string][]byte{"verify.py": bundle.VerifierPy})
	cases := []struct{ name, old, new, reason string }{
		{"as it is", "", "", ""},
		{"KID", `"kid"`, `"KID"`, "keys: there is no record key"},
		{"X", `"x"`, `"X"`, "keys: there is no record key"},
		{"a twin in another case", `"crv":`, `"Crv":"P-256","crv":`, ""},
		{"every partition", `"svc_partition":0`, `"svc_partition":-1`, "manifest.json: key"},
		{"no integer", `"svc_from_position":1`, `"svc_from_position":1.0`, "keys: "},
		{"no number", `"kty":"OKP"`, `"kty":NaN`, "keys: "},
	}
	var arguments [][]string
	for _, c := range cases {
		write(t, tool, map[string][]byte{c.name: []byte(strings.ReplaceAll(good, c.old, c.new))})
		arguments = append(arguments, []string{"--keys", filepath.Join(tool, c.name), folder})
	}
	for i, ran := range verifyPy(t, python, tool, arguments) {
		c, r := cases[i], bundle.Result{}
		keys, err := bundle.ReadKeySet(must(os.ReadFile(filepath.Join(tool, c.name))))
		if err != nil {
			err = fmt.Errorf("keys: %w", err)
		} else {
			r, err = verdictIn(t, folder, keys, nil)
		}
		said, code := r.Reason, 1
		switch {
		case err != nil:
			said, code = err.Error(), 2
		case r.Valid:
			code = 0
		}
		if !strings.HasPrefix(said, c.reason) || c.reason == "" && code != 0 {
			t.Errorf("%s: Go says %q", c.name, said)
		}
		if ran.Code != code || !strings.Contains(ran.Out, c.reason) {
			t.Errorf("%s: Python says %d %s", c.name, ran.Code, ran.Out)
		}
	}
}
