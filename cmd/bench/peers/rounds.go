package main

import (
	"fmt"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// contestant is one of the operations that are compared.
type contestant struct {
	name string
	load func(callers int, during time.Duration) (rig.Sample, error)
}

// rounds measures all contestants in turn, as often as runs says, and returns the median run of
// each. The turns make all of them suffer alike when the machine becomes slower.
func rounds(s *rig.Scratch, list []contestant, runs, callers int, during time.Duration) ([]rig.Sample, error) {
	samples := make([][]rig.Sample, len(list))
	for range runs {
		for i, c := range list {
			var sample rig.Sample
			used, err := s.Spent(func() (err error) {
				sample, err = c.load(callers, during)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%s, %d callers: %w", c.name, callers, err)
			}
			if sample.Used == (rig.CPU{}) { // the contestant has not measured its processor time itself
				sample.Used = used
			}
			samples[i] = append(samples[i], sample)
		}
	}
	medians := make([]rig.Sample, len(list))
	for i := range samples {
		medians[i] = rig.Median(samples[i])
	}
	return medians, nil
}

const heading = "in flight  %-42s %9s %9s %18s %24s\n"

func printHeading() {
	fmt.Printf(heading, "", "/s", "of first", "p50 / p99 ms", "us of program + database")
}

// printLines prints a line for each contestant. The first one is the anchor of the ratios.
func printLines(list []contestant, medians []rig.Sample, callers int) {
	for i, m := range medians {
		fmt.Printf("%-10d %-42s %9.0f %9.2f %18s %24s\n", callers, list[i].name, m.PerSecond, m.PerSecond/medians[0].PerSecond,
			m.P50P99(), m.Used.Per(len(m.Latencies)))
	}
}
