// Package compute measures the processor time of the gate's engine, of each service, and of the
// guard of a coding agent.
package compute

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/policy/actionrisk"
)

// Gate measures the gate's engine without the service around it.
type Gate struct {
	Corpus string `help:"File of JSON lines with command, category and expect {minRisk, maxRisk}; default: the examples of the rules." placeholder:"FILE"`
	Rounds int    `help:"How often each command is judged." default:"20"`
	Filled bool   `help:"Also judge texts of 2,000 characters that repeat one of the commands."`
}

// example is one command with the expected result: one line of a corpus file, or an example of a
// rule.
type example struct {
	Command  string `json:"command"`
	Category string `json:"category"`
	Source   string `json:"source"`
	Expect   struct {
		MinRisk string `json:"minRisk"`
		MaxRisk string `json:"maxRisk"`
	} `json:"expect"`
}

// Run prints the time that the engine needs per command. For a corpus it also prints how many
// commands of each source and category the engine stopped.
func (c *Gate) Run(context.Context) error {
	examples, err := c.examples()
	if err != nil {
		return err
	}
	actionrisk.Assess(actionrisk.Action{Command: "ls"}) // the first call reads the engine's tables
	c.measure("commands", examples)
	if c.Filled {
		c.measure("filled texts", filled(examples))
	}
	table(examples)
	return nil
}

// measure prints percentiles of the engine's time per command, and the command that took longest.
// Of several rounds the fastest counts.
func (c *Gate) measure(what string, examples []example) {
	times := make([]time.Duration, 0, len(examples))
	var worst time.Duration
	slowest := ""
	for _, e := range examples {
		best := time.Duration(1 << 62)
		for range c.Rounds {
			began := time.Now()
			actionrisk.Assess(actionrisk.Action{Command: e.Command})
			best = min(best, time.Since(began))
		}
		if best > worst {
			worst, slowest = best, e.Command
		}
		times = append(times, best)
	}
	slices.Sort(times)
	all := rig.Sample{Latencies: times}
	fmt.Printf("%d %s, best of %d rounds each: p50 %s, p99 %s, max %s (%.60q)\n", len(examples), what, c.Rounds,
		all.Quantile(.5), all.Quantile(.99), worst, slowest)
}

// filled repeats each command until the text reaches the 2,000 characters that the quick gate
// accepts: once with one repetition per line, once with all repetitions in one line.
func filled(examples []example) []example {
	const longest = 2000
	var out []example
	for _, e := range examples {
		for _, end := range []string{"\n", " "} {
			one := e.Command + end
			if n := longest / utf8.RuneCountInString(one); n > 1 {
				out = append(out, example{Command: strings.TrimSpace(strings.Repeat(one, n))})
			}
		}
	}
	return out
}

func (c *Gate) examples() ([]example, error) {
	var examples []example
	if c.Corpus == "" {
		for _, rule := range actionrisk.Rules() {
			for _, command := range rule.Yes {
				examples = append(examples, example{Command: command, Category: rule.ID})
			}
			for _, command := range rule.No {
				examples = append(examples, example{Command: command, Category: rule.ID})
			}
		}
		return examples, nil
	}
	f, err := os.Open(c.Corpus)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e example
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Corpus, err)
		}
		examples = append(examples, e)
	}
	return examples, lines.Err()
}

// table prints for each source and category how many of the commands that must be stopped the
// engine stopped, and how many of the others it stopped wrongly.
func table(examples []example) {
	type counts struct{ block, stopped, allow, falseStops int }
	byName := map[string]*counts{}
	count := func(name string, must, stopped bool) {
		if byName[name] == nil {
			byName[name] = &counts{}
		}
		n := byName[name]
		switch {
		case must && stopped:
			n.block, n.stopped = n.block+1, n.stopped+1
		case must:
			n.block++
		case stopped:
			n.allow, n.falseStops = n.allow+1, n.falseStops+1
		default:
			n.allow++
		}
	}
	for _, e := range examples {
		if e.Expect.MinRisk == "" {
			continue
		}
		must := e.Expect.MinRisk == "high" || e.Expect.MinRisk == "critical"
		stopped := actionrisk.Assess(actionrisk.Action{Command: e.Command}).RequiresApproval
		count(e.Source, must, stopped)
		count(e.Category, must, stopped)
	}
	if len(byName) == 0 {
		return
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Printf("%-40s %6s %8s %6s %12s\n", "category", "block", "stopped", "allow", "false stops")
	for _, name := range names {
		n := byName[name]
		fmt.Printf("%-40s %6d %7.1f%% %6d %11.1f%%\n", name, n.block, percent(n.stopped, n.block), n.allow, percent(n.falseStops, n.allow))
	}
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
