package localpg

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes: a group of its own, so that Ctrl-C reaches only us and the
// server is stopped after the service; and SIGINT, a fast shutdown, when the
// thread that started it dies. The kernel keeps that over the change of user.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// runsIn tells whether the process is alive and works in dir, as a PostgreSQL
// server does in its cluster. A stranger that got the same number does not.
func runsIn(pid int, dir string) bool {
	there, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(there, here)
}

// syncTree writes everything below dir to the disk, with its whole file system.
func (l *launcher) syncTree(_ context.Context, _ binaries, dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}

// DieWithGoRun is for the first line of main. "go run" does not pass SIGTERM on:
// the program would live on as an orphan and hold its port. If the parent is the
// go command, this process gets SIGTERM when it dies, and leaves at once, with
// status 2, if that has happened already.
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
