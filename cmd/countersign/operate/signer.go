package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
)

// Signer has the commands that list and rotate signing keys.
type Signer struct {
	List   signerListCmd   `cmd:"" help:"List the ledger's signing keys with purpose and the positions where each is valid."`
	Rotate signerRotateCmd `cmd:"" help:"Activate a new key and retire the old one, in an event that both keys sign."`
	KEK    signerKEKCmd    `cmd:"" name:"kek" help:"Rotate the key that encrypts the data keys (DATA_KEK)."`
}

type signerListCmd struct{ setting.Ledger }

// listedKey is one line of the output of "countersign signer list".
type listedKey struct {
	Partition int16  `json:"partition,omitzero"` // left out for partition 0
	KeyID     string `json:"keyId"`
	Purpose   string `json:"purpose"`
	From      int64  `json:"fromPosition"`
	To        int64  `json:"toPosition"`       // 0 means active
	Void      int64  `json:"voidFromPosition"` // 0 means that all its signatures are valid
}

// Run prints the keys in the order of their activation.
func (c *signerListCmd) Run(ctx context.Context, o *screen.Output) error {
	c.Unsigned = true
	n, err := node.Start(ctx, &c.Ledger, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	rings, err := n.Ledger.Keyrings(ctx)
	if err != nil {
		return err
	}
	keys := []listedKey{}
	for p, ring := range rings {
		for _, k := range ring {
			keys = append(keys, listedKey{int16(p), k.ID, k.Purpose, k.From, k.To, k.Void})
		}
	}
	slices.SortFunc(keys, func(a, b listedKey) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.From, b.From))
	})
	rows := screen.Table{Heads: []string{"key", "purpose", "from", "state"}}
	for _, k := range keys {
		state := "active"
		if k.To > 0 {
			state = fmt.Sprintf("to %d", k.To)
		}
		if k.Void > 0 {
			state += fmt.Sprintf(", compromised from %d", k.Void)
		}
		from := fmt.Sprint(k.From)
		if len(rings) > 1 {
			from = fmt.Sprintf("%d of partition %d", k.From, k.Partition)
		}
		rows.Add(k.KeyID, k.Purpose, from, state)
	}
	return o.Result(keys, o.Table(rows))
}

type signerRotateCmd struct {
	setting.Ledger
	Purpose         string  `help:"Purpose of the key: record or checkpoint." enum:"record,checkpoint" default:"record"`
	CompromisedFrom []int64 `help:"Position from which signatures of the old key are void, because the key was compromised. If the ledger has several partitions, one position for each, in order." name:"compromised-from" placeholder:"POSITION"`
}

// Run rotates a key. Nodes with NEXT_SIGNING_KEY switch to the new key at once. Until they are
// restarted with it, other nodes answer 503 (SIGNING_KEY) or sign no checkpoints (CHECKPOINT_KEY).
func (c *signerRotateCmd) Run(ctx context.Context, o *screen.Output) error {
	if c.NextKey == "" {
		return errors.New("NEXT_SIGNING_KEY is not set: set it to the new key, or use --next-signing-key")
	}
	next, err := setting.ParseSigner(c.NextKey)
	if err != nil {
		return fmt.Errorf("NEXT_SIGNING_KEY: %w", err)
	}
	n, err := node.Start(ctx, &c.Ledger, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	from := n.App.Signer
	if c.Purpose == ledger.PurposeCheckpoint {
		from = n.Checkpoints.Signer
	}
	if from == nil {
		return errors.New("the key to replace is not set: it must sign the activation of the next key")
	}
	err = n.Ledger.Rotate(ctx, ledger.Rotation{Purpose: c.Purpose, From: from, To: next, CompromisedFrom: c.CompromisedFrom, Actor: "operator",
		EventIDs: [2]string{"evt_" + ulid.Make().String(), "evt_" + ulid.Make().String()}})
	if err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	setting := map[string]string{ledger.PurposeRecord: "SIGNING_KEY", ledger.PurposeCheckpoint: "CHECKPOINT_KEY"}[c.Purpose]
	return o.Made(map[string]string{"retired": from.KeyID(), "active": next.KeyID()}, next.KeyID(),
		fmt.Sprintf("%s was retired, and %s signs from now on: set %[3]s to the new key and restart the nodes", from.KeyID(), next.KeyID(), setting))
}
