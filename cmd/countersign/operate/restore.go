package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/backup"
	"github.com/countersign/countersign/ledger/localpg"
)

// recover restores a base copy into an empty data folder and replays the write-ahead log.
func (c *Restore) recover(ctx context.Context, m backup.Manifest, keys io.Reader) (map[string][]byte, error) {
	switch {
	case !c.Private():
		return nil, errors.New("a base copy is restored into a data folder (--data), not into DATABASE_URL")
	case c.WAL == "":
		return nil, errors.New("a base copy needs the archived log: name its folder with --wal")
	case c.At != "" && c.Position != "":
		return nil, errors.New("give --at or --position, not both")
	}
	log, err := filepath.Abs(c.WAL)
	if err != nil {
		return nil, err
	}
	if own, err := filepath.Abs(c.WALDir); c.WALDir != "" && (err != nil || own == log) {
		return nil, errors.New("WAL_DIR is the folder of the log to replay: set it to a new folder, and make a base copy afterwards")
	}
	files, err := backup.Keys(keys)
	if err != nil {
		return nil, err
	}
	r, err := c.target(ctx, m, log)
	if err != nil {
		return nil, err
	}
	return files, c.recoverInto(ctx, c.Dir(), r)
}

// target returns the point up to which the log is replayed: a time, a transaction, or the log's
// end.
func (c *Restore) target(ctx context.Context, m backup.Manifest, log string) (r localpg.Recovery, err error) {
	r.WAL = log
	switch {
	case c.At != "":
		if r.At, err = time.Parse(time.RFC3339, c.At); err != nil {
			return r, errors.New("--at must be a time such as 2026-11-22T15:04:05Z")
		}
		made, err := time.Parse(time.RFC3339, m.CreatedAt)
		if err != nil {
			return r, errors.New("the manifest's createdAt is not a time")
		}
		if r.At.Before(made) { // PostgreSQL would stop at the end of the copy and report no error
			return r, fmt.Errorf("%w, which was made at %s", localpg.ErrBeforeBase, m.CreatedAt)
		}
	case c.Position != "":
		at, err := parsePosition(c.Position)
		if err != nil {
			return r, err
		}
		r.XID, err = c.commitOf(ctx, at, log)
		return r, err
	}
	return r, nil
}

func (c *Restore) recoverInto(ctx context.Context, folder string, r localpg.Recovery) error {
	base, err := backup.Base(c.From)
	if err != nil {
		return err
	}
	defer base.Close()
	return localpg.Recover(ctx, localpg.Options{DataDir: folder, NoFetch: c.NoFetch}, base, r)
}

// commitOf returns the id of the transaction that committed an event. The log does not contain
// positions, so commitOf replays it to the end in a temporary folder and looks for the event
// there.
func (c *Restore) commitOf(ctx context.Context, at eventPosition, log string) (xid string, err error) {
	if err := os.MkdirAll(c.Dir(), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(c.Dir(), "position-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	folder := filepath.Join(scratch, "data")
	if err := errors.Join(os.Chmod(scratch, 0o711), c.recoverInto(ctx, folder, localpg.Recovery{WAL: log})); err != nil {
		return "", err
	}
	server, err := localpg.Start(ctx, localpg.Options{DataDir: folder, NoFetch: c.NoFetch})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	conn, err := pgx.Connect(ctx, server.URL(localpg.Superuser))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var partitions int
	if err := conn.QueryRow(ctx, `select count(*) from ledger_head`).Scan(&partitions); err != nil {
		return "", err
	}
	if err := at.in(partitions); err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, `select xmin::text from events where p = $1 and pos = $2 and payload is not null`, at.partition, at.position).Scan(&xid)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("position %d of partition %d is not in the replayed log, or was archived since: give a time with --at", at.position, at.partition)
	}
	return xid, err
}
