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

// firstMigration is the first migration of every database. When the file is applied, the
// placeholder in it is replaced by the result of the function Beginning.
const (
	firstMigration = "0001_ledger.up.sql"
	placeholder    = "{beginning}"
)

// ErrAnotherBeginning means that the first migration of a database differs from that of this
// program. Such a database cannot be migrated.
var ErrAnotherBeginning = errors.New("the database was made by another program, before the first release, and cannot be migrated: " +
	"start with an empty database or data folder, or use the program that made this one")

// Beginning returns the SHA-256 of the first migration in hex. The first migration stores it in
// the database, as the comment of the table ledger_head.
func Beginning() string {
	text, _ := files.ReadFile(firstMigration) // cannot fail: the file is embedded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Check returns ErrAnotherBeginning if this program cannot use the database. It accepts an empty
// database.
func Check(ctx context.Context, databaseURL string) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	return conn.Close(context.WithoutCancel(ctx))
}

// CheckCurrent returns nil if the database has the schema for which this program was built, and
// otherwise an error that says what to do.
func CheckCurrent(ctx context.Context, databaseURL string) error {
	current, latest, dirty, err := Status(ctx, databaseURL)
	switch {
	case err != nil:
		return err
	case dirty:
		return fmt.Errorf("the migration to version %d failed half-way: repair the schema by hand to have this version, then run countersign migrate force %d", current, current)
	case current < latest:
		return fmt.Errorf("the schema has version %d, but this program needs %d: run countersign migrate up, or serve --migrate", current, latest)
	case current > latest:
		return fmt.Errorf("the schema has version %d, but this program only knows %d: start a newer program", current, latest)
	}
	return nil
}

// checkBeginning returns ErrAnotherBeginning if another first migration has created the ledger in
// the database. It accepts an empty database.
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

// numbered is a source of migrations that inserts the result of Beginning into the first
// migration.
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
