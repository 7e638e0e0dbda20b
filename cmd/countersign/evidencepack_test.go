package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
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
