package api_test

import (
	"html"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/mail"
	"github.com/countersign/countersign/api/web/public"
)

// TestTryACommandOnTheFirstPage checks that the page shows the verdict, marks the parts that
// matched, and names the safer way. This is free and records nothing.
func TestTryACommandOnTheFirstPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	b.want(b.get("/"), 200, s.app.BaseURL+"/api/agent-services/action-safety/quick")
	b.want(b.get("/"), 200, "gate hook --install claude --write") // without this option nothing is installed
	before := s.eventCount(t)
	got := b.form("/", url.Values{"command": {"cd x && git push --force origin main # <b>"}, "environment": {"production"}})
	for _, part := range []string{`<mark>git push --force origin main</mark>`, "critical risk", "git.push.force-protected", "Safer:", "# &lt;b&gt;", `<option value="production" selected>`} {
		b.want(got, 200, part)
	}
	b.want(b.form("/", url.Values{"example": {"rm -rf node_modules"}}), 200, "low risk")
	b.want(b.form("/", url.Values{"command": {"frobnicate --now"}}), 200, "No rule matched, and the command is not proven read-only")
	b.want(b.form("/", url.Values{"command": {"git status"}}), 200, "Proven read-only")
	b.want(b.form("/", url.Values{"command": {" "}}), 400, "No verdict: ")
	b.want(b.form("/", url.Values{"command": {"echo " + strings.Repeat("x", 2000)}}), 400, "No verdict: ")
	if after := s.eventCount(t); after != before {
		t.Errorf("%d events were recorded", after-before)
	}
	b.want(b.do("POST", "/", "application/x-www-form-urlencoded", "command=ls", "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
}

// TestTryingIsLimited checks that trying commands is limited by network address, and that the
// refusal explains what to do.
func TestTryingIsLimited(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, api.Databases.New(t), "", mail.NewOutbox(slog.New(slog.DiscardHandler)), func(c *api.Config) { c.RateLimit = true })
	b := s.browser(t)
	for range 50 {
		if got := b.form("/", url.Values{"command": {"ls"}}); got.status == 429 {
			b.want(got, 429, "Wait a minute, or use a free key")
			return
		}
	}
	t.Error("one address may try without end")
}

// TestEveryExampleHasAVerdict checks the commands that the page proposes.
func TestEveryExampleHasAVerdict(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, example := range public.Triable {
		got := b.form("/", url.Values{"example": {example}})
		b.want(got, 200, " risk</span>")
		b.want(got, 200, html.EscapeString(strings.Fields(example)[0]))
	}
}
