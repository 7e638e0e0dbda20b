package localpg

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes gives a child its own process group, so that Ctrl-C reaches only this program,
// which stops the server after the service. When the thread that started the child ends, the
// kernel sends the child SIGINT (a fast shutdown), even after a change of user.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsIn reports whether a process is alive and has the working directory dir, as a PostgreSQL
// server has its cluster. Another process that got the same process id does not.
func runsIn(pid int, dir string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(there, here)
}

// syncTree writes everything below dir to disk. It syncs the whole file system.
func (l *launcher) syncTree(_ context.Context, _ binaries, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// DieWithGoRun must be called first in main. "go run" does not forward SIGTERM, so the program
// would continue as an orphan and keep its port. If the parent is the go command, the kernel sends
// this process SIGTERM when the parent ends. If the parent has already ended, the process exits at
// once with status 2.
func DieWithGoRun() {
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return
	}
	if unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0) != nil {
		return
	}
	if os.Getppid() != parent {
		os.Exit(2)
	}
}
