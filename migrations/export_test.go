package migrations

import (
	"context"

	"github.com/golang-migrate/migrate/v4"
)

// To brings the schema to a migration, whatever the ledger holds and wherever it lies.
func To(ctx context.Context, databaseURL string, version uint) error {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return run(ctx, conn.Config(), func(m *migrate.Migrate) error { return m.Migrate(version) })
}
