//go:build unix

package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign/countersign/ledger/localpg"
)

// The shared server has a folder with these files:
//
// 	users     each test program keeps a shared lock on it until the program ends, even by a crash
// 	starting  locked while a program starts the keeper
// 	keeper    locked by the keeper while it runs
// 	ready     contains the superuser's URL, once the server answers
// 	log       output of the keeper and of the server's launcher
// 	data/     data folder of the server
//
// The kernel drops the locks of a dead process, so only the file ready can be out of date. It is
// valid only while keeper is locked.

const (
	// keeperEnv is the environment variable that makes a test binary the keeper of a folder.
	keeperEnv = "COUNTERSIGN_TEST_KEEPER"

	// exitNoPostgres is the keeper's exit status if there is no PostgreSQL. Only then tests are
	// skipped.
	exitNoPostgres = 3

	// pollEvery is the time between two checks of a lock or a file.
	pollEvery = 10 * time.Millisecond

	// keepFor is the time for which the server outlives its last user. It is long enough for go
	// test to start the next program.
	keepFor = 5 * time.Second

	// roomNeeded is the free space that /dev/shm must have, in bytes: for the template, dozens of
	// copies of 8 MB each, and the write-ahead log.
	roomNeeded = 512 << 20
)

// This is the only init function in this repository: a test binary has no other hook that all
// packages which import this one share.
func init() {
	dir := os.Getenv(keeperEnv)
	if dir == "" {
		return
	}
	_ = os.Unsetenv(keeperEnv)
	switch err := keep(dir); {
	case err == nil:
		os.Exit(0)
	case errors.Is(err, localpg.ErrNoPostgres):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitNoPostgres)
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// users is the file users with this program's shared lock. It is never closed, so the lock shows
// that the program runs.
//
//lint:ignore U1000 it is held, never read
var users *os.File

// shared returns the superuser's URL of the shared server. It starts the server if necessary.
func shared(ctx context.Context) (string, error) {
	dir, err := sharedDir()
	if err != nil {
		return "", err
	}
	if users, err = lock(ctx, filepath.Join(dir, "users"), syscall.LOCK_SH); err != nil {
		return "", fmt.Errorf("use the shared test server: %w", err)
	}
	starting, err := lock(ctx, filepath.Join(dir, "starting"), syscall.LOCK_EX)
	if err != nil {
		return "", fmt.Errorf("start the shared test server: %w", err)
	}
	defer starting.Close()
	ended := make(chan error, 1) // receives a value when the keeper that this call has started ends
	running, err := held(filepath.Join(dir, "keeper"))
	if err != nil {
		return "", err
	}
	if !running {
		if err := startKeeper(dir, ended); err != nil {
			return "", fmt.Errorf("start the shared test server: %w", err)
		}
	}
	return waitReady(ctx, dir, ended)
}

// waitReady waits until the keeper has written the URL, and returns it.
func waitReady(ctx context.Context, dir string, ended <-chan error) (string, error) {
	for {
		url, err := os.ReadFile(filepath.Join(dir, "ready"))
		if err == nil {
			return string(url), nil
		}
		select {
		case err := <-ended:
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return "", explain(err, strings.TrimSpace(string(log)))
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the shared test server: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// explain returns an error that says how the keeper ended and what it has written.
func explain(err error, said string) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitNoPostgres {
		_, rest, _ := strings.Cut(said, localpg.ErrNoPostgres.Error())
		return fmt.Errorf("%w%s", localpg.ErrNoPostgres, rest)
	}
	return fmt.Errorf("the keeper of the shared test server ended (%v):\n%s", err, said)
}

// startKeeper starts this binary again as the keeper. The keeper gets its own session, so that
// Ctrl-C on one program does not end the server of the others. Its output goes to a file, because
// go test would wait for every process that has inherited its own output.
func startKeeper(dir string, ended chan<- error) error {
	if err := os.Remove(filepath.Join(dir, "ready")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), keeperEnv+"="+dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { ended <- cmd.Wait() }() // ends with the keeper, or with this program
	return nil
}

// keep runs the server until no program has used it for keepFor, or until a signal.
func keep(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	me, err := lock(ctx, filepath.Join(dir, "keeper"), syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer me.Close()
	data := filepath.Join(dir, "data")
	if err := discard(data); err != nil {
		return err
	}
	s, err := localpg.Start(ctx, localpg.Options{DataDir: data, Log: os.Stderr, Settings: append(settings, "hba_file="+filepath.Join(data, "pg", "pg_hba.conf"))}) // the default hba_file, because tests create their own roles
	if err != nil {
		return err
	}
	ready := filepath.Join(dir, "ready")
	err = os.WriteFile(ready+".new", []byte(s.DatabaseURL(localpg.Superuser, "postgres")), 0o600)
	if err == nil {
		err = os.Rename(ready+".new", ready)
	}
	var last *os.File
	if err == nil {
		last, err = untilUnused(ctx, s, filepath.Join(dir, "users"))
	}
	// A program that starts now waits for its lock on users, which last has. After that it finds
	// neither URL nor keeper, and starts a new keeper.
	err = errors.Join(err, os.Remove(ready), s.Stop(), discard(data), me.Close())
	if last != nil {
		err = errors.Join(err, last.Close())
	}
	return err
}

// settings make the server fast, without durability, and small enough for /dev/shm.
var settings = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off",
	"max_connections=500",
	"wal_level=minimal", "max_wal_senders=0",
	"max_wal_size=128MB", "min_wal_size=32MB",
	"autovacuum=off",
}

// untilUnused waits until the file users has not been locked by a test program for keepFor, and
// returns the file with an exclusive lock. It returns the file without the lock if the server has
// ended or the keeper was signalled.
func untilUnused(ctx context.Context, s *localpg.Server, path string) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	used := time.Now()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil && time.Since(used) >= keepFor:
			return f, nil
		case err == nil:
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		case errors.Is(err, syscall.EWOULDBLOCK):
			used, err = time.Now(), nil
		}
		if err != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return f, nil
		case <-s.Done():
			return f, errors.New("the shared test server ended by itself")
		case <-time.After(keepFor / 10):
		}
	}
}

// discard removes the cluster of an earlier keeper, but not the fetched binaries.
func discard(data string) error {
	return errors.Join(os.RemoveAll(filepath.Join(data, "pg")), os.RemoveAll(filepath.Join(data, "run")))
}

// sharedDir creates the folder of the shared server, one for each user. It is in memory if there
// is room, because its content need not last.
func sharedDir() (string, error) {
	dir := filepath.Join(Base(), "countersign-test-"+strconv.Itoa(os.Geteuid()))
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755 // in this case the server runs as another user
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // Mkdir applies the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("folder of the shared test server: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("folder of the shared test server: %w", err)
	}
	if !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return "", fmt.Errorf("folder of the shared test server: %s belongs to another user", dir)
	}
	return dir, nil
}

// Base returns the folder in which a test server creates its folder. It is in memory if there is
// room.
func Base() string {
	if dir := os.Getenv("TEST_DATABASE_DIR"); dir != "" {
		return dir
	}
	var room syscall.Statfs_t
	if syscall.Statfs("/dev/shm", &room) == nil && uint64(room.Bavail)*uint64(room.Bsize) >= roomNeeded {
		return "/dev/shm"
	}
	return os.TempDir()
}

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
}

// lock takes the lock of a file. It waits for the lock until ctx ends.
func lock(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			err = wait(ctx, pollEvery)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// held reports whether another process has the exclusive lock of a file.
func held(path string) (bool, error) {
	f, err := open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
