package api_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/countersign/countersign/api"
)

// TestVerifyPageWithoutScripts holds that the service checks a pasted record and says the result in
// words.
func TestVerifyPageWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	record := c.decide(t, decisionBody("k1", weather)).body
	b := s.browser(t)
	b.want(b.get("/verify"), 200, "can be checked without trusting this service")
	b.want(b.form("/verify", url.Values{"record": {record}}), 200, "<strong>Valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {record + "\n" + record + "\n"}}), 200, "<strong>Valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {strings.Replace(record, `"allow"`, `"deny"`, 1)}}), 200, "<strong>Not valid.</strong>")
	b.want(b.form("/verify", url.Values{"record": {"{}"}}), 400, "Nothing to check: there is no signed record in it")
	b.want(b.get("/ledger"), 200, "events")
}

// TestWalkVerifyADroppedFile holds that the browser checks a file, also if the service is
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
	s.Close() // from here on nobody answers
	for _, step := range []struct{ file, says string }{
		{"good.json", `the decision that says "allow" was signed by this service, word for word`},
		{"changed.json", "not so: the hash that was signed is that of these words"},
		{"twice.json", "a member stands in it twice"},
	} {
		w.do(chromedp.SetUploadFiles(`input[type=file]`, []string{filepath.Join(folder, step.file)}, chromedp.ByQuery))
		w.see(step.says)
	}
	w.shoot("verify")
}
