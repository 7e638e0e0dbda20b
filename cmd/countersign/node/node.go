// Package node opens the ledger for a command or for the service. It starts a private PostgreSQL
// or connects to another one, and opens the ledger, the vault, the checkpoints and the commands.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/cmd/countersign/logs"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/migrations"
)

// Node is a program's access to the ledger.
type Node struct {
	App         *commands.App
	Ledger      *ledger.Ledger
	Checkpoints keeper.Options
	Server      *Server // the private PostgreSQL; nil if DATABASE_URL is set
	Log         *slog.Logger

	kek []byte // key that encrypts the vault's data keys; nil if there is no vault
}

// Start opens the ledger that the settings name. Without DATABASE_URL it starts or joins a private
// PostgreSQL and migrates its schema; the schema of DATABASE_URL is migrated only if migrate is
// true. If development is true, it may create keys in the data folder. It calls the function say
// before each slow step.
func Start(ctx context.Context, d *setting.Ledger, migrate, development bool, baseURL string, log *slog.Logger, say func(string, ...any)) (*Node, error) {
	n := &Node{Log: log}
	url := d.DatabaseURL
	if d.Private() {
		server, err := startPrivate(ctx, d, log, say)
		if err != nil {
			return nil, err
		}
		n.Server, url, migrate = server, server.URL(migrations.AppRole), true
	}
	if migrate && migrations.CheckCurrent(ctx, n.OwnerURL(d)) != nil {
		say("migrating the schema of the database …")
	}
	if err := n.open(ctx, d, url, migrate, development, baseURL); err != nil {
		n.Close()
		return nil, err
	}
	if d.Serves {
		return n, nil // serve calls Begin after it has checked all its settings
	}
	if err := n.Begin(ctx, d, development); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Begin prepares the node to append: it compares the database with the checkpoints outside of it,
// opens the vault and activates the keys. The caller must have checked all settings before, so
// that a wrong setting changes nothing.
func (n *Node) Begin(ctx context.Context, d *setting.Ledger, development bool) error {
	if err := n.checkOutside(ctx, d, n.Checkpoints); err != nil {
		return err
	}
	if err := audit.HeedRemembered(n.Ledger, n.SelfChecks(d)); err != nil {
		return err
	}
	if err := n.openVault(ctx, d, development && d.Private()); err != nil {
		return err
	}
	if signer := n.App.Signer; signer != nil && n.Ledger.Stopped() == nil {
		if err := n.activate(ctx, signer, n.App.NextSigner); err != nil {
			if errors.Is(err, ledger.ErrForeignKey) {
				return fmt.Errorf("%w: the key belongs to another environment or was retired; set SIGNING_KEY to the active key of this ledger (after a rotation, the former NEXT_SIGNING_KEY)", err)
			}
			return fmt.Errorf("activate the signing key: %w", err)
		}
	}
	if text := n.ReadOnly(); text != "" {
		fmt.Fprintf(os.Stderr, "countersign: %s\n", text)
	}
	return nil
}

// ReadOnly returns the reason why this node must not append (the ledger was rolled back, truncated
// or rewritten), or "" if it may. A read-only node still answers requests that only read.
func (n *Node) ReadOnly() string {
	if n.Ledger.Stopped() == nil {
		return ""
	}
	c := n.Ledger.Condition()
	return "READ ONLY: " + c.Sentence + "; " + c.Detail
}

// OwnerURL returns the URL of the database with the role that owns its tables. If DATABASE_URL is
// set, it returns that, whatever its role is.
func (n *Node) OwnerURL(d *setting.Ledger) string {
	if n.Server != nil {
		return n.Server.URL(migrations.OwnerRole)
	}
	return d.DatabaseURL
}

// inFolder adds the data folder to an error about the private database of another program, because
// a user who forgot --data does not know which folder was opened.
func inFolder(d *setting.Ledger, err error) error {
	if d.Private() && errors.Is(err, migrations.ErrAnotherBeginning) {
		return fmt.Errorf("data folder %s: %w", d.Dir(), err)
	}
	return err
}

func (n *Node) open(ctx context.Context, d *setting.Ledger, url string, migrate, development bool, baseURL string) error {
	if migrate {
		if err := migrations.UpPartitioned(ctx, n.OwnerURL(d), d.Origin, d.Partitions); err != nil {
			return inFolder(d, err)
		}
	} else if err := migrations.CheckCurrent(ctx, url); err != nil {
		return inFolder(d, err)
	}
	// Read the settings before the ledger is opened, so that a wrong setting changes nothing.
	products, err := d.Products()
	if err != nil {
		return err
	}
	signer, err := d.Signer(development && d.Private())
	if err != nil {
		return err
	}
	next, err := d.KeyFor("NEXT_SIGNING_KEY", d.NextKey, "", false)
	if err != nil {
		return err
	}
	if n.Checkpoints, err = Checkpoints(d, development && d.Private()); err != nil {
		return err
	}
	n.Checkpoints.Next = next
	if err := n.checkpointSettings(d, signer); err != nil {
		return err
	}
	files, err := d.Archive()
	if err != nil {
		return err
	}
	// Open the ledger and check that it fits the settings.
	if n.Ledger, err = ledger.Open(ctx, url, ledger.Options{Log: n.Log, Partitions: d.Partitions, Archive: archive.NewReader(files)}); err != nil {
		return err
	}
	if d.Origin != "" && d.Origin != strings.TrimSuffix(n.Ledger.Origin(), "/0") {
		return fmt.Errorf("the origin of this ledger is %s and cannot change; set LEDGER_ORIGIN to it or unset it", strings.TrimSuffix(n.Ledger.Origin(), "/0"))
	}
	if d.Serves && !d.ByProvider() {
		if err := n.lasting(ctx); err != nil {
			return err
		}
	}
	// Create the commands on the ledger.
	n.App = commands.New(&ground.Ground{Ledger: n.Ledger, Signer: signer, NextSigner: next, Clock: time.Now, BaseURL: strings.TrimSuffix(baseURL, "/"), Environment: "live"})
	n.App.Products = products
	if d.Private() {
		n.App.Environment = "dev" // the signing key may be a development key
	}
	return nil
}

// lasting refuses a database that can lose acknowledged commits.
func (n *Node) lasting(ctx context.Context) error {
	var off bool
	err := n.Ledger.Pool().QueryRow(ctx, `select current_setting('fsync') <> 'on' or current_setting('full_page_writes') <> 'on'`).Scan(&off)
	switch {
	case err != nil:
		return fmt.Errorf("read the durability settings of PostgreSQL: %w", err)
	case off:
		return errors.New("fsync or full_page_writes of PostgreSQL is off, and an acknowledged event may be lost: turn on both (alter system set fsync = on; alter system set full_page_writes = on; select pg_reload_conf()), or, if the database provider makes commits durable by other means, start with --durability=provider (DURABILITY)")
	}
	return nil
}

// SelfChecks returns how this node verifies its ledger every day, and where it stores the
// findings.
func (n *Node) SelfChecks(d *setting.Ledger) audit.SelfChecks {
	return audit.SelfChecks{KEK: n.kek, Folder: n.Checkpoints.Folder, GoOn: d.FindingsAccepted}
}

// activate makes the signer's key an active key of this ledger. If the ledger does not accept it,
// activate tries the next key.
func (n *Node) activate(ctx context.Context, signer, next *seal.Signer) error {
	err := n.Ledger.Activate(ctx, signer, "evt_"+ulid.Make().String())
	if errors.Is(err, ledger.ErrForeignKey) && next != nil {
		return n.Ledger.Activate(ctx, next, "evt_"+ulid.Make().String())
	}
	return err
}

// Close closes the ledger. A private PostgreSQL stops when the last program that uses it closes
// it.
func (n *Node) Close() {
	if n.Ledger != nil {
		n.Ledger.Close()
	}
	if n.Server != nil {
		n.Server.stop()
	}
}

// Open opens the ledger for a command, without a log.
func Open(ctx context.Context, d *setting.Ledger) (*Node, error) {
	return Start(ctx, d, false, true, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
}

// With opens the ledger, calls the function do with its commands, and closes the ledger.
func With(ctx context.Context, d *setting.Ledger, do func(*commands.App) error) error {
	n, err := Start(ctx, d, false, true, "", logs.New(slog.LevelWarn), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	return do(n.App)
}

// Archived returns doctor's findings about the archive, or none if nothing is archived.
func (n *Node) Archived(ctx context.Context) []screen.Finding {
	a, err := archive.Count(ctx, n.Ledger)
	switch {
	case err != nil:
		return []screen.Finding{screen.Bad("archive", err.Error())}
	case a.Objects == 0:
		return nil
	}
	if err := archive.ReadNewest(ctx, n.Ledger); err != nil {
		return []screen.Finding{screen.Bad("archive", fmt.Sprintf("%d events are archived: %v", a.Events, err))}
	}
	found := []screen.Finding{screen.OK("archive", fmt.Sprintf("%d events in %d objects; the newest object can be read", a.Events, a.Objects))}
	if a.Incomplete > 0 {
		found = append(found, screen.Warning("archive", fmt.Sprintf("%d objects were not finished: run countersign archive move again", a.Incomplete)))
	}
	return found
}
