package api_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/commands/webhooks"
)

// pagesOf returns a member of an organization with data, and the addresses of all kinds of pages.
func pagesOf(t *testing.T, s *site) (who *browser, places []string) {
	t.Helper()
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	waiting := c.decide(t, toolBody("k1", "agent-7", "write", "critical")).decision(t).Record.DecisionID
	denied := c.decide(t, toolBody("k2", "agent-8", "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	c.decide(t, decisionBody("k3", weather))
	owner := c.people["owner"]
	hook, err := s.app.CreateWebhook(t.Context(), c.now(t), webhooks.WebhookOrder{URL: "https://siem.example.com/in"})
	if err != nil {
		t.Fatal(err)
	}
	draft := owner.form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","requireHttps":true,"allowedMcpTools":["read"]}`}}).header.Get("Location")
	agent := regexp.MustCompile(`/agents/sub_[0-9A-Z]+`).FindString(owner.get("/spend").body)
	if !strings.HasPrefix(draft, "/policies/drafts/") || agent == "" {
		t.Fatalf("no draft or no agent: %q, %q", draft, agent)
	}
	return owner, []string{agent, draft, "/", "/overview", "/spend", "/spend?days=7", "/activity", "/evidence", "/start", "/search?q=files", "/reviews", "/reviews/" + waiting, "/decisions", "/decisions?conformance=violation", "/decisions?text=nothing",
		"/decisions/" + denied.Record.DecisionID, "/policies", "/policies/1", "/policies/new", "/policies/new?template=strict", "/members", "/keys", "/guard", "/webhooks", "/webhooks/" + hook.WebhookID, "/account",
		"/ledger", "/verify", "/pricing", "/docs", "/docs/scaling", "/rules", "/rules/git.push.force-protected", "/changelog", "/sign-in", "/sign-in/confirm?token=x", "/no-such-page"}
}

// TestWalkEveryPage checks every page: it violates no rule of axe-core in either colour scheme,
// nothing moves while it is drawn, it is small, it fits a phone, and it works without scripts. AXE
// names the file of axe-core, which .ci/console/run downloads.
func TestWalkEveryPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	who, places := pagesOf(t, s)
	who.form("/evidence/export", url.Values{"noPersonal": {"yes"}})
	who.form("/evidence/statement", url.Values{"agent": {"agent-8"}})
	w := s.openWindow(t)
	w.as(who)
	axe := w.axe()
	for _, place := range places {
		w.open(place)
		w.isSmall(place)
		w.standsStill(place)
		for _, scheme := range []string{"light", "dark"} {
			w.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			w.obeys(axe, place+" ("+scheme+")")
		}
		w.fits(place)
		w.shoot("page" + pictureName(place))
	}
	w.withinBudget(who, places)
	w.do(emulation.SetScriptExecutionDisabled(true))
	for _, place := range places {
		w.open(place)
		w.hasHeading(place)
	}
}

// TestWalkEveryDocument checks every page of the documentation in three widths: it violates no rule
// of axe-core in either colour scheme, and is not wider than the screen. Of the pages that are made
// for each rule, error, tool, service and command it checks one. It takes minutes, so it runs only
// for screenshots.
func TestWalkEveryDocument(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	w := s.openWindow(t)
	if os.Getenv("SCREENSHOTS") == "" {
		t.Skip("SCREENSHOTS=FOLDER .ci/console/run walks through the documentation, too")
	}
	axe, kinds := w.axe(), map[string]bool{}
	for _, found := range locPattern.FindAllStringSubmatch(s.browser(t).get("/sitemap.xml").body, -1) {
		place := found[1]
		kind, name, _ := strings.Cut(strings.Trim(place, "/"), "/")
		if many := slices.Contains([]string{"rules", "errors", "tools", "services", "commands"}, kind) && name != ""; many && kinds[kind] {
			continue
		} else if many {
			kinds[kind] = true
		}
		w.open(place)
		for _, scheme := range []string{"light", "dark"} {
			w.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
			w.obeys(axe, place+" ("+scheme+")")
		}
		for _, width := range []int{360, 768, 1440} {
			w.do(chromedp.EmulateViewport(int64(width), 900))
			w.within(place, width)
		}
		w.shoot("document" + pictureName(place))
	}
}

// pictureName returns the name of a place for a file.
func pictureName(place string) string {
	return strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(place)
}

// axe returns the script of axe-core, or "" if there is none.
func (w *window) axe() string {
	file := os.Getenv("AXE")
	if file == "" {
		fmt.Fprintln(os.Stderr, "SKIPPED, NO AXE: the rules of accessibility need axe-core (.ci/console/run)")
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// obeys fails the test for each rule of axe-core that the page violates.
func (w *window) obeys(axe, place string) {
	w.t.Helper()
	if axe == "" {
		return
	}
	var broken []string
	w.do(chromedp.Evaluate(axe+";0", nil), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]})
		.then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 2).map(n => n.html.slice(0, 160)).join(" | ")))`, &broken,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	for _, rule := range broken {
		w.t.Errorf("%s breaks %s", place, rule)
	}
}

// isSmall fails the test if a page with everything that it loads is larger than 60 KB.
func (w *window) isSmall(place string) {
	w.t.Helper()
	var size int
	w.do(chromedp.Evaluate(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, e) => sum + e.decodedBodySize, 0)`, &size))
	if size == 0 || size > 60<<10 {
		w.t.Errorf("%s has %d bytes", place, size)
	}
}

// standsStill fails the test if content moves after it is drawn: if the layout shift is above
// 0.05.
func (w *window) standsStill(place string) {
	w.t.Helper()
	var shift float64
	w.do(chromedp.Evaluate(`new Promise(done => {
		let sum = 0;
		new PerformanceObserver(list => { for (const e of list.getEntries()) sum += e.value; }).observe({type: "layout-shift", buffered: true});
		requestAnimationFrame(() => requestAnimationFrame(() => done(sum)));
	})`, &shift, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if shift > 0.05 {
		w.t.Errorf("%s moves while it is drawn: %.3f", place, shift)
	}
}

// hasHeading fails the test if a page has no heading or hardly any text without scripts.
func (w *window) hasHeading(place string) {
	w.t.Helper()
	w.do(chromedp.WaitVisible("h1", chromedp.ByQuery))
	var text string
	w.do(chromedp.Text("main", &text, chromedp.ByQuery))
	if len(strings.TrimSpace(text)) < 25 {
		w.t.Errorf("%s says only %q without scripts", place, text)
	}
}

// withinBudget checks the server's times if PAGE_BUDGET is set to a duration. It takes the best of
// seven attempts, and of a hundred for a page above the budget, because single times on a busy
// machine mean nothing.
func (w *window) withinBudget(who *browser, places []string) {
	budget, err := time.ParseDuration(os.Getenv("PAGE_BUDGET"))
	if err != nil {
		return
	}
	var slowest time.Duration
	for _, place := range places {
		best := time.Hour
		for tries := 0; tries < 7 || tries < 100 && best > budget; tries++ {
			begun := time.Now()
			who.get(place)
			best = min(best, time.Since(begun))
		}
		if best > budget {
			w.t.Errorf("%s takes %s on the server", place, best)
		}
		slowest = max(slowest, best)
	}
	w.t.Logf("console: %d pages, the slowest takes %s on the server", len(places), slowest.Round(100*time.Microsecond))
}

// TestWalkSignInByEmail enters an e-mail address, opens the link in the e-mail, and is signed in.
func TestWalkSignInByEmail(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	w := s.openWindow(t)
	w.open("/account")
	w.fill("email", "ada@example.com")
	w.press("Send the link")
	w.see("sign-in link was sent")
	messages := s.outbox.Messages()
	i := slices.IndexFunc(messages, func(l mail.Message) bool { return l.To == "ada@example.com" })
	if i < 0 {
		t.Fatal("no e-mail")
	}
	token := linkPattern.FindStringSubmatch(messages[i].Text)
	w.open("/sign-in/confirm?token=" + url.QueryEscape(token[1]))
	w.press("Sign in")
	w.see("ada@example.com")
}

// TestWalkBuy goes from the pricing page to the payment provider's page, which is simulated.
func TestWalkBuy(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	w := s.openWindow(t)
	w.as(s.signedIn(t, "ada@example.com"))
	w.provider()
	w.open("/pricing")
	w.press("Buy Auditor's verification kit by card")
	w.see("the provider's page")
	var at string
	w.do(chromedp.Location(&at))
	if !strings.HasPrefix(at, "https://checkout.stripe.com/c/pay/cs_") {
		t.Errorf("at %s", at)
	}
}

// provider simulates the payment provider, which a test cannot reach.
func (w *window) provider() {
	chromedp.ListenTarget(w.ctx, func(event any) {
		paused, is := event.(*fetch.EventRequestPaused)
		if !is {
			return
		}
		page := fetch.FulfillRequest(paused.RequestID, 200).WithBody("PG1haW4+dGhlIHByb3ZpZGVyJ3MgcGFnZTwvbWFpbj4=") // base64 of "<main>the provider's page</main>"
		go func() { _ = page.Do(cdp.WithExecutor(w.ctx, chromedp.FromContext(w.ctx).Target)) }()                     // in a goroutine, because a listener must not block
	})
	w.do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: "https://checkout.stripe.com/*"}}))
}

// TestWalkRotateAKey checks that a token is replaced by another one, which is shown once, and that
// a double click issues only one.
func TestWalkRotateAKey(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	w := s.openWindow(t)
	w.as(c.people["owner"])
	w.open("/keys")
	before, err := s.app.Tokens(t.Context(), c.now(t))
	if err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.DoubleClick(`//main//button[contains(., "Rotate")]`, chromedp.BySearch))
	w.see("This is the new token. It is shown only once:")
	if after, err := s.app.Tokens(t.Context(), c.now(t)); err != nil || len(after) != len(before)+1 {
		t.Errorf("%d tokens, want %d, %v", len(after), len(before)+1, err)
	}
	w.see("svco_")
	w.shoot("key-rotated")
}

// TestWalkFilterAndExport checks that the downloaded file contains exactly the filtered decisions.
func TestWalkFilterAndExport(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	who, _ := pagesOf(t, s)
	w := s.openWindow(t)
	w.as(who)
	w.open("/decisions")
	w.press("Violations")
	w.see("call “drop” of “files”")
	var address string
	w.do(chromedp.AttributeValue(`a[href^="/decisions.csv"]`, "href", &address, nil, chromedp.ByQuery))
	if !strings.Contains(address, "conformance=violation") {
		t.Errorf("the export is of %s", address)
	}
	if text := who.get(address).body; strings.Count(text, "\n") != 2 || !strings.Contains(text, "violation") {
		t.Errorf("exported: %s", text)
	}
}

// TestSignedBundleOfAFilter checks that the button on the decisions page leads to a bundle, and is
// absent if the filter cannot be expressed in a bundle.
func TestSignedBundleOfAFilter(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	who, _ := pagesOf(t, s)
	who.want(who.get("/decisions?decision=deny"), 200, `<button class="small">Signed bundle</button>`)
	if text := who.get("/decisions?conformance=violation").body; strings.Contains(text, "Signed bundle") {
		t.Error("a bundle is offered for what it cannot be chosen by")
	}
	who.want(who.form("/decisions/bundle", url.Values{"conformance": {"violation"}}), 400, "remove the other filters")
	made := who.form("/decisions/bundle", url.Values{"decision": {"deny"}, "from": {"2020-01-01"}})
	place := made.header.Get("Location")
	if made.status != 303 || !strings.HasPrefix(place, "/api/assurance/exports/exp_") {
		t.Fatalf("%d %s", made.status, place)
	}
	got := who.get(place)
	if got.status != 200 || got.header.Get("Content-Type") != "application/gzip" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// arrives waits until the browser has loaded another page than the one on which the test has set
// window.before. During a navigation there may be no page to read.
func (w *window) arrives() {
	w.t.Helper()
	for w.ctx.Err() == nil {
		var there bool
		err := chromedp.Run(w.ctx, chromedp.Evaluate(`window.before === undefined && document.readyState === "complete"`, &there))
		if err == nil && there {
			return
		}
		_ = chromedp.Run(w.ctx, chromedp.Sleep(50*time.Millisecond))
	}
	w.t.Fatal("no other page came")
}
