//go:build unix && !linux

package localpg

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes: a group of its own, so that Ctrl-C reaches only us and the
// server is stopped after the service. There is no parent-death signal here: an
// orphan goes on and the next start adopts it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// runsIn tells whether the process is alive and looks like a PostgreSQL server.
// There is no cheap way to its working folder here, so this may take another
// server for ours; then the start waits and says so instead of harming anything.
func runsIn(pid int, _ string) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(filepath.Base(strings.TrimSpace(string(name))), "postgres")
}

// syncTree lets initdb write everything below dir to the disk.
func (l *launcher) syncTree(ctx context.Context, bin binaries, dir string) error {
	return l.initdb(ctx, bin, "--sync-only", "-D", dir)
}

// DieWithGoRun does something on Linux only, where the kernel can tell a process
// that its parent died.
func DieWithGoRun() {}
