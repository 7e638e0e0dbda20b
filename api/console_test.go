package api_test

import (
	"fmt"
	"html"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sync/errgroup"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/webhooks"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy/assurance"
)

// TestSelectedReviewsAreRejectedTogether checks that each selected decision gets its own signed
// verdict with the reason, and that the next page states how many verdicts were not recorded, and
// why the first of them was not.
func TestSelectedReviewsAreRejectedTogether(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	one, two, resolved, kept := c.asks(t, "k1", "agent-7"), c.asks(t, "k2", "agent-7"), c.asks(t, "k3", "agent-7"), c.asks(t, "k4", "agent-8")
	admin, auditor := c.people["admin"], c.people["auditor"]
	admin.want(admin.form("/reviews/"+resolved, url.Values{"ready": {"It is out of scope"}}), 200, "It is out of scope</textarea>")
	admin.form("/reviews/"+resolved, url.Values{"verdict": {"approved"}, "reason": {"It is expected work"}})
	admin.want(admin.get("/reviews/"+resolved), 200, "<blockquote>It is expected work</blockquote>")
	admin.want(admin.form("/reviews/reject", url.Values{"id": {one}}), 400, "reason must be 1 to 1000 characters")
	admin.want(admin.form("/reviews/reject", url.Values{"id": {one}}), 400, `value="`+one+`" checked`)
	none := admin.form("/reviews/reject", url.Values{"reason": {"out of scope"}, "at": {"/reviews?agent=agent-8"}})
	admin.want(none, 400, "Nothing was rejected: select at least one decision: tick its box in the list.")
	admin.want(none, 400, `value="out of scope"`)
	if !strings.Contains(none.body, kept) || strings.Contains(none.body, one) {
		t.Errorf("the filter of the list is lost: %s", none.body)
	}
	auditor.want(auditor.form("/reviews/reject", url.Values{"id": {one}, "reason": {"no"}}), 403, "")
	got := admin.form("/reviews/reject", url.Values{"id": {one, two, resolved}, "reason": {"the loop of last night"}})
	admin.want(admin.follow(got), 200, "2 of 3 decisions rejected. Not recorded for the others: decision was already resolved.")
	for _, id := range []string{one, two} {
		admin.want(admin.get("/reviews/"+id), 200, "<blockquote>the loop of last night</blockquote>")
	}
	if page := admin.get("/reviews").body; !strings.Contains(page, kept) || strings.Contains(page, one) {
		t.Errorf("the list must have only the review that was not rejected: %s", page)
	}
	clean(t, s)
}

// TestEveryChangeIsConfirmedOnce checks that the page after a form states what was changed, and
// that a reload does not repeat it.
func TestEveryChangeIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	owner := c.people["owner"]
	tokens, err := s.app.Tokens(t.Context(), c.now(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		to   string
		form url.Values
		says string
	}{
		{"/members", url.Values{"email": {"new@acme.example"}, "role": {"auditor"}}, "new@acme.example was added as auditor."},
		{"/members/arguments", url.Values{"arguments": {"always"}}, "The setting for the arguments of tools was changed."},
		{"/keys/revoke", url.Values{"tokenId": {tokens[0].TokenID}, "reason": {"leaked"}}, "Token revoked."},
		{"/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","requireHttps":true}`}}, "Draft saved."},
		{"/policies/freeze", url.Values{"sure": {"yes"}, "reason": {"incident"}}, "Everything is stopped"},
	} {
		after := owner.form(change.to, change.form)
		owner.want(owner.follow(after), 200, `<p class="toast" role="status">`+change.says)
		if again := owner.follow(after); strings.Contains(again.body, "toast") {
			t.Errorf("%s: a reload says it again", change.to)
		}
	}
	clean(t, s)
}

// TestWhatCannotBeUndoneHasAReason checks that the removal of a member or of a webhook is refused without
// a reason, and that the activity page shows the reason.
func TestWhatCannotBeUndoneHasAReason(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	owner := c.people["owner"]
	left, err := s.app.AddMember(t.Context(), c.now(t), "left@acme.example", "auditor")
	if err != nil {
		t.Fatal(err)
	}
	hook, err := s.app.CreateWebhook(t.Context(), c.now(t), webhooks.WebhookOrder{URL: "https://siem.example.com/in"})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		to     string
		form   url.Values
		reason string
	}{
		{"/members/remove", url.Values{"memberId": {left.MemberID}}, "left the company"},
		{"/webhooks/" + hook.WebhookID + "/remove", url.Values{}, "the receiver moved"},
	} {
		owner.want(owner.form(change.to, change.form), 400, "reason must be given")
		change.form.Set("reason", change.reason)
		owner.want(owner.follow(owner.form(change.to, change.form)), 200, "removed.")
		owner.want(owner.get("/activity"), 200, change.reason)
	}
	clean(t, s)
}

// TestTheLastUseOfATokenIsShown checks that the page of tokens shows when a token last caused an event.
func TestTheLastUseOfATokenIsShown(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	owner := c.people["owner"]
	if page := owner.get("/keys").body; !strings.Contains(page, `data-label="Last use">never`) {
		t.Errorf("the page shows no token that was never used: %s", page)
	}
	c.asks(t, "k1", "agent-7")
	used := s.clock.Now().UTC().Format("2 January 2006, 15:04:05 UTC")
	s.clock.Add(9 * time.Minute)
	owner.want(owner.get("/keys"), 200, `title="`+used+`"><span class="ago">9 minutes ago`)
}

// TestADraftIsAnnounced checks that the activity page shows a new draft, and that the overview shows it to
// the other members until a version is activated.
func TestADraftIsAnnounced(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	owner, admin := c.people["owner"], c.people["admin"]
	s.clock.Add(time.Minute)
	c.people["developer"].form("/policies/new", url.Values{"do": {"draft"}, "policy": {`{"policyId":"default","requireHttps":true}`}})
	owner.want(owner.get("/activity"), 200, "drafted a policy")
	draft := regexp.MustCompile(`/policies/drafts/[^"]+`).FindString(admin.get("/overview").body)
	if draft == "" {
		t.Fatalf("the overview shows no draft: %s", admin.get("/overview").body)
	}
	owner.want(owner.form(draft, url.Values{"reason": {"only https"}}), 303, "")
	if page := admin.get("/overview").body; strings.Contains(page, "/policies/drafts/") {
		t.Errorf("the overview shows a draft that was activated: %s", page)
	}
}

// TestTitlesNameThePage checks that each page of the console has its own title, which contains the name of
// the organization.
func TestTitlesNameThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	who, places := pagesOf(t, s)
	title := regexp.MustCompile(`<title>([^<]*)</title>`)
	paths := map[string]string{} // by title
	for _, place := range append(places, regexp.MustCompile(`/agents/sub_[0-9A-Z]+`).FindAllString(who.get("/spend").body, -1)...) {
		got := who.get(place)
		path, _, _ := strings.Cut(place, "?")
		if !consolePattern.MatchString(place) || got.status != 200 || !strings.Contains(got.header.Get("Content-Type"), "html") {
			continue
		}
		said := title.FindStringSubmatch(got.body)
		if said == nil || !strings.HasSuffix(said[1], " - Acme - Countersign") || strings.HasPrefix(said[1], " ") {
			t.Errorf("%s has the title %v", place, said)
			continue
		}
		if other := paths[said[1]]; other != "" && other != path {
			t.Errorf("%s and %s have the title %s", path, other, said[1])
		}
		paths[said[1]] = path
	}
	if len(paths) < 18 {
		t.Errorf("only %d titles", len(paths))
	}
}

// TestWalkReviewOnAPhone checks that a phone of 360 by 740 pixels shows the facts of a review,
// down to the reason, above the buttons, that the buttons are visible without scrolling, and that
// two taps give a verdict.
func TestWalkReviewOnAPhone(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	id := c.asks(t, "k1", "agent-7")
	w := s.openWindow(t)
	w.as(c.people["admin"])
	w.do(chromedp.EmulateViewport(360, 740))
	w.open("/reviews/" + id)
	var facts, bar, end float64
	w.do(chromedp.Evaluate(`document.querySelectorAll(".ask .facts dd")[3].getBoundingClientRect().bottom`, &facts),
		chromedp.Evaluate(`document.querySelector(".ask .side").getBoundingClientRect().top`, &bar),
		chromedp.Evaluate(`document.querySelector('button[value="rejected"]').getBoundingClientRect().bottom`, &end))
	if facts > bar || end > 740 {
		t.Errorf("the reason ends at %.0f, the bar begins at %.0f and ends at %.0f of 740", facts, bar, end)
	}
	w.do(chromedp.Click(`.ready button`, chromedp.ByQuery), chromedp.Click(`button[value="approved"]`, chromedp.ByQuery))
	w.see("You approved it:")
	t.Log("console: review on a phone: 2 taps")
	clean(t, s)
}

// TestWalkReviewsWithKeys checks that j, k, x, r and ? work on the list, that a and r move the
// focus to the reason and then to the button, and that no key alone gives a verdict.
func TestWalkReviewsWithKeys(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	first := c.asks(t, "k1", "agent-7")
	second := c.asks(t, "k2", "agent-8")
	w := s.openWindow(t)
	w.as(c.people["admin"])
	open := func(path string) {
		w.open(path)
		w.do(chromedp.Poll(`document.readyState === "complete"`, nil)) // wait until the script has run
	}
	open("/reviews")
	focused := func(want string) {
		t.Helper()
		var at string
		w.do(chromedp.Evaluate(`(e => e.getAttribute("href") || e.name + " " + (e.type === "text" ? "" : e.value))(document.activeElement)`, &at))
		if at != want {
			t.Errorf("the focus is on %q, want %q", at, want)
		}
	}
	w.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	focused("/reviews/" + second)
	w.do(chromedp.KeyEvent("k"), chromedp.KeyEvent("x"))
	focused("/reviews/" + first)
	w.do(chromedp.WaitVisible(`input[value="`+first+`"]:checked`, chromedp.ByQuery), chromedp.KeyEvent("?"))
	w.see("previous row or review")
	w.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("r"))
	focused("reason ") // the test's browser also types the key into the field; a real keyboard does not
	open("/reviews/" + first)
	w.do(chromedp.KeyEvent("a"))
	focused("ready It is expected work")
	w.do(chromedp.KeyEvent(" "), chromedp.KeyEvent("a"))
	focused("verdict approved")
	w.do(chromedp.KeyEvent("j"))
	w.see("agent-8")
	w.do(chromedp.KeyEvent("r"), chromedp.KeyEvent(" "), chromedp.KeyEvent("r"), chromedp.KeyEvent(kb.Enter))
	w.see("You rejected it:")
	clean(t, s)
}

// TestWalkTenThousandDecisions checks with 10,000 decisions that a screen of 1440 by 900 pixels
// shows 25 of them, and that every page that lists or counts decisions is small and, if
// PAGE_BUDGET is set, fast. It does not run in parallel with other tests, because it measures
// times.
func TestWalkTenThousandDecisions(t *testing.T) {
	s, c := reviewing(t)
	w := s.openWindow(t)
	who, err := s.app.AuthenticateOrganization(t.Context(), c.token)
	if err != nil {
		t.Fatal(err)
	}
	// Three decisions that are older than all others, each with values that no other one has.
	rare := []string{
		strings.NewReplacer("agent-7", "agent-rare", "run-1", "run-rare").Replace(decisionBody("rare-run", weather)),
		decisionBody("rare-host", strings.Replace(weather, "api.weather.example", "rare.example", 1)),
		decisionBody("rare-rule", strings.Replace(weather, `"network":"base",`, "", 1)),
	}
	for _, body := range rare {
		c.decide(t, body).decision(t)
	}
	const rounds, each, atOnce = 20, 500, 50
	for round := range rounds {
		var running errgroup.Group
		running.SetLimit(atOnce)
		for n := range each {
			running.Go(func() error {
				key, agent := fmt.Sprintf("k%d-%d", round, n), fmt.Sprint("agent-", n%40)
				body := decisionBody(key, weather)
				if n%4 > 0 {
					body = toolBody(key, agent, []string{"", "read", "write", "drop"}[n%4], []string{"", "low", "critical", "low"}[n%4])
				}
				request, err := assurance.ParseDecision([]byte(body))
				if err != nil {
					return err
				}
				_, err = s.app.Decide(t.Context(), who, request)
				return err
			})
		}
		if err := running.Wait(); err != nil {
			t.Fatal(err)
		}
		s.clock.Add(30 * time.Minute)
	}
	for _, role := range []string{"owner", "admin"} {
		c.people[role].signIn(role + "@acme.example")
	}
	w.as(c.people["owner"])
	w.do(chromedp.EmulateViewport(1440, 900))
	w.open("/decisions")
	var end float64
	w.do(chromedp.Evaluate(`document.querySelectorAll(".decisions tbody tr")[24].getBoundingClientRect().bottom`, &end))
	if end > 900 {
		t.Errorf("the row 25 ends at %.0f of 900", end)
	}
	t.Logf("console: 25 of %d decisions end at %.0f of 900 pixels", rounds*each, end)
	w.shoot("many-decisions")
	agent := regexp.MustCompile(`/agents/sub_[0-9A-Z]+`).FindString(c.people["owner"].get("/spend").body)
	oldest := regexp.MustCompile(`href="(/decisions\?[^"]*)" rel="next"`).FindStringSubmatch(c.people["owner"].get("/decisions").body)
	if agent == "" || oldest == nil {
		t.Fatal("no page of an agent, or no next page of decisions")
	}
	places := []string{"/overview", "/decisions", html.UnescapeString(oldest[1]), "/decisions?decision=deny", "/decisions?agent=agent-7", "/decisions?rule=mcp.tool.not_allowed", "/reviews", "/spend", "/spend?days=90", agent,
		"/search?q=agent-7", "/search?q=files", "/activity", "/policies", "/ledger"}
	// A filter by a value of an old decision finds that decision on the first page, because the read
	// model compares the value of every decision.
	for _, place := range []string{"/decisions?run=run-rare", "/decisions?agent=agent-rare", "/decisions?target=rare.example", "/decisions?rule=x402.network.missing", "/decisions?protocol=x402&run=run-rare"} {
		page := c.people["owner"].get(place).body
		if found := len(regexp.MustCompile(`href="/decisions/asd_`).FindAllString(page, -1)); found != 1 || strings.Contains(page, `rel="next"`) {
			t.Errorf("%s finds %d decisions, or has another page", place, found)
		}
		places = append(places, place)
	}
	places = append(places, "/decisions?target=files%2Fdrop", "/decisions?protocol=x402", "/decisions?run=none", "/decisions?agent=nobody", "/decisions?decision=deny&rule=mcp.tool.not_allowed")
	for _, place := range places {
		w.open(place)
		w.isSmall(place)
	}
	w.withinBudget(c.people["owner"], places)
}

// TestWalkPrint checks that a printed page has exact times with their zone, complete ids and
// hashes, and the organization, but no controls.
func TestWalkPrint(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	denied := c.decide(t, toolBody("k3", "agent-8", "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	records, err := s.app.ShowDecision(t.Context(), c.now(t), denied.Record.DecisionID)
	if err != nil {
		t.Fatal(err)
	}
	w := s.openWindow(t)
	w.as(c.people["auditor"])
	for place, parts := range map[string][]string{
		"/decisions/" + denied.Record.DecisionID: {denied.Record.DecisionID, denied.Integrity.RecordHash, denied.Record.BindingHash, denied.Record.AssuranceActionHash,
			records.Receipt.ReceiptID, records.Bound.Integrity.RecordHash},
		"/decisions": {"agent-8"},
	} {
		w.do(emulation.SetEmulatedMedia().WithMedia(""))
		w.open(place)
		w.prints(place, append(parts, "Acme ("+c.orgID+")", " UTC"))
	}
}

// prints checks what the open page prints: it contains these parts, only exact times and complete
// ids, and no controls.
func (w *window) prints(place string, parts []string) {
	w.t.Helper()
	w.do(emulation.SetEmulatedMedia().WithMedia("print"))
	var text string
	var controls int
	w.do(chromedp.Evaluate(`document.body.innerText`, &text),
		chromedp.Evaluate(`[...document.querySelectorAll("button, input, select, textarea, nav, a.button, summary.button")].filter(e => e.offsetParent).length`, &controls))
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("the print of %s lacks %q:\n%s", place, part, text)
		}
	}
	for _, part := range []string{" ago", "just now", "…", "Copy"} {
		if strings.Contains(text, part) {
			w.t.Errorf("the print of %s has %q:\n%s", place, part, text)
		}
	}
	if controls > 0 {
		w.t.Errorf("the print of %s has %d controls", place, controls)
	}
}

// TestWalkPrintOfABundle checks the same for the pages in a bundle: the statement about an agent,
// and the report.
func TestWalkPrintOfABundle(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	s.keepCheckpoints(t)
	d := c.decide(t, toolBody("k3", "agent-8", "drop", "low")).decision(t)
	c.report(t, d, "mcp", "fulfilled")
	folder := t.TempDir()
	from, to := s.clock.Now().UTC().Truncate(time.Hour), s.clock.Now().UTC().Add(time.Hour)
	m, err := s.app.ExportHistory(t.Context(), evidence.Export{Tenant: c.orgID, Actor: "operator", Folder: folder, Statement: true,
		Filters: bundle.Filters{Agent: "agent-8", Receipts: true, From: from.Format(time.RFC3339), To: to.Format(time.RFC3339)}})
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := s.app.Ledger.BySequence(t.Context(), c.orgID, []int64{d.Ledger.Sequence})
	if err != nil {
		t.Fatal(err)
	}
	first := recorded[d.Ledger.Sequence]
	w := s.openWindow(t)
	axe := w.axe()
	for _, page := range []string{"statement", "report"} {
		w.do(emulation.SetEmulatedMedia().WithMedia(""), chromedp.Navigate("file://"+filepath.Join(folder, "views", page+".html")), chromedp.WaitReady("h1", chromedp.ByQuery))
		w.obeys(axe, page)
		w.within(page, 1280)
		w.shoot("bundle-" + page)
		w.prints(page, []string{c.orgID, m.ExportID, m.LastHash, first.ID, first.Hash.String(), first.Occurred().UTC().Format("2006-01-02T15:04:05.000000Z"), from.Format(time.DateTime) + " UTC"})
	}
}
