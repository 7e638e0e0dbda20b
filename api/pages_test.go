package api_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
)

// TestStyle checks that the pages of the sign-in, the outbox and an agent's request use the
// service's style sheet, and have no inline styles or scripts.
func TestStyle(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	sheet := b.get("/style.css")
	b.want(sheet, 200, "prefers-color-scheme: dark")
	if got := sheet.header.Get("Content-Type"); got != "text/css; charset=utf-8" {
		t.Errorf("type %s", got)
	}
	if strings.Contains(sheet.body, "url(") || strings.Contains(sheet.body, "@import") {
		t.Error("the style sheet loads something")
	}
	inline := regexp.MustCompile(`<script(?: src="/[a-z]+\.js" defer>|>)|\sstyle=|\son[a-z]+=`)
	for path, status := range map[string]int{"/sign-in": 200, "/sign-in/confirm?token=x": 200, "/outbox": 200, "/agents/confirm?token=x": 200} {
		page := b.get(path)
		b.want(page, status, `<link rel="stylesheet" href="/style.css">`)
		b.want(page, status, `<meta name="viewport" content="width=device-width, initial-scale=1">`)
		for _, found := range inline.FindAllString(page.body, -1) {
			if !strings.Contains(found, "src=") {
				t.Errorf("%s has a style or script of its own: %s", path, found)
			}
		}
		if got := page.header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
