package operate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/migrations"
)

// signerKEKCmd has the command that replaces the key that encrypts data keys.
type signerKEKCmd struct {
	Rotate signerRotateKEKCmd `cmd:"" help:"Encrypt every data key with a new key."`
}

type signerRotateKEKCmd struct {
	setting.Ledger
	Next string `help:"The new DATA_KEK, as 64 hex digits. It is not needed if the current key is in the data folder: then a new key is created there." env:"NEXT_DATA_KEK" name:"next-data-kek" secret:"" placeholder:"KEY"`
}

// newKEK is the file of the new key in the data folder. It is written before the data keys are
// encrypted with the new key, and replaces the old file afterwards. So a crash in between loses
// neither key.
const newKEK = "data.kek.new"

// Run encrypts all data keys with the new key.
func (c *signerRotateKEKCmd) Run(ctx context.Context, o *screen.Output) error {
	url, leave, err := node.Database(ctx, &c.Ledger, migrations.OwnerRole)
	if err != nil {
		return err
	}
	defer leave()
	old, next := c.DataKEK, c.Next
	kept := filepath.Join(c.Dir(), "data.kek")
	if c.Private() {
		if old, err = setting.ReadSecret(kept); err != nil {
			return fmt.Errorf("the current key, data.kek in the data folder: %w", err)
		}
		if next, err = setting.KeepSecret(filepath.Join(c.Dir(), newKEK), cmp.Or(next, setting.NewSecret())); err != nil {
			return err
		}
	}
	oldKey, err := setting.ParseKEK("DATA_KEK", old)
	if err != nil {
		return err
	}
	nextKey, err := setting.ParseKEK("NEXT_DATA_KEK", next)
	if err != nil {
		return err
	}
	n, err := vault.RotateKEK(ctx, url, oldKey, nextKey)
	if err != nil {
		return err
	}
	then := "set NEXT_DATA_KEK as DATA_KEK and start the nodes with it"
	if c.Private() {
		if err := os.Rename(filepath.Join(c.Dir(), newKEK), kept); err != nil {
			return err
		}
		then = "it is in the data folder"
	}
	return o.Result(map[string]int{"wrapped": n}, fmt.Sprintf("%d data keys are wrapped under the new key: %s. Older backups need the old key\n", n, then))
}
