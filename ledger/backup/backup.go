// Package backup copies a ledger's tables out of a database and back into an empty one. It works
// with any PostgreSQL server, because it runs no program on the server.
//
// A backup is a folder, and a separate file with the keys:
//
//	manifest.json           lists the tables, as JSON (type Manifest)
//	tables/NAME.copy.gz     rows of a table as COPY writes them (text format), by primary key, gzip
//	base.tar.gz             instead of tables: the files of a private PostgreSQL (localpg.CopyBase)
//	NAME.keys.age           the wrapped data keys and the key files of the data folder, a tar in the age format
//
// All tables are copied at one moment: one repeatable-read transaction reads them while appends
// continue. The keys are in a separate file for two reasons. A reader of the folder and the keys
// can decrypt personal members, and old copies of the keys still contain the keys of erased
// persons. The operator should keep the keys for at most 30 days, and may keep the folder for ever.
//
// A backup leaves out data that can be rebuilt or may be lost: read models and their checkpoints,
// sessions, sign-in and download links.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/migrations"
	"github.com/countersign/countersign/policy/canon"
)

// Manifest describes the ledger and the tables in a backup.
type Manifest struct {
	Schema     string  `json:"schema"` // "svc-backup-v1"
	CreatedAt  string  `json:"createdAt"`
	Migration  uint    `json:"migration"` // version of the database schema
	Beginning  string  `json:"beginning"` // hash of the first migration (migrations.Beginning)
	Origin     string  `json:"origin"`
	Epoch      int64   `json:"epoch"`
	Position   int64   `json:"position"` // position of the last event; for several partitions the sum
	Partitions int     `json:"partitions"`
	LastHash   string  `json:"lastHash"`      // hash of the last event of the first partition, in hex
	Base       bool    `json:"base,omitzero"` // base.tar.gz replaces the tables; Position is the ledger's position at the start of the copy
	Tables     []Table `json:"tables"`
}

// Table is one table of a backup.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"` // SHA-256 of the file, in hex
}

const format = "svc-backup-v1"

const (
	manifestName = "manifest.json"
	tablesName   = "tables"
	baseName     = "base.tar.gz"
)

// IsPart reports whether a backup contains a file or folder of this name.
func IsPart(name string) bool { return name == manifestName || name == tablesName || name == baseName }

const keysTable = "subject_keys"

// left lists the tables that are not copied.
var left = []string{
	"schema_migrations",              // migrations write it
	"projection_dead",                // belongs to read models, which are rebuilt
	"sessions",                       // members sign in again
	"signin_links", "download_links", // valid only for minutes
}

// keep maps some tables to a condition that selects the rows to copy.
var keep = map[string]string{
	// Webhooks and sinks send events to others and must continue where they stopped. All other
	// checkpoints belong to read models, which are rebuilt.
	"projection_checkpoint": `where name = 'webhooks' or name like 'sink/%'`,
}

// Write copies the tables into a new folder. The table of data keys and the key files of the data
// folder (files, by name) go to the separate writer keys. If keys is nil, they are left out. The
// login needs only the right to read.
func Write(ctx context.Context, databaseURL, folder string, keys io.Writer, files map[string][]byte) (m Manifest, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return m, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := os.MkdirAll(filepath.Join(folder, tablesName), 0o700); err != nil {
		return m, err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if m, err = describe(ctx, tx); err != nil {
			return err
		}
		for i := range m.Tables {
			t := &m.Tables[i]
			if t.Name == keysTable {
				continue
			}
			if err := t.write(ctx, tx, filepath.Join(folder, tablesName, t.Name+".copy.gz")); err != nil {
				return fmt.Errorf("copy %s: %w", t.Name, err)
			}
		}
		i := slices.IndexFunc(m.Tables, func(t Table) bool { return t.Name == keysTable })
		if i < 0 {
			return errors.New("the database has no table of data keys")
		}
		if keys != nil {
			err = m.Tables[i].writeKeys(ctx, tx, keys, files)
		}
		m.Tables = slices.Delete(m.Tables, i, i+1)
		return err
	})
	if err != nil {
		return m, err
	}
	return m, m.write(folder)
}

// write writes the manifest to its folder. It comes last, so an interrupted backup has no manifest
// and cannot be restored.
func (m Manifest) write(folder string) error {
	text, err := canon.Marshal(m)
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(folder, manifestName), text)
}

// WriteBase makes a backup of a private server in a new folder. The function copy writes the
// server's files as a tar. The key files of the data folder (files, by name) go to the separate
// writer keys, because they decrypt personal members.
func WriteBase(ctx context.Context, databaseURL, folder string, keys io.Writer, files map[string][]byte, copy func(context.Context, io.Writer) error) (m Manifest, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return m, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) { m, err = describe(ctx, tx); return err }); err != nil {
		return m, err
	}
	m.Base, m.Tables = true, []Table{}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return m, err
	}
	f, err := os.OpenFile(filepath.Join(folder, baseName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, err
	}
	packed := gzip.NewWriter(f)
	if err := errors.Join(copy(ctx, packed), packed.Close(), f.Sync(), f.Close()); err != nil {
		return m, err
	}
	if keys != nil {
		archive := tar.NewWriter(keys)
		if err := errors.Join(putFiles(archive, files), archive.Close()); err != nil {
			return m, err
		}
	}
	return m, m.write(folder)
}

// Base opens the tar with the base copy of a backup.
func Base(folder string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(folder, baseName))
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, f}, nil
}

// Keys reads the key files of a base copy. Without a reader it returns none.
func Keys(in io.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	if in == nil {
		return files, nil
	}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name, _ := strings.CutPrefix(header.Name, "files/")
		if files[name], err = io.ReadAll(io.LimitReader(archive, chunk)); err != nil {
			return nil, err
		}
	}
}

func connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	config, err := migrations.ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = "public"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	// A copy may take long, so disable the time-outs.
	_, err = conn.Exec(ctx, `set statement_timeout = 0; set idle_in_transaction_session_timeout = 0`)
	return conn, err
}

// describe reads the ledger's head and the list of tables. The list comes from the database, so
// that a table of a later migration is copied, too.
func describe(ctx context.Context, tx pgx.Tx) (Manifest, error) {
	m := Manifest{Schema: format, CreatedAt: time.Now().UTC().Format(time.RFC3339)}
	err := tx.QueryRow(ctx, `select h.origin, h.epoch, sums.pos, encode(h.last_hash, 'hex'), s.version, sums.n, obj_description('public.ledger_head'::regclass, 'pg_class')
		from ledger_head h, schema_migrations s, (select sum(pos)::bigint pos, count(*) n from ledger_head) sums
		where h.p = (select min(p) from ledger_head)`).Scan(&m.Origin, &m.Epoch, &m.Position, &m.LastHash, &m.Migration, &m.Partitions, &m.Beginning)
	if err != nil {
		return m, fmt.Errorf("read the ledger's head: %w", err)
	}
	rows, err := tx.Query(ctx, `select c.relname, array_agg(a.attname order by a.attnum)
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
		where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all($1) group by c.relname order by c.relname`, left)
	if err != nil {
		return m, err
	}
	m.Tables, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t Table, err error) { return t, row.Scan(&t.Name, &t.Columns) })
	return m, err
}

// query returns a COPY statement for the rows to keep, in the order of the primary key.
func (t Table) query(ctx context.Context, tx pgx.Tx) (string, error) {
	var key []string
	err := tx.QueryRow(ctx, `select array_agg(quote_ident(a.attname) order by k.n) from pg_index i, unnest(i.indkey) with ordinality k(attnum, n), pg_attribute a
		where i.indrelid = $1::regclass and i.indisprimary and a.attrelid = i.indrelid and a.attnum = k.attnum`, t.Name).Scan(&key)
	if err != nil || len(key) == 0 {
		return "", fmt.Errorf("the table has no primary key: %w", err)
	}
	return fmt.Sprintf(`copy (select %s from %s %s order by %s) to stdout`, t.columns(), pgx.Identifier{t.Name}.Sanitize(), keep[t.Name], strings.Join(key, ", ")), nil
}

func (t Table) columns() string {
	quoted := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		quoted[i] = pgx.Identifier{c}.Sanitize()
	}
	return strings.Join(quoted, ", ")
}

func (t *Table) write(ctx context.Context, tx pgx.Tx, path string) error {
	query, err := t.query(ctx, tx)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	packed := gzip.NewWriter(io.MultiWriter(f, sum))
	done, err := tx.Conn().PgConn().CopyTo(ctx, packed, query)
	err = errors.Join(err, packed.Close(), f.Sync(), f.Close())
	t.Rows, t.SHA256 = done.RowsAffected(), hex.EncodeToString(sum.Sum(nil))
	return err
}

// chunk is the approximate size in bytes of an entry with data keys in the tar. There are several
// entries, because a tar needs the size of an entry before its content.
const chunk = 1 << 20

// writeKeys writes the tar with the key files, and then the table of data keys in pieces.
func (t *Table) writeKeys(ctx context.Context, tx pgx.Tx, out io.Writer, files map[string][]byte) error {
	archive := tar.NewWriter(out)
	if err := putFiles(archive, files); err != nil {
		return err
	}
	query, err := t.query(ctx, tx)
	if err != nil {
		return err
	}
	pieces := &pieces{archive: archive}
	if _, err = tx.Conn().PgConn().CopyTo(ctx, pieces, query); err == nil {
		err = pieces.flush()
	}
	return errors.Join(err, archive.Close())
}

// putFiles writes files to the tar in the order of their names.
func putFiles(archive *tar.Writer, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := entry(archive, "files/"+name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

func entry(archive *tar.Writer, name string, content []byte) error {
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX})
	if err == nil {
		_, err = archive.Write(content)
	}
	return err
}

// pieces splits a stream into entries of the tar.
type pieces struct {
	archive *tar.Writer
	waiting []byte
	n       int
}

// Write implements io.Writer.
func (p *pieces) Write(b []byte) (int, error) {
	p.waiting = append(p.waiting, b...)
	if len(p.waiting) < chunk {
		return len(b), nil
	}
	return len(b), p.flush()
}

func (p *pieces) flush() error {
	err := entry(p.archive, fmt.Sprintf("%s/%08d", keysTable, p.n), p.waiting)
	p.waiting, p.n = nil, p.n+1
	return err
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// Read reads a backup's manifest. It returns an error if this program cannot restore the backup.
func Read(folder string) (m Manifest, err error) {
	text, err := os.ReadFile(filepath.Join(folder, manifestName))
	if err != nil {
		return m, fmt.Errorf("there is no backup in %s: %w", folder, err)
	}
	if err := canon.Decode(text, &m); err != nil || m.Schema != format {
		return m, fmt.Errorf("manifest.json does not describe a backup of the form %s", format)
	}
	if m.Beginning != migrations.Beginning() {
		return m, errors.New("the backup was made by a version from before the first release: restore it with the program that made it")
	}
	if m.Migration != migrations.Latest() {
		return m, fmt.Errorf("the backup has database schema %d, but this program has %d: restore it with the release that made it, then upgrade", m.Migration, migrations.Latest())
	}
	for _, t := range m.Tables {
		if t.Name == "" || strings.ContainsAny(t.Name, `/\.`) {
			return m, errors.New("manifest.json contains an invalid table name")
		}
	}
	return m, nil
}

// ErrHoldsEvents means that the database contains events. Restore never overwrites a ledger.
var ErrHoldsEvents = errors.New("the database contains events: restore into an empty database")

// Restore migrates a database to this program's schema and copies a backup into it, all or
// nothing. It reads the data keys and the key files from keys, and returns the key files. If keys
// is nil, personal members can never be decrypted again. The login must be countersign_owner or
// able to become it.
func Restore(ctx context.Context, databaseURL, folder string, keys io.Reader) (files map[string][]byte, err error) {
	m, err := Read(folder)
	if err != nil {
		return nil, err
	}
	origin, _ := strings.CutSuffix(m.Origin, "/0")
	if err := migrations.UpPartitioned(ctx, databaseURL, origin, m.Partitions); err != nil {
		return nil, err
	}
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `set role countersign_owner`); err != nil {
		return nil, err
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var held bool
		if err := tx.QueryRow(ctx, `select exists (select from events)`).Scan(&held); err != nil || held {
			return errors.Join(err, ErrHoldsEvents)
		}
		if _, err := tx.Exec(ctx, `delete from ledger_head; delete from tree_head; delete from projection_checkpoint; delete from `+keysTable); err != nil {
			return err
		}
		for _, t := range m.Tables {
			if err := t.restore(ctx, tx, filepath.Join(folder, tablesName, t.Name+".copy.gz")); err != nil {
				return fmt.Errorf("restore %s: %w", t.Name, err)
			}
		}
		if keys != nil {
			files, err = restoreKeys(ctx, tx, keys)
		}
		return err
	})
	return files, err
}

func (t Table) restore(ctx context.Context, tx pgx.Tx, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	unpacked, err := gzip.NewReader(io.TeeReader(f, sum))
	if err != nil {
		return err
	}
	done, err := tx.Conn().PgConn().CopyFrom(ctx, unpacked, `copy `+pgx.Identifier{t.Name}.Sanitize()+` (`+t.columns()+`) from stdin`)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != t.SHA256 || done.RowsAffected() != t.Rows {
		return errors.New("the file does not match the hash and the number of rows in the manifest")
	}
	return nil
}

// restoreKeys reads the tar that writeKeys has written.
func restoreKeys(ctx context.Context, tx pgx.Tx, in io.Reader) (map[string][]byte, error) {
	files, archive := map[string][]byte{}, tar.NewReader(in)
	reader, writer := io.Pipe()
	read := make(chan error, 1)
	go func() { // ends at the end of the archive, or after the copy has failed
		err := func() error {
			for {
				header, err := archive.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				if name, isFile := strings.CutPrefix(header.Name, "files/"); isFile {
					if files[name], err = io.ReadAll(io.LimitReader(archive, chunk)); err != nil {
						return err
					}
				} else if _, err := io.Copy(writer, archive); err != nil {
					return err
				}
			}
		}()
		writer.CloseWithError(err)
		read <- err
	}()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, reader, `copy `+keysTable+` from stdin`)
	reader.CloseWithError(err)
	if err := errors.Join(err, <-read); err != nil {
		return nil, fmt.Errorf("restore the keys: %w", err)
	}
	return files, nil
}
