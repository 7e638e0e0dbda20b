package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/clients/conformance"
	apievidence "github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/ledger/bundle"
)

// TestVerifyPageWithoutScripts checks that the service verifies a pasted record and explains the
// result in words.
func TestVerifyPageWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	record := c.decide(t, decisionBody("k1", weather)).body
	b := s.browser(t)
	b.want(b.get("/verify"), 200, "check it without trusting this service")
	b.want(b.get("/verify"), 200, `href="/verify.py"`)
	if got := b.get("/verify.py"); got.status != 200 || got.body != string(bundle.VerifierPy) {
		t.Errorf("/verify.py: %d, another file of %d bytes", got.status, len(got.body))
	}
	b.want(b.form("/verify", url.Values{"record": {record}}), 200, "<strong>Valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {record + "\n" + record + "\n"}}), 200, "<strong>Valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {strings.Replace(record, `"allow"`, `"deny"`, 1)}}), 200, "<strong>Not valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {"{}"}}), 400, "Nothing to check: the document contains no signed record")
	b.want(b.get("/ledger"), 200, "events")
}

// TestWalkVerifyADroppedFile checks that the browser verifies a file even if the service is
// unreachable, and that a changed file fails.
func TestWalkVerifyADroppedFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	record := c.decide(t, decisionBody("k1", weather)).body
	folder := t.TempDir()
	for name, text := range map[string]string{"good.json": record, "changed.json": strings.Replace(record, `"allow"`, `"deny"`, 1),
		"twice.json": strings.Replace(record, `{"integrity"`, `{"integrity":{},"integrity"`, 1)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := s.openWindow(t)
	w.open("/verify")
	w.see("Checked in this browser")
	s.CloseClientConnections()
	s.Close() // from here on the service is unreachable
	for _, step := range []struct{ file, says string }{
		{"good.json", `the decision that says "allow" was signed by this service, word for word`},
		{"changed.json", "the record was changed after it was signed"},
		{"twice.json", "it has a member twice"},
	} {
		w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{filepath.Join(folder, step.file)}, chromedp.ByQuery))
		w.see(step.says)
	}
	w.shoot("verify")
}

// TestOnlyTheVerifyPageMayCompileWebAssembly checks that only the content security policy of
// /verify, with and without a record, contains 'wasm-unsafe-eval'.
func TestOnlyTheVerifyPageMayCompileWebAssembly(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	who, places := pagesOf(t, s)
	for _, place := range places {
		said := who.get(place).header.Get("Content-Security-Policy")
		if compiles := strings.Contains(said, "'wasm-unsafe-eval'"); compiles != (place == "/verify") {
			t.Errorf("%s: %s", place, said)
		}
	}
	for _, record := range []string{"{}", "[]"} {
		if said := who.form("/verify", url.Values{"record": {record}}).header.Get("Content-Security-Policy"); !strings.Contains(said, "'wasm-unsafe-eval'") {
			t.Errorf("a form of /verify: %s", said)
		}
	}
}

// needVerifier skips a test if this program was built without the verifier, which .ci/clients/run
// adds.
func needVerifier(t *testing.T) {
	t.Helper()
	if !web.HasVerifier() {
		t.Skip("this program was built without the verifier: make wasm")
	}
}

// TestVerifyPageWithoutTheVerifier checks that the page loads the verifier if the program contains
// it, and otherwise explains how to get it.
func TestVerifyPageWithoutTheVerifier(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	says := "Use a released program, or run <code>make wasm</code>"
	if web.HasVerifier() {
		says = `data-verifier="/verify.wasm.gz"`
	}
	b.want(b.get("/verify"), 200, says)
}

// exportOf returns an export of the complete history of an organization.
func exportOf(t *testing.T, s *site, c *crew) string {
	t.Helper()
	b, token := s.browser(t), "Bearer "+c.tokens["export:read"]
	made := b.post(apievidence.ExportsPath, "{}", "Authorization", token)
	var created struct{ ExportID string }
	if err := json.Unmarshal([]byte(made.body), &created); err != nil || made.status != http.StatusCreated {
		t.Fatalf("%d %s %v", made.status, made.body, err)
	}
	archive := b.get(apievidence.ExportsPath+"/"+created.ExportID, "Authorization", token)
	b.want(archive, http.StatusOK, "")
	return archive.body
}

// TestWalkVerifyRecomputes checks that the browser computes verdicts again and verifies an export
// without the service, and that the engine there gives the same bytes as in Go for all corpora.
func TestWalkVerifyRecomputes(t *testing.T) {
	needVerifier(t)
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	decision := c.decide(t, decisionBody("k1", weather)).body
	active, err := s.app.ActivePolicy(t.Context(), c.orgID)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	in := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	record, policy := in("decision.json", decision), in("policy.json", string(active.Canonical))
	export := in("export.tar.gz", exportOf(t, s, c))
	w := s.openWindow(t)
	problems := w.failures()
	w.open("/verify")
	w.see("Checked in this browser")
	w.press("Load the verifier")
	w.see("The verifier is loaded")
	s.CloseClientConnections()
	s.Close() // from here on the service is unreachable
	w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{record}, chromedp.ByQuery))
	w.see("the policy is missing from the documents")
	w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{record, policy}, chromedp.ByQuery))
	w.see("the verdict was recomputed from the recorded input and is the same")
	w.shoot("verify-recomputed")
	if said := problems(); len(said) > 0 {
		t.Errorf("the browser reports %v", said)
	}

	w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{export}, chromedp.ByQuery))
	w.see("events of " + c.orgID)
	w.see("PROVEN")
	w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{in("cut.tar.gz", "\x1f\x8b"+record)}, chromedp.ByQuery))
	w.see("Not checked:")

	requests, err := conformance.Actions("../policy/actionrisk/testdata")
	if err != nil {
		t.Fatal(err)
	}
	want := conformance.Verdicts(requests)
	text, err := json.Marshal(requests)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdicts []string
		Median   float64
	}
	w.do(chromedp.Evaluate(`(() => {
	  const times = [];
	  const Verdicts = `+string(text)+`.map((request) => {
	    const started = performance.now();
	    try {
	      return verifier("judge", request);
	    } catch (refusal) {
	      return "refused: " + refusal.message;
	    } finally {
	      times.push(performance.now() - started);
	    }
	  });
	  return { Verdicts, Median: times.sort((a, b) => a - b)[times.length >> 1] };
	})()`, &got))
	if len(got.Verdicts) != len(want) {
		t.Fatalf("the browser gives %d verdicts, Go %d", len(got.Verdicts), len(want))
	}
	for i, verdict := range got.Verdicts {
		if verdict != want[i] {
			t.Errorf("%s: the browser says %s, Go says %s", requests[i], verdict, want[i])
		}
	}
	t.Logf("clients: %d verdicts in the browser are those of Go, median %.2f ms", len(want), got.Median)
}
