package localpg

import (
	"context"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign/countersign/migrations"
)

// If root starts the server, the server runs as a user that other programs share. These programs
// can enter its folders as the server can, but may not log in.
func TestASharedUserMayNotLogIn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root alone starts a server as another user")
	}
	s := start(t, Options{DataDir: dataDir(t)})
	as, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{Superuser, migrations.OwnerRole, migrations.AppRole} {
		if got := query(t, s.URL(role), "select current_user"); got != role {
			t.Errorf("root as %s: %s", role, got)
		}
		err := inThreadOf(as, func() error {
			_, err := tryQuery(context.Background(), s.URL(role), "select current_user")
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "eer authentication failed") {
			t.Errorf("user %s as %s: %v", as.name, role, err)
		}
	}
}

// inThreadOf calls do in a thread that runs as another user and ends afterwards. The kernel
// reports to the server the user of the thread that connects.
func inThreadOf(as account, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(as.uid), uintptr(as.uid), uintptr(as.uid)); errno != 0 {
			done <- errno
			return
		}
		done <- do()
	}()
	return <-done
}
