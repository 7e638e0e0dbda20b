package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/countersign/countersign/cmd/countersign/files"
	"github.com/countersign/countersign/cmd/countersign/node"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/cmd/countersign/setting"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/backup"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/migrations"
)

// Backup copies the ledger while it is used.
type Backup struct {
	Out         string   `arg:"" help:"New folder for the backup. The keys go into a file beside it, FOLDER.keys.age: keep them elsewhere, for 30 days at most."`
	Recipients  []string `help:"age public keys that can open the file of keys." name:"recipient" placeholder:"age1..."`
	Passphrase  string   `help:"Opens the file of keys, in the place of recipients." env:"BACKUP_PASSPHRASE" secret:"" placeholder:"TEXT"`
	WithoutKeys bool     `help:"Leave the keys out: without them nobody can read what is sealed, the owner neither."`
	Base        bool     `help:"Of the private PostgreSQL: copy its files, so that restore can bring them to any moment after that by the log in WAL_DIR. Wrapped data keys are among the files: keep them for 30 days at most, too."`
	setting.Ledger
}

// backedUp is what backup says.
type backedUp struct {
	backup.Manifest
	Archive archive.Counts `json:"archive,omitzero"` // which is not in it
}

// keyFiles are the secrets of the data folder. With DATABASE_URL the program's
// secrets are where the operator keeps them.
func keyFiles(d *setting.Ledger) (map[string][]byte, error) {
	files := map[string][]byte{}
	if !d.Private() {
		return files, nil
	}
	for _, pattern := range []string{"*.key", "*.kek"} {
		paths, err := filepath.Glob(filepath.Join(d.Dir(), pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// Run copies into a folder of a temporary name, which gets its own at the end: a
// folder that is there is a backup that is whole.
func (c *Backup) Run(ctx context.Context, o *screen.Output) (err error) {
	to, err := c.recipients()
	if err != nil {
		return err
	}
	c.Out = filepath.Clean(c.Out)
	leave, err := c.claim()
	if err != nil {
		return err
	}
	defer leave()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(c.half()))
		}
	}()
	n, err := node.Start(ctx, &c.Ledger, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	url := c.DatabaseURL
	if n.Server != nil {
		url = n.Server.URL(migrations.AppRole)
	}
	secrets, err := keyFiles(&c.Ledger)
	if err != nil {
		return err
	}
	half := c.half()
	copyTables := func(keys io.Writer) (backup.Manifest, error) { return backup.Write(ctx, url, half, keys, secrets) }
	if c.Base {
		if n.Server == nil {
			return errors.New("--base copies the files of the private PostgreSQL: with DATABASE_URL use its own tools (pg_basebackup), or leave --base out")
		}
		copyTables = func(keys io.Writer) (backup.Manifest, error) {
			return backup.WriteBase(ctx, url, half, keys, secrets, n.Server.Current().CopyBase)
		}
	}
	var m backup.Manifest
	if c.WithoutKeys {
		m, err = copyTables(nil)
	} else {
		m, err = withKeys(filepath.Join(half, halfKeys), to, copyTables)
	}
	if err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	return c.say(ctx, o, n, m, len(secrets))
}

// say says what the backup holds, and what of the ledger is not in it.
func (c *Backup) say(ctx context.Context, o *screen.Output, n *node.Node, m backup.Manifest, keyFiles int) error {
	archived, err := archive.Count(ctx, n.Ledger)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s  %d events up to position %d\n", c.Out, m.Position, m.Position)
	if !c.WithoutKeys {
		text += fmt.Sprintf("%s  data keys and %d key files, encrypted; keep it elsewhere and for 30 days at most\n", c.keysPath(), keyFiles)
	}
	if archived.Objects > 0 {
		text += fmt.Sprintf("NOT in it: the archive, %d events in %d objects. They are part of the ledger: keep a copy of the place that ARCHIVE_STORE names, from now or later, as long as this backup\n", archived.Events, archived.Objects)
	}
	return o.Result(backedUp{m, archived}, text+"next: countersign restore "+c.Out+" into an empty data folder or database, to see that it can be\n")
}

func (c *Backup) keysPath() string { return c.Out + ".keys.age" }

// half is the folder until it is whole, the file of keys in it.
func (c *Backup) half() string { return c.Out + ".part" }

const halfKeys = "keys.age"

// claim refuses before anything is touched: what is there already, and what another
// backup is writing. What a killed one left half made is removed.
func (c *Backup) claim() (leave func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o700); err != nil {
		return nil, err
	}
	leave, err = files.Claim(c.half() + ".lock")
	if errors.Is(err, files.ErrClaimed) {
		return nil, fmt.Errorf("another backup is writing %s: let it end, or name a new folder", c.Out)
	}
	if err != nil {
		return nil, err
	}
	if err = c.free(); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// free says whether nothing stands where the backup is to be.
func (c *Backup) free() error {
	if _, err := os.Lstat(c.Out); err == nil {
		return fmt.Errorf("%s exists: name a new folder", c.Out)
	}
	if _, err := os.Lstat(c.keysPath()); err == nil && !c.WithoutKeys {
		return fmt.Errorf("%s exists and belongs to another backup, or was left by one that was killed: remove it if %s is not elsewhere, or name a new folder", c.keysPath(), c.Out)
	}
	left, err := os.ReadDir(c.half())
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(c.half(), 0o700)
	}
	for _, entry := range left {
		if !backup.IsPart(entry.Name()) && entry.Name() != halfKeys {
			err = errors.New("it is no half made backup")
		}
	}
	if err != nil {
		return fmt.Errorf("%s is in the way: remove it, or name a new folder: %w", c.half(), files.WithoutPath(err))
	}
	return errors.Join(os.RemoveAll(c.half()), os.Mkdir(c.half(), 0o700))
}

// finish gives folder and keys their names. The folder is last: one that is there is
// a backup that is whole.
func (c *Backup) finish() error {
	if c.WithoutKeys {
		return os.Rename(c.half(), c.Out)
	}
	if err := os.Rename(filepath.Join(c.half(), halfKeys), c.keysPath()); err != nil {
		return err
	}
	err := os.Rename(c.half(), c.Out)
	if err != nil {
		err = errors.Join(err, os.Remove(c.keysPath()))
	}
	return err
}

func (c *Backup) recipients() ([]age.Recipient, error) {
	switch {
	case c.WithoutKeys:
		return nil, nil
	case len(c.Recipients) > 0 && c.Passphrase != "":
		return nil, errors.New("give --recipient or BACKUP_PASSPHRASE, not both")
	case c.Passphrase != "":
		r, err := age.NewScryptRecipient(c.Passphrase)
		return []age.Recipient{r}, err
	case len(c.Recipients) == 0:
		return nil, errors.New("say who may open the keys: --recipient KEY (age-keygen makes one), BACKUP_PASSPHRASE, or --without-keys")
	}
	var to []age.Recipient
	for _, text := range c.Recipients {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, errors.New("--recipient wants an age public key, which begins with age1")
		}
		to = append(to, r)
	}
	return to, nil
}

func withKeys(path string, to []age.Recipient, write func(io.Writer) (backup.Manifest, error)) (m backup.Manifest, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
	sealed, err := age.Encrypt(f, to...)
	if err != nil {
		return m, err
	}
	if m, err = write(sealed); err != nil {
		return m, err
	}
	return m, sealed.Close()
}

// Restore puts a backup into an empty data folder or database.
type Restore struct {
	From        string `arg:"" help:"Folder of the backup."`
	Keys        string `help:"File of its keys; default: FOLDER.keys.age." placeholder:"FILE"`
	Identity    string `help:"File of the age identity that opens the keys." placeholder:"FILE"`
	Passphrase  string `help:"Opens the file of keys." env:"BACKUP_PASSPHRASE" secret:"" placeholder:"TEXT"`
	WithoutKeys bool   `help:"Restore without the keys: what is sealed stays closed."`
	WAL         string `help:"Of a base copy: the folder that was WAL_DIR." name:"wal" placeholder:"DIR"`
	At          string `help:"Of a base copy: bring it to this moment (RFC 3339); default: to the end of the log." placeholder:"TIME"`
	Position    string `help:"Of a base copy: bring it to the commit of this position; of a ledger with several partitions PARTITION:N." placeholder:"N"`
	setting.Ledger
}

// restored is what restore says.
type restored struct {
	Position int64        `json:"position"`
	Report   audit.Report `json:"report"`
	Notes    string       `json:"notes"` // what the checkpoints outside the database say
}

// Run restores, verifies every event and compares with the checkpoints that lie
// outside of the database. Exit 1: what was restored is false.
func (c *Restore) Run(ctx context.Context, o *screen.Output) error {
	m, err := backup.Read(c.From)
	if err != nil {
		return err
	}
	if !m.Base && (c.WAL != "" || c.At != "" || c.Position != "") {
		return errors.New("--wal, --at and --position belong to a base copy (backup --base)")
	}
	keys, err := c.openKeys()
	if err != nil {
		return err
	}
	if err := c.restore(ctx, keys); err != nil {
		return err
	}
	n, err := node.Start(ctx, &c.Ledger, false, false, "", slog.New(slog.DiscardHandler), func(string, ...any) {})
	if err != nil {
		return err
	}
	defer n.Close()
	report, err := audit.Ledger(ctx, n.Ledger, nil)
	if err != nil {
		return err
	}
	if m.Base { // which has what the log brought, too
		m.Position, m.LastHash = report.Head, report.Hash
	}
	notes, err := c.outside(ctx, n.Ledger)
	if err != nil {
		return err
	}
	return c.say(o, m, restored{Position: m.Position, Report: report, Notes: notes})
}

// say says what was restored, and whether it is right.
func (c *Restore) say(o *screen.Output, m backup.Manifest, said restored) error {
	report := said.Report
	text := fmt.Sprintf("restored %d events\n", m.Position)
	for _, fault := range report.Faults {
		text += fmt.Sprintf("FALSE  %v\n", fault)
	}
	text += fmt.Sprintf("verified %d events and %d signatures: %d faults\n%s\nread models are built at the next start\n", report.Events, report.Records, len(report.Faults), said.Notes)
	if err := o.Result(said, text); err != nil {
		return err
	}
	if len(report.Faults) > 0 || report.Head != m.Position || report.Hash != m.LastHash {
		return screen.ErrNo
	}
	return nil
}

// outside compares with the checkpoints outside of the database, in words.
func (c *Restore) outside(ctx context.Context, l *ledger.Ledger) (string, error) {
	checkpoints, err := node.Checkpoints(&c.Ledger, false)
	if err != nil {
		return "", err
	}
	found, _, err := keeper.CheckOutside(ctx, l, checkpoints)
	var rollback *keeper.Rollback
	switch {
	case errors.As(err, &rollback):
		return fmt.Sprintf("positions %d to %d are in a published checkpoint and not in this backup: restore a newer one, or serve --accept-rollback", rollback.From, rollback.To), nil
	case err != nil:
		return err.Error(), nil
	case found:
		return "the newest checkpoint outside the database is of this history", nil
	}
	return "no checkpoint lies outside the database: that there are newer events cannot be excluded", nil
}

// copyBack restores the tables, or the base copy, and returns the key files.
func (c *Restore) copyBack(ctx context.Context, keys io.Reader) (map[string][]byte, error) {
	m, err := backup.Read(c.From)
	if err != nil {
		return nil, err
	}
	if m.Base {
		return c.recover(ctx, m, keys)
	}
	c.Begins = true
	url, leave, err := node.Database(ctx, &c.Ledger, migrations.OwnerRole)
	if err != nil {
		return nil, err
	}
	defer leave()
	return backup.Restore(ctx, url, c.From, keys)
}

// openKeys opens the file of keys; nil without one.
func (c *Restore) openKeys() (io.Reader, error) {
	if c.WithoutKeys {
		return nil, nil
	}
	path := c.Keys
	if path == "" {
		path = strings.TrimSuffix(c.From, string(filepath.Separator)) + ".keys.age"
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no keys in %s: name their file with --keys, or restore --without-keys", path)
	}
	if err != nil {
		return nil, err
	}
	var identities []age.Identity
	switch {
	case c.Passphrase != "":
		i, err := age.NewScryptIdentity(c.Passphrase)
		if err != nil {
			return nil, err
		}
		identities = append(identities, i)
	case c.Identity != "":
		text, err := setting.ReadSecret(c.Identity)
		if err != nil {
			return nil, fmt.Errorf("--identity: %w", err)
		}
		if identities, err = age.ParseIdentities(strings.NewReader(text)); err != nil {
			return nil, errors.New("--identity: the file holds no age identity")
		}
	default:
		return nil, errors.New("say how the keys are opened: --identity FILE or BACKUP_PASSPHRASE, or restore --without-keys")
	}
	keys, err := age.Decrypt(f, identities...)
	if err != nil {
		return nil, errors.New("the file of keys does not open with this identity or passphrase")
	}
	return keys, nil
}

// restore copies into the database of the settings, and key files into its data
// folder. One that holds keys is refused first: those of another ledger must not be
// lost.
func (c *Restore) restore(ctx context.Context, keys io.Reader) error {
	if there, err := keyFiles(&c.Ledger); err != nil || keys != nil && len(there) > 0 {
		return errors.Join(err, fmt.Errorf("the data folder %s holds keys already: restore into an empty one", c.Dir()))
	}
	found, err := c.copyBack(ctx, keys)
	if err != nil || !c.Private() {
		return err
	}
	for name, content := range found {
		if name != filepath.Base(name) {
			return errors.New("the file of keys holds a name that is a path")
		}
		f, err := os.OpenFile(filepath.Join(c.Dir(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("keep %s: %w", name, files.WithoutPath(err))
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
