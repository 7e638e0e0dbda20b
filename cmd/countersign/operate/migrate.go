package operate

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy"
)

// Migrate has the commands that show and change the schema version of DATABASE_URL.
type Migrate struct {
	Status     migrateStatusCmd     `cmd:"" help:"Print the version of the schema and the latest one. Exit code 1: the schema is not the latest."`
	Up         migrateUpCmd         `cmd:"" help:"Apply the missing migrations."`
	Down       migrateDownCmd       `cmd:"" help:"Undo the last migration."`
	Force      migrateForceCmd      `cmd:"" help:"Set the recorded version after a manual repair."`
	Distribute migrateDistributeCmd `cmd:"" help:"Distribute an empty ledger over the workers of a Citus cluster."`
}

type databaseURL struct {
	DatabaseURL string `help:"URL of the database, with the login of its owner." env:"DATABASE_URL" name:"database-url" secret:"" placeholder:"URL"`
}

func (d databaseURL) url() (string, error) {
	if d.DatabaseURL == "" {
		return "", errors.New("DATABASE_URL is not set; the private database is migrated by serve")
	}
	return d.DatabaseURL, nil
}

type migrateStatusCmd struct{ databaseURL }

// Run prints the version of the schema. The exit code is 1 if it is not the latest.
func (c *migrateStatusCmd) Run(ctx context.Context, o *screen.Output) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	current, latest, dirty, err := migrations.Status(ctx, url)
	if err != nil {
		return err
	}
	if err := o.Result(map[string]any{"current": current, "latest": latest, "dirty": dirty},
		fmt.Sprintf("schema version %d of %d, dirty %v\n", current, latest, dirty)); err != nil {
		return err
	}
	if dirty || current != latest {
		return screen.ErrNo
	}
	return nil
}

type migrateUpCmd struct {
	databaseURL
	Origin     string `help:"Permanent name of the ledger." env:"LEDGER_ORIGIN" name:"ledger-origin"`
	Partitions int    `help:"Number of partitions of a new ledger, which cannot change later. Default: 1." env:"LEDGER_PARTITIONS" name:"ledger-partitions" placeholder:"N"`
}

// Run applies the missing migrations.
func (c *migrateUpCmd) Run(ctx context.Context, o *screen.Output) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	if err := migrations.UpPartitioned(ctx, url, c.Origin, c.Partitions); err != nil {
		return err
	}
	return (&migrateStatusCmd{c.databaseURL}).Run(ctx, o)
}

type migrateDownCmd struct{ databaseURL }

// Run reverts the last migration. It refuses to remove a ledger with events.
func (c *migrateDownCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.Down(ctx, url)
}

type migrateForceCmd struct {
	Version uint `arg:"" help:"Version of the schema after the repair."`
	databaseURL
}

// Run sets the recorded version without running a migration.
func (c *migrateForceCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.Force(ctx, url, c.Version)
}

type migrateDistributeCmd struct{ databaseURL }

// Run distributes the tables of a ledger without events over a Citus cluster. This cannot be
// undone.
func (c *migrateDistributeCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.Distribute(ctx, url)
}

// Version prints the version of the program.
type Version struct{}

// Run prints the version of the interface and of the build.
func (c *Version) Run(o *screen.Output) error {
	return o.Result(map[string]string{"version": policy.Version, "revision": revision()}, VersionText()+"\n")
}

// VersionText returns the version and the revision of the program.
func VersionText() string { return fmt.Sprintf("countersign %s (%s)", policy.Version, revision()) }

// revision returns the commit that this program was built from.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
