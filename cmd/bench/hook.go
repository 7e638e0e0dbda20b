package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// hookCmd measures what a coding agent waits for at each of its tool calls: the whole
// process of the guard, from its start to its answer.
type hookCmd struct {
	built
	Rounds int           `help:"Times it is started." default:"200"`
	Most   time.Duration `help:"Fail if the median of its processor time is above this." default:"25ms"`
}

// hookEvents are a call that is let through and one that is stopped.
var hookEvents = [...]string{
	`{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"/srv/shop","tool_input":{"command":"go test ./..."}}`,
	`{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"/srv/shop","tool_input":{"command":"git push --force origin main"}}`,
}

// Run starts the guard again and again, and prints the time that passed and the
// processor time, which who else uses the machine changes less.
func (c *hookCmd) Run(ctx context.Context) error {
	return c.with(ctx, func(program string) error { return c.measure(ctx, program) })
}

func (c *hookCmd) measure(ctx context.Context, program string) error {
	var passed, used []time.Duration
	for i := range c.Rounds {
		cmd := exec.CommandContext(ctx, program, "gate", "hook", "--agent", "claude")
		cmd.Stdin = bytes.NewReader([]byte(hookEvents[i%len(hookEvents)]))
		began := time.Now()
		err := cmd.Run()
		if refused := (*exec.ExitError)(nil); err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("start the guard: %w", err)
		} else if err != nil {
			return fmt.Errorf("the guard failed: %w", err)
		}
		passed = append(passed, time.Since(began))
		used = append(used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	slices.Sort(passed)
	slices.Sort(used)
	wall, cpu := sample{latencies: passed}, sample{latencies: used}
	fmt.Printf("guard, whole process, %d starts: passed p1 %s, p50 %s, p99 %s; processor p1 %s, p50 %s, p99 %s\n", c.Rounds,
		wall.quantile(.01), wall.quantile(.5), wall.quantile(.99), cpu.quantile(.01), cpu.quantile(.5), cpu.quantile(.99))
	if cpu.quantile(.5) > c.Most {
		return fmt.Errorf("the guard takes more than %s", c.Most)
	}
	return nil
}
