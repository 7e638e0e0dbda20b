package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/note"
)

// The receiver of an export can make its views without the service and without a key. With a key,
// the export is verified first.
func TestViewsAreMadeByTheReceiver(t *testing.T) {
	t.Parallel()
	h := handOver(t, "k1")
	a, bare, in := h.a, h.bare, h.in
	a.run(0, "", "export", "--out", in("export.tar.gz"))

	bare.run(0, "VIEWS not checked", "verify", in("export.tar.gz"), "--keys", in("jwks.json"))
	bare.run(0, "VIEWS checked: they are what this program makes", "verify", in("export.tar.gz"), "--keys", in("jwks.json"), "--views")
	bare.run(2, "--views needs an export", "verify", "--views")
	bare.run(0, "NOT VERIFIED", "views", in("export.tar.gz"), "--out", in("views"))
	bare.run(0, "VERIFIED      the views are made from events", "views", in("export.tar.gz"), "--out", in("some"), "--form", "ocsf,dsse", "--keys", in("jwks.json"))
	bare.run(2, "--out must be an empty folder", "views", in("export.tar.gz"), "--out", in("some"))
	bare.run(2, "--form must be one of", "views", in("export.tar.gz"), "--out", in("other"), "--form", "pdf")
	bare.run(2, "must be an export", "views", in("jwks.json"), "--out", in("other"))
	bare.run(2, "need the checkpoint keys that you trust", "views", in("export.tar.gz"), "--out", in("none"), "--form", "cose")
	bare.run(0, "VERIFIED", "views", in("export.tar.gz"), "--out", in("proofs"), "--form", "tlog-proof,cose", "--keys", in("jwks.json"))
	checkTLogProof(t, in("proofs"))
	for name, want := range map[string]string{"views/decisions.csv": "asd_", "views/ocsf.jsonl": `"disposition":"Allowed"`, "views/cloudevents.jsonl": `"type":"countersign.decision.recorded"`,
		"views/dsse.jsonl": "application/vnd.svc.decision.v1+json", "views/report.html": "Signed history of org_", "some/dsse.jsonl": "payloadType"} {
		text, err := os.ReadFile(in(name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s: %v", name, want, err)
		}
	}
	if entries, err := os.ReadDir(in("some")); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// checkTLogProof checks the proofs in a folder with the parsers of the transparency.dev project
// and of the Go checksum database, and the keys in the policy file.
func checkTLogProof(t *testing.T, folder string) {
	t.Helper()
	policy, err := os.ReadFile(filepath.Join(folder, "tlog-policy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var logs []note.Verifier
	for line := range strings.Lines(string(policy)) {
		if key, is := strings.CutPrefix(strings.TrimSpace(line), "log "); is {
			v, err := note.NewVerifier(key)
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, v)
		}
	}
	proofs, err := filepath.Glob(filepath.Join(folder, "*.tlog-proof"))
	if err != nil || len(proofs) == 0 || len(logs) == 0 || !strings.HasSuffix(string(policy), "quorum none\n") {
		t.Fatalf("%d proofs, policy %s, %v", len(proofs), policy, err)
	}
	for _, name := range proofs {
		text, err := os.ReadFile(name)
		var p proof.TLogProof
		if err == nil {
			err = p.Unmarshal(text)
		}
		if err != nil || string(p.Marshal()) != string(text) {
			t.Fatalf("%s: %s, %v", name, text, err)
		}
		if opened, err := note.Open(p.Checkpoint, note.VerifierList(logs...)); err != nil || len(opened.Sigs) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(strings.TrimSuffix(name, "tlog-proof") + "cose"); err != nil {
			t.Error(err)
		}
	}
}
