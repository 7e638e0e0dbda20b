package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// TestManyHooksAtOnceDenyNothing: 64 guards at once on whatever this machine has.
// A verdict that waited for a processor is no slower verdict.
func TestManyHooksAtOnceDenyNothing(t *testing.T) {
	home := t.TempDir()
	var running sync.WaitGroup
	for range 64 {
		running.Go(func() {
			cmd := program("gate", "hook", "--agent", "claude")
			cmd.Env = append(cmd.Env, "HOME="+home, "XDG_STATE_HOME="+home)
			cmd.Stdin = bytes.NewReader(claude.canary(passCommand))
			answer, err := cmd.Output()
			if err != nil || strings.Contains(string(answer), "deny") {
				t.Errorf("%v: %s", err, answer)
			}
		})
	}
	running.Wait()
}
