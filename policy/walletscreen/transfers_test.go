package walletscreen

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy"
)

// passThrough finds the same pairs as a direct implementation of its definition.
func TestPassThroughIsAsDefined(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		moves := make([]movement, rapid.IntRange(0, 12).Draw(t, "n"))
		for i := range moves {
			moves[i] = movement{Transfer: Transfer{Direction: rapid.SampledFrom([]string{"incoming", "outgoing"}).Draw(t, "direction"),
				AmountUSD: rapid.SampledFrom([]float64{0, 89, 90, 95, 100, 101}).Draw(t, "amount")},
				at: start.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "at")) * 30 * time.Minute), index: i}
		}
		slices.SortStableFunc(moves, func(a, b movement) int { return a.at.Compare(b.at) })
		used, pairs := map[int]bool{}, 0
		for _, a := range moves {
			if a.Direction != "incoming" || a.AmountUSD == 0 {
				continue
			}
			for j, b := range moves {
				if b.Direction == "outgoing" && !used[j] && !b.at.Before(a.at) && b.at.Sub(a.at) <= passThroughTime &&
					b.AmountUSD <= a.AmountUSD && b.AmountUSD >= policy.Sig12(passThroughShare*a.AmountUSD) {
					used[j] = true
					pairs++
					break
				}
			}
		}
		if found, _ := passThrough(moves); found != (pairs >= passThroughPairs) {
			t.Fatalf("found %v, and the definition makes %d pairs of %+v", found, pairs, moves)
		}
	})
}

// The number of comparisons stays below a limit for all kinds of transfers. For 2,000 transfers,
// as many comparisons as the limit allows take about a millisecond.
func TestPassThroughComparesLittle(t *testing.T) {
	const most = 2000
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, direction := range map[string]func(i int) string{
		"all come in":   func(int) string { return "incoming" },
		"all go out":    func(int) string { return "outgoing" },
		"half and half": func(i int) string { return []string{"incoming", "outgoing"}[i%2] },
	} {
		moves := make([]movement, most)
		for i := range moves {
			moves[i] = movement{Transfer: Transfer{Direction: direction(i), AmountUSD: 100, Counterparty: fmt.Sprint(i)}, at: now, index: i}
			if moves[i].Direction == "outgoing" {
				moves[i].AmountUSD = 1
			}
		}
		if _, compared := passThrough(moves); compared > most*most/4 {
			t.Errorf("%s: %d pairs are compared", name, compared)
		}
	}
}
