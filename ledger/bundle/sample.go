package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign/countersign/ledger/events"
)

// MaxSample is the largest number of decisions that Sample draws.
const MaxSample = 10_000

// Sample is a random sample of the decisions that a bundle shows. The auditor's nonce alone
// determines it: it has the decisions whose SHA-256(nonce ‖ line feed ‖ sequence in decimal) is
// smallest. So another program draws the same ones, and a larger sample contains a smaller one. The
// service cannot know which decisions are drawn as long as it does not know the nonce.
type Sample struct {
	Nonce string  `json:"nonce"`
	Of    int64   `json:"of"` // decisions that the bundle shows
	Drawn []Drawn `json:"drawn"`
}

// Drawn is a decision of a sample. Number is its number in the series of its outcome: of the agent,
// if the bundle is a selection of one agent, else of the tenant.
type Drawn struct {
	Sequence   int64  `json:"sequence"`
	Position   int64  `json:"position"`
	DecisionID string `json:"decisionId"`
	Series     string `json:"series"`
	Number     int64  `json:"number"`

	rank [sha256.Size]byte
}

// Sample draws n decisions of a verified bundle, or all of them if it shows fewer. They are in the
// order of the ledger.
func (b *Bundle) Sample(ctx context.Context, n int, nonce string) (s Sample, err error) {
	m, err := b.Manifest()
	if err != nil {
		return s, err
	}
	s.Nonce = nonce
	agent := "" // the agent of a selection of one agent
	if m.Selection != nil {
		agent = m.Selection.Agent
	}
	smallest := func() {
		slices.SortFunc(s.Drawn, func(a, b Drawn) int { return bytes.Compare(a.rank[:], b.rank[:]) })
		s.Drawn = s.Drawn[:min(n, len(s.Drawn))]
	}
	for e, err := range b.Events(ctx) {
		if err != nil {
			return s, err
		}
		if e.Type != events.TypeDecisionRecorded {
			continue
		}
		s.Of++
		number, _ := e.Number(agent)
		drawn := Drawn{Sequence: e.Sequence, Position: e.Position, DecisionID: strings.TrimPrefix(e.Stream, "decision/"), Series: e.Series, Number: number,
			rank: sha256.Sum256(fmt.Appendf(nil, "%s\n%d", nonce, e.Sequence))}
		if s.Drawn = append(s.Drawn, drawn); len(s.Drawn) >= 2*n+100 { // bounds the memory
			smallest()
		}
	}
	smallest()
	slices.SortFunc(s.Drawn, func(a, b Drawn) int { return cmp.Compare(a.Position, b.Position) })
	return s, nil
}
