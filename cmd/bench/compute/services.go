package compute

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/policy/bond"
	"github.com/countersign/countersign/policy/canon"
	"github.com/countersign/countersign/policy/cashflow"
	"github.com/countersign/countersign/policy/mcprisk"
	"github.com/countersign/countersign/policy/options"
)

// Services measures the computation of every service without HTTP, database and signatures: from
// the bytes of a request to the bytes of the answer, including the hashes.
type Services struct {
	During time.Duration `help:"How long each line is measured." default:"500ms"`
	Worst  bool          `help:"Instead, send the most expensive large bodies to every operation over HTTP, and print processor time per MB."`
	Only   string        `help:"With --worst: only operations whose id contains this text."`
	Body   string        `help:"With --worst: only bodies whose name contains this text."`

	Profile string `help:"With --worst: write a CPU profile to this file." type:"path"`
}

// heavy has inputs at the limits of the contract, each with a time limit for its computation. The
// limit does not include reading the request and writing the answer.
var heavy = []struct {
	name    string
	most    time.Duration
	compute func() (func() error, error)
}{
	{"2,000 dated flows, all roots", 50 * time.Millisecond, computation(cashflow.Evaluate, datedFlows())},
	{"loan of 600 months", time.Millisecond, computation(bond.Evaluate,
		`{"principal":350000,"annualRate":0.06493827,"termMonths":600,"upfrontFees":4200}`)},
	{"European option", 20 * time.Microsecond, computation(options.Evaluate,
		`{"optionType":"call","spot":100,"strike":95,"timeToExpiryYears":0.5,"riskFreeRate":0.03,"dividendYield":0.01,"volatility":0.25}`)},
	{"manifest of 500 tools", 50 * time.Millisecond, computation(mcprisk.Evaluate, manifest())},
}

// computation parses a request once and returns the function to measure, which evaluates it.
func computation[I, O any](evaluate func(I) (O, error), body string) func() (func() error, error) {
	return func() (func() error, error) {
		var in I
		if err := canon.Decode([]byte(body), &in); err != nil {
			return nil, err
		}
		return func() error {
			_, err := evaluate(in)
			return err
		}, nil
	}
}

// Run prints one line for the example of each service and for each heavy input. With --worst it
// searches for the most expensive bodies instead.
func (c *Services) Run(ctx context.Context) error {
	if c.Worst {
		return c.worst(ctx)
	}
	fmt.Printf("%-34s %10s %10s %10s\n", "service", "p50", "p99", "at most")
	for _, s := range services.List() {
		call := func() error {
			_, err := s.Evaluate([]byte(s.Example))
			return err
		}
		if err := c.line(s.Name, call, 0); err != nil {
			return err
		}
	}
	for _, h := range heavy {
		compute, err := h.compute()
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		if err := c.line(h.name, compute, h.most); err != nil {
			return err
		}
	}
	return nil
}

func (c *Services) line(name string, call func() error, most time.Duration) error {
	var times []time.Duration
	for began := time.Now(); time.Since(began) < c.During || len(times) < 3; {
		start := time.Now()
		if err := call(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	runs := rig.Sample{Latencies: times}
	limit := ""
	if most > 0 {
		limit = most.String()
	}
	fmt.Printf("%-34s %10s %10s %10s\n", name, round(runs.Quantile(.5)), round(runs.Quantile(.99)), limit)
	return nil
}

func round(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

// datedFlows returns an investment and 1,999 daily flows that change sign several times, so that
// the rate of return has several solutions.
func datedFlows() string {
	var b strings.Builder
	b.WriteString(`{"discountRate":0.08,"cashFlows":[`)
	for i, day := 0, time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC); i < 2000; i, day = i+1, day.AddDate(0, 0, 1) {
		amount := 120 + 7*(i%11)
		switch {
		case i == 0:
			amount = -150_000
		case i%97 == 0:
			amount = -2500
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"date":%q,"amount":%d}`, day.Format(time.DateOnly), amount)
	}
	b.WriteString(`]}`)
	return b.String()
}

// manifest returns the manifest of an MCP server with 500 ordinary tools.
func manifest() string {
	var b strings.Builder
	b.WriteString(`{"manifest":{"name":"files","version":"1.4.2","tools":[`)
	for i := range 500 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"list_reports_%d","description":"Lists the reports of department %d, newest first, with title, author and date.","inputSchema":{"type":"object","properties":{"limit":{"type":"integer","minimum":1,"maximum":100,"description":"How many."},"query":{"type":"string","maxLength":200,"description":"Words of the title."}},"additionalProperties":false}}`, i, i)
	}
	b.WriteString(`]}}`)
	return b.String()
}
