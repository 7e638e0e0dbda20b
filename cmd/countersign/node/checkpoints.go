package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/timestamp"
)

// Checkpoints returns the key that signs tree heads, and the stores for them. Without
// CHECKPOINT_KEY the signer is nil; if development is true, a key is created in the data folder.
func Checkpoints(d *setting.Ledger, development bool) (keeper.Options, error) {
	c := keeper.Options{Folder: checkpoint.Folder{Path: d.CheckpointDir}}
	if d.CheckpointDir == "" {
		c.Folder.Path = filepath.Join(d.Dir(), "checkpoints")
	}
	if strings.Contains(d.CheckpointDir, "://") {
		return c, errors.New("CHECKPOINT_DIR must be a folder; stores on other machines belong in CHECKPOINT_MIRRORS")
	}
	for _, place := range d.CheckpointMirrors {
		store, err := checkpoint.ParseStore(place, os.Getenv)
		if err != nil {
			return c, fmt.Errorf("CHECKPOINT_MIRRORS: %w", err)
		}
		c.Mirrors = append(c.Mirrors, store)
	}
	for _, text := range d.Witnesses {
		witness, err := checkpoint.ParseWitness(text)
		if err != nil {
			return c, fmt.Errorf("WITNESSES: %w", err)
		}
		c.Witnesses = append(c.Witnesses, witness)
	}
	if d.TimestampURL != "" {
		u, err := url.Parse(d.TimestampURL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return c, errors.New("TIMESTAMP_URL must be an http or https URL")
		}
		c.Authority = &timestamp.Authority{URL: d.TimestampURL}
	}
	var err error
	c.Signer, err = d.KeyFor("CHECKPOINT_KEY", d.CheckpointKey, "checkpoint.key", development)
	return c, err
}

// missing returns the name of a setting that has no effect without CHECKPOINT_KEY, if that key is
// missing. It returns "" if there is no such setting.
func missing(d *setting.Ledger, signer *seal.Signer) string {
	switch {
	case signer != nil:
		return ""
	case d.CheckpointDir != "":
		return "CHECKPOINT_DIR"
	case len(d.CheckpointMirrors) > 0:
		return "CHECKPOINT_MIRRORS"
	case len(d.Witnesses) > 0:
		return "WITNESSES"
	case d.TimestampURL != "":
		return "TIMESTAMP_URL"
	}
	return ""
}

// checkpointSettings refuses to serve if a setting for checkpoints is set without a key that signs
// them.
func (n *Node) checkpointSettings(d *setting.Ledger, signer *seal.Signer) error {
	if !d.Serves {
		return nil
	}
	if name := missing(d, n.Checkpoints.Signer); name != "" {
		return fmt.Errorf("%s is set, and CHECKPOINT_KEY is not: no checkpoint would be stored there; set CHECKPOINT_KEY to a separate key (openssl rand -hex 32), or unset %[1]s", name)
	}
	if n.Checkpoints.Signer != nil && signer.KeyID() == n.Checkpoints.Signer.KeyID() {
		return errSameKey
	}
	return nil
}

var errSameKey = errors.New("CHECKPOINT_KEY is the signing key: checkpoints need a separate key")

// Heads returns doctor's finding about checkpoints: whether a rollback of the database would be
// detected.
func (n *Node) Heads(d *setting.Ledger) screen.Finding {
	if name := missing(d, n.Checkpoints.Signer); name != "" {
		return screen.Bad("checkpoints", name+" is set, and CHECKPOINT_KEY is not: serve does not start")
	}
	if n.Checkpoints.Signer == nil {
		return screen.Warning("checkpoints", "no CHECKPOINT_KEY: a rollback of the database to an earlier state is not noticed; set a separate key (openssl rand -hex 32)")
	}
	return screen.OK("checkpoints", "key "+n.Checkpoints.Signer.KeyID()+" signs heads")
}

// checkOutside compares the database with the checkpoints outside of it, before anything is
// appended. A database that was rolled back is served read-only, unless the operator has accepted
// the loss.
func (n *Node) checkOutside(ctx context.Context, d *setting.Ledger, c keeper.Options) error {
	found, unreachable, err := keeper.CheckOutside(ctx, n.Ledger, c)
	for _, place := range unreachable {
		n.Log.Warn("a store of checkpoints cannot be reached", "place", place)
	}
	var rollback *keeper.Rollback
	switch {
	case errors.As(err, &rollback) && !d.RollbackAccepted:
		_ = n.Ledger.Refuse(rollback)
		return nil
	case errors.As(err, &rollback):
		if n.App.Signer == nil {
			return errors.New("--accept-rollback needs SIGNING_KEY: a signed event records what was lost")
		}
		return n.acceptRollbacks(ctx, c, rollback)
	case errors.Is(err, ledger.ErrTampered):
		_ = n.Ledger.Refuse(err)
		return nil
	case err != nil:
		return fmt.Errorf("read the checkpoints outside the database: %w", err)
	case d.RollbackAccepted:
		return errors.New("--accept-rollback: the database has every event that a checkpoint covers; start without the flag")
	case !found && c.Signer != nil:
		if total, err := n.Ledger.Total(ctx); err == nil && total > 0 {
			n.Log.Warn("no checkpoint is stored outside the database, so a rollback cannot be excluded", "place", c.Folder.Path)
		}
	}
	return nil
}

// acceptRollbacks records the lost events of each partition in a signed event, so that the node
// can append again.
func (n *Node) acceptRollbacks(ctx context.Context, c keeper.Options, rollback *keeper.Rollback) error {
	for range n.Ledger.Partitions() {
		n.Log.Warn("continuing without events that were lost", "partition", rollback.Partition, "from", rollback.From, "to", rollback.To)
		if err := keeper.AcceptRollback(ctx, n.Ledger, rollback, n.App.Signer, "evt_"+ulid.Make().String()); err != nil {
			return err
		}
		if len(n.Ledger.Partitions()) == 1 {
			return nil
		}
		if _, _, err := keeper.CheckOutside(ctx, n.Ledger, c); !errors.As(err, &rollback) {
			return err
		}
	}
	return rollback
}

// KeepCheckpoints starts to sign tree heads, if there is a key. It returns a text for the user that
// tells where the heads are stored.
func (n *Node) KeepCheckpoints(ctx context.Context) (said string, err error) {
	where := []string{n.Checkpoints.Folder.Path}
	for _, m := range n.Checkpoints.Mirrors {
		where = append(where, m.String())
	}
	switch {
	case n.Ledger.Stopped() != nil:
		return "none: READ ONLY, this node appends nothing", nil
	case n.Checkpoints.Signer == nil:
		return "none (set CHECKPOINT_KEY): a rollback of the database would not be noticed", nil
	case n.App.Signer.KeyID() == n.Checkpoints.Signer.KeyID():
		return "", errSameKey
	}
	err = keeper.Start(ctx, n.Ledger, n.Checkpoints, func() string { return "evt_" + ulid.Make().String() })
	if err != nil {
		return "", fmt.Errorf("keep checkpoints: %w", err)
	}
	return "key " + n.Checkpoints.Signer.KeyID() + ", kept in " + strings.Join(where, ", "), nil
}
