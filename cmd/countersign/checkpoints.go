package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
)

// checkpoints reads where and with which key the tree's heads are kept. The signer
// is nil without a key; the private database makes one if it may.
func (d *data) checkpoints(development bool) (ledger.Checkpoints, error) {
	c := ledger.Checkpoints{Folder: checkpoint.Folder{Path: d.CheckpointDir}}
	if d.CheckpointDir == "" {
		c.Folder.Path = filepath.Join(d.dir(), "checkpoints")
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
	var err error
	c.Signer, err = d.keyFor("CHECKPOINT_KEY", d.CheckpointKey, "checkpoint.key", development)
	return c, err
}

// missing names a setting of checkpoints that does nothing without a key, if there is one.
func (d *data) missing(signer *seal.Signer) string {
	switch {
	case signer != nil:
		return ""
	case d.CheckpointDir != "":
		return "CHECKPOINT_DIR"
	case len(d.CheckpointMirrors) > 0:
		return "CHECKPOINT_MIRRORS"
	case len(d.Witnesses) > 0:
		return "WITNESSES"
	}
	return ""
}

// checkpointSettings refuses to serve with settings of checkpoints that sign none.
func (n *node) checkpointSettings(d *data, signer *seal.Signer) error {
	if !d.serves {
		return nil
	}
	if name := d.missing(n.checkpoints.Signer); name != "" {
		return fmt.Errorf("%s is set, and CHECKPOINT_KEY is not: nothing would be kept there; set CHECKPOINT_KEY to a key of its own (openssl rand -hex 32), or unset %[1]s", name)
	}
	if n.checkpoints.Signer != nil && signer.KeyID() == n.checkpoints.Signer.KeyID() {
		return errSameKey
	}
	return nil
}

var errSameKey = errors.New("CHECKPOINT_KEY is the signing key: checkpoints need a key of their own")

// heads looks at whether a database that is put back would be noticed.
func (n *node) heads(d *data) finding {
	if name := d.missing(n.checkpoints.Signer); name != "" {
		return finding{"checkpoints", "bad", name + " is set, and CHECKPOINT_KEY is not: serve does not start"}
	}
	if n.checkpoints.Signer == nil {
		return finding{"checkpoints", "warning", "no CHECKPOINT_KEY: a database that is put back to an earlier state is not noticed; set a key of its own (openssl rand -hex 32)"}
	}
	return finding{"checkpoints", "ok", "key " + n.checkpoints.Signer.KeyID() + " signs heads"}
}

// keyFor makes the signer of a setting: a seed, or the public key of one that an
// SSH agent holds. Where a development key is allowed, it is made and kept.
func (d *data) keyFor(name, text, file string, development bool) (*seal.Signer, error) {
	if text == "" && development {
		var err error
		if text, err = d.developmentKey(file); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return nil, nil
	}
	signer, err := parseSigner(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return signer, nil
}

// checkOutside holds the database against the notes outside of it, before the first
// append. A database that was put back is served for reading only, unless its loss
// was accepted.
func (n *node) checkOutside(ctx context.Context, d *data, c ledger.Checkpoints) error {
	found, unreachable, err := n.ledger.CheckOutside(ctx, c)
	for _, place := range unreachable {
		n.log.Warn("a place of checkpoints could not be asked", "place", place)
	}
	var rollback *ledger.Rollback
	switch {
	case errors.As(err, &rollback) && !d.acceptRollback:
		_ = n.ledger.Refuse(rollback)
		return nil
	case errors.As(err, &rollback):
		if n.app.Signer == nil {
			return errors.New("--accept-rollback needs SIGNING_KEY: what was lost is stated by a signed event")
		}
		return n.acceptRollbacks(ctx, c, rollback)
	case errors.Is(err, ledger.ErrTampered):
		_ = n.ledger.Refuse(err)
		return nil
	case err != nil:
		return fmt.Errorf("look at the checkpoints outside the database: %w", err)
	case d.acceptRollback:
		return errors.New("--accept-rollback: the database lacks nothing that a checkpoint knows of; start without it")
	case !found && c.Signer != nil:
		if total, err := n.ledger.Total(ctx); err == nil && total > 0 {
			n.log.Warn("no checkpoint lies outside the database: that it was put back cannot be excluded", "place", c.Folder.Path)
		}
	}
	return nil
}

// acceptRollbacks goes on without what was lost, in one partition after the other.
func (n *node) acceptRollbacks(ctx context.Context, c ledger.Checkpoints, rollback *ledger.Rollback) error {
	for range n.ledger.Partitions() {
		n.log.Warn("going on without events that were lost", "partition", rollback.Partition, "from", rollback.From, "to", rollback.To)
		if err := n.ledger.AcceptRollback(ctx, rollback, n.app.Signer, "evt_"+ulid.Make().String()); err != nil {
			return err
		}
		if len(n.ledger.Partitions()) == 1 {
			return nil
		}
		if _, _, err := n.ledger.CheckOutside(ctx, c); !errors.As(err, &rollback) {
			return err
		}
	}
	return rollback
}

// keepCheckpoints begins to sign heads, where there is a key for it.
func (n *node) keepCheckpoints(ctx context.Context) (said string, err error) {
	where := []string{n.checkpoints.Folder.Path}
	for _, m := range n.checkpoints.Mirrors {
		where = append(where, m.String())
	}
	switch {
	case n.ledger.Stopped() != nil:
		return "none: READ ONLY, this node appends nothing", nil
	case n.checkpoints.Signer == nil:
		return "none (set CHECKPOINT_KEY): a database that is put back would not be noticed", nil
	case n.app.Signer.KeyID() == n.checkpoints.Signer.KeyID():
		return "", errSameKey
	}
	err = n.ledger.KeepCheckpoints(ctx, n.checkpoints, func() string { return "evt_" + ulid.Make().String() })
	if err != nil {
		return "", fmt.Errorf("keep checkpoints: %w", err)
	}
	return "key " + n.checkpoints.Signer.KeyID() + ", kept in " + strings.Join(where, ", "), nil
}
