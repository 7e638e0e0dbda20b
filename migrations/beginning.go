package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
)

// firstMigration is the first migration of every database. It contains placeholder, which is
// replaced by Beginning when the file is applied.
const (
	firstMigration = "0001_ledger.up.sql"
	placeholder    = "{beginning}"
)

// ErrAnotherBeginning is returned for a database whose first migration is not the one of this
// program. Such a database cannot be migrated.
var ErrAnotherBeginning = errors.New("the database was made by another program, before the first release, and cannot be migrated: " +
	"start with an empty database or data folder, or use the program that made this one")

// Beginning is the SHA-256 of the first migration, in 64 hex digits. The first
// migration writes it into the database, as the comment of table ledger_head.
func Beginning() string {
	text, _ := files.ReadFile(firstMigration) // embedded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Check returns ErrAnotherBeginning for a database that this program cannot use. It accepts an
// empty database.
func Check(ctx context.Context, databaseURL string) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	return conn.Close(context.WithoutCancel(ctx))
}

// CheckCurrent returns an error that says what to do if the schema of the database is not
// the one this program was built for.
func CheckCurrent(ctx context.Context, databaseURL string) error {
	current, latest, dirty, err := Status(ctx, databaseURL)
	switch {
	case err != nil:
		return err
	case dirty:
		return fmt.Errorf("migration %d failed half-way: repair it, then countersign migrate force %d", current, current)
	case current < latest:
		return fmt.Errorf("the schema has version %d and this program needs %d: run countersign migrate up, or serve --migrate", current, latest)
	case current > latest:
		return fmt.Errorf("the schema has version %d and this program knows %d: start a newer program", current, latest)
	}
	return nil
}

// checkBeginning returns ErrAnotherBeginning if the database holds a ledger that
// another first migration made. An empty database is no error.
func checkBeginning(ctx context.Context, conn *pgx.Conn) error {
	var another bool
	err := conn.QueryRow(ctx, `select to_regclass('public.ledger_head') is not null
		and obj_description(to_regclass('public.ledger_head'), 'pg_class') is distinct from $1`, Beginning()).Scan(&another)
	if err != nil {
		return fmt.Errorf("read the first migration of the database: %w", err)
	}
	if another {
		return ErrAnotherBeginning
	}
	return nil
}

// numbered reads the migrations of a folder and inserts Beginning into the first.
type numbered struct{ source.Driver }

func readNumbered(folder fs.FS) (numbered, error) {
	driver, err := iofs.New(folder, ".")
	return numbered{driver}, err
}

// ReadUp implements source.Driver.
func (n numbered) ReadUp(version uint) (io.ReadCloser, string, error) {
	file, name, err := n.Driver.ReadUp(version)
	if err != nil {
		return file, name, err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	text = bytes.ReplaceAll(text, []byte(placeholder), []byte(Beginning()))
	return io.NopCloser(bytes.NewReader(text)), name, err
}
