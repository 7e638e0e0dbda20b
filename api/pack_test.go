package api_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/query"
	"github.com/countersign/countersign/ledger/audit"
)

// TestAnEvidencePackWithoutAShell checks that a member or a token with the right to export gets the
// evidence pack of a period as one signed file. The cover page has the last verification by the
// service instead of a new one, statements verify by themselves, and the list says that the pack
// was not stored.
func TestAnEvidencePackWithoutAShell(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	for i, agent := range []string{"agent-7", "agent-8", "agent-9"} {
		c.decide(t, toolBody(fmt.Sprint("k", i), agent, "drop", "low")).decision(t)
	}
	const path = "/api/assurance/evidence-packs"
	quarter := query.Quarter(s.clock.Now())
	auditor, owner := c.people["auditor"], c.people["owner"]
	body := fmt.Sprintf(`{"framework":"soc2","period":%q,"requestedBy":"Eve, auditor"}`, quarter)
	files := func(got answer) map[string]string {
		t.Helper()
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/gzip" || !strings.Contains(got.header.Get("Content-Disposition"), `filename="exp_`) {
			t.Fatalf("%d %v %.300s", got.status, got.header, got.body)
		}
		s.verifies(t, []byte(got.body))
		return unpacked(t, got.body)
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
	}
	pack := files(auditor.post(path, body))
	has(pack["export/pack/cover.html"], "Evidence for SOC 2", "Eve, auditor", "“agent-7”: 0 allow", "The ledger was not verified for this pack: the service has not verified it since its start.", "The period had not ended")
	has(pack["export/pack/verification.json"], `"selfCheckAt": ""`)
	has(pack["export/pack/access.jsonl"], "policy.activated", "organization.created")
	for n := range 3 {
		s.verifies(t, []byte(pack[fmt.Sprintf("export/pack/statements/agent-%03d.tar.gz", n+1)]))
	}
	if check := audit.SelfCheck(t.Context(), s.app.Ledger, nil); check.Failed() {
		t.Fatal(check)
	}
	pack = files(owner.form("/evidence/pack", url.Values{"framework": {"eu-ai-act"}, "period": {quarter}, "noPersonal": {"yes"}}))
	has(pack["export/pack/cover.html"], "Evidence for EU AI Act", "The last verification by the service began at", "0 faults", "names of agents are left out of this pack")
	if strings.Contains(pack["export/pack/cover.html"], "agent-7") || strings.Contains(pack["export/pack/verification.json"], `"selfCheckAt": ""`) {
		t.Error(pack["export/pack/cover.html"], pack["export/pack/verification.json"])
	}
	// An empty period has a pack, too.
	pack = files(auditor.post(path, `{"framework":"sec17a4","period":"2020Q1"}`))
	has(pack["export/pack/cover.html"], "no agent is named", "cus_")

	page := auditor.get("/evidence")
	auditor.want(page, 200, "Evidence pack")
	auditor.want(page, 200, "created, not stored")
	if n := strings.Count(page.body, "created, not stored"); n != 3 {
		t.Errorf("the page lists %d packs, want 3", n)
	}
	for body, says := range map[string]string{
		`{"framework":"soc2"}`:                                     "period is required",
		`{"period":"2026Q4"}`:                                      "framework is required",
		`{"framework":"other","period":"2026Q4"}`:                  "framework must be one of",
		`{"framework":"soc2","period":"2026Q5"}`:                   "period",
		`{"framework":"soc2","period":"2026Q4","noPersonal":null}`: "noPersonal must be a boolean",
	} {
		auditor.want(auditor.post(path, body), 400, says)
	}
	auditor.want(auditor.form("/evidence/pack", url.Values{"framework": {"x"}, "period": {quarter}}), 400, "framework must be one of soc2")
	auditor.want(auditor.form("/evidence/pack", url.Values{"framework": {"soc2"}}), 400, "a pack requires a period")
	if got := c.people["developer"].post(path, body); got.status != 403 {
		t.Errorf("a developer: %d %s", got.status, got.body)
	}
	clean(t, s)
}

// TestAPackOverHTTPLimitsItsStatements checks that a pack that a request creates has statements
// about at most 25 agents, and that its cover page says that there were more.
func TestAPackOverHTTPLimitsItsStatements(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	for i := range 26 {
		c.decide(t, toolBody(fmt.Sprint("k", i), fmt.Sprintf("agent-%02d", i), "drop", "low")).decision(t)
	}
	got := c.people["auditor"].post("/api/assurance/evidence-packs", fmt.Sprintf(`{"framework":"soc2","period":%q}`, query.Quarter(s.clock.Now())))
	if got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	statements := 0
	pack := unpacked(t, got.body)
	for name := range pack {
		if strings.HasPrefix(name, "export/pack/statements/") {
			statements++
		}
	}
	if cover := pack["export/pack/cover.html"]; statements != 25 || !strings.Contains(cover, "There were more agents than these.") {
		t.Errorf("%d statements, and the cover page is %s", statements, cover)
	}
	clean(t, s)
}

// unpacked returns the files in a tar.gz by name.
func unpacked(t *testing.T, packed string) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(zip); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		var text bytes.Buffer
		if err == nil {
			_, err = text.ReadFrom(in)
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = text.String()
	}
}
