//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pidFile is the content of postmaster.pid, which a running server writes into its cluster.
type pidFile struct {
	pid       int
	port      int
	socketDir string
}

// readPIDFile reads postmaster.pid, which has pid, folder, start time, port and socket folder on
// separate lines. ok is false if the file does not exist.
func readPIDFile(pgDir string) (p pidFile, ok bool) {
	b, err := os.ReadFile(filepath.Join(pgDir, "postmaster.pid"))
	if err != nil {
		return pidFile{}, false
	}
	lines := strings.Split(string(b), "\n")
	p.pid, _ = strconv.Atoi(strings.TrimSpace(lines[0]))
	if len(lines) > 4 {
		p.port, _ = strconv.Atoi(strings.TrimSpace(lines[3]))
		p.socketDir = strings.TrimSpace(lines[4])
	}
	return p, true
}

// adopt returns the server that already runs on our cluster. It waits while a server is starting
// or stopping. If there is none, it returns nil and has removed the files of a server that is
// proven to be dead.
func (l *launcher) adopt(ctx context.Context) (*Server, error) {
	patience := time.Now().Add(readyWithin)
	line := time.Now().Add(recoveryLine)
	for {
		pid, ok := readPIDFile(l.pgDir)
		if !ok {
			return nil, nil
		}
		state, err := absent, error(nil)
		if pid.socketDir != "" && pid.port != 0 {
			state, err = probe(ctx, pid.socketDir, pid.port, l.pgDir)
		}
		switch {
		case state == serving:
			return l.join(ctx, pid)
		case state == busy:
			patience = time.Now().Add(readyWithin)
			if time.Now().After(line) {
				l.say("waiting for the PostgreSQL that is starting or stopping in %s …", l.pgDir)
				line = line.Add(recoveryLine)
			}
		case !runsIn(pid.pid, l.pgDir) && !l.heldAlive():
			return nil, l.removeStale(pid)
		case time.Now().After(patience):
			return nil, fmt.Errorf("a server (pid %d) uses %s but does not answer on its socket in %s: %w", pid.pid, l.pgDir, pid.socketDir, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the running postgres: %w", ctx.Err())
		case <-time.After(readyEvery):
		}
	}
}

// heldAlive reports whether a process of the server is alive, even in another container.
func (l *launcher) heldAlive() bool {
	f, err := os.OpenFile(l.alivePath(), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false // the file does not exist, or is not a regular file
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// removeStale removes the files with which a dead server still claims the cluster and the socket.
// PostgreSQL would refuse to start if another process now has the same process id. The files are
// PostgreSQL's own lock: without a proof that the server is dead they stay, and PostgreSQL
// decides.
func (l *launcher) removeStale(pid pidFile) error {
	l.say("the last PostgreSQL in %s (pid %d) did not end by itself; it will recover", l.pgDir, pid.pid)
	if _, err := os.Lstat(l.alivePath()); err != nil {
		return nil
	}
	paths := []string{filepath.Join(l.pgDir, "postmaster.pid")}
	socket := filepath.Join(l.dataDir, "run", fmt.Sprintf(".s.PGSQL.%d", port))
	paths = append(paths, socket, socket+".lock")
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the files of a dead server: %w", err)
		}
	}
	return nil
}

// join returns a server that another process has started. It watches the server through a
// connection that ends with the server. The watching goroutine ends with the server or with Stop.
func (l *launcher) join(ctx context.Context, pid pidFile) (*Server, error) {
	s := &Server{dataDir: l.dataDir, socketDir: pid.socketDir, port: pid.port, done: make(chan struct{})}
	conn, err := pgx.Connect(ctx, s.DatabaseURL(Superuser, "postgres"))
	if err != nil {
		return nil, fmt.Errorf("%w: join the running postgres: %w", errOther, err)
	}
	watch, leave := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(s.done)
		for watch.Err() == nil {
			if _, err := conn.WaitForNotification(watch); err != nil {
				break
			}
		}
		_ = conn.Close(context.Background())
	}()
	s.leave = func() { leave(); <-ended }
	l.say("joined the PostgreSQL that runs in %s (pid %d)", l.dataDir, pid.pid)
	return s, nil
}

// state describes which server answers on a socket.
type state int

const (
	absent  state = iota // no server listens or answers
	busy                 // a server is starting, recovering or stopping
	serving              // our server
	foreign              // another server
)

// probe finds out which server answers on a socket. The server is ours only if its data folder is
// our folder.
func probe(ctx context.Context, socketDir string, port int, pgDir string) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, socketURL(socketDir, port, Superuser, "postgres"))
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if pg.Code == "57P03" { // code of "cannot connect now"
			return busy, err
		}
		return foreign, fmt.Errorf("the server on %s is not ours: %w", socketDir, err)
	}
	if err != nil {
		return absent, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var dir string
	if err := conn.QueryRow(ctx, `show data_directory`).Scan(&dir); err != nil {
		return busy, err // the server answered, and was then stopped
	}
	there, err := os.Stat(dir)
	if err != nil {
		return foreign, err
	}
	here, err := os.Stat(pgDir)
	if err != nil || !os.SameFile(there, here) {
		return foreign, fmt.Errorf("the server on %s keeps its data in %s", socketDir, dir)
	}
	return serving, nil
}
