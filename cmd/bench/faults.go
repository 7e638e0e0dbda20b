package main

import (
	"context"
	"os"

	"github.com/countersign/countersign/cmd/bench/faults"
	"github.com/countersign/countersign/cmd/bench/rig"
)

// faultsCmd breaks a running service in each way that the table of faults lists.
type faultsCmd struct {
	rig.Built
	Rows       []string `arg:"" optional:"" help:"Rows to run; default: all."`
	Seeds      int      `help:"Number of rounds of each row." default:"10"`
	First      uint64   `help:"Seed of the first round; each further round adds one." default:"1"`
	Partitions int      `help:"Number of partitions per ledger. 0 means one partition." placeholder:"N"`
	Calls      int      `help:"Number of calls of each kind that must be acknowledged before and after each fault." default:"20"`
}

// Run prints a line for each row.
func (c *faultsCmd) Run(ctx context.Context) error {
	source, err := os.Getwd()
	if err != nil {
		return err
	}
	return c.With(ctx, func(program string) error {
		return faults.Run(ctx, faults.Options{Program: program, Source: source, Rows: c.Rows, Seeds: c.Seeds, First: c.First, Calls: c.Calls, Partitions: c.Partitions,
			Out: os.Stdout, Log: os.Stderr})
	})
}
