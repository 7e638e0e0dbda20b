package migrations

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
)

// To brings the schema to a migration of this program and more of a test's own, whatever
// the ledger holds and wherever it is.
func To(ctx context.Context, databaseURL string, more fstest.MapFS, version uint) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	all := fstest.MapFS{}
	names, _ := fs.Glob(files, "*.sql") // the pattern is well-formed
	for _, name := range names {
		text, _ := files.ReadFile(name)
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, file := range more {
		all[name] = file
	}
	return run(ctx, conn.Config(), all, func(m *migrate.Migrate) error { return m.Migrate(version) })
}
