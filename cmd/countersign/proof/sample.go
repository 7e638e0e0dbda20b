package proof

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger/bundle"
)

// checkSample checks --sample and --nonce.
func (c *Verify) checkSample() error {
	control := strings.ContainsFunc(c.Nonce, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar })
	switch {
	case c.Sample == 0 && c.Nonce == "":
		return nil
	case c.Sample < 1 || c.Sample > bundle.MaxSample:
		return fmt.Errorf("--sample, the number of decisions to draw, must be 1 to %d", bundle.MaxSample)
	case c.Nonce == "" || control:
		return errors.New("--nonce must be a text of your own without control characters: it decides which decisions --sample draws")
	case len(c.Files) != 1:
		return errors.New("--sample: name one export, whose decisions are drawn")
	}
	return nil
}

// sampled is the answer about an export from which decisions were drawn.
type sampled struct {
	bundle.Result
	Sample bundle.Sample `json:"sample"`
}

// sample prints the decisions that the nonce selects from a valid export.
func (c *Verify) sample(ctx context.Context, o *screen.Output, opened *bundle.Bundle, result bundle.Result, text string) error {
	drawn, err := opened.Sample(ctx, c.Sample, c.Nonce)
	if err != nil {
		return err
	}
	text += fmt.Sprintf("SAMPLE      %d of %d decisions, which the nonce has drawn:\n", len(drawn.Drawn), drawn.Of)
	for _, d := range drawn.Drawn {
		text += fmt.Sprintf("            sequence %d  %s %d  %s\n", d.Sequence, d.Series, d.Number, d.DecisionID)
	}
	return answer(o, sampled{result, drawn}, text, true)
}
