package operate

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
)

// Archive has the commands that move payloads of old events to an archive and back.
type Archive struct {
	Move  archiveMoveCmd  `cmd:"" help:"Move payloads of old events to the archive. Each object is written, read back and checked before anything is removed from the database. The command can be repeated safely."`
	Back  archiveBackCmd  `cmd:"" help:"Move archived payloads back into the database."`
	Check archiveCheckCmd `cmd:"" help:"Verify archive objects without a database: signature, events, and inclusion in the tree of a signed checkpoint. Exit code 1: an object does not verify."`
}

type archiveMoveCmd struct {
	OlderThan time.Duration `help:"Move only events older than this, such as 400d." type:"days" required:"" placeholder:"DURATION"`
	setting.Ledger
}

// archiveResult is the result of archive move and archive back.
type archiveResult struct {
	Events  int64          `json:"events"` // number of events moved by this command
	Archive archive.Counts `json:"archive"`
}

// Run moves the payloads of old events.
func (c *archiveMoveCmd) Run(ctx context.Context, o *screen.Output) error {
	return moving(ctx, &c.Ledger, o, "moved", func(n *node.Node, a archive.Options) (int64, error) {
		if n.App.Signer == nil {
			return 0, errors.New("SIGNING_KEY is not set: archive objects must be signed")
		}
		a.Signer, a.Before = n.App.Signer, time.Now().Add(-c.OlderThan)
		return archive.Move(ctx, n.Ledger, a)
	})
}

// moving opens the ledger and a connection as the owner of the database, calls the function move
// and prints the result.
func moving(ctx context.Context, d *setting.Ledger, o *screen.Output, said string, move func(*node.Node, archive.Options) (int64, error)) error {
	files, err := d.Archive()
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, d, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	a := archive.Options{OwnerURL: n.OwnerURL(d), Files: files}
	a.Progress = func(object string, events int64) { o.Progress.Say("%s %d events, %s", said, events, object) }
	var result archiveResult
	if result.Events, err = move(n, a); err != nil {
		return err
	}
	if result.Archive, err = archive.Count(ctx, n.Ledger); err != nil {
		return err
	}
	return o.Result(result, fmt.Sprintf("%s %d events\nthe archive has %d events in %d objects\n", said, result.Events, result.Archive.Events, result.Archive.Objects))
}

type archiveBackCmd struct {
	From int64 `help:"Move back the object that contains this position, and all later objects. Default: all." default:"1" placeholder:"POSITION"`
	setting.Ledger
}

// Run moves payloads back into the database.
func (c *archiveBackCmd) Run(ctx context.Context, o *screen.Output) error {
	return moving(ctx, &c.Ledger, o, "moved back", func(n *node.Node, a archive.Options) (int64, error) {
		return archive.BringBack(ctx, n.Ledger, a, c.From)
	})
}

type archiveCheckCmd struct {
	Objects []string `arg:"" help:"Archive objects (files) to verify."`
	setting.TrustedKeys
}

// Run checks the named objects of the archive.
func (c *archiveCheckCmd) Run(o *screen.Output) error {
	keys, err := c.Trusted()
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
		File   string         `json:"file"`
		Valid  bool           `json:"valid"`
		Detail string         `json:"detail"`
		Record archive.Record `json:"record"`
	}
	if len(heads) == 0 {
		return setting.ErrNoCheckpointKey
	}
	var list []checked
	rows := screen.Table{Heads: []string{"state", "object", "found"}}
	bad := false
	for _, path := range c.Objects {
		packed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := archive.Check(packed, records, heads)
		one := checked{path, err == nil, fmt.Sprintf("positions %d to %d of %s", r.First, r.Last, r.Origin), r}
		if err != nil {
			bad, one.Detail = true, err.Error()
		}
		list = append(list, one)
		rows.Add(map[bool]string{true: "VALID", false: "FALSE"}[one.Valid], path, one.Detail)
	}
	if err := o.Result(list, o.Table(rows)); err != nil || !bad {
		return err
	}
	return screen.ErrNo
}
