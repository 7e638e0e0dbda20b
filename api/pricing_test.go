package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/api/services"
)

// TestPricesAreShownAndLeadToTheCheckout checks that the page shows every product at the anchor
// that other pages link to, and every service once, and that its form leads to the checkout.
func TestPricesAreShownAndLeadToTheCheckout(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	b := s.browser(t)
	page := b.get("/pricing")
	for _, p := range s.app.Products {
		b.want(page, 200, `<h3 id="`+p.Slug+`">`)
	}
	for _, service := range services.List() {
		if n := strings.Count(page.body, "/api/agent-services/"+service.Name+"</code>"); n != 1 {
			t.Errorf("%s stands %d times", service.Name, n)
		}
	}
	got := b.form("/pricing", url.Values{"slug": {"monthly-pass"}})
	if to := got.header.Get("Location"); got.status != http.StatusSeeOther || !strings.HasPrefix(to, "http") {
		t.Errorf("%d to %q", got.status, to)
	}
	b.want(b.form("/pricing", url.Values{"slug": {"nothing"}}), 404, "product not found")
}

// TestPagesNameWhomToAsk checks that documents of a service without a configured contact address
// contain an address that does not exist.
func TestPagesNameWhomToAsk(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, path := range []string{"/terms", "/privacy", "/refunds"} {
		b.want(b.get(path), 200, "mailto:operator@countersign.invalid")
	}
}

func TestPagesThatTheShopNamesAreThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, address := range regexp.MustCompile(`"(http[^"]+/[a-z]+)"`).FindAllStringSubmatch(b.get("/api/checkout").body, -1) {
		page := b.get(strings.TrimPrefix(address[1], s.app.BaseURL))
		b.want(page, 200, "<h1>")
	}
	b.want(b.get("/pricing"), 200, "Card checkout is not configured here")
	b.want(b.form("/pricing", url.Values{"slug": {"monthly-pass"}}), 404, "product not found") // this service has no products
}

// TestLlmsTxtNamesEveryPriceAndItsLinksAnswer checks that llms.txt has the form of llmstxt.org,
// every price, and no dead link.
func TestLlmsTxtNamesEveryPriceAndItsLinksAnswer(t *testing.T) {
	t.Parallel()
	s, _ := newStorefront(t)
	b := s.browser(t)
	got := b.get("/llms.txt")
	text := got.body
	if got.status != 200 || got.header.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.HasPrefix(text, "# Countersign\n\n> ") {
		t.Fatalf("%d %v %s", got.status, got.header, text)
	}
	_, sections, _ := strings.Cut(text, "\n## ")
	for line := range strings.Lines("## " + sections) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "## ") {
			continue
		}
		link := regexp.MustCompile(`^- \[[^\]]+\]\((http[^)]+)\): .`).FindStringSubmatch(line)
		if link == nil {
			t.Errorf("no link: %s", line)
			continue
		}
		path, fragment, _ := strings.Cut(strings.TrimPrefix(link[1], s.app.BaseURL), "#")
		if page := b.get(path); page.status != 200 || fragment != "" && !strings.Contains(page.body, `id="`+fragment+`"`) {
			t.Errorf("%s: %d", link[1], page.status)
		}
	}
	for _, service := range services.List() {
		if want := fmt.Sprintf("POST /api/agent-services/%s, $%d.%02d per call", service.Name, service.PriceCents/100, service.PriceCents%100); !strings.Contains(text, want) {
			t.Errorf("%s is not there", want)
		}
	}
	for _, p := range s.app.Products {
		if want := fmt.Sprintf("#%s): $%d.%02d", p.Slug, p.PriceCents/100, p.PriceCents%100); !strings.Contains(text, want) {
			t.Errorf("%s is not there", want)
		}
	}
	for _, part := range []string{"/openapi.json", "/mcp", "\n## Optional\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not there", part)
		}
	}
}

// TestTheIntroductoryCreditIsNamed checks that every place that states what a call costs mentions
// the introductory credit.
func TestTheIntroductoryCreditIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	b := s.browser(t)
	for _, path := range []string{"/.well-known/x402", "/llms.txt", "/pricing", "/api/pricing", "/auth.md"} {
		b.want(b.get(path), 200, "The first $1 of calls is free for the first 100 verified agents. An agent is verified by a link in an e-mail, or by its owner")
	}
}
