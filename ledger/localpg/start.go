//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server is a running private PostgreSQL, started or adopted.
type Server struct {
	dataDir   string
	socketDir string
	port      int

	child *child        // nil if the server was adopted
	temp  string        // socket folder to remove at the end; empty if it is in the data folder
	done  chan struct{} // closed when the server has ended, or by Stop

	leave func() // stops watching an adopted server
	once  sync.Once
	err   error
}

// Start returns the server of the data folder: the one that already runs there, or one that it
// starts from binaries on this machine, binaries fetched earlier, or ones that it fetches now.
// Database and roles exist afterwards; the caller must create the schema (migrations.Up as
// migrations.OwnerRole). ctx limits the start and not the server.
//
// If errors.Is(err, ErrNoPostgres) is true, the text of the error is for the user: it says what
// was tried and lists three ways to proceed.
func Start(ctx context.Context, o Options) (*Server, error) {
	l, err := newLauncher(o)
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(ctx, filepath.Join(l.dataDir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	defer unlock()
	for range startTries {
		var s *Server
		if s, err = l.adopt(ctx); s == nil && err == nil {
			s, err = l.start(ctx)
		}
		if errors.Is(err, errOther) {
			continue // another server started or ended: try again
		}
		if err != nil {
			return nil, err
		}
		if err = s.makeDatabase(ctx); err == nil {
			return s, nil
		}
		err = errors.Join(fmt.Errorf("%w (PostgreSQL's log is %s)", err, l.logPath()), s.Stop())
		if !s.Adopted() || ctx.Err() != nil {
			return nil, err
		}
	}
	return nil, err
}

// Stop stops a server that Start has started: by a fast shutdown, then an immediate one, then by
// force. It returns when the process has ended. It leaves an adopted server running. A second call
// does nothing and returns the same error; a call on nil does nothing.
func (s *Server) Stop() error {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		if s.child == nil {
			s.leave()
			return
		}
		s.err = s.child.stop(fastStop, immediateStop)
		if s.temp != "" {
			s.err = errors.Join(s.err, os.RemoveAll(s.temp))
		}
	})
	return s.err
}

// Done returns a channel that is closed when the server has ended for any reason, and also by
// Stop. A program that has adopted its server must then call Start again, because the program that
// started the server has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// launcher is the state of one call of Start or Recover.
type launcher struct {
	Options
	dataDir string
	pgDir   string
	user    account
	log     io.Writer
}

func newLauncher(o Options) (*launcher, error) {
	dir := o.DataDir
	if dir == "" {
		dir = DefaultDataDir()
	}
	if dir == "" {
		return nil, errors.New("there is no data folder, because the user has no home folder: set DATA_DIR")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	user, err := serverAccount()
	if err != nil {
		return nil, err
	}
	l := &launcher{Options: o, dataDir: dir, pgDir: filepath.Join(dir, "pg"), user: user, log: o.Log}
	if l.log == nil {
		l.log = io.Discard
	}
	if err := l.user.makeDataDir(dir); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(l.pgDir); err == nil {
		return l, l.user.mayUse(l.pgDir, info)
	}
	return l, nil
}

func (l *launcher) say(format string, args ...any) {
	fmt.Fprintf(l.log, format+"\n", args...) //nolint:errcheck // a closed terminal is no reason to stop
}

// start starts a server. It returns errOther if a server that adopt did not find uses the folder.
func (l *launcher) start(ctx context.Context) (*Server, error) {
	bin, err := l.binaries(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.makeCluster(ctx, bin); err != nil {
		return nil, err
	}
	socketDir, temp, err := l.socketDir()
	if err != nil {
		return nil, err
	}
	s := &Server{dataDir: l.dataDir, socketDir: socketDir, port: port, temp: temp}
	if s.child, err = l.run(ctx, bin, socketDir); err != nil {
		return nil, errors.Join(err, removeTemp(temp))
	}
	s.done = s.child.done
	if err := l.waitReady(ctx, s); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	l.say("PostgreSQL %s from %s; data in %s (removing that folder removes everything)", bin.version, bin.dir, l.dataDir)
	return s, nil
}

func removeTemp(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// settings returns the settings of the server. All settings for durable commits are on. Parallel
// queries are off, because they need shared memory that containers lack.
func (l *launcher) settings(socketDir, logFolder string) []string {
	return slices.Concat([]string{
		"listen_addresses=",
		"unix_socket_directories=" + socketDir,
		"unix_socket_permissions=0777", // safe, because other users cannot enter the folder
		fmt.Sprintf("port=%d", port),
		"fsync=on",
		"full_page_writes=on",
		"synchronous_commit=on",
		"max_connections=100",
		"shared_buffers=128MB",
		"min_wal_size=80MB", // set explicitly, because initdb would derive both from the segment size
		"max_wal_size=1GB",
		// The background writer writes dirty buffers continuously, a few at a time. Otherwise a
		// checkpoint syncs all of them at its end, and under load commits wait for 0.2 seconds
		// every minute.
		"bgwriter_delay=20ms",
		"bgwriter_lru_maxpages=400",
		"bgwriter_lru_multiplier=4",
		"backend_flush_after=256kB",
		"max_parallel_workers_per_gather=0",
		"max_parallel_maintenance_workers=0",
		"logging_collector=off",
		"log_destination=stderr",
		"cluster_name=countersign",
		"timezone=UTC",
		"log_timezone=UTC",
	}, l.access(), keepLog(logFolder), l.Settings)
}

// accessFiles returns the paths of the two files that say who may log in to a server that root has
// started. The files belong to root, so the server's user cannot change them.
func (l *launcher) accessFiles() (hba, ident string) {
	return filepath.Join(l.dataDir, "pg_hba.conf"), filepath.Join(l.dataDir, "pg_ident.conf")
}

// access returns the settings that keep other programs of the server's user out. Such programs can
// enter the socket folder, as the server can.
func (l *launcher) access() []string {
	if !l.user.other {
		return nil
	}
	hba, ident := l.accessFiles()
	return []string{"hba_file=" + hba, "ident_file=" + ident}
}

// writeAccess writes the files that let root log in as every role. Before PostgreSQL 16, which has
// a keyword for all roles, they list each role.
func (l *launcher) writeAccess(major int) error {
	if !l.user.other {
		return nil
	}
	granted := []string{"all"}
	if major < 16 {
		granted = append([]string{Superuser, "auditor"}, roles...) // auditor is a role in the documentation
	}
	var ident strings.Builder
	for _, role := range granted {
		fmt.Fprintf(&ident, "countersign root %s\n", role)
	}
	hbaPath, identPath := l.accessFiles()
	for path, text := range map[string]string{hbaPath: "local all all peer map=countersign\n", identPath: ident.String()} {
		if err := writeNew(path, text); err != nil {
			return fmt.Errorf("write the files that say who may log in: %w", err)
		}
	}
	return nil
}

// writeNew writes a file that every user may read. It first removes an existing file of that name,
// which may be a link that another user has made.
func writeNew(path, text string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Chmod(0o644), file.Close()) // OpenFile applies the umask
}

func (l *launcher) run(ctx context.Context, bin binaries, socketDir string) (*child, error) {
	if err := l.writeAccess(bin.major); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	alive, err := lockedFile(waiting, l.alivePath())
	if err != nil {
		return nil, fmt.Errorf("processes of another server still use %s: %w", l.pgDir, err)
	}
	defer alive.Close() // the child has a copy of the descriptor
	folder, err := l.logFolder()
	if err != nil {
		return nil, fmt.Errorf("WAL_DIR: prepare the folder for the write-ahead log: %w", err)
	}
	args := []string{"-D", l.pgDir}
	for _, setting := range l.settings(socketDir, folder) {
		args = append(args, "-c", setting)
	}
	log, err := openLog(l.logPath())
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has a copy of the descriptor
	c, err := launch(filepath.Join(bin.dir, "postgres"), args, l.user, log, alive)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return c, nil
}

// alivePath returns the path of a file that every process of the server keeps locked. If the lock
// is free, all these processes have ended. This is also true for containers that share the folder
// but have different process ids.
func (l *launcher) alivePath() string { return filepath.Join(l.dataDir, "server.lock") }

func (l *launcher) logPath() string { return filepath.Join(l.dataDir, "postgres.log") }

// waitReady waits until the server answers. It returns an error if the server ends, or takes too
// long without reporting a recovery.
func (l *launcher) waitReady(ctx context.Context, s *Server) error {
	began := time.Now()
	patience, line := began.Add(readyWithin), began.Add(recoveryLine)
	for {
		state, err := probe(ctx, s.socketDir, s.port, l.pgDir)
		switch state {
		case serving:
			return nil
		case foreign:
			return fmt.Errorf("start postgres: %w", err)
		case busy:
			patience = time.Now().Add(readyWithin)
			if time.Now().After(line) {
				l.say("PostgreSQL is recovering, %.0f s so far …", time.Since(began).Seconds())
				line = line.Add(recoveryLine)
			}
		}
		if time.Now().After(patience) {
			return fmt.Errorf("postgres is not ready after %v: %w", readyWithin, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for postgres: %w", ctx.Err())
		case <-s.child.done:
			return l.explainExit(s.child)
		case <-time.After(readyEvery):
		}
	}
}

// explainExit returns the error for a server that ended during its start. It is errOther if the
// pid file now belongs to another server; then adopt must check again.
func (l *launcher) explainExit(c *child) error {
	err := fmt.Errorf("postgres ended while starting (%v); the end of %s:\n%s", c.err, l.logPath(), tail(l.logPath(), logTail))
	if pid, ok := readPIDFile(l.pgDir); ok && pid.pid != c.pid && runsIn(pid.pid, l.pgDir) {
		return fmt.Errorf("%w: %w", errOther, err)
	}
	return err
}

var errOther = errors.New("another server is in the data folder")
