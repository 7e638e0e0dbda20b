//go:build unix

package localpg

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// archiveTimeout is the number of seconds after which the server archives a segment of its
// write-ahead log although the segment is not full. If a disk fails, at most the log of this time
// is lost.
const archiveTimeout = 60

// plainPath matches a path that may be part of a shell command of the server: it contains no
// quotes and no per cent signs.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9/._+@=-]*$`)

// logFolder prepares and returns the folder for the server's write-ahead log. If Options name
// none, it returns the folder of an earlier start, because one run without it would leave a gap in
// the log. It returns an empty text if there is none.
func (l *launcher) logFolder() (string, error) {
	remembered := filepath.Join(l.dataDir, "wal.folder")
	if l.WAL == "" {
		text, err := os.ReadFile(remembered)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return strings.TrimSpace(string(text)), err
	}
	folder, err := filepath.Abs(l.WAL)
	if err != nil {
		return "", err
	}
	if !plainPath.MatchString(folder) {
		return "", fmt.Errorf("the path of the log folder may contain only letters, digits and /._+@=-, but is: %s", folder)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	if err := l.user.ownDir(folder); err != nil {
		return "", err
	}
	if closed, ok := l.user.closedParent(folder); ok {
		return "", fmt.Errorf("the log folder %s cannot be reached by user %s: %s is closed to that user", folder, l.user.name, closed)
	}
	return folder, os.WriteFile(remembered, []byte(folder+"\n"), 0o600)
}

// keepLog returns the settings with which the server archives each segment of its log in folder:
// compressed, synced and then renamed. Archiving the same segment twice is no error.
func keepLog(folder string) []string {
	if folder == "" {
		return []string{"archive_mode=off"}
	}
	kept := folder + "/%f.gz"
	return []string{"archive_mode=on", fmt.Sprintf("archive_timeout=%d", archiveTimeout), "archive_command=" +
		`if test -f "` + kept + `"; then gzip -dc "` + kept + `" | cmp -s - "%p"; else gzip -1 < "%p" > "` + kept + `.part" && sync "` + kept + `.part" && mv "` + kept + `.part" "` + kept + `" && sync "` + folder + `"; fi`}
}

// notCopied lists folders whose content a base copy does not need. neverIn lists files that it
// must not contain.
var (
	notCopied = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}
	neverIn   = []string{"postmaster.pid", "postmaster.opts", "backup_label", "tablespace_map", "recovery.signal", "standby.signal", "pg_internal.init"}
)

// ErrNoLog means that the server does not archive its write-ahead log.
var ErrNoLog = errors.New("the private PostgreSQL does not archive its write-ahead log: set WAL_DIR to a folder on another disk, restart, and then make the base copy")

// CopyBase writes the files of the server's cluster as a tar while the server runs. With the log
// that is archived from then on, Recover can restore any moment after the end of the copy.
func (s *Server) CopyBase(ctx context.Context, to io.Writer) error {
	return s.asSuperuser(ctx, "postgres", func(conn *pgx.Conn) error {
		var keeps string
		if err := conn.QueryRow(ctx, `select current_setting('archive_mode')`).Scan(&keeps); err != nil {
			return err
		}
		if keeps != "on" {
			return ErrNoLog
		}
		if _, err := conn.Exec(ctx, `set statement_timeout = 0; select pg_backup_start('countersign', true)`); err != nil {
			return fmt.Errorf("begin the base copy: %w", err)
		}
		archive := tar.NewWriter(to)
		if err := copyCluster(ctx, archive, filepath.Join(s.dataDir, "pg")); err != nil {
			return fmt.Errorf("copy the cluster: %w", err)
		}
		var label string
		if err := conn.QueryRow(ctx, `select labelfile from pg_backup_stop(true)`).Scan(&label); err != nil {
			return fmt.Errorf("end the base copy: %w", err)
		}
		err := archive.WriteHeader(&tar.Header{Name: "backup_label", Mode: 0o600, Size: int64(len(label)), Format: tar.FormatPAX})
		if err == nil {
			_, err = io.WriteString(archive, label)
		}
		return errors.Join(err, archive.Close())
	})
}

// copyCluster copies all files that a base copy needs, the control file last.
func copyCluster(ctx context.Context, to *tar.Writer, folder string) error {
	const control = "global/pg_control"
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(folder, file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // the file was dropped meanwhile
		case errors.Join(err, relErr, ctx.Err()) != nil:
			return errors.Join(err, relErr, ctx.Err())
		case name == "." || name == control || slices.Contains(neverIn, path.Base(name)) || strings.HasPrefix(path.Base(name), "pgsql_tmp"):
			return nil
		case d.IsDir():
			if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700, Format: tar.FormatPAX}); err != nil {
				return err
			}
			if slices.Contains(notCopied, name) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file: a cluster with tablespaces cannot be copied", name)
		}
		return copyFile(to, file, name)
	})
	if err != nil {
		return err
	}
	return copyFile(to, filepath.Join(folder, control), control)
}

// copyFile copies a file that may change meanwhile. It writes exactly as many bytes as the file
// had at first, with zeros for missing ones. Recovery repairs torn pages from the log.
func copyFile(to *tar.Writer, file, name string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), Format: tar.FormatPAX}); err != nil {
		return err
	}
	n, err := io.CopyN(to, f, info.Size())
	if errors.Is(err, io.EOF) {
		_, err = io.CopyN(to, zeros{}, info.Size()-n)
	}
	return err
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Recovery says to which moment a base copy is recovered.
type Recovery struct {
	WAL string    // folder with the archived log
	At  time.Time // recover to this time; zero means the end of the log
	XID string    // recover to the end of this transaction instead, if it is not empty
}

// ErrBeforeBase means that the requested moment is before the base copy.
var ErrBeforeBase = errors.New("use an earlier base copy, or request a later time or position: the one you requested is before the base copy")

// Recover creates the cluster in an empty data folder from a base copy and the archived log, and
// stops its server again. If it fails, it leaves no cluster.
func Recover(ctx context.Context, o Options, base io.Reader, r Recovery) (err error) {
	// Lock the data folder, which must not contain a cluster, and unpack the base copy.
	l, err := newLauncher(o)
	if err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(l.dataDir, "lock"))
	if err != nil {
		return fmt.Errorf("lock the data folder: %w", err)
	}
	defer unlock()
	if Made(l.dataDir) {
		return fmt.Errorf("the data folder %s contains a cluster: restore into an empty folder", l.dataDir)
	}
	if !plainPath.MatchString(r.WAL) {
		return fmt.Errorf("the path of the log folder may contain only letters, digits and /._+@=-, but is: %s", r.WAL)
	}
	if err := l.user.ownDir(l.pgDir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(l.pgDir))
		}
	}()
	if err := l.unpackBase(base); err != nil {
		return fmt.Errorf("unpack the base copy: %w", err)
	}
	// The server's user may not be allowed to read the log folder, so copy the log for that user.
	log := filepath.Join(l.dataDir, "recovery-log")
	defer os.RemoveAll(log)
	if err := l.user.ownDir(log); err != nil {
		return err
	}
	if err := l.takeLog(r.WAL, log); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if !plainPath.MatchString(log) {
		return fmt.Errorf("the path of the data folder may contain only letters, digits and /._+@=-, but is: %s", l.dataDir)
	}
	// Start the server with the settings that make it recover, and stop it again.
	l.WAL = ""
	l.Settings = append(slices.Clone(o.Settings), "hot_standby=off", "archive_mode=off", "recovery_target_action=promote",
		`restore_command=test -f "`+log+`/%f.gz" && gzip -dc "`+log+`/%f.gz" > "%p"`)
	switch {
	case r.XID != "":
		l.Settings = append(l.Settings, "recovery_target_xid="+r.XID)
	case !r.At.IsZero():
		l.Settings = append(l.Settings, "recovery_target_time="+r.At.UTC().Format("2006-01-02 15:04:05.999999+00"))
	}
	s, err := l.start(ctx)
	if err != nil {
		ended := strings.Contains(err.Error(), "recovery ended before configured recovery target was reached")
		switch {
		case ended && r.XID != "", strings.Contains(err.Error(), "requested recovery stop point is before consistent recovery point"):
			// The transaction exists, but its end is not in the log, so it is already in the copy.
			return ErrBeforeBase
		case ended:
			return errors.New("the log ends before the requested time or position: omit --at and --position to recover to its end")
		}
		return err
	}
	return s.Stop()
}

// unpackBase unpacks a tar of CopyBase as the server's user, and adds the file that makes
// PostgreSQL recover.
func (l *launcher) unpackBase(base io.Reader) error {
	root, err := os.OpenRoot(l.pgDir)
	if err != nil {
		return err
	}
	defer root.Close()
	own := func(name string) error {
		if !l.user.other {
			return nil
		}
		return root.Lchown(name, int(l.user.uid), int(l.user.gid))
	}
	put := func(name string, content io.Reader) error {
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Sync(), f.Close(), own(name))
	}
	// Unpack every file and folder of the copy.
	for archive := tar.NewReader(base); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if header.Typeflag == tar.TypeDir {
			err = errors.Join(root.Mkdir(name, 0o700), own(name))
		} else {
			err = put(name, archive)
		}
		if err != nil {
			return err
		}
	}
	// Check that the copy is complete, and add the files that PostgreSQL expects.
	if _, err := root.Stat("backup_label"); err != nil {
		return errors.New("the base copy is incomplete: it has no backup_label")
	}
	const status = "pg_wal/archive_status"
	if err := errors.Join(root.MkdirAll(status, 0o700), own(status)); err != nil {
		return err
	}
	return put("recovery.signal", strings.NewReader(""))
}

// takeLog copies the segments of the log for the server's user.
func (l *launcher) takeLog(from, to string) error {
	segments, err := filepath.Glob(filepath.Join(from, "*.gz"))
	if err != nil {
		return err
	}
	if len(segments) == 0 {
		return fmt.Errorf("%s contains no segments of the log", from)
	}
	for _, segment := range segments {
		octets, err := os.ReadFile(segment)
		if err != nil {
			return err
		}
		name := filepath.Join(to, filepath.Base(segment))
		if err := os.WriteFile(name, octets, 0o600); err != nil {
			return err
		}
		if l.user.other {
			if err := os.Lchown(name, int(l.user.uid), int(l.user.gid)); err != nil {
				return err
			}
		}
	}
	return nil
}
