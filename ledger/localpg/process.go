//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A child is a process that this program has started. A goroutine waits for the process and ends
// with it.
type child struct {
	pid     int
	process *os.Process
	done    chan struct{}
	err     error // result of Wait; valid once done is closed
}

// launch starts a program as the account, in its own process group. On Linux the child gets the
// parent-death signal. The kernel sends that signal when the forking thread ends, not the process,
// so the thread is kept until the child has ended. The child inherits the files and the locks on
// them.
func launch(path string, args []string, as account, output io.Writer, inherits ...*os.File) (*child, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = inherits
	// The child gets no variable of our environment: PGOPTIONS, PGDATA and others would change the
	// server, and it must not see our secrets.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = childAttributes()
	if as.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
	c := &child{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.pid, c.process = cmd.Process.Pid, cmd.Process
		}
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// stop requests a fast shutdown, then an immediate one, and then kills the process.
func (c *child) stop(fast, immediate time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, fast}, {syscall.SIGQUIT, immediate}, {syscall.SIGKILL, killedWithin}} {
		if err := c.process.Signal(step.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop postgres: %w", err)
		}
		select {
		case <-c.done:
			return nil
		case <-time.After(step.wait):
		}
	}
	return fmt.Errorf("postgres (pid %d) does not end", c.pid)
}

// openLog opens the server's log for appending. It first renames a log that is too long.
func openLog(path string) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("rename the server's log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	return f, nil
}

// tail returns the last lines of a file, at most n bytes.
func tail(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-n)
	b, _ := io.ReadAll(io.NewSectionReader(f, from, n))
	text := string(b)
	if _, rest, ok := strings.Cut(text, "\n"); ok && from > 0 {
		text = rest
	}
	return strings.TrimRight(text, "\n")
}
