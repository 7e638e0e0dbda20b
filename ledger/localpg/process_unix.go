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

// childAttributes gives a child its own process group, so that Ctrl-C reaches only this program,
// which stops the server after the service. These systems have no parent-death signal: an orphan
// continues, and the next start adopts it.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// runsIn reports whether a process is alive and its name is that of a PostgreSQL server. These
// systems have no cheap way to find a process's working directory, so runsIn may mistake another
// server for ours. Then the start waits and reports it, which does no harm.
func runsIn(pid int, _ string) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(filepath.Base(strings.TrimSpace(string(name))), "postgres")
}

// syncTree lets initdb write everything below dir to disk.
func (l *launcher) syncTree(ctx context.Context, bin binaries, dir string) error {
	return l.initdb(ctx, bin, "--sync-only", "-D", dir)
}

// DieWithGoRun does nothing: only Linux can signal a process that its parent has ended.
func DieWithGoRun() {}
