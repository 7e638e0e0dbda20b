package api_test

import (
	"bytes"
	"crypto/ed25519"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/ledger/bundle"
)

// TestEvidenceOnTheConsole checks that an auditor, who has no shell on the server, can export a
// quarter, state what an agent did, and create the dispute pack of a decision. The page lists these
// files with their creator, and serves them again with the same bytes.
func TestEvidenceOnTheConsole(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	decision := c.decide(t, toolBody("k1", "agent-7", "drop", "low")).decision(t).Record.DecisionID
	auditor, developer := c.people["auditor"], c.people["developer"]
	auditor.want(auditor.get("/evidence"), 200, "No file was created yet.")
	auditor.want(auditor.get("/evidence"), 200, "No decision of this quarter needed a review.")
	now := s.clock.Now()
	from := now.AddDate(0, -3, 0)
	page := auditor.get("/evidence").body
	if n := strings.Count(page, `<option value="20`); n != 3 || strings.Count(page, ", not ended</option>") != 3 {
		t.Errorf("%d quarters are offered in three forms for an organization of today: %s", n, page)
	}
	quarter := regexp.MustCompile(`<option value="(\d{4}Q\d)" selected>`).FindStringSubmatch(page)
	if quarter == nil {
		t.Fatal("no quarter is chosen")
	}
	for _, f := range []struct {
		path string
		form url.Values
		says string
	}{
		{"/evidence/export", url.Values{"period": {quarter[1]}}, "Export of a period"},
		{"/evidence/export", url.Values{"period": {"2020Q1"}, "from": {from.Format(time.DateOnly)}, "to": {now.Format(time.DateOnly)}, "noPersonal": {"yes"}}, "without personal data"},
		{"/evidence/statement", url.Values{"period": {quarter[1]}, "agent": {"agent-7"}}, `Statement about agent <span class="said" dir="auto" title="Sent by the agent, not verified">“agent-7”</span>`},
		{"/evidence/dispute", url.Values{"decision": {decision}}, `Dispute pack of decision <a href="/decisions/` + decision + `">`},
	} {
		made := auditor.form(f.path, f.form)
		place := made.header.Get("Location")
		if made.status != 303 || !strings.HasPrefix(place, "/api/assurance/exports/exp_") {
			t.Fatalf("%s: %d %s", f.path, made.status, made.body)
		}
		got, again := auditor.get(place), auditor.get(place)
		if got.status != 200 || got.header.Get("Content-Type") != "application/gzip" || got.body != again.body {
			t.Errorf("%s: %d %v", f.path, got.status, got.header)
		}
		s.verifies(t, []byte(got.body))
		page := auditor.get("/evidence")
		auditor.want(page, 200, f.says)
		auditor.want(page, 200, `href="`+place+`"`)
		auditor.want(page, 200, "auditor@acme.example")
	}
	// The page counts the reviews of the quarter.
	asked := c.decide(t, toolBody("k2", "agent-7", "write", "critical")).decision(t).Record.DecisionID
	s.clock.Add(90 * time.Second)
	c.people["admin"].form("/reviews/"+asked, url.Values{"verdict": {"rejected"}, "reason": {"It is out of scope"}})
	for _, says := range []string{"<dd>1: 0 approved, 1 rejected</dd>", "median 90.0 s, 95th percentile 90.0 s, 0 in under five seconds",
		`<td data-label="Reviewer">admin@acme.example</td><td class="amount" data-label="Verdicts">1</td><td class="amount" data-label="Rejected">1</td>`} {
		auditor.want(auditor.get("/evidence"), 200, says)
	}
	for path, refused := range map[string]struct {
		form url.Values
		says string
	}{
		"/evidence/export":    {url.Values{"period": {"Q3"}}, "period must be a quarter, month or year"},
		"/evidence/statement": {url.Values{"period": {quarter[1]}}, "a statement requires agent"},
		"/evidence/dispute":   {url.Values{"decision": {"pay_1"}}, "decision must be the id of a decision"},
	} {
		auditor.want(auditor.form(path, refused.form), 400, refused.says)
		if got := developer.form(path, refused.form); got.status != 403 {
			t.Errorf("a developer: %s: %d", path, got.status)
		}
	}
	auditor.want(auditor.form("/evidence/dispute", url.Values{"decision": {"asd_none"}}), 404, "no decision of this organization has this id")
	auditor.want(auditor.get("/decisions/"+decision), 200, "<button>Dispute pack</button>")
	if strings.Contains(developer.get("/decisions/"+decision).body, "Dispute pack") {
		t.Error("a developer is offered a dispute pack")
	}
	clean(t, s)
}

// TestTextsThatTheDatabaseRefuses checks that no form, filter or search passes a NUL or invalid
// UTF-8 to the database: its error would be answered with 503, as if a repetition could succeed.
func TestTextsThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	auditor := c.people["auditor"]
	for _, text := range []string{"asd_\x00", "asd_\xff"} {
		auditor.want(auditor.form("/evidence/dispute", url.Values{"decision": {text}}), 400, "every text of the form must be UTF-8 without NUL")
		for _, name := range []string{"run", "agent", "rule", "target", "text"} {
			auditor.want(auditor.get("/decisions?"+url.Values{name: {text}}.Encode()), 400, name+" must be UTF-8 without NUL")
		}
		auditor.want(auditor.get("/api/assurance/decisions?"+url.Values{"run": {text}}.Encode()), 400, "run must be UTF-8 without NUL")
		auditor.want(auditor.get("/search?"+url.Values{"q": {text}}.Encode()), 200, "asd_")
	}
}

// verifies checks that a packed bundle verifies with the public keys of the service.
func (s *site) verifies(t *testing.T, packed []byte) bundle.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.tar.gz")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := bundle.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	keys := []bundle.Key{{Purpose: "record", Public: s.app.Signer.Public(), Partition: bundle.AnyPartition},
		{Purpose: "checkpoint", Public: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0xc4}, 32)).Public().(ed25519.PublicKey), Partition: bundle.AnyPartition}}
	r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: keys}, nil)
	if err != nil || !r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
	return r
}
