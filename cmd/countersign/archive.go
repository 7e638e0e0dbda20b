package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/migrations"
)

// archiveCmd keeps the database small.
type archiveCmd struct {
	Move  archiveMoveCmd  `cmd:"" help:"Move payloads of old events into objects, each of which is written, read back and checked before anything leaves the database. Safe to repeat."`
	Back  archiveBackCmd  `cmd:"" help:"Put archived payloads back into the database."`
	Check archiveCheckCmd `cmd:"" help:"Check objects by themselves: signature, events, and their place in the tree of a signed checkpoint. Exit 1: one is false."`
}

// archive opens the place of the archive; nil where none is named.
func (d *data) archive() (checkpoint.Files, error) {
	if d.ArchiveStore == "" {
		return nil, nil
	}
	files, err := checkpoint.ParseFiles(d.ArchiveStore, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("ARCHIVE_STORE: %w", err)
	}
	return files, nil
}

type archiveMoveCmd struct {
	OlderThan time.Duration `help:"Only events that are older, such as 400d." type:"days" required:"" placeholder:"DURATION"`
	data
}

// archiveResult is what moving says.
type archiveResult struct {
	Events  int64           `json:"events"` // moved now
	Archive ledger.Archived `json:"archive"`
}

// Run moves what is old.
func (c *archiveMoveCmd) Run(ctx context.Context, o *output) error {
	return c.moving(ctx, o, "moved", func(n *node, a ledger.Archiving) (int64, error) {
		if n.app.Signer == nil {
			return 0, errors.New("SIGNING_KEY is not set: objects of the archive are signed")
		}
		a.Signer, a.Before = n.app.Signer, time.Now().Add(-c.OlderThan)
		return n.ledger.Move(ctx, a)
	})
}

// moving opens the ledger, as its owner too, and says what was moved.
func (d *data) moving(ctx context.Context, o *output, said string, move func(*node, ledger.Archiving) (int64, error)) error {
	files, err := d.archive()
	if err != nil {
		return err
	}
	n, err := openNode(ctx, d, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.close()
	a := ledger.Archiving{OwnerURL: d.DatabaseURL, Files: files}
	if n.server != nil {
		a.OwnerURL = n.server.url(migrations.OwnerRole)
	}
	a.Progress = func(object string, events int64) { o.progress.say("%s %d events, %s", said, events, object) }
	var result archiveResult
	if result.Events, err = move(n, a); err != nil {
		return err
	}
	if result.Archive, err = n.ledger.Archived(ctx); err != nil {
		return err
	}
	return o.result(result, fmt.Sprintf("%s %d events\nthe archive holds %d events in %d objects\n", said, result.Events, result.Archive.Events, result.Archive.Objects))
}

type archiveBackCmd struct {
	From int64 `help:"From the object on that holds this position; default: all." default:"1" placeholder:"POSITION"`
	data
}

// Run brings back.
func (c *archiveBackCmd) Run(ctx context.Context, o *output) error {
	return c.moving(ctx, o, "brought back", func(n *node, a ledger.Archiving) (int64, error) { return n.ledger.BringBack(ctx, a, c.From) })
}

type archiveCheckCmd struct {
	Objects []string `arg:"" help:"Files."`
	trustedKeys
}

// Run checks each object.
func (c *archiveCheckCmd) Run(o *output) error {
	keys, err := c.trusted()
	if err != nil {
		return err
	}
	var records, heads []ed25519.PublicKey
	for _, key := range keys {
		switch key.Purpose {
		case ledger.PurposeRecord:
			records = append(records, key.Public)
		case ledger.PurposeCheckpoint:
			heads = append(heads, key.Public)
		}
	}
	type checked struct {
		File   string               `json:"file"`
		Valid  bool                 `json:"valid"`
		Detail string               `json:"detail"`
		Record ledger.ArchiveRecord `json:"record"`
	}
	if len(heads) == 0 {
		return errNoCheckpointKey
	}
	var list []checked
	rows := screen.Table{Heads: []string{"state", "object", "found"}}
	bad := false
	for _, path := range c.Objects {
		packed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := ledger.CheckArchive(packed, records, heads)
		one := checked{path, err == nil, fmt.Sprintf("positions %d to %d of %s", r.First, r.Last, r.Origin), r}
		if err != nil {
			bad, one.Detail = true, err.Error()
		}
		list = append(list, one)
		rows.Add(map[bool]string{true: "VALID", false: "FALSE"}[one.Valid], path, one.Detail)
	}
	if err := o.result(list, o.table(rows)); err != nil || !bad {
		return err
	}
	return errNo
}

// archived looks at the archive; nothing where there is none.
func (n *node) archived(ctx context.Context) []finding {
	a, err := n.ledger.Archived(ctx)
	switch {
	case err != nil:
		return []finding{{"archive", "bad", err.Error()}}
	case a.Objects == 0:
		return nil
	}
	if err := n.ledger.ReadArchive(ctx); err != nil {
		return []finding{{"archive", "bad", fmt.Sprintf("%d events are archived: %v", a.Events, err)}}
	}
	found := []finding{{"archive", "ok", fmt.Sprintf("%d events in %d objects, the newest can be read", a.Events, a.Objects)}}
	if a.Incomplete > 0 {
		found = append(found, finding{"archive", "warning", fmt.Sprintf("%d objects were not finished: run countersign archive move again", a.Incomplete)})
	}
	return found
}
