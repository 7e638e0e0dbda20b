//go:build unix && !darwin

package guard

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func machineFile() string { return "/etc/countersign.json" }

// homeOf returns the home folder from the user database: from /etc/passwd, or from the program
// getent for users of a directory service. It does not use package os/user, which would link the C
// library and double the start time of the guard.
func homeOf(uid int) string {
	text, _ := os.ReadFile("/etc/passwd") // if this fails, getent is asked
	if home := homeIn(string(text), uid); home != "" {
		return home
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	text, _ = exec.CommandContext(ctx, "/usr/bin/getent", "passwd", strconv.Itoa(uid)).Output()
	return homeIn(string(text), uid)
}

func homeIn(passwd string, uid int) string {
	for line := range strings.Lines(passwd) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 6 && f[2] == strconv.Itoa(uid) && filepath.IsAbs(f[5]) {
			return f[5]
		}
	}
	return ""
}
