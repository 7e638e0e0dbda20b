package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/countersign/countersign/ledger/bundle"
)

func sampleOf(t *testing.T, files map[string][]byte, n int, nonce string) bundle.Sample {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, files)
	b := must(bundle.Open(t.Context(), folder, nil))
	defer b.Close()
	return must(b.Sample(t.Context(), n, nonce))
}

// The auditor's nonce alone determines a sample of the decisions that the bundle shows. Anybody
// can draw it again with SHA-256.
func TestASampleIsDrawnByTheNonce(t *testing.T) {
	history := slices.Repeat([]drawnEvent{{"decision", "deny", "k", 0, ""}, {"decision", "deny", "j", 0, ""}, {"receipt", "violation", "k", 0, ""}}, 200)
	files := told{history: history, filters: bundle.Filters{Agent: "a-k", Decision: "deny", From: onTheDay("15:00:02"), To: onTheDay("15:09:00")}}.draw()
	drawn := func(s bundle.Sample) map[int64]bundle.Drawn {
		list := map[int64]bundle.Drawn{}
		for _, d := range s.Drawn {
			list[d.Sequence] = d
		}
		return list
	}
	five, forty, others := sampleOf(t, files, 5, "dice 6 1 5"), drawn(sampleOf(t, files, 40, "dice 6 1 5")), drawn(sampleOf(t, files, 5, "dice 2 4 4"))
	if five.Of != 179 || len(five.Drawn) != 5 || len(forty) != 40 {
		t.Fatalf("%+v, and %d", five, len(forty))
	}
	for sequence, d := range drawn(five) {
		if _, has := forty[sequence]; !has {
			t.Errorf("the larger sample does not have %d", sequence)
		}
		if want := fmt.Sprint("asd_", sequence-1); d.DecisionID != want || d.Series != "decision/deny" || d.Number != (sequence-1)/3+1 {
			t.Errorf("%+v", d)
		}
	}
	if maps.Equal(drawn(five), others) {
		t.Error("two nonces draw the same")
	}
	var ranks [][]byte // ranks of the events with the numbers 2 to 180 (every third event), computed by this test
	for sequence := int64(4); sequence <= 540; sequence += 3 {
		sum := sha256.Sum256(fmt.Appendf(nil, "dice 6 1 5\n%d", sequence))
		ranks = append(ranks, sum[:])
	}
	slices.SortFunc(ranks, bytes.Compare)
	for sequence := range drawn(five) {
		if sum := sha256.Sum256(fmt.Appendf(nil, "dice 6 1 5\n%d", sequence)); bytes.Compare(sum[:], ranks[4]) > 0 {
			t.Errorf("%d is not one of the five smallest", sequence)
		}
	}
	if all := sampleOf(t, files, 1000, "x"); len(all.Drawn) != 179 || !slices.IsSortedFunc(all.Drawn, func(a, b bundle.Drawn) int { return int(a.Position - b.Position) }) {
		t.Errorf("more than there are: %d", len(all.Drawn))
	}
	if whole := sampleOf(t, draw(), 3, "x"); len(whole.Drawn) != 1 || whole.Drawn[0].Number != 1 {
		t.Errorf("of a history: %+v", whole)
	}
}
