//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is the user that runs the server: the user of this process or, if that user is root,
// postgres or nobody, because PostgreSQL refuses root.
type account struct {
	name     string
	uid, gid uint32
	other    bool // the process runs as root, and the server as another user
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return account{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
		}
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as; start countersign as an ordinary user")
}

// makeDataDir creates the data folder if it is missing. It refuses a folder that belongs to
// another user or that the server's user cannot reach.
func (a account) makeDataDir(dir string) error {
	mode := fs.FileMode(0o700)
	if a.other {
		mode = 0o755 // the server's user must reach the folders pg and run
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // Mkdir applies the umask
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the data folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if err := a.mayUse(dir, info); err != nil {
		return err
	}
	if closed, ok := a.closedParent(dir); ok {
		return fmt.Errorf("the data folder %s cannot be reached by user %s, as which PostgreSQL runs: %s is closed to that user; choose another folder with --data", dir, a.name, closed)
	}
	return nil
}

// ownDir creates or takes over a folder that only the server's user may enter. It returns an error
// for a link, and for a folder that belongs neither to root nor to that user.
func (a account) ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := a.mayUse(dir, info); err != nil {
		return err
	}
	if a.other && owner(info) != a.uid {
		if err := os.Lchown(dir, int(a.uid), int(a.gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

func (a account) mayUse(dir string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if uid := owner(info); uid != 0 && uid != a.uid {
		return fmt.Errorf("%s belongs to another user (uid %d); it was not changed; choose another folder with --data", dir, uid)
	}
	return nil
}

func owner(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

// closedParent returns the first folder on the path, including the path itself, that the account
// may not enter. It ignores access control lists.
func (a account) closedParent(path string) (string, bool) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := "/"
	for _, part := range append([]string{""}, strings.Split(strings.Trim(path, "/"), "/")...) {
		dir = filepath.Join(dir, part)
		info, err := os.Stat(dir)
		if err != nil {
			return dir, true
		}
		if info.IsDir() && !a.enters(info) {
			return dir, true
		}
	}
	return "", false
}

func (a account) enters(info fs.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case stat.Uid == a.uid:
		return info.Mode()&0o100 != 0
	case stat.Gid == a.gid:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}

// socketDir returns the folder for the socket: the folder "run" in the data folder. If the path of
// that folder is too long for a socket, socketDir creates a folder for temporary files and returns
// it as temp, too; the caller must remove it.
func (l *launcher) socketDir() (dir, temp string, err error) {
	name := fmt.Sprintf("/.s.PGSQL.%d", port)
	dir = filepath.Join(l.dataDir, "run")
	if len(dir)+len(name) <= maxSocketPath {
		if err := l.user.ownDir(dir); err != nil {
			return "", "", fmt.Errorf("socket folder: %w", err)
		}
		return dir, "", nil
	}
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if _, closed := l.user.closedParent(parent); closed || len(parent)+len("/countersign-0123456789")+len(name) > maxSocketPath {
			continue
		}
		if temp, err = os.MkdirTemp(parent, "countersign-"); err == nil {
			err = l.user.ownDir(temp)
		}
		if err != nil {
			return "", "", fmt.Errorf("socket folder: %w", err)
		}
		return temp, temp, nil
	}
	return "", "", fmt.Errorf("the data folder's path is too long for a socket, and so is the temp folder's: %s", l.dataDir)
}

// lockFile takes the exclusive lock of a file. It waits for the lock until ctx ends. The lock ends
// at the latest with the process.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := lockedFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// lockedFile opens a file and takes its lock. The lock ends when every process that has inherited
// the file has ended or closed it.
func lockedFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(readyEvery):
		}
	}
}
