package api_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	download "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/countersign/countersign/api"
)

// job is a task in the console, with the number of clicks that it may take.
type job struct {
	name  string
	role  string   // role of the person
	from  string   // page on which the job starts
	steps []string // texts to click; "name=value" fills a field; " (file)" after a text means that the click gets a file, which does not leave the page
	says  string   // text that the last page must contain; empty if the job ends with a file
	most  int      // largest number of clicks; on a phone, opening the menu is one
}

// TestWalkJobs does the jobs of the console on a wide screen and on a phone, and counts the
// clicks. TestWalkReviewOnAPhone covers the review.
func TestWalkJobs(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	denied := c.decide(t, toolBody("k1", "agent-8", "drop", "low")).decision(t).Record.DecisionID
	c.decide(t, decisionBody("k2", weather))
	w := s.openWindow(t)
	downloads := t.TempDir()
	w.do(download.SetDownloadBehavior(download.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	today := s.app.Clock().UTC().Format(time.DateOnly)
	files := 0
	for _, width := range []int64{1440, 360} {
		w.do(chromedp.EmulateViewport(width, 900))
		draft := fmt.Sprintf("f_maxUsdPerTransaction=%d", width)
		for _, j := range []job{
			{"why was this denied", "auditor", "/overview", []string{"q=" + denied}, "The tool is not allowed.", 1},
			{"what did an agent spend last week", "auditor", "/overview", []string{"Spend", "7 days", "agent-7"}, "The numbers", 4},
			{"change a policy: author", "developer", "/overview", []string{"Policies", "Change the policy", draft, "Save as a draft"}, "What this draft changes", 4},
			{"change a policy: the other admin", "admin", "/policies", []string{"evt_", "reason=a higher limit", "Activate"}, "a higher limit", 2},
			{"which policy was active on a day", "auditor", "/overview", []string{"Policies", "on=" + today, "Show"}, "was active.", 3},
			{"rotate a leaked token", "owner", "/overview", []string{"API tokens", "Rotate"}, "This is the new token. It is shown only once:", 3},
			{"evidence of some decisions", "auditor", "/overview", []string{"Decisions", "More filters", "from=" + today, "Filter", "Signed bundle (file)"}, "", 5},
			{"evidence for a quarter", "auditor", "/overview", []string{"Evidence", "Export (file)"}, "", 3},
			{"evidence for an audit", "auditor", "/overview", []string{"Evidence", "Create the evidence pack (file)"}, "", 3},
			{"what an agent did in a quarter", "auditor", "/overview", []string{"Evidence", "agent=agent-8", "Create the statement (file)"}, "", 3},
			{"evidence of one decision", "auditor", "/overview", []string{"q=" + denied, "Dispute pack (file)"}, "", 2},
			{"who did what", "owner", "/overview", []string{"Acme", "Activity"}, "This page lists who changed", 2},
			{"is everything well", "auditor", "/overview", nil, "The ledger", 0},
		} {
			w.as(c.people[j.role])
			clicks := w.does(j)
			if j.says == "" {
				files++
				w.downloaded(downloads, files)
			}
			if w.see(j.says); clicks > j.most {
				t.Errorf("%s at %d pixels: %d clicks, at most %d", j.name, width, clicks, j.most)
			}
			t.Logf("console: %s at %d pixels: %d clicks", j.name, width, clicks)
		}
	}
	clean(t, s)
}

// TestWalkFirstRun goes from an empty service to the first decision. It omits the sign-in, which
// takes six more clicks and is counted by TestFirstRunInTheBrowser.
func TestWalkFirstRun(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1440, 360} {
		s := newSite(t, api.Databases.New(t))
		ada := s.browser(t)
		ada.signIn("ada@example.com")
		w := s.openWindow(t)
		w.as(ada)
		w.do(chromedp.EmulateViewport(width, 900))
		clicks := w.does(job{from: "/overview", steps: []string{"Create the organization", "Activate the policy", "Issue a token"}})
		var shown string
		w.do(chromedp.Text("pre[data-copy-block]", &shown, chromedp.ByQuery))
		sample := regexp.MustCompile(`Bearer (\S+)'.* -d '(.*)'`).FindStringSubmatch(shown)
		if sample == nil {
			t.Fatalf("no command of the sample agent: %s", shown)
		}
		answer := s.browser(t).post("/api/assurance/decisions", sample[2], "Authorization", "Bearer "+sample[1])
		if answer.status != 201 {
			t.Fatalf("the sample agent: %d %s", answer.status, answer.body)
		}
		w.press("Show its decision")
		w.see("Open the decision")
		if clicks += 1 + 6; clicks > 12 {
			t.Errorf("first run at %d pixels: %d clicks, at most 12", width, clicks)
		}
		t.Logf("console: first run at %d pixels: %d clicks", width, clicks)
	}
}

// does does a job and returns the number of clicks. If a target is in a closed menu, opening the
// menu counts, too.
func (w *window) does(j job) (clicks int) {
	w.t.Helper()
	w.open(j.from)
	for _, step := range j.steps {
		name, value, fills := strings.Cut(step, "=")
		switch {
		case fills && name == "q":
			clicks++
			w.do(chromedp.Evaluate(`window.before = true`, nil), chromedp.SendKeys(`header [name="q"]`, value+kb.Enter, chromedp.ByQuery))
			w.arrives()
		case fills:
			w.fill(name, value)
		default:
			clicks += w.clicks(step)
		}
	}
	return clicks
}

// clicks clicks the first visible link or button with a text, preferably one without other text.
// It returns the number of clicks, including one to open a closed menu.
func (w *window) clicks(text string) (clicks int) {
	w.t.Helper()
	text, file := strings.CutSuffix(text, " (file)")
	find := fmt.Sprintf(`(text => {
		document.querySelector("[data-walk]")?.removeAttribute("data-walk");
		window.before = true;
		const said = e => e.textContent.replace(/\s+/g, " ").trim();
		const all = [...document.querySelectorAll("a, button, summary")];
		const fit = [...all.filter(e => said(e) === text), ...all.filter(e => said(e) !== text && said(e).includes(text))];
		const seen = e => e.checkVisibility() && e.getClientRects().length > 0;
		const mark = e => { e.dataset.walk = "yes"; return e.matches("summary") ? "opens" : "leads"; };
		const there = fit.find(seen);
		if (there) return mark(there);
		for (const e of fit) {
			const menu = e.closest("details:not([open])")?.querySelector("summary");
			if (menu && seen(menu)) { mark(menu); return "menu"; }
		}
		return "";
	})(%q)`, text)
	for {
		var what string
		w.do(chromedp.Evaluate(find, &what))
		if what == "" {
			w.do(chromedp.Evaluate(`document.body.innerText`, &what))
			w.t.Fatalf("nothing to click has the text %q:\n%s", text, what)
		}
		clicks++
		w.do(chromedp.Click("[data-walk]", chromedp.ByQuery))
		switch {
		case what == "menu":
			continue
		case what == "leads" && !file:
			w.arrives()
		}
		return clicks
	}
}

// downloaded waits until a folder contains a number of complete files.
func (w *window) downloaded(folder string, number int) {
	w.t.Helper()
	for w.ctx.Err() == nil {
		files, err := os.ReadDir(folder)
		if err != nil {
			w.t.Fatal(err)
		}
		complete := 0
		for _, f := range files {
			if strings.HasSuffix(f.Name(), ".gz") {
				complete++
			}
		}
		if complete >= number {
			return
		}
		_ = chromedp.Run(w.ctx, chromedp.Sleep(50*time.Millisecond))
	}
	w.t.Fatalf("%s does not have %d files", folder, number)
}
