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

// Migrate shows and moves the schema of a database that is not private.
type Migrate struct {
	Status     migrateStatusCmd     `cmd:"" help:"Print the schema's number and the newest one."`
	Up         migrateUpCmd         `cmd:"" help:"Apply what is missing."`
	Down       migrateDownCmd       `cmd:"" help:"Take the last migration back."`
	Force      migrateForceCmd      `cmd:"" help:"Set the number after a repair by hand."`
	Distribute migrateDistributeCmd `cmd:"" help:"Spread an empty ledger over the workers of a Citus cluster."`
}

type databaseURL struct {
	DatabaseURL string `help:"The database, as its owner." env:"DATABASE_URL" name:"database-url" secret:"" placeholder:"URL"`
}

func (d databaseURL) url() (string, error) {
	if d.DatabaseURL == "" {
		return "", errors.New("DATABASE_URL is not set; the private database is migrated by serve")
	}
	return d.DatabaseURL, nil
}

type migrateStatusCmd struct{ databaseURL }

// Run prints where the schema is; one that is not current is exit code 1.
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
		fmt.Sprintf("at %d of %d, dirty %v\n", current, latest, dirty)); err != nil {
		return err
	}
	if dirty || current != latest {
		return screen.ErrNo
	}
	return nil
}

type migrateUpCmd struct {
	databaseURL
	Origin     string `help:"Name of the ledger, for ever." env:"LEDGER_ORIGIN" name:"ledger-origin"`
	Partitions int    `help:"Into how many partitions a new ledger is divided, for ever; 1 without it." env:"LEDGER_PARTITIONS" name:"ledger-partitions" placeholder:"N"`
}

// Run applies what is missing.
func (c *migrateUpCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.UpPartitioned(ctx, url, c.Origin, c.Partitions)
}

type migrateDownCmd struct{ databaseURL }

// Run takes the last migration back; a ledger with events is left alone.
func (c *migrateDownCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.Down(ctx, url)
}

type migrateForceCmd struct {
	Version uint `arg:"" help:"The number."`
	databaseURL
}

// Run sets the number.
func (c *migrateForceCmd) Run(ctx context.Context) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	return migrations.Force(ctx, url, c.Version)
}

type migrateDistributeCmd struct{ databaseURL }

// Run spreads the tables of a ledger without events, for ever.
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

// revision is the commit this program was built from.
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
