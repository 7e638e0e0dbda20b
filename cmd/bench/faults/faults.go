//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// ErrSkipped is the error of a row that cannot run on this machine. The text contains the reason.
var ErrSkipped = errors.New("skipped")

// Result is the result of one round.
type Result struct {
	Row          string
	Seed         uint64
	Acknowledged int           // number of calls whose answers the journal contains
	Refused      int           // number of 503 answers and cut connections, after which clients repeated the call
	Back         time.Duration // time from the end of the fault until every kind of call had been answered once
	Err          error         // the promise that was broken, or ErrSkipped if the row was not run; nil if every promise was kept
}

// Run runs the rows and prints a line for each. It returns an error if a row broke a promise to a
// client.
func Run(ctx context.Context, o Options) error {
	rows := slices.DeleteFunc(slices.Clone(Table), func(r Row) bool { return len(o.Rows) > 0 && !slices.Contains(o.Rows, r.Name) })
	if len(rows) == 0 {
		return fmt.Errorf("no row has this name; the rows are %s", strings.Join(names(), ", "))
	}
	var err error
	if o.scratch, err = scratchFolder("countersign-faults-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.scratch)
	var broken error
	fmt.Fprintf(o.Out, "%-28s %7s %14s %10s %12s  %s\n", "fault", "seeds", "acknowledged", "asked again", "back after", "held")
	for _, row := range rows {
		for _, r := range releases[row.Name] {
			if _, err := o.built(ctx, r); err != nil {
				return err
			}
		}
		var results []Result
		for i := range max(o.Seeds, 1) {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := o.round(ctx, row, o.First+uint64(i))
			results = append(results, r)
			if errors.Is(r.Err, ErrSkipped) {
				break
			}
			if r.Err != nil {
				broken = errors.Join(broken, fmt.Errorf("%s, seed %d: %w", row.Name, r.Seed, r.Err))
				fmt.Fprintf(o.Log, "faults: %s, seed %d: %v\n", row.Name, r.Seed, r.Err)
			}
		}
		fmt.Fprintln(o.Out, line(row, results))
	}
	return broken
}

// line returns the summary of the rounds of a row.
func line(row Row, results []Result) string {
	var acknowledged, refused, held int
	var back time.Duration
	for _, r := range results {
		if errors.Is(r.Err, ErrSkipped) {
			return fmt.Sprintf("%-28s %s", row.Name, r.Err)
		}
		acknowledged, refused, back = acknowledged+r.Acknowledged, refused+r.Refused, max(back, r.Back)
		if r.Err == nil {
			held++
		}
	}
	return fmt.Sprintf("%-28s %7d %14d %10d %12s  %d of %d", row.Name, len(results), acknowledged, refused, back.Round(10*time.Millisecond), held, len(results))
}

func names() (all []string) {
	for _, r := range Table {
		all = append(all, r.Name)
	}
	return all
}

// scratchFolder creates a folder that the system user of PostgreSQL can enter.
func scratchFolder(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// round runs one row with one seed on a new ledger, and then checks the promises to the clients.
func (o *Options) round(ctx context.Context, row Row, seed uint64) (r Result) {
	r = Result{Row: row.Name, Seed: seed}
	fmt.Fprintf(o.Log, "faults: %s, seed %d\n", row.Name, seed)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a round that does not end counts as failed
	defer cancel()
	w, err := newWorld(o, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		r.Err = err
		return r
	}
	defer w.close()
	if r.Err = row.run(ctx, w); r.Err == nil {
		r.Err = w.check(ctx)
	}
	r.Acknowledged, r.Refused, r.Back = w.journal.len(), int(w.refused.Load()), w.back
	if r.Err != nil && !errors.Is(r.Err, ErrSkipped) {
		r.Err = errors.Join(r.Err, w.said())
	}
	return r
}
