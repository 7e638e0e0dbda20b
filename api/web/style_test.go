package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast checks the colours of the light and the dark scheme against WCAG 2.2: 1.4.3 (text,
// 4.5 to 1) and 1.4.11 (borders of controls, 3 to 1).
func TestContrast(t *testing.T) {
	text, err := os.ReadFile("assets/style.css")
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
			{"on-action", "action", 4.5}, {"action", "ground", 3}, {"line", "ground", 3}, {"quiet", "raised", 4.5}, {"link", "raised", 4.5},
			{"allow", "allow-ground", 4.5}, {"review", "review-ground", 4.5}, {"deny", "deny-ground", 4.5}, {"on-deny", "deny", 4.5},
			{"deny", "ground", 4.5}, {"text", "allow-ground", 4.5}, {"text", "review-ground", 4.5}, {"text", "deny-ground", 4.5},
			{"link", "review-ground", 4.5}, {"link", "deny-ground", 4.5}, {"on-mark", "mark", 4.5},
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

var (
	size     = regexp.MustCompile(`var\(--(tiny|small|body|large|huge)\)`)
	distance = regexp.MustCompile(`^(margin|padding|top|right|bottom|left|inset)(-|$)|gap$`)
	length   = regexp.MustCompile(`(-?[0-9.]+)(px|rem)\b`)
)

// TestSizesAndSteps checks that the style sheet defines five sizes of text and uses no other, and
// that distances are multiples of 4 pixels. The text in charts is not checked, because its size
// scales with the chart.
func TestSizesAndSteps(t *testing.T) {
	text, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	sheet := regexp.MustCompile(`(?s)/\*.*?\*/|--[a-z-]+:[^;]*;`).ReplaceAllString(string(text), "")
	sheet = regexp.MustCompile(`svg[^{]*text[^{]*\{[^}]*\}`).ReplaceAllString(sheet, "")
	sizes := regexp.MustCompile(`--(?:tiny|small|body|large|huge): [0-9.]+rem;`).FindAllString(string(text), -1)
	if len(sizes) != 5 {
		t.Errorf("the style sheet defines %d sizes of text: %v", len(sizes), sizes)
	}
	seen := 0
	for _, m := range regexp.MustCompile(`([a-z-]+):\s*([^;{}]+)[;}]`).FindAllStringSubmatch(sheet, -1) {
		name, value := m[1], m[2]
		switch {
		case name == "font-size" || name == "font":
			seen++
			if value != "inherit" && !size.MatchString(value) {
				t.Errorf("%s: %s is not one of the five sizes", name, value)
			}
		case distance.MatchString(name):
			for _, l := range length.FindAllStringSubmatch(value, -1) {
				seen++
				n, err := strconv.ParseFloat(l[1], 64)
				if l[2] == "rem" {
					n *= 16
				}
				if err != nil || math.Mod(n, 4) != 0 && n != 1 { // a distance of 1 pixel is allowed for thin lines
					t.Errorf("%s: %s is not a multiple of 4 pixels", name, value)
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d sizes and distances were read", seen)
	}
}

// luminance returns the relative luminance of an sRGB colour, as WCAG defines it.
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
