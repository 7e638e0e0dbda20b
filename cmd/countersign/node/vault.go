package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/vault"
)

// openVault opens the vault, which encrypts personal data. Its key is separate from the signing
// key, because signing keys rotate, and the seed of a signing key in a hardware module cannot be
// read.
func (n *Node) openVault(ctx context.Context, d *setting.Ledger, development bool) error {
	text := d.DataKEK
	if text == "" && development {
		var err error
		if text, err = n.developmentKEK(ctx, d); err != nil {
			return err
		}
	}
	if text == "" {
		return n.withoutKEK(ctx, d) // requests that need the vault are then answered with 503
	}
	var err error
	if n.kek, err = setting.ParseKEK("DATA_KEK", text); err != nil {
		return err
	}
	if n.App.Vault, err = vault.Open(ctx, n.Ledger, n.kek); err != nil {
		return err
	}
	return n.heedErasures(ctx)
}

// heedErasures makes the vault refuse data keys that the checkpoint folder lists as erased. If a
// restored database still has such a key, it logs that the erasure must be repeated.
func (n *Node) heedErasures(ctx context.Context) error {
	folder := n.Checkpoints.Folder
	n.App.KeepErased = func(tenant, keyID string) error {
		return folder.KeepErased(n.Ledger.Base(), checkpoint.Erased{Tenant: tenant, KeyID: keyID})
	}
	erased, err := folder.Erased(n.Ledger.Base())
	if err != nil {
		return fmt.Errorf("read the erased data keys next to the checkpoints: %w", err)
	}
	var keys []vault.DataKeyOf
	for _, e := range erased {
		keys = append(keys, vault.DataKeyOf(e))
	}
	still, err := n.App.Vault.Refuse(ctx, keys)
	for _, k := range still {
		n.Log.Warn("this database is older than an erasure: the erased data key is not used; repeat the erasure", "tenant", k.Tenant, "command",
			"countersign erase --org "+k.Tenant+" --data-key "+k.KeyID)
	}
	return err
}

// developmentKEK returns the key in the data folder that encrypts data keys. The first start
// creates it. If the ledger already has data keys, developmentKEK creates none: a new key could
// not decrypt them.
func (n *Node) developmentKEK(ctx context.Context, d *setting.Ledger) (string, error) {
	text, err := setting.ReadSecret(filepath.Join(d.Dir(), "data.kek"))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	held, err := vault.HoldsKeys(ctx, n.Ledger)
	if err != nil {
		return "", err
	}
	if held {
		return "", errors.New("data.kek is missing in the data folder, and this ledger has data keys: restore the file, or set DATA_KEK to the key that wraps them")
	}
	return d.DevelopmentKey("data.kek")
}

// withoutKEK refuses a node with SIGNING_KEY and without DATA_KEK, if the ledger has data keys:
// the node could not decrypt personal data.
func (n *Node) withoutKEK(ctx context.Context, d *setting.Ledger) error {
	held, err := vault.HoldsKeys(ctx, n.Ledger)
	if err != nil || !held || d.SigningKey == "" {
		return err
	}
	return errors.New("DATA_KEK is not set, and this ledger has data keys: set DATA_KEK to the key that wraps them")
}
