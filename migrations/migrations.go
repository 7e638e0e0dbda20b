// Package migrations contains the ledger's schema as numbered SQL files, up and down, and migrates
// databases to it.
//
// golang-migrate applies NNNN_name.up.sql and NNNN_name.down.sql, and stores the version of the
// schema in public.schema_migrations. Every file is one transaction. After the first file, changes
// of the tables that Distribute distributes must be in a do block: Citus sends the text of a whole
// query string to its workers, and these accept one statement at a time. The tables are in the
// schema public and belong to the role countersign_owner, which Up uses. The service uses
// countersign_app, which may append events but not change them.
//
// Until version 1.0.0 is released the first file is edited in place. A database that was made with
// another text of this file is refused (ErrAnotherBeginning).
//
// readmodels/NAME.sql contains the tables of one projection. The service itself creates and
// rebuilds them in the schema readmodels. Read models are never migrated but rebuilt.
//
// After Up a database has its two roles (see Prepare), the latest schema, and the head of each
// partition with the ledger's origin.
package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	driver "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

//go:embed *.sql
var files embed.FS

//go:embed all:readmodels
var readModels embed.FS

// ErrHoldsEvents is the error of Down for a ledger with events.
var ErrHoldsEvents = errors.New("the ledger contains events; a down migration would delete them")

// ReadModel returns the statements that create the tables of one projection. They name no schema:
// the caller must set search_path to readmodels or to a scratch schema.
func ReadModel(name string) (string, error) {
	b, err := readModels.ReadFile("readmodels/" + name + ".sql")
	if err != nil {
		return "", fmt.Errorf("read model %q has no file: %w", name, err)
	}
	return string(b), nil
}

// ReadModels lists the projections that have a file, sorted by name.
func ReadModels() []string {
	paths, _ := fs.Glob(readModels, "readmodels/*.sql") // cannot fail: the pattern is well-formed
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(path, "readmodels/"), ".sql")
	}
	return names
}

// Latest returns the version of the newest migration in this program.
func Latest() uint {
	paths, _ := fs.Glob(files, "*.up.sql") // cannot fail: the pattern is well-formed
	var latest uint
	for _, path := range paths {
		digits, _, _ := strings.Cut(path, "_")
		if n, err := strconv.ParseUint(digits, 10, 32); err == nil {
			latest = max(latest, uint(n))
		}
	}
	return latest
}

// Hash returns the SHA-256 in hex of everything that Up and Distribute do to an empty database.
// Two programs with the same hash create the same schema.
func Hash() string {
	h := sha256.New()
	paths, _ := fs.Glob(files, "*.sql") // Glob returns the names sorted
	for _, path := range paths {
		text, _ := files.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
	}
	for _, w := range wants {
		fmt.Fprintf(h, "%s\n", w.statement)
	}
	fmt.Fprintln(h, distributed, eraseSubject, sample)
	return hex.EncodeToString(h.Sum(nil))
}

// Up prepares the roles, applies missing migrations and, the first time, writes the head of each
// partition with its origin: origin + "/0" and so on. An empty origin means the existing one, or
// countersign.local/ with a new ULID. Up returns an error if the database has another origin,
// which cannot change, was migrated by a newer program, or has another first migration
// (ErrAnotherBeginning). The login must be, or be able to become, countersign_owner. If there is
// nothing to do, Up takes a few milliseconds.
func Up(ctx context.Context, databaseURL, origin string) error {
	return UpPartitioned(ctx, databaseURL, origin, 0)
}

// UpPartitioned does the same as Up for a ledger with this number of partitions; 0 means the
// existing number, or one. If the ledger has events, another number is an error.
func UpPartitioned(ctx context.Context, databaseURL, origin string, partitions int) error {
	if err := checkOrigin(origin); err != nil {
		return err
	}
	if partitions < 0 || partitions > MaxPartitions {
		return fmt.Errorf("LEDGER_PARTITIONS must be 1 to %d", MaxPartitions)
	}
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := Prepare(ctx, conn); err != nil {
		return err
	}
	if err := becomeOwner(ctx, conn); err != nil {
		return err
	}
	if err := run(ctx, conn.Config(), files, (*migrate.Migrate).Up); err != nil {
		return fmt.Errorf("migrate up: %w", err)
	}
	return initialise(ctx, conn, origin, partitions)
}

// Down undoes the last migration. It returns ErrHoldsEvents if the ledger has events, and
// ErrDistributed if it is distributed over a Citus cluster.
func Down(ctx context.Context, databaseURL string) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := becomeOwner(ctx, conn); err != nil {
		return err
	}
	spread, err := isDistributed(ctx, conn)
	if err != nil {
		return fmt.Errorf("migrate down: %w", err)
	}
	if spread {
		return ErrDistributed
	}
	held, err := holdsEvents(ctx, conn)
	if err != nil {
		return fmt.Errorf("migrate down: %w", err)
	}
	if held {
		return ErrHoldsEvents
	}
	err = run(ctx, conn.Config(), files, func(m *migrate.Migrate) error { return m.Steps(-1) })
	if err != nil {
		return fmt.Errorf("migrate down: %w", err)
	}
	return nil
}

// Status returns the version of the database (0 if it has none), the latest version of this
// program, and whether the last migration failed half-way. It changes nothing and needs only the
// right to read, so countersign_app may call it. For a database with another first migration it
// returns ErrAnotherBeginning.
func Status(ctx context.Context, databaseURL string) (current, latest uint, dirty bool, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return 0, 0, false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, `select to_regclass('public.schema_migrations') is not null`).Scan(&exists); err != nil {
		return 0, 0, false, fmt.Errorf("find the schema's version: %w", err)
	}
	if !exists {
		return 0, Latest(), false, nil
	}
	var version int64
	err = conn.QueryRow(ctx, `select version, dirty from public.schema_migrations`).Scan(&version, &dirty)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, false, fmt.Errorf("read the schema's version: %w", err)
	}
	return uint(max(version, 0)), Latest(), dirty, nil
}

// Force records a version without running a migration, after a failed migration was repaired by
// hand. Version 0 means no version.
func Force(ctx context.Context, databaseURL string, version uint) error {
	if version > Latest() {
		return fmt.Errorf("force %d: the latest version is %d", version, Latest())
	}
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := becomeOwner(ctx, conn); err != nil {
		return err
	}
	number := int(version)
	if number == 0 {
		number = -1 // golang-migrate's value for no version
	}
	err = run(ctx, conn.Config(), files, func(m *migrate.Migrate) error { return m.Force(number) })
	if err != nil {
		return fmt.Errorf("migrate force: %w", err)
	}
	return nil
}

// connect opens a connection to a database that this program may migrate.
func connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	config, err := ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	// The files name no schema, and the login may have another search_path.
	config.RuntimeParams["search_path"] = "public"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to migrate: %w", err)
	}
	if err := checkBeginning(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// run calls action with a migrator for files, which works as countersign_owner on its own
// connection to the database.
func run(ctx context.Context, config *pgx.ConnConfig, files fs.FS, action func(*migrate.Migrate) error) (err error) {
	source, err := readNumbered(files)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(becomeOwner))
	target, err := driver.WithInstance(db, &driver.Config{})
	if err != nil {
		return errors.Join(err, db.Close(), source.Close())
	}
	m, err := migrate.NewWithInstance("iofs", source, "pgx5", target)
	if err != nil {
		return errors.Join(err, target.Close(), source.Close())
	}
	defer func() { err = errors.Join(err, target.Close(), source.Close()) }()
	defer context.AfterFunc(ctx, func() { m.GracefulStop <- true })()
	if err = action(m); errors.Is(err, migrate.ErrNoChange) {
		return nil
	}
	var failed database.Error
	if errors.As(err, &failed) {
		return failed.OrigErr // the error text of the library would repeat the whole file
	}
	return err
}

func holdsEvents(ctx context.Context, conn *pgx.Conn) (held bool, err error) {
	exists := false
	if err := conn.QueryRow(ctx, `select to_regclass('public.events') is not null`).Scan(&exists); err != nil || !exists {
		return false, err
	}
	err = conn.QueryRow(ctx, `select exists (select from events)`).Scan(&held)
	return held, err
}

// checkOrigin checks that an origin can be the first line of a checkpoint and the name of a key:
// no white space, no plus sign, no scheme.
func checkOrigin(origin string) error {
	switch {
	case origin == "":
		return nil
	case len(origin) > maxOrigin:
		return fmt.Errorf("LEDGER_ORIGIN must have at most %d bytes", maxOrigin)
	case strings.Contains(origin, "://"), strings.HasPrefix(origin, "/"), strings.HasSuffix(origin, "/"):
		return errors.New("LEDGER_ORIGIN must be like ledger.example.com/name, without scheme and without a slash at the ends")
	case slices.ContainsFunc([]byte(origin), func(c byte) bool { return c <= ' ' || c >= 0x7f || c == '+' }):
		return errors.New("LEDGER_ORIGIN must be printable ASCII without spaces and plus signs")
	}
	return nil
}
