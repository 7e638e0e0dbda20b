package api_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// TestStyle: every page has the one style sheet, from here, and nothing else.
func TestStyle(t *testing.T) {
	s := newSite(t, ledgertest.New(t))
	b := s.browser(t)
	sheet := b.get("/style.css")
	b.want(sheet, 200, "prefers-color-scheme: dark")
	if got := sheet.header.Get("Content-Type"); got != "text/css; charset=utf-8" {
		t.Errorf("type %s", got)
	}
	if strings.Contains(sheet.body, "url(") || strings.Contains(sheet.body, "@import") {
		t.Error("the style sheet loads something")
	}
	for path, status := range map[string]int{"/sign-in": 200, "/sign-in/confirm?token=x": 200, "/outbox": 200, "/agents/confirm?token=x": 200} {
		page := b.get(path)
		b.want(page, status, `<link rel="stylesheet" href="/style.css">`)
		b.want(page, status, `<meta name="viewport" content="width=device-width, initial-scale=1">`)
		if strings.Contains(page.body, "style=") || strings.Contains(page.body, "<script") {
			t.Errorf("%s has a style or script of its own", path)
		}
	}
}

// TestContrast holds the colours to WCAG 2.2, 1.4.3 (4.5 to 1 for text) and 1.4.11
// (3 to 1 for the edge of what can be used), in both schemes.
func TestContrast(t *testing.T) {
	text, err := os.ReadFile("site/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, _ := strings.Cut(string(text), "prefers-color-scheme: dark")
	for scheme, part := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(part, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, pair := range []struct {
			front, back string
			least       float64
		}{
			{"text", "ground", 4.5}, {"text", "raised", 4.5}, {"quiet", "ground", 4.5}, {"link", "ground", 4.5},
			{"on-action", "action", 4.5}, {"action", "ground", 3}, {"line", "ground", 3},
		} {
			front, known1 := colours[pair.front]
			back, known2 := colours[pair.back]
			if !known1 || !known2 {
				t.Fatalf("%s: %s or %s is not there", scheme, pair.front, pair.back)
			}
			if contrast := (max(front, back) + .05) / (min(front, back) + .05); contrast < pair.least {
				t.Errorf("%s: %s on %s has %.2f to 1, want %.1f", scheme, pair.front, pair.back, contrast, pair.least)
			}
		}
	}
}

// luminance is WCAG's relative luminance of a colour in sRGB.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
