package node

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger/vault"
)

// openVault opens the vault, which encrypts personal members. It needs a separate key, because
// a signing key rotates, and a signing key in a hardware module has no seed.
func (n *Node) openVault(ctx context.Context, d *setting.Ledger, development bool) error {
	text := d.DataKEK
	if text == "" && development {
		var err error
		if text, err = n.developmentKEK(ctx, d); err != nil {
			return err
		}
	}
	if text == "" {
		return n.withoutKEK(ctx, d) // requests that need the vault get 503
	}
	var err error
	if n.kek, err = setting.ParseKEK("DATA_KEK", text); err != nil {
		return err
	}
	n.App.Vault, err = vault.Open(ctx, n.Ledger, n.kek)
	return err
}

// developmentKEK returns the key in the data folder, which the first start creates. It creates
// none if the ledger already has data keys, because these are wrapped under a key that is
// missing.
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

// withoutKEK refuses a node that signs without DATA_KEK if the ledger has data keys: the node
// could not read the encrypted members.
func (n *Node) withoutKEK(ctx context.Context, d *setting.Ledger) error {
	held, err := vault.HoldsKeys(ctx, n.Ledger)
	if err != nil || !held || d.SigningKey == "" {
		return err
	}
	return errors.New("DATA_KEK is not set, and this ledger has data keys: set DATA_KEK to the key that wraps them")
}
