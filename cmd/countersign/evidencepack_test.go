package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/policy/actionrisk"
)

// An evidence pack of a quarter contains a cover page, statements, figures and histories under one
// signature, even for an empty quarter. A pack with a changed figure is refused.
func TestAnEvidencePack(t *testing.T) {
	t.Parallel()
	h := handOver(t, "k1", "k2")
	a, bare, in := h.a, h.bare, h.in
	a.run(2, "framework", "evidence", "pack", "--framework", "other", "--period", "2026Q4", "--out", in("none.tar.gz"))
	read := func(name string) string {
		t.Helper()
		return string(read(t, in(name)))
	}
	pack := func(framework, period string, flags ...string) (cover string) {
		t.Helper()
		out := in(framework + period + ".tar.gz")
		a.run(0, "verified with the keys of the ledger", append([]string{"evidence", "pack", "--framework", framework, "--period", period, "--out", out, "--requested-by", "Eve, auditor"}, flags...)...)
		bare.run(0, "VALID\n", "verify", out, "--keys", in("jwks.json"))
		untar(t, out, h.files)
		return read("export/pack/cover.html")
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
	}
	// One period is before the first event, the other in the future.
	for _, period := range []string{"2020Q1", "2999"} {
		has(pack("eu-ai-act", period), "EU AI Act", "no agent is named", "<tr><th>decisions: allow</th><td>0</td></tr>")
		if text := read("export/pack/access.jsonl"); text != "" {
			t.Errorf("%s: %s", period, text)
		}
		if err := os.RemoveAll(in("export")); err != nil {
			t.Fatal(err)
		}
	}
	year := time.Now().UTC().Format("2006")
	has(pack("iso42001", year, "--no-personal"), "names of agents are left out of this pack", "<tr><th>decisions: allow</th><td>2</td></tr>")
	if _, err := os.Stat(in("export/pack/statements")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a pack without personal members has statements, which name agents: %v", err)
	}
	if err := os.RemoveAll(in("export")); err != nil {
		t.Fatal(err)
	}
	has(pack("soc2", year), "Evidence for SOC 2", "Eve, auditor", "from "+year+"-01-01T00:00:00Z", "<tr><th>decisions: allow</th><td>2</td></tr>", "CC8.1", "“agent”: 2 allow", "The period had not ended", "events up to the last one in this pack", "0 faults", "Not proven")
	has(read("export/pack/access.jsonl"), "organization.created", "policy.activated", "organization_token.issued", "export.verified")
	for line := range strings.Lines(read("export/pack/access.jsonl")) {
		subject := map[string]string{"organization.created": "org_", "member.added": "cus_", "policy.activated": "default", "export.created": "exp_", "export.requested": "exp_", "export.verified": "exp_"}
		var entry struct{ Type, Subject string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Subject == "" || !strings.HasPrefix(entry.Subject, subject[entry.Type]) {
			t.Errorf("%s %v", line, err)
		}
	}
	has(read("export/pack/policies.json"), `"version": 1`, `"reason": "test"`)
	has(read("export/pack/oversight.json"), `"asked": 0`)
	a.run(0, "verified with the keys of the ledger", "evidence", "pack", "--org", "service", "--framework", "soc2", "--period", year, "--out", in("service.tar.gz"))
	bare.run(0, "VALID\n", "verify", in("service.tar.gz"), "--keys", in("jwks.json"))
	a.run(0, "the period had not ended", "prove", "--agent", "agent", "--period", year, "--out", in("statement.tar.gz"))
	bare.run(0, "statement, counted again", "verify", in("export/pack/statements/agent-001.tar.gz"), "--keys", in("jwks.json"))
	if err := os.WriteFile(in("export/pack/oversight.json"), bytes.Replace([]byte(read("export/pack/oversight.json")), []byte(`"asked": 0`), []byte(`"asked": 9`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	bare.run(1, "FALSE       pack/oversight.json: hash", "verify", in("export"), "--keys", in("jwks.json"))
}

// A recall lists the allowed decisions that another policy would have stopped. verify evaluates
// them again.
func TestARecall(t *testing.T) {
	t.Parallel()
	h := handOver(t, "k1", "k2")
	a, bare, in := h.a, h.bare, h.in
	version, _ := actionrisk.Ruleset()
	if err := os.WriteFile(in("new.json"), []byte(`{"policyId":"default","maxUsdPerTransaction":0.01}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(2, "name a policy or a version of the rules", "recall", "--out", in("none.tar.gz"))
	a.run(2, "rules needs the tenant service", "recall", "--rules", version, "--out", in("none.tar.gz"))
	a.run(2, "rules must be the version", "recall", "--org", "service", "--rules", "2020.01.01", "--out", in("none.tar.gz"))
	a.run(0, "2 of 2 allowed actions would have been stopped (2 denied, 0 sent to approval); 0 not replayed", "recall", "--policy", in("new.json"), "--out", in("recall.tar.gz"))
	for _, says := range []string{"PROVEN      recall, evaluated again from these events: 2 of 2", "PROVEN      without a gap: decision/allow"} {
		bare.run(0, says, "verify", in("recall.tar.gz"), "--keys", in("jwks.json"))
	}
	bare.run(0, "VIEWS checked", "verify", "--views", in("recall.tar.gz"), "--keys", in("jwks.json"))
	a.run(0, "the period had not ended", "recall", "--policy", in("new.json"), "--period", time.Now().UTC().Format("2006"), "--out", in("year.tar.gz"))
	a.run(0, "0 of 0 allowed actions", "recall", "--org", "service", "--rules", version, "--out", in("gate.tar.gz"))
	bare.run(0, "recall, evaluated again", "verify", in("gate.tar.gz"), "--keys", in("jwks.json"))
	untar(t, in("recall.tar.gz"), h.files)
	for _, part := range []string{"2 of 2 allowed actions", "<td>deny</td>"} {
		if page := string(read(t, in("export/pack/recall.html"))); !strings.Contains(page, part) {
			t.Errorf("no %q in %s", part, page)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "python3", in("export/verify.py"), "--keys", in("jwks.json"), in("export")).CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("VALID\n")) {
		t.Errorf("%s %v", out, err)
	}
}
