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

// Figures are well-formed, the same each time, and hold nothing that a page's policy
// refuses: no style of an element, no script, nothing from elsewhere.
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
			for _, bad := range []string{"style=", "<script", "href=\"http", "NaN", "white"} {
				if strings.Contains(f.SVG, bad) {
					t.Errorf("%s: holds %s", service.Operation, bad)
				}
			}
			if !strings.Contains(f.SVG, `role="img" aria-label="`) || len(f.SVG) > 40_000 {
				t.Errorf("%s: %d octets: %.200s", service.Operation, len(f.SVG), f.SVG)
			}
			d := xml.NewDecoder(strings.NewReader(f.SVG))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", service.Operation, err)
				}
			}
		}
	}
}
