package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// smallDisk mounts a memory file system of this size in the folder. Only root can do that.
func (w *world) smallDisk(name string, megabytes int) (string, error) {
	at := filepath.Join(w.dir, name)
	if err := os.Mkdir(at, 0o711); err != nil {
		return "", err
	}
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0711", megabytes)); err != nil {
		return "", fmt.Errorf("%w: only root can mount a disk (%w)", ErrSkipped, err)
	}
	w.closers = append(w.closers, func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
	return at, nil
}

// fill writes a file that uses all free space of a disk and returns its name.
func fill(disk string) (ballast string, err error) {
	ballast = filepath.Join(disk, "ballast")
	file, err := os.Create(ballast)
	if err != nil {
		return "", err
	}
	defer file.Close()
	for block := make([]byte, 1<<16); err == nil; {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return "", err
	}
	return ballast, nil
}

// diskFull fills the disk of the database's data while clients call, and deletes the file again.
// The write-ahead log is on another disk.
func diskFull(ctx context.Context, w *world) error {
	disk, err := w.smallDisk("data", 192)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	n, wal := w.nodes[0], filepath.Join(disk, "pg", "pg_wal")
	n.stop()
	if err := moveAway(wal, filepath.Join(w.dir, "wal")); err != nil {
		return err
	}
	if err := w.start(ctx, n); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		ballast, err := fill(disk)
		if err != nil {
			return err
		}
		if err := w.until(ctx, "readiness to report the full disk", func() bool { return status(n.base()+"/readyz") == http.StatusServiceUnavailable }); err != nil {
			return err
		}
		if err := w.healthy(ctx, time.Second); err != nil {
			return err
		}
		return os.Remove(ballast)
	})
}

// walFull fills the disk of the write-ahead log while clients call, and deletes the file again.
// PostgreSQL stops when it cannot write this log.
func walFull(ctx context.Context, w *world) error {
	disk, err := w.smallDisk("wal", 192)
	if err != nil {
		return err
	}
	if err := w.serve(ctx, 1); err != nil {
		return err
	}
	n := w.nodes[0]
	n.stop()
	if err := moveAway(filepath.Join(w.data, "pg", "pg_wal"), filepath.Join(disk, "pg_wal")); err != nil {
		return err
	}
	if err := w.start(ctx, n); err != nil {
		return err
	}
	return w.around(ctx, func(ctx context.Context) error {
		before := w.postmaster()
		ballast, err := fill(disk)
		if err != nil {
			return err
		}
		if err := w.until(ctx, "PostgreSQL to stop, or readiness to report the full disk", func() bool {
			return w.postmaster() != before || status(n.base()+"/readyz") == http.StatusServiceUnavailable
		}); err != nil {
			return err
		}
		if err := w.healthy(ctx, time.Second); err != nil {
			return err
		}
		return os.Remove(ballast)
	})
}

// moveAway moves a folder of PostgreSQL to another disk and leaves a symbolic link.
func moveAway(folder, to string) error {
	if err := copyTree(folder, to); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(folder), os.Symlink(to, folder))
}
