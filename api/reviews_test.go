package api_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/countersign/countersign/api"
)

// reviewing returns an organization whose policy requires a review of critical tool calls.
func reviewing(t *testing.T) (*site, *crew) {
	t.Helper()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	return s, c
}

// asks requests a decision that requires a review, and returns its id.
func (n *tenant) asks(t testing.TB, key, agent string) string {
	t.Helper()
	return n.decide(t, toolBody(key, agent, "write", "critical")).decision(t).Record.DecisionID
}

// TestOnlyItsButtonGivesAVerdict checks that the Enter key presses no button in the form of a
// verdict, that a form sent without a button gives no verdict, and that the next page states the
// verdict that was given.
func TestOnlyItsButtonGivesAVerdict(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	first, second := c.asks(t, "k1", "agent-7"), c.asks(t, "k2", "agent-8")
	admin := c.people["admin"]
	page := admin.get("/reviews/" + first)
	form := regexp.MustCompile(`(?s)<form [^>]*id="verdict".*?</form>`).FindString(page.body)
	for _, input := range regexp.MustCompile(`<input [^>]*>`).FindAllString(form, -1) {
		if !strings.Contains(input, `type="hidden"`) {
			t.Errorf("Enter in %s presses the first button", input)
		}
	}
	got := admin.form("/reviews/"+first, url.Values{"reason": {"No, this must not happen"}})
	admin.want(got, 400, "Your verdict is not recorded: verdict is missing")
	admin.want(got, 400, "No, this must not happen</textarea>")
	if n := strings.Count(admin.get("/reviews").body, `<td data-label="Action">`); n != 2 {
		t.Errorf("%d wait", n)
	}
	to := admin.form("/reviews/"+first, url.Values{"verdict": {"rejected"}, "reason": {"no"}}).header.Get("Location")
	if to != "/reviews/"+second+"?resolved="+first {
		t.Errorf("to %s", to)
	}
	admin.want(plain(admin.get(to)), 200, "You rejected it: “agent-7” wants to call “write” of “files”.")
	to = admin.form("/reviews/"+second, url.Values{"verdict": {"approved"}, "reason": {"yes"}}).header.Get("Location")
	admin.want(plain(admin.get(to)), 200, "You approved it: “agent-8” wants to call “write” of “files”.")
	if text := c.people["owner"].get(to).body; strings.Contains(text, "You approved") {
		t.Error("an address tells somebody else of a verdict that is not theirs")
	}
	clean(t, s)
}

// TestWalkEnterGivesNoVerdict checks with and without scripts that the Enter key gives no verdict.
func TestWalkEnterGivesNoVerdict(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	id := c.asks(t, "k1", "agent-7")
	w := s.openWindow(t)
	w.as(c.people["admin"])
	for _, scripts := range []bool{true, false} {
		w.do(emulation.SetScriptExecutionDisabled(!scripts))
		w.open("/reviews/" + id)
		w.do(chromedp.SendKeys(`[name="reason"]`, "No, this must not happen"+kb.Enter+kb.Enter, chromedp.ByQuery))
		w.open("/reviews")
		w.do(chromedp.WaitVisible(`a[href="/reviews/`+id+`"]`, chromedp.ByQuery))
	}
	w.do(emulation.SetScriptExecutionDisabled(false))
	w.open("/reviews/" + id)
	w.shoot("review-with-reason")
	w.fill("reason", "not today")
	w.press("Reject")
	w.see("You rejected it:")
	w.shoot("reviews-rejected")
	w.fits("/reviews/" + id)
	clean(t, s)
}

// TestAReasonIsNotLost checks that white space at the edges of a reason is removed, that a
// forbidden character is described in words, and that the text stays in the form.
func TestAReasonIsNotLost(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	id := c.asks(t, "k1", "agent-7")
	admin := c.people["admin"]
	for reason, want := range map[string]string{
		"the family \U0001F468\u200d\U0001F469 agrees":     "reason has an invisible character (U+200D, a zero-width joiner",
		"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645": "U+200C, a zero-width non-joiner",
		"a\u202eb":                "U+202E, which changes the direction of text",
		strings.Repeat("x", 1001): "reason must be 1 to 1000 characters",
		" ":                       "reason must be 1 to 1000 characters",
	} {
		got := admin.form("/reviews/"+id, url.Values{"verdict": {"approved"}, "reason": {reason}})
		if text := html.UnescapeString(got.body); got.status != 400 || !strings.Contains(text, want) || !strings.Contains(text, reason+"</textarea>") {
			t.Errorf("%q: %d, not %q, or the reason is lost: %s", reason, got.status, want, text)
		}
	}
	if got := admin.form("/reviews/"+id, url.Values{"verdict": {"approved"}, "reason": {"  in two\r\nlines \r\n"}}); got.status != http.StatusSeeOther {
		t.Fatalf("%d %s", got.status, got.body)
	}
	admin.want(admin.get("/reviews/"+id), 200, "<blockquote>in two\nlines</blockquote>")
	clean(t, s)
}

// TestASecondReviewerReadsWhoWasFirst checks that a reviewer whose verdict comes too late sees who
// was first, and keeps what they wrote.
func TestASecondReviewerReadsWhoWasFirst(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	id := c.asks(t, "k1", "agent-7")
	c.people["admin"].form("/reviews/"+id, url.Values{"verdict": {"rejected"}, "reason": {"not on a Friday"}})
	owner := c.people["owner"]
	got := owner.form("/reviews/"+id, url.Values{"verdict": {"approved"}, "reason": {"it is Monday there"}})
	for _, part := range []string{"Your verdict is not recorded: decision was already resolved.", "admin@acme.example rejected it", "not on a Friday", "it is Monday there</textarea>"} {
		owner.want(got, 409, part)
	}
	clean(t, s)
}

// TestComparingArgumentsKeepsTheReason checks that the reason stays in the form when arguments are
// compared, because both are in one form.
func TestComparingArgumentsKeepsTheReason(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	owner := c.people["owner"]
	owner.want(owner.form("/members/arguments", url.Values{"arguments": {"off"}}), 303, "")
	id := c.asks(t, "k1", "agent-7")
	got := owner.form("/reviews/"+id, url.Values{"do": {"check"}, "reason": {"half a thought"}, "arguments": {`{"path":"/srv/archive/2019","recursive":true}`}})
	for _, part := range []string{"<strong>The same.</strong>", "half a thought</textarea>", `<textarea name="arguments" form="verdict"`} {
		owner.want(got, 200, part)
	}
	if strings.Count(got.body, `action="/reviews/`) != 1 {
		t.Error("two forms, of which one empties the other")
	}
	clean(t, s)
}

// TestNoReviewIsOutOfSight checks that every review can be found, however many an agent requests:
// the oldest come first, the others are on further pages, and a filter finds those of one agent.
func TestNoReviewIsOutOfSight(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	admin, dev := c.people["admin"], c.people["developer"]
	oldest := c.asks(t, "first", "patient")
	dev.want(dev.post("/api/assurance/decisions", toolBody("theirs", "dev-agent", "write", "critical")), 201, "needs_review")
	for n := range 110 {
		c.asks(t, fmt.Sprint("loop", n), "noisy")
	}
	admin.want(plain(admin.get("/reviews")), 200, "“patient” call")
	shown, pages := 0, 0
	for place := "/reviews"; place != ""; pages++ {
		page := admin.get(place)
		shown += strings.Count(page.body, `<td data-label="Action">`)
		if place = ""; strings.Contains(page.body, `rel="next"`) {
			place = html.UnescapeString(regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(page.body)[1])
		}
	}
	if shown != 112 || pages != 5 {
		t.Errorf("%d on %d pages", shown, pages)
	}
	for filter, want := range map[string]int{"agent=patient": 1, "agent=dev-agent": 1, "run=run-loop3": 1, "text=noisy": 25, "agent=nobody": 0} {
		if n := strings.Count(admin.get("/reviews?"+filter).body, `<td data-label="Action">`); n != want {
			t.Errorf("%s finds %d, want %d", filter, n, want)
		}
	}
	admin.want(admin.get("/reviews?after=x"), 400, "after must be the number in the link to the next page")
	if n := strings.Count(dev.get("/reviews").body, `<td data-label="Action">`); n != 1 {
		t.Errorf("a developer sees %d of their own", n)
	}
	dev.want(dev.get("/overview"), 200, `<dd class="figure"><a href="/reviews">1</a></dd>`)
	second := regexp.MustCompile(`/reviews/(asd_[0-9A-Z]+)`).FindAllString(admin.get("/reviews").body, 2)[1]
	if to := admin.form("/reviews/"+oldest, url.Values{"verdict": {"rejected"}, "reason": {"no"}}).header.Get("Location"); !strings.HasPrefix(to, second+"?") {
		t.Errorf("the next is %s, and %s waits longest", to, second)
	}
	clean(t, s)
}

// TestTheNextReviewIsOneThatMayBeResolved checks that the next review is never the reviewer's own
// request.
func TestTheNextReviewIsOneThatMayBeResolved(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	admin := c.people["admin"]
	admin.want(admin.post("/api/assurance/decisions", toolBody("mine", "mine", "write", "critical")), 201, "needs_review")
	one, two := c.asks(t, "k1", "agent-7"), c.asks(t, "k2", "agent-7")
	if to := admin.form("/reviews/"+one, url.Values{"verdict": {"rejected"}, "reason": {"no"}}).header.Get("Location"); !strings.HasPrefix(to, "/reviews/"+two) {
		t.Errorf("the next is %s, want %s", to, two)
	}
	if to := admin.form("/reviews/"+two, url.Values{"verdict": {"rejected"}, "reason": {"no"}}).header.Get("Location"); to != "/reviews?resolved="+two {
		t.Errorf("the next is %s", to)
	}
	clean(t, s)
}

// TestSimilarBeforeIsBefore checks that the similar decisions of a review exclude later ones.
func TestSimilarBeforeIsBefore(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	first := c.asks(t, "k0", "agent-7")
	for n := range 8 {
		c.asks(t, fmt.Sprint("k", n+1), "agent-7")
	}
	last := c.asks(t, "k9", "agent-7")
	admin := c.people["admin"]
	admin.want(admin.get("/reviews/"+first), 200, "There was no decision about the same tool in the 90 days before.")
	if n := strings.Count(admin.get("/reviews/"+last).body, ` <a href="/decisions/asd_`); n != 5 {
		t.Errorf("%d before", n)
	}
	clean(t, s)
}

// TestOnlyAnApprovalIsGood checks that only an approval permits the action, until it expires.
func TestOnlyAnApprovalIsGood(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	approved, rejected := c.asks(t, "k1", "agent-7"), c.asks(t, "k2", "agent-7")
	admin := c.people["admin"]
	admin.form("/reviews/"+approved, url.Values{"verdict": {"approved"}, "reason": {"yes"}})
	admin.form("/reviews/"+rejected, url.Values{"verdict": {"rejected"}, "reason": {"no"}})
	for _, place := range []string{"/reviews/", "/decisions/"} {
		if text := admin.get(place + rejected).body; strings.Contains(text, "valid until") {
			t.Errorf("a rejection is good for a time on %s", place)
		}
		admin.want(admin.get(place+approved), 200, ", valid until <time")
	}
	s.clock.Add(16 * time.Minute)
	for _, place := range []string{"/reviews/", "/decisions/"} {
		admin.want(admin.get(place+approved), 200, "was valid until <time")
		admin.want(admin.get(place+approved), 200, `<span class="badge expired">expired</span>`)
		admin.want(admin.get(place+approved), 200, " UTC</time>")
	}
	if text := admin.get("/decisions/" + approved).body; strings.Contains(text, `<li class="allow"><h3>Approval`) {
		t.Error("an approval that is over keeps its check")
	}
	clean(t, s)
}

// TestBoxesThatAreAllEmptyGiveNoRights checks that a form without any ticked box gives no rights,
// and that adding an existing member's address changes no role.
func TestBoxesThatAreAllEmptyGiveNoRights(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	before := strings.Count(owner.get("/keys").body, `<td data-label="Token">`)
	got := owner.form("/keys", url.Values{"name": {"nightly build"}})
	owner.want(got, 400, "tick at least one box for what the token may do")
	owner.want(got, 400, "nightly build</textarea>")
	if n := strings.Count(owner.get("/keys").body, `<td data-label="Token">`); n != before {
		t.Errorf("%d tokens, want %d", n, before)
	}
	owner.want(owner.follow(owner.form("/keys", url.Values{"name": {"x"}, "scope": {"assurance:read"}})), 200, "shown only once")
	owner.want(owner.form("/members", url.Values{"email": {"Auditor@acme.example"}, "role": {"admin"}}), 409, "email belongs to a member already, with the role auditor: change the role")
	row := regexp.MustCompile(`name="memberId" value="(cus_[0-9A-Z]+)"><input type="hidden" name="email" value="auditor@acme.example"`).FindStringSubmatch(owner.get("/members").body)
	if row == nil {
		t.Fatal("no form in the member's row")
	}
	owner.want(owner.form("/members", url.Values{"memberId": {row[1]}, "email": {"auditor@acme.example"}, "role": {"admin"}}), 303, "")
	clean(t, s)
}

// TestAStopShowsOnThePages checks that waiting decisions and earlier approvals show that an
// emergency stop has ended them, and that a verdict is then refused with the reason.
func TestAStopShowsOnThePages(t *testing.T) {
	t.Parallel()
	s, c := reviewing(t)
	admin := c.people["admin"]
	waits, approved := c.asks(t, "k1", "agent-7"), c.asks(t, "k2", "agent-8")
	admin.form("/reviews/"+approved, url.Values{"verdict": {"approved"}, "reason": {"yes"}})
	const denied = "the active policy denies"
	for _, page := range []string{"/overview", "/reviews", "/reviews/" + waits, "/reviews/" + approved, "/decisions/" + approved} {
		if body := admin.get(page).body; strings.Contains(strings.ToLower(body), denied) || strings.Contains(body, "Everything is stopped") {
			t.Errorf("%s speaks of a stop that there is not", page)
		}
	}
	admin.want(admin.post("/api/assurance/policies/freeze", `{"reason":"leak"}`), 201, `"version":`)
	for _, page := range []string{"/overview", "/reviews", "/reviews/" + waits, "/reviews/" + approved, "/decisions/" + approved} {
		if body := admin.get(page).body; !strings.Contains(strings.ToLower(body), denied) {
			t.Errorf("%s does not say that the policy denies it", page)
		}
	}
	admin.want(admin.get("/overview"), 200, "Everything is stopped")
	if body := admin.get("/reviews/" + waits).body; strings.Contains(body, `value="approved"`) || !strings.Contains(body, `value="rejected"`) {
		t.Error("the form offers what is refused")
	}
	got := admin.form("/reviews/"+waits, url.Values{"verdict": {"approved"}, "reason": {"go on"}})
	admin.want(got, 409, "Your verdict is not recorded: the active policy denies this action")
	admin.want(got, 409, "go on</textarea>")
	admin.want(admin.post("/api/assurance/decisions/"+waits+"/approval", `{"verdict":"approved","reason":"go on"}`), 409, `{"error":"the active policy denies this action"}`)
	admin.want(admin.get("/api/assurance/decisions/"+approved+"/standing"), 200, `"holds":false,"orgId":"`+c.orgID+`","reason":"the active policy denies this action"`)
	admin.want(admin.post("/api/assurance/decisions/"+waits+"/approval", `{"verdict":"rejected","reason":"stopped"}`), 201, `"verdict":"rejected"`)
	clean(t, s)
}

// TestANewTokenIsShownOnce checks that the form redirects, so that a reload issues nothing, and
// that only the session that issued the token sees it. A rotated token can be revoked at once.
func TestANewTokenIsShownOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner, admin := c.people["owner"], c.people["admin"]
	token := regexp.MustCompile(`svco_[A-Za-z0-9_-]{63}`)
	count := func() int { return strings.Count(owner.get("/keys").body, `<td data-label="Token">`) }
	before := count()
	issued := owner.form("/keys", url.Values{"name": {"nightly build"}, "scope": {"assurance:read"}})
	if token.MatchString(issued.body) || issued.header.Get("Location") != "/keys" {
		t.Fatalf("%d to %q: %s", issued.status, issued.header.Get("Location"), issued.body)
	}
	cookie, _, _ := strings.Cut(issued.header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(cookie, "countersign_once=") || token.MatchString(cookie) {
		t.Errorf("cookie %s", cookie)
	}
	if token.MatchString(admin.get("/keys", "Cookie", cookie).body) {
		t.Error("another session reads the new token")
	}
	secret := token.FindString(owner.follow(issued).body)
	if secret == "" {
		t.Fatal("the page does not show the new token")
	}
	if again := owner.get("/keys").body; token.MatchString(again) {
		t.Error("a reload shows a token")
	}
	if n := count(); n != before+1 {
		t.Errorf("%d tokens, want %d", n, before+1)
	}

	program := s.browser(t)
	bearer := []string{"Authorization", "Bearer " + secret}
	program.want(program.get("/api/assurance/history", bearer...), 200, "items")
	id := secret[5:17]
	next := token.FindString(owner.follow(owner.form("/keys", url.Values{"rotates": {id}, "scope": {"assurance:read"}})).body)
	if next == "" || next == secret {
		t.Fatalf("rotated to %q", next)
	}
	page := owner.get("/keys").body
	row := page[strings.Index(page, "svco_"+id+"_"):]
	row = row[:strings.Index(row, "</tr>")]
	if !strings.Contains(row, "rotating") || !strings.Contains(row, `action="/keys/revoke"`) || strings.Contains(row, "Rotate") {
		t.Errorf("the row of a rotated token: %s", row)
	}
	owner.want(owner.form("/keys/revoke", url.Values{"tokenId": {id}, "reason": {"leaked"}}), 303, "")
	program.want(program.get("/api/assurance/history", bearer...), 401, "invalid or expired token")
	program.want(program.get("/api/assurance/history", "Authorization", "Bearer "+next), 200, "items")
	clean(t, s)
}
