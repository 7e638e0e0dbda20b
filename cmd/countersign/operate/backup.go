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

// Backup copies the ledger while services use it.
type Backup struct {
	Out         string   `arg:"" help:"New folder for the backup. The keys are written to the file FOLDER.keys.age: store it elsewhere, for at most 30 days."`
	Recipients  []string `help:"age public keys for which the key file is encrypted. The private key of any one of them can decrypt it." name:"recipient" placeholder:"age1..."`
	Passphrase  string   `help:"Passphrase that encrypts the key file, instead of the public keys of recipients." env:"BACKUP_PASSPHRASE" secret:"" placeholder:"TEXT"`
	WithoutKeys bool     `help:"Leave out the keys. Without them nobody, not even the owner, can read encrypted personal data."`
	Base        bool     `help:"Copy the files of the private PostgreSQL. With the log in WAL_DIR, restore can then recover any later moment. The files contain wrapped data keys: keep them for at most 30 days, too."`
	setting.Ledger
}

// backedUp is the result of backup.
type backedUp struct {
	backup.Manifest
	Archive archive.Counts `json:"archive,omitzero"` // the archive, which is not part of the backup
}

// keyFiles returns the files with secrets in the data folder. With DATABASE_URL there are none,
// because the operator stores the secrets elsewhere.
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

// Run writes the backup into a folder with a temporary name and renames it at the end. So a folder
// with the final name is always a complete backup.
func (c *Backup) Run(ctx context.Context, o *screen.Output) (err error) {
	to, err := c.recipients()
	if err != nil {
		return err
	}
	// Claim the names. A failed backup removes its unfinished folder.
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
	// Start the database and read the key files.
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
	// Copy the tables or, with --base, the files of the server.
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
	// Give the complete backup its final names.
	if err := c.finish(); err != nil {
		return err
	}
	return c.say(ctx, o, n, m, len(secrets))
}

// say prints the content of the backup, and which part of the ledger it does not contain.
func (c *Backup) say(ctx context.Context, o *screen.Output, n *node.Node, m backup.Manifest, keyFiles int) error {
	archived, err := archive.Count(ctx, n.Ledger)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d events up to position %d\n", m.Position, m.Position)
	if !c.WithoutKeys {
		holds := "data keys"
		if keyFiles > 0 {
			holds += fmt.Sprintf(" and %d key files", keyFiles)
		}
		text += fmt.Sprintf("%s  %s, encrypted; store the file elsewhere, for at most 30 days\n", c.keysPath(), holds)
		if keyFiles == 0 {
			text += "NOT in the backup: SIGNING_KEY, DATA_KEK, TOKEN_KEY and CHECKPOINT_KEY. Keep copies: without DATA_KEK nobody can read the personal data in it\n"
		}
	}
	if archived.Objects > 0 {
		text += fmt.Sprintf("NOT in the backup: the archive, %d events in %d objects. They are part of the ledger: also copy the store in ARCHIVE_STORE, at any time, and keep that copy as long as this backup\n", archived.Events, archived.Objects)
	}
	return o.Made(backedUp{m, archived}, c.Out, text+"next: countersign restore "+c.Out+" into an empty data folder or database, to test the backup")
}

func (c *Backup) keysPath() string { return c.Out + ".keys.age" }

// half returns the folder of an unfinished backup, which also contains the key file.
func (c *Backup) half() string { return c.Out + ".part" }

const halfKeys = "keys.age"

// claim locks the target. It refuses if the backup's files exist or another process is writing
// them, and removes the unfinished files of a killed process.
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

// free returns an error if a file of a finished backup exists. It removes the files of an
// unfinished one and creates its folder.
func (c *Backup) free() error {
	if _, err := os.Lstat(c.Out); err == nil {
		return fmt.Errorf("%s exists: name a new folder", c.Out)
	}
	if _, err := os.Lstat(c.keysPath()); err == nil && !c.WithoutKeys {
		return fmt.Errorf("%s exists: it belongs to another backup, or a backup that was killed left it. Remove it unless you have moved that backup (%s) elsewhere, or name a new folder", c.keysPath(), c.Out)
	}
	left, err := os.ReadDir(c.half())
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(c.half(), 0o700)
	}
	for _, entry := range left {
		if !backup.IsPart(entry.Name()) && entry.Name() != halfKeys {
			err = errors.New("the folder is not an unfinished backup")
		}
	}
	if err != nil {
		return fmt.Errorf("%s exists already: remove it, or name a new folder: %w", c.half(), files.WithoutPath(err))
	}
	return errors.Join(os.RemoveAll(c.half()), os.Mkdir(c.half(), 0o700))
}

// finish renames the key file and then the folder to their final names. The folder is last,
// because a folder with the final name is a complete backup.
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
		return nil, errors.New("the backup must encrypt the keys: give --recipient KEY (age-keygen creates one) or BACKUP_PASSPHRASE, or leave the keys out with --without-keys")
	}
	var to []age.Recipient
	for _, text := range c.Recipients {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, errors.New("--recipient must be an age public key, which begins with age1")
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

// Restore restores a backup into an empty data folder or database.
type Restore struct {
	From        string `arg:"" help:"Folder of the backup."`
	Keys        string `help:"Key file of the backup. Default: FOLDER.keys.age." placeholder:"FILE"`
	Identity    string `help:"File of the age identity that decrypts the key file." placeholder:"FILE"`
	Passphrase  string `help:"Passphrase of the key file." env:"BACKUP_PASSPHRASE" secret:"" placeholder:"TEXT"`
	WithoutKeys bool   `help:"Restore without the keys: encrypted personal data stays unreadable."`
	WAL         string `help:"For a base copy: the folder that was WAL_DIR." name:"wal" placeholder:"DIR"`
	At          string `help:"For a base copy: recover up to this time (RFC 3339). Default: the end of the log." placeholder:"TIME"`
	Position    string `help:"For a base copy: recover up to the commit of this position; if the ledger has several partitions, PARTITION:N." placeholder:"N"`
	setting.Ledger
}

// restored is the result of restore.
type restored struct {
	Position int64        `json:"position"`
	Report   audit.Report `json:"report"`
	Notes    string       `json:"notes"` // result of the comparison with the checkpoints outside the database
}

// Run restores a backup, verifies all events, and compares the result with the checkpoints outside
// the database. The exit code is 1 if the restored ledger does not verify.
func (c *Restore) Run(ctx context.Context, o *screen.Output) error {
	m, err := backup.Read(c.From)
	if err != nil {
		return err
	}
	if !m.Base && (c.WAL != "" || c.At != "" || c.Position != "") {
		return errors.New("--wal, --at and --position need a base copy (backup --base)")
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
	if m.Base { // the position follows from the replayed log and not from the manifest
		m.Position, m.LastHash = report.Head, report.Hash
	}
	notes, err := c.outside(ctx, n.Ledger)
	if err != nil {
		return err
	}
	return c.say(o, m, restored{Position: m.Position, Report: report, Notes: notes})
}

// say prints what was restored, and returns ErrNo if it does not verify.
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

// outside compares the ledger with the checkpoints outside the database and returns the result as
// text.
func (c *Restore) outside(ctx context.Context, l *ledger.Ledger) (string, error) {
	checkpoints, err := node.Checkpoints(&c.Ledger, false)
	if err != nil {
		return "", err
	}
	found, _, err := keeper.CheckOutside(ctx, l, checkpoints)
	var rollback *keeper.Rollback
	switch {
	case errors.As(err, &rollback):
		return fmt.Sprintf("positions %d to %d are in a published checkpoint and not in this backup: restore a newer backup, or start countersign serve --accept-rollback", rollback.From, rollback.To), nil
	case err != nil:
		return err.Error(), nil
	case found:
		return "the newest checkpoint outside the database matches this history", nil
	}
	return "no checkpoint of this ledger is in " + checkpoints.Folder.Path + ", so newer events may be missing; set CHECKPOINT_DIR to the folder of the nodes", nil
}

// copyBack restores the tables or the base copy. It returns the files in the encrypted tar of
// keys, by name, or none if keys is nil.
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

// openKeys opens the key file for decryption. It returns nil with --without-keys.
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
		return nil, fmt.Errorf("no keys in %s: name the key file with --keys, or restore --without-keys", path)
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
			return nil, errors.New("--identity: the file has no age identity")
		}
	default:
		return nil, errors.New("the keys of the backup are encrypted: give --identity FILE or BACKUP_PASSPHRASE, or restore --without-keys")
	}
	keys, err := age.Decrypt(f, identities...)
	if err != nil {
		return nil, errors.New("the key file cannot be decrypted with this identity or passphrase")
	}
	return keys, nil
}

// restore writes the tables into the database and the key files into the data folder. It first
// refuses a data folder with keys, so that the keys of another ledger are not overwritten.
func (c *Restore) restore(ctx context.Context, keys io.Reader) error {
	if there, err := keyFiles(&c.Ledger); err != nil || keys != nil && len(there) > 0 {
		return errors.Join(err, fmt.Errorf("the data folder %s already contains keys: restore into an empty folder", c.Dir()))
	}
	found, err := c.copyBack(ctx, keys)
	if err != nil || !c.Private() {
		return err
	}
	for name, content := range found {
		if name != filepath.Base(name) {
			return errors.New("the key file contains a file name with a folder")
		}
		f, err := os.OpenFile(filepath.Join(c.Dir(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, files.WithoutPath(err))
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
