// Package plot draws charts as SVG: the cash flows of a bond and the balance of a loan, the
// present value of cash flows by discount rate, the payoff of an option, the drawdown of a
// portfolio, the tiers of a waterfall, an organization's decisions and spending by day, and
// durations as a ledger grows.
//
// Every number in a service's chart comes from answers of the service. If one answer is not enough
// for a curve, the service is called again with other inputs.
package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/policy"
)

// Figure is a chart with its caption.
type Figure struct {
	SVG     string // complete SVG element; it sets colours only for the series
	Caption string // one sentence that describes the chart
}

// Size of a chart in SVG units. A page scales it.
const width, height = 640, 300

// colours of the series. They can be distinguished on a light and on a dark background.
var colours = []string{"#2f7fd0", "#d9730d", "#2e9e6b", "#b5508f"}

// verdictColours are the colours of allowed, needs review and denied, in this order.
var verdictColours = []string{"#2e9e6c", "#d9930d", "#d0453f"}

// chart is the data of a figure.
type chart struct {
	policy.Chart
	colours []string // colours of the series; nil means the default colours
	counts  bool     // the values are counts, so the axis has only whole numbers
	links   []string // address of each label's columns, or ""; nil means no links
}

// Edges of the plot area.
const left, right, top, bottom = 62.0, 620.0, 52.0, 262.0

// draw returns the chart as SVG. The content policy of pages ignores style attributes, so draw
// uses only presentation attributes. Everything that does not belong to a series has the colour of
// the page's text, so that it can be read on a light and on a dark background.
func (c chart) draw() (Figure, error) {
	for i, series := range c.Values {
		if len(series) != len(c.Labels) || i >= len(c.Names) {
			return Figure{}, fmt.Errorf("draw %s: a series has %d values for %d labels", c.Title, len(series), len(c.Labels))
		}
	}
	used := c.colours
	if used == nil {
		used = colours
	}
	s := svg{}
	role := "img"
	if c.links != nil {
		role = "group" // an element with the role img must not contain links
	}
	s.add(`<svg class="plot" role="%s" aria-label="%s" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" fill="currentColor" font-size="15">`, role, html.EscapeString(c.Title), width, height)
	at := left
	for i := range c.Values {
		s.add(`<rect x="%s" y="16" width="18" height="12" fill="%s"/><text x="%s" y="27">%s</text>`, n(at), used[i], n(at+24), html.EscapeString(c.Names[i]))
		at += max(24+8*float64(utf8.RuneCountInString(c.Names[i]))+28, (right-left)/float64(len(c.Values))) // leave space, because text is larger on a phone
	}
	ticks := c.ticks()
	lowest, highest := ticks[0], ticks[len(ticks)-1]
	y := func(value float64) float64 { return bottom - (value-lowest)/(highest-lowest)*(bottom-top) }
	for _, tick := range ticks {
		s.add(`<path d="M%s %sH%s" stroke="currentColor" stroke-opacity="0.25"/><text x="%s" y="%s" text-anchor="end">%s</text>`, n(left), n(y(tick)), n(right), n(left-8), n(y(tick)+5), short(tick))
	}
	slot := (right - left) / float64(max(len(c.Labels), 1))
	for i := range c.labelled() {
		label := 0
		if c.labelled() > 1 {
			label = i * (len(c.Labels) - 1) / (c.labelled() - 1)
		}
		s.add(`<text x="%s" y="%s" text-anchor="middle">%s</text>`, n(left+slot*(float64(label)+0.5)), n(bottom+27), html.EscapeString(c.Labels[label]))
	}
	if c.Shape == policy.Lines {
		for i, series := range c.Values {
			var points strings.Builder
			for j, value := range series {
				fmt.Fprintf(&points, "%s,%s ", n(left+slot*(float64(j)+0.5)), n(y(value)))
			}
			s.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.TrimSpace(points.String()), used[i])
		}
	} else {
		c.columns(&s, used, slot, y)
	}
	s.add(`</svg>`)
	return Figure{SVG: s.String(), Caption: c.Caption}, nil
}

// columns draws a column for each value. The columns of a label are next to each other, or
// stacked.
func (c chart) columns(s *svg, used []string, slot float64, y func(float64) float64) {
	wide := slot * 0.7
	if c.Shape == policy.Bars {
		wide /= float64(len(c.Values))
	}
	for label := range c.Labels {
		below := 0.0
		closing := c.open(s, label)
		for i, series := range c.Values {
			value, at := series[label], left+slot*(float64(label)+0.15)
			if c.Shape == policy.Bars {
				at += wide * float64(i)
			}
			from, to := y(below), y(below+value)
			if value != 0 {
				s.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`, n(at), n(min(from, to)), n(wide), n(math.Abs(from-to)), used[i])
			}
			if c.Shape == policy.Stacked {
				below += value
			}
		}
		s.add("%s", closing)
	}
}

// open writes the start tag around the columns of a label, with a tooltip, and returns the end
// tag. The Tab key skips the link, because the table with the numbers has the same link.
func (c chart) open(s *svg, label int) (closing string) {
	if c.links == nil {
		return ""
	}
	said := c.Labels[label]
	for i, series := range c.Values {
		said += fmt.Sprintf(", %s %s", c.Names[i], strconv.FormatFloat(policy.Sig12(series[label]), 'f', -1, 64))
	}
	said = html.EscapeString(said)
	if c.links[label] == "" {
		s.add(`<g><title>%s</title>`, said)
		return `</g>`
	}
	s.add(`<a href="%s" tabindex="-1" aria-label="%s"><title>%s</title>`, html.EscapeString(c.links[label]), said, said)
	return `</a>`
}

// svg is a picture under construction.
type svg struct{ strings.Builder }

func (s *svg) add(format string, values ...any) { fmt.Fprintf(s, format, values...) }

// n formats a coordinate with at most one decimal.
func n(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// short formats a number of the axis, such as 4.5M, 500k or 0.25.
func short(x float64) string {
	unit := ""
	switch most := math.Abs(x); {
	case most >= 1e6:
		x, unit = x/1e6, "M"
	case most >= 1e4:
		x, unit = x/1e3, "k"
	}
	return strconv.FormatFloat(policy.Sig12(x), 'f', -1, 64) + unit
}

// ticks returns the numbers of the axis. The first is at or below the lowest value and the last at
// or above the highest. They are 1, 2 or 5 times a power of ten apart, and at most seven. Axes of
// columns include zero. Axes of counts have whole numbers.
func (c chart) ticks() (list []float64) {
	lowest, highest := c.extent()
	step := 1.0
	if !c.counts && highest > lowest {
		step = math.Pow(10, math.Floor(math.Log10((highest-lowest)/5)))
	}
	for factors := []float64{2, 2.5, 2}; highest-lowest > 5*step; factors = append(factors[1:], factors[0]) {
		step *= factors[0]
	}
	first := math.Floor(lowest/step + 1e-9)
	for i := first; len(list) < 2 || list[len(list)-1] < highest-step*1e-9; i++ {
		list = append(list, policy.Sig12(i*step))
	}
	return list
}

// extent returns the lowest and the highest value that the chart must show.
func (c chart) extent() (lowest, highest float64) {
	if c.Shape == policy.Lines && len(c.Values) > 0 && len(c.Labels) > 0 {
		lowest, highest = math.Inf(1), math.Inf(-1)
	}
	for label := range c.Labels {
		sum := 0.0
		for _, series := range c.Values {
			if c.Shape != policy.Stacked {
				sum = 0
			}
			sum += series[label]
			lowest, highest = min(lowest, sum), max(highest, sum)
		}
	}
	return lowest, highest
}

// labelled returns the number of labels along the x axis. There are fewer if they are long.
func (c chart) labelled() int {
	if len(c.Labels) > 0 && len(c.Labels[0]) > 5 {
		return min(len(c.Labels), 5)
	}
	return min(len(c.Labels), 7)
}
