package migrations

import (
	"context"
	"io/fs"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
)

// To migrates the schema to a version, even if the ledger has events or is distributed. The files
// in more are added to this program's migrations.
func To(ctx context.Context, databaseURL string, more fstest.MapFS, version uint) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	all := fstest.MapFS{}
	names, _ := fs.Glob(files, "*.sql") // cannot fail: the pattern is well-formed
	for _, name := range names {
		text, _ := files.ReadFile(name)
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, file := range more {
		all[name] = file
	}
	return run(ctx, conn.Config(), all, func(m *migrate.Migrate) error { return m.Migrate(version) })
}
