// Package plot draws what people would rather look at than read: the cash flows of a
// bond and the balance of a loan, the present value of cash flows by discount rate,
// the payoff of an option, the drawdown of a portfolio, the tiers of a waterfall. A
// figure is SVG that stands in a page; a chart library makes it. The decisions of an
// organization by day are drawn with it, too.
//
// Every number of a service's figure comes from a service's own answers: where one answer is
// no curve, the service is asked again with other inputs.
package plot

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign/countersign/policy"
	"github.com/go-analyze/charts"
)

// Figure is one picture.
type Figure struct {
	SVG     string // complete, without colours of its own but those of the series
	Caption string // one sentence that says what is to be seen
}

// size of a figure in its own units; a page scales it.
const width, height = 640, 300

// colours of the series can be told apart on light and on dark ground.
var colours = []string{"#2f7fd0", "#d9730d", "#2e9e6b", "#b5508f"}

// verdictColours are those of what is allowed, needs a review and is denied.
var verdictColours = []string{"#2e9e6c", "#d9930d", "#d0453f"}

// chart is what is to be drawn.
type chart struct {
	policy.Chart
	colours []string // of the series; nil: the usual ones
	counts  bool     // values are numbers of things, so the axis names whole ones
}

func (c chart) draw() (Figure, error) {
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: width, Height: height})
	var err error
	if c.Shape == policy.Lines {
		o := charts.NewLineChartOptionWithData(c.Values)
		o.Theme = c.theme()
		o.Symbol.Shape = charts.SymbolNone
		o.Legend.SeriesNames, o.XAxis.Labels, o.XAxis.LabelCount = c.Names, c.Labels, c.labelled()
		err = p.LineChart(o)
	} else {
		o := charts.NewBarChartOptionWithData(c.Values)
		o.Theme = c.theme()
		o.StackSeries = charts.Ptr(c.Shape == policy.Stacked)
		o.Legend.SeriesNames, o.CategoryAxis.Labels, o.CategoryAxis.LabelCount = c.Names, c.Labels, c.labelled()
		if c.counts {
			o.ValueAxis[0].Min, o.ValueAxis[0].Max, o.ValueAxis[0].LabelCount = wholeAxis(c.highest())
		}
		err = p.BarChart(o)
	}
	if err != nil {
		return Figure{}, fmt.Errorf("draw %s: %w", c.Title, err)
	}
	text, err := p.Bytes()
	if err != nil {
		return Figure{}, fmt.Errorf("draw %s: %w", c.Title, err)
	}
	return Figure{SVG: inPage(string(text), c.Title), Caption: c.Caption}, nil
}

// highest is the highest column.
func (c chart) highest() (most float64) {
	for i := range c.Labels {
		sum := 0.0
		for _, series := range c.Values {
			sum += series[i]
		}
		most = max(most, sum)
	}
	return most
}

// wholeAxis is an axis from 0 to a number at or above most, with at most six labels
// that are whole numbers: 1, 2 or 5 times a power of ten apart.
func wholeAxis(most float64) (lowest, highest *float64, labels int) {
	step := 1.0
	for factors := []float64{2, 2.5, 2}; most > 5*step; factors = append(factors[1:], factors[0]) {
		step *= factors[0]
	}
	steps := max(1, math.Ceil(most/step))
	return charts.Ptr(0.0), charts.Ptr(steps * step), int(steps) + 1
}

// labelled is how many labels stand along the x axis: long ones need more room.
func (c chart) labelled() int {
	if len(c.Labels) > 0 && len(c.Labels[0]) > 5 {
		return min(len(c.Labels), 5)
	}
	return min(len(c.Labels), 7)
}

func (c chart) theme() charts.ColorPalette {
	used := colours
	if c.colours != nil {
		used = c.colours
	}
	series := make([]charts.Color, len(used))
	for i, hex := range used {
		series[i] = charts.ColorFromHex(hex)
	}
	return charts.GetTheme(charts.ThemeLight).WithBackgroundColor(charts.ColorTransparent).WithSeriesColors(series)
}

var styled = regexp.MustCompile(` style="([^"]*)"`)

// inPage makes of the library's picture one that stands in a page: a page's policy
// lets no style of an element count, so each becomes an attribute, and whatever is
// no series has the colour of the text, on light ground and on dark.
func inPage(svg, title string) string {
	svg = styled.ReplaceAllStringFunc(svg, func(m string) string {
		var out strings.Builder
		if !strings.Contains(m, "fill:") {
			out.WriteString(` fill="none"`) // else it would be black
		}
		for declaration := range strings.SplitSeq(styled.FindStringSubmatch(m)[1], ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(declaration), ":")
			if value = strings.TrimSpace(value); value == "" || name == "font-family" {
				continue
			}
			if value == "white" || value == "transparent" || strings.HasSuffix(value, ",0)") && strings.HasPrefix(value, "rgba") {
				value = "none" // the ground
			}
			if (name == "fill" || name == "stroke") && value != "none" && !isSeries(value) {
				value = "currentColor"
				if name == "stroke" {
					out.WriteString(` stroke-opacity="0.25"`)
				}
			}
			out.WriteString(" " + name + `="` + strings.ReplaceAll(value, `'`, "") + `"`)
		}
		return out.String()
	})
	return strings.Replace(svg, "<svg ", `<svg class="plot" role="img" aria-label="`+title+`" `, 1)
}

func isSeries(value string) bool {
	return slices.ContainsFunc(slices.Concat(colours, verdictColours), func(hex string) bool {
		c := charts.ColorFromHex(hex)
		return strings.HasPrefix(value, fmt.Sprintf("rgb(%d,%d,%d)", c.R, c.G, c.B)) || strings.HasPrefix(value, fmt.Sprintf("rgba(%d,%d,%d,", c.R, c.G, c.B))
	})
}
