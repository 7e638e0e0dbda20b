package api_test

import (
	"regexp"
	"slices"
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
	b.want(sheet, 200, "prefers-color-scheme:dark")
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

// TestADocumentHasItsPlace checks that a page of the documentation lists the other pages, and its
// own headings if it has several. Each entry leads to a page or heading that exists.
func TestADocumentHasItsPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	visitor := s.browser(t)
	page := visitor.get("/docs/assurance", "Accept", "text/html")
	for _, part := range []string{`<a href="#set-up">Set up</a>`, `<a href="/docs/assurance" aria-current="page">Assurance for teams</a>`, `<a href="/docs/tutorial">Tutorial</a>`, `<a href="/guides/gate-a-payment">`} {
		visitor.want(page, 200, part)
	}
	linked := regexp.MustCompile(`<li><a href="([^"]+)"`).FindAllStringSubmatch(page.body[strings.Index(page.body, `class="shelves"`):], -1)
	if len(linked) < 20 {
		t.Fatalf("the page lists only %d pages", len(linked))
	}
	for _, link := range linked {
		got := visitor.get(link[1], "Accept", "text/html")
		for _, heading := range regexp.MustCompile(`<li><a href="#([^"]+)">`).FindAllStringSubmatch(got.body, -1) {
			if !strings.Contains(got.body, `id="`+heading[1]+`"`) {
				t.Errorf("%s has no heading %s", link[1], heading[1])
			}
		}
		if got.status != 200 || strings.Count(got.body, `aria-current="page"`) == 0 {
			t.Errorf("%s: %d, or the list does not mark it", link[1], got.status)
		}
	}
	if short := visitor.get("/docs/security", "Accept", "text/html").body; strings.Contains(short, "On this page") && strings.Count(short, "<h2 id=") < 4 {
		t.Error("a page with few headings lists them")
	}
}

// locPattern matches an address of the sitemap. Its group is the path.
var locPattern = regexp.MustCompile(`<loc>[a-z]+://[^/]+(/[^<]*)</loc>`)

// TestPublicPagesAreSmall checks that each public page has at most 60 KB on its way to a browser,
// with the style and the script. A page of a signed-in person is not compressed, because it
// contains secrets and text of the person.
func TestPublicPagesAreSmall(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	stranger := s.browser(t)
	frame := len(stranger.get("/style.css").body) + len(stranger.get("/page.js").body)
	pages := locPattern.FindAllStringSubmatch(stranger.get("/sitemap.xml").body, -1)
	if len(pages) < 50 {
		t.Fatalf("the sitemap has only %d pages", len(pages))
	}
	for _, found := range pages {
		page := stranger.get(found[1], "Accept", "text/html", "Accept-Encoding", "gzip")
		if size := frame + len(page.body); page.status != 200 || size > 60_000 {
			t.Errorf("%s: status %d, %d bytes", found[1], page.status, size)
		}
	}
	if page := stranger.get("/docs/commands", "Accept-Encoding", "gzip"); page.header.Get("Content-Encoding") != "gzip" || !slices.Contains(page.header.Values("Vary"), "Accept-Encoding") {
		t.Errorf("a public page: %v", page.header)
	}
	person := s.browser(t)
	person.signIn("ada@small.example.com")
	if page := person.get("/docs/commands", "Accept-Encoding", "gzip"); page.status != 200 || page.header.Get("Content-Encoding") != "" {
		t.Errorf("a page of a signed-in person: %d %v", page.status, page.header)
	}
}
