// Package plot draws figures that are easier to read than numbers: the cash flows of a bond and the
// balance of a loan, the present value of cash flows by discount rate, the payoff of an option, the
// drawdown of a portfolio, the tiers of a waterfall. A figure is SVG inside of a page. The
// decisions of an organization by day are drawn with it, too.
//
// Every number in a service's figure comes from answers of a service. If one answer is not enough
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

// Figure is one picture.
type Figure struct {
	SVG     string // complete; it sets no colours except those of the series
	Caption string // one sentence about what the figure shows
}

// The size of a figure in its own units. A page scales it.
const width, height = 640, 300

// colours of the series can be distinguished on light and dark ground.
var colours = []string{"#2f7fd0", "#d9730d", "#2e9e6b", "#b5508f"}

// verdictColours are the colours of allowed, needs review, and denied.
var verdictColours = []string{"#2e9e6c", "#d9930d", "#d0453f"}

// chart has the data of a figure.
type chart struct {
	policy.Chart
	colours []string // of the series; nil: the default colours
	counts  bool     // values count things, so the axis has whole numbers only
	links   []string // addresses of the columns, one for each label or empty; nil: none
}

// The area of the columns and lines in a figure.
const left, right, top, bottom = 62.0, 620.0, 52.0, 262.0

// draw writes the chart as SVG for a page. The content policy of pages ignores style attributes, so
// everything is a presentation attribute. What does not belong to a series has the colour of the
// text, on light ground and on dark.
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
		role = "group" // an image may hold no links
	}
	s.add(`<svg class="plot" role="%s" aria-label="%s" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" fill="currentColor" font-size="15">`, role, html.EscapeString(c.Title), width, height)
	at := left
	for i := range c.Values {
		s.add(`<rect x="%s" y="16" width="18" height="12" fill="%s"/><text x="%s" y="27">%s</text>`, n(at), used[i], n(at+24), html.EscapeString(c.Names[i]))
		at += max(24+8*float64(utf8.RuneCountInString(c.Names[i]))+28, (right-left)/float64(len(c.Values))) // text is larger on a phone
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

// columns draws a column for each value: side by side, or stacked on those below.
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

// open writes the start tag of the columns of a label, with a text that browsers show under the
// pointer, and returns the end tag. The Tab key skips the link, because the table with the numbers
// has the same one.
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

// svg is a picture that is being written.
type svg struct{ strings.Builder }

func (s *svg) add(format string, values ...any) { fmt.Fprintf(s, format, values...) }

// n formats a coordinate to a tenth.
func n(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// short formats a number of the axis: 4.5M, 500k, 0.25.
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

// ticks returns the numbers of the axis, from at or below the lowest value to at or above the
// highest: 1, 2 or 5 times a power of ten apart, at most seven of them. Columns begin at zero.
// Counts have whole ticks.
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

// extent returns the lowest and the highest value of what is drawn.
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

// labelled returns how many labels are written along the x axis. Long labels need more room.
func (c chart) labelled() int {
	if len(c.Labels) > 0 && len(c.Labels[0]) > 5 {
		return min(len(c.Labels), 5)
	}
	return min(len(c.Labels), 7)
}
