package localpg

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes gives a child a process group of its own, so that Ctrl-C reaches only this
// program, which stops the server after the service. The kernel also sends the child SIGINT, a
// fast shutdown, when the thread that started it dies, even after the change of user.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsIn says whether a process is alive and works in dir, as a PostgreSQL server does in its
// cluster. Another process that got the same number does not work there.
func runsIn(pid int, dir string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(there, here)
}

// syncTree writes everything below dir to the disk. It syncs the whole file system.
func (l *launcher) syncTree(_ context.Context, _ binaries, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// DieWithGoRun must be called in the first line of main. "go run" does not pass SIGTERM on, so
// the program would go on as an orphan and keep its port. If the parent is the go command, the
// kernel sends this process SIGTERM when the parent dies. If the parent has died already, the
// process exits at once with status 2.
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
