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

// childAttributes gives a child a process group of its own, so that Ctrl-C reaches only this
// program, which stops the server after the service. These systems have no parent-death
// signal: an orphan goes on and the next start adopts it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// runsIn says whether a process is alive and looks like a PostgreSQL server. These systems have
// no cheap way to find out its working folder, so it may take another server for ours; then the
// start waits and says so, and does no harm.
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

// DieWithGoRun does nothing: only the kernel of Linux can signal a process that its parent died.
func DieWithGoRun() {}
