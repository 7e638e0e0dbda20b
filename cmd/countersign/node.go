package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/migrations"
)

// node is a program's access to the ledger: the database, started for it if need
// be, the ledger on it, and the commands.
type node struct {
	app    *commands.App
	ledger *ledger.Ledger
	server *privateServer // nil with DATABASE_URL
	log    *slog.Logger

	kek         []byte // opens the vault; nil without one
	checkpoints ledger.Checkpoints
}

// openNode starts or joins the database of the settings, brings its schema up to
// date if it is ours to do, and opens the ledger. development allows a signing
// key to be made.
func openNode(ctx context.Context, d *data, migrate, development bool, baseURL string, log *slog.Logger, say func(string, ...any)) (*node, error) {
	n := &node{log: log}
	url := d.DatabaseURL
	if d.private() {
		server, err := startPrivate(ctx, d, log, say)
		if err != nil {
			return nil, err
		}
		n.server, url, migrate = server, server.url(migrations.AppRole), true
	}
	if err := n.open(ctx, d, url, migrate, development, baseURL); err != nil {
		n.close()
		return nil, err
	}
	if d.serves {
		return n, nil // begins when all its settings are known to be good
	}
	if err := n.begin(ctx, d, development); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// begin makes the node one that appends: what is outside the database is held against
// it, and the keys are activated. Whatever may fail for a setting alone was done before.
func (n *node) begin(ctx context.Context, d *data, development bool) error {
	if err := n.checkOutside(ctx, d, n.checkpoints); err != nil {
		return err
	}
	if err := audit.HeedRemembered(n.ledger, n.selfChecks(d)); err != nil {
		return err
	}
	if err := n.openVault(ctx, d, development && d.private()); err != nil {
		return err
	}
	if signer := n.app.Signer; signer != nil && n.ledger.Stopped() == nil {
		if err := n.activate(ctx, signer, n.app.NextSigner); err != nil {
			if errors.Is(err, ledger.ErrForeignKey) {
				return fmt.Errorf("%w: it belongs to another environment or was retired; set SIGNING_KEY to the key that signs this ledger now, after a rotation the one that was NEXT_SIGNING_KEY", err)
			}
			return fmt.Errorf("activate the signing key: %w", err)
		}
	}
	if text := n.readOnly(); text != "" {
		fmt.Fprintf(os.Stderr, "countersign: %s\n", text)
	}
	return nil
}

// readOnly begins what every command says of a ledger to which this node appends
// nothing: it was put back, cut or rewritten. What only reads goes on.
const readOnly = "READ ONLY: "

func (n *node) readOnly() string {
	if n.ledger.Stopped() == nil {
		return ""
	}
	c := n.ledger.Condition()
	return readOnly + c.Sentence + "; " + c.Detail
}

func (n *node) open(ctx context.Context, d *data, url string, migrate, development bool, baseURL string) error {
	if migrate {
		owner := url
		if n.server != nil {
			owner = n.server.url(migrations.OwnerRole)
		}
		if err := migrations.UpPartitioned(ctx, owner, d.Origin, d.Partitions); err != nil {
			return err
		}
	} else if err := migrations.CheckCurrent(ctx, url); err != nil {
		return err
	}
	products, err := d.products()
	if err != nil {
		return err
	}
	signer, err := d.signer(development && d.private())
	if err != nil {
		return err
	}
	next, err := d.keyFor("NEXT_SIGNING_KEY", d.NextKey, "", false)
	if err != nil {
		return err
	}
	if n.checkpoints, err = d.checkpoints(development && d.private()); err != nil {
		return err
	}
	if err := n.checkpointSettings(d, signer); err != nil {
		return err
	}
	files, err := d.archive()
	if err != nil {
		return err
	}
	if n.ledger, err = ledger.Open(ctx, url, ledger.Options{Log: n.log, Partitions: d.Partitions, Archive: ledger.NewArchiveReader(files)}); err != nil {
		return err
	}
	if d.Origin != "" && d.Origin != strings.TrimSuffix(n.ledger.Origin(), "/0") {
		return fmt.Errorf("this ledger has another origin, for ever: %s; set LEDGER_ORIGIN to it or unset it", strings.TrimSuffix(n.ledger.Origin(), "/0"))
	}
	if d.serves && !d.byProvider() {
		if err := n.lasting(ctx); err != nil {
			return err
		}
	}
	n.app = &commands.App{Ledger: n.ledger, Signer: signer, NextSigner: next, Clock: time.Now, BaseURL: strings.TrimSuffix(baseURL, "/"), Environment: "live", Products: products}
	if d.private() {
		n.app.Environment = "dev" // its keys may be development keys
	}
	return nil
}

// lasting refuses a database that may lose what it has acknowledged.
func (n *node) lasting(ctx context.Context) error {
	var off bool
	err := n.ledger.Pool().QueryRow(ctx, `select current_setting('fsync') <> 'on' or current_setting('full_page_writes') <> 'on'`).Scan(&off)
	switch {
	case err != nil:
		return fmt.Errorf("ask PostgreSQL whether commits last: %w", err)
	case off:
		return errors.New("fsync or full_page_writes of PostgreSQL is off, and an acknowledged event may be lost: turn both on (alter system set fsync = on; alter system set full_page_writes = on; select pg_reload_conf()), or, if its provider keeps commits durable elsewhere, start with --durability=provider (DURABILITY)")
	}
	return nil
}

// selfChecks is how this node verifies its ledger, and where it remembers what it found.
func (n *node) selfChecks(d *data) audit.SelfChecks {
	return audit.SelfChecks{KEK: n.kek, Folder: n.checkpoints.Folder, GoOn: d.acceptFindings}
}

// activate makes the signer's key a key of this ledger, or checks that it, or the
// one after it, is.
func (n *node) activate(ctx context.Context, signer, next *seal.Signer) error {
	err := n.ledger.Activate(ctx, signer, "evt_"+ulid.Make().String())
	if errors.Is(err, ledger.ErrForeignKey) && next != nil {
		return n.ledger.Activate(ctx, next, "evt_"+ulid.Make().String())
	}
	return err
}

// openVault opens the vault, which keeps personal members, with a key of its own: a
// signing key rotates, and one in a hardware module has no seed.
func (n *node) openVault(ctx context.Context, d *data, development bool) error {
	text := d.DataKEK
	if text == "" && development {
		var err error
		if text, err = n.developmentKEK(ctx, d); err != nil {
			return err
		}
	}
	if text == "" {
		return n.withoutKEK(ctx, d) // what needs the vault answers 503
	}
	var err error
	if n.kek, err = parseKEK("DATA_KEK", text); err != nil {
		return err
	}
	n.app.Vault, err = n.ledger.OpenVault(ctx, n.kek)
	return err
}

// developmentKEK reads the key of the data folder, which the first start makes. It
// makes none for a ledger that has data keys: they are wrapped under another.
func (n *node) developmentKEK(ctx context.Context, d *data) (string, error) {
	text, err := setting.ReadSecret(filepath.Join(d.dir(), "data.kek"))
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	held, err := n.ledger.HoldsDataKeys(ctx)
	if err != nil {
		return "", err
	}
	if held {
		return "", errors.New("data.kek is missing in the data folder, and this ledger has data keys: put the file back, or set DATA_KEK to the key they are wrapped under")
	}
	return d.developmentKey("data.kek")
}

// withoutKEK refuses a node that signs without DATA_KEK on a ledger that has data keys:
// it could not read what they seal.
func (n *node) withoutKEK(ctx context.Context, d *data) error {
	held, err := n.ledger.HoldsDataKeys(ctx)
	if err != nil || !held || d.SigningKey == "" {
		return err
	}
	return errors.New("DATA_KEK is not set, and this ledger has data keys: set the key they are wrapped under")
}

func (n *node) close() {
	if n.ledger != nil {
		n.ledger.Close()
	}
	if n.server != nil {
		n.server.stop()
	}
}

// privateServer keeps a private PostgreSQL running: when the one it started or
// joined goes away, it starts or joins the next.
type privateServer struct {
	options localpg.Options
	log     *slog.Logger
	end     context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex // guards server
	server *localpg.Server
}

func startPrivate(ctx context.Context, d *data, log *slog.Logger, say func(string, ...any)) (*privateServer, error) {
	if !d.begins && !localpg.Made(d.dir()) {
		return nil, d.errNoLedger()
	}
	options := localpg.Options{DataDir: d.dir(), NoFetch: d.NoFetch, WAL: d.WALDir, Log: writerFunc(say)}
	server, err := localpg.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	p := &privateServer{options: options, log: log, end: end, server: server}
	p.done.Go(func() { p.watch(background) })
	return p, nil
}

// database is the address of the database, for what needs no more of it: a private one
// runs, and is addressed as a role, until it is left.
func (d *data) database(ctx context.Context, role string) (url string, leave func(), err error) {
	if !d.private() {
		return d.DatabaseURL, func() {}, migrations.Check(ctx, d.DatabaseURL)
	}
	server, err := startPrivate(ctx, d, slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return "", nil, err
	}
	if err := migrations.Check(ctx, server.url(role)); err != nil {
		server.stop()
		return "", nil, err
	}
	return server.url(role), server.stop, nil
}

func (p *privateServer) current() *localpg.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

func (p *privateServer) url(role string) string { return p.current().URL(role) }

func (p *privateServer) watch(ctx context.Context) {
	for {
		select {
		case <-p.current().Done():
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Warn("the private PostgreSQL went away; starting it again")
		server, err := localpg.Start(ctx, p.options)
		if err != nil {
			p.log.Error("the private PostgreSQL does not start", "error", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		p.mu.Lock()
		p.server = server
		p.mu.Unlock()
	}
}

func (p *privateServer) stop() {
	p.end()
	p.done.Wait()
	if err := p.current().Stop(); err != nil {
		p.log.Error("stop the private PostgreSQL", "error", err)
	}
}

// writerFunc gives what is written to a function, line by line.
type writerFunc func(string, ...any)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) {
	f("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
