package plot_test

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/countersign/countersign/api/plot"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/options"
	"github.com/countersign/countersign/policy/portfoliorisk"
	"github.com/countersign/countersign/policy/waterfall"
)

// TestFiguresStandInAPage checks that charts are well-formed, have the same bytes each time, and
// contain nothing that the content policy of pages refuses: styles, scripts, or anything from
// another origin.
func TestFiguresStandInAPage(t *testing.T) {
	for service, count := range map[*policy.Service]int{&bond.Service: 2, &cashflow.Service: 2, &options.Service: 1, &portfoliorisk.Service: 1, &waterfall.Service: 1} {
		figures, err := plot.Figures(*service)
		if err != nil || len(figures) != count {
			t.Fatalf("%s: %d figures, %v", service.Operation, len(figures), err)
		}
		again, err := plot.Figures(*service)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range figures {
			if f != again[i] || f.Caption == "" {
				t.Errorf("%s: another figure each time, or without a caption", service.Operation)
			}
			stands(t, service.Operation, f)
		}
	}
}

// TestDecisionsByDay checks that decisions are columns in the colours of verdicts.
func TestDecisionsByDay(t *testing.T) {
	f, err := plot.Decisions([]string{"1 Nov", "2 Nov"}, []string{"/decisions?from=2026-11-01&to=2026-11-01", ""}, []float64{3, 0}, []float64{1, 0}, []float64{0, 2})
	if err != nil {
		t.Fatal(err)
	}
	stands(t, "decisions", f)
	for _, part := range []string{`<a href="/decisions?from=2026-11-01&amp;to=2026-11-01"`, "<title>1 Nov, allowed 3, need review 1, denied 0</title>"} {
		if !strings.Contains(f.SVG, part) {
			t.Errorf("%s is missing", part)
		}
	}
	for _, colour := range []string{"#2e9e6c", "#d9930d", "#d0453f"} {
		if !strings.Contains(f.SVG, colour) {
			t.Errorf("no column is %s", colour)
		}
	}
}

// stands fails the test if a page could not show the chart.
func stands(t *testing.T, name string, f plot.Figure) {
	t.Helper()
	for _, bad := range []string{"style=", "<script", "href=\"http", "NaN", "white"} {
		if strings.Contains(f.SVG, bad) {
			t.Errorf("%s: holds %s", name, bad)
		}
	}
	if !strings.Contains(f.SVG, ` aria-label="`) || len(f.SVG) > 40_000 {
		t.Errorf("%s: %d octets: %.200s", name, len(f.SVG), f.SVG)
	}
	for d := xml.NewDecoder(strings.NewReader(f.SVG)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
