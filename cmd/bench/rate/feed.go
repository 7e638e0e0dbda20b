package rate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Feed measures the delay from the answer to a decision until the read model contains it.
type Feed struct {
	During  time.Duration `help:"Length of each run." default:"5s"`
	Callers []int         `help:"Numbers of callers in addition to the one whose decisions are timed." default:"0,8,32"`
}

// Run prints one line for each number of callers: the time from the answer to a decision until the
// table of the history has its row. It makes no query through the service meanwhile, because the
// reader of events works faster while a query waits for it.
func (c *Feed) Run(ctx context.Context) error {
	service, token, err := rig.StartOrganization(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Printf("%-14s %14s %28s\n", "other callers", "decisions/s", "in the history p50/p99 ms")
	for _, callers := range c.Callers {
		var others rig.Sample
		var failed error
		var group sync.WaitGroup
		if callers > 0 {
			group.Go(func() { others, failed = service.Decide(token, callers, 100, c.During+time.Second) })
		}
		delays, err := delays(ctx, service, token, c.During)
		group.Wait()
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		fmt.Printf("%-14d %14.0f %28s\n", callers, others.PerSecond, delays.P50P99())
	}
	return rig.Check(ctx, service.Scratch)
}

const (
	lookEvery = 500 * time.Microsecond // interval at which the table is polled
	atRandom  = 30 * time.Millisecond  // longest random pause before a decision, so that decisions are not in step with the reader's polling
)

// delays requests decisions one after the other. After each it polls the table of the history
// until the table contains the decision.
func delays(ctx context.Context, b *rig.Service, token string, during time.Duration) (rig.Sample, error) {
	c, err := b.Client()
	if err != nil {
		return rig.Sample{}, err
	}
	defer c.Close()
	reader, err := pgx.Connect(ctx, b.Scratch.App)
	if err != nil {
		return rig.Sample{}, err
	}
	defer reader.Close(ctx)
	var delays rig.Sample
	run := time.Now()
	for n := 0; time.Since(run) < during; n++ {
		time.Sleep(rand.N(atRandom))
		answer, err := c.Decision(token, fmt.Sprintf("delay-%d-%d", run.UnixNano(), n), "")
		if err != nil {
			return rig.Sample{}, err
		}
		answered := time.Now()
		var envelope struct {
			Record struct {
				DecisionID string `json:"decisionId"`
			} `json:"record"`
		}
		if err := json.Unmarshal(answer, &envelope); err != nil || envelope.Record.DecisionID == "" {
			return rig.Sample{}, fmt.Errorf("no decision in the answer: %w", err)
		}
		for there := false; !there; {
			if err := reader.QueryRow(ctx, `select exists (select from readmodels.history where decision_id = $1)`, envelope.Record.DecisionID).Scan(&there); err != nil {
				return rig.Sample{}, err
			}
			if !there {
				time.Sleep(lookEvery)
			}
		}
		delays.Latencies = append(delays.Latencies, time.Since(answered))
	}
	slices.Sort(delays.Latencies)
	return delays, nil
}
