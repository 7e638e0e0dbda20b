package compute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Hook measures how long a coding agent waits for the guard at each tool call. It runs the
// complete process of the guard from start to answer and, in the same run, an empty Go program for
// comparison.
type Hook struct {
	Program string  `help:"The built guard. Default: build cmd/countersign-guard without cgo." placeholder:"FILE"`
	Rounds  int     `help:"Number of starts of each program." default:"200"`
	Most    float64 `help:"Maximum ratio of the guard's median processor time to that of the empty program; 0: no limit." default:"0"`
}

// hookEvents has a tool call that the guard allows and one that it stops.
var hookEvents = [...]string{
	`{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"/srv/shop","tool_input":{"command":"go test ./..."}}`,
	`{"hook_event_name":"PreToolUse","tool_name":"Bash","cwd":"/srv/shop","tool_input":{"command":"git push --force origin main"}}`,
}

// Run starts the two programs alternately. It prints the elapsed time, the processor time (which
// depends less on other programs of the machine) and the peak memory. The guard writes no log in
// this measurement.
func (c *Hook) Run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "countersign-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Build the empty program, the guard and the meter.
	empty, guard := filepath.Join(dir, "empty"), c.Program
	source := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return err
	}
	if err := buildWithoutC(ctx, empty, source); err != nil {
		return err
	}
	if guard == "" {
		guard = filepath.Join(dir, "countersign-guard")
		if err := buildWithoutC(ctx, guard, "./cmd/countersign-guard"); err != nil {
			return err
		}
	}
	gauge := filepath.Join(dir, "meter")
	if err := os.WriteFile(gauge+".go", []byte(meter), 0o600); err != nil {
		return err
	}
	if err := buildWithoutC(ctx, gauge, gauge+".go"); err != nil {
		return err
	}
	// Start the two programs alternately, so that other load of the machine affects both.
	var starts [2]startsOf
	for i := range c.Rounds {
		event := hookEvents[i%len(hookEvents)]
		if err := starts[0].start(exec.CommandContext(ctx, empty), event); err != nil {
			return err
		}
		if err := starts[1].start(exec.CommandContext(ctx, guard, "gate", "hook", "--agent", "claude", "--no-log"), event); err != nil {
			return err
		}
	}
	if err := errors.Join(starts[0].measure(ctx, gauge, empty), starts[1].measure(ctx, gauge, guard, "gate", "hook", "--agent", "claude", "--no-log")); err != nil {
		return err
	}
	// Compare the medians of the processor time.
	anchor, median := starts[0].print("empty Go program"), starts[1].print("guard")
	ratio := float64(median) / float64(anchor)
	fmt.Printf("guard against the empty program: %.1f times the processor time\n", ratio)
	if c.Most > 0 && ratio > c.Most {
		return fmt.Errorf("the guard takes more than %.1f times the processor time of an empty program", c.Most)
	}
	return nil
}

func buildWithoutC(ctx context.Context, program, what string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", program, what)
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	return nil
}

// startsOf collects the measurements of one program.
type startsOf struct {
	passed, used []time.Duration
	memory       int64 // peak memory in KB; 0 if the system does not report it
}

func (s *startsOf) start(cmd *exec.Cmd, event string) error {
	cmd.Stdin = bytes.NewReader([]byte(event))
	began := time.Now()
	err := cmd.Run()
	if refused := (*exec.ExitError)(nil); err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("start the program: %w", err)
	} else if err != nil {
		return fmt.Errorf("the program failed: %w", err)
	}
	s.passed = append(s.passed, time.Since(began))
	s.used = append(s.used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return nil
}

// meter is the source of a small program that runs another program and prints its peak memory in
// KB. A new process starts as a copy of its parent, so the large benchmark process cannot measure
// a small child itself.
const meter = `package main

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin = os.Stdin
	if err := cmd.Run(); err != nil {
		fmt.Println(0)
		return
	}
	used := reflect.ValueOf(cmd.ProcessState.SysUsage()).Elem().FieldByName("Maxrss")
	if !used.IsValid() {
		fmt.Println(0)
		return
	}
	fmt.Println(used.Int())
}
`

// measure runs a command once under the meter and stores its peak memory.
func (s *startsOf) measure(ctx context.Context, with string, command ...string) error {
	cmd := exec.CommandContext(ctx, with, command...)
	cmd.Stdin = bytes.NewReader([]byte(hookEvents[1]))
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("measure the memory: %w", err)
	}
	_, err = fmt.Sscan(string(text), &s.memory)
	return err
}

// print prints the measurements and returns the median processor time.
func (s *startsOf) print(name string) time.Duration {
	slices.Sort(s.passed)
	slices.Sort(s.used)
	wall, cpu := rig.Sample{Latencies: s.passed}, rig.Sample{Latencies: s.used}
	fmt.Printf("%s, whole process, %d starts: passed p1 %s, p50 %s, p99 %s; processor p1 %s, p50 %s, p99 %s; memory %.1f MB\n", name, len(s.used),
		wall.Quantile(.01), wall.Quantile(.5), wall.Quantile(.99), cpu.Quantile(.01), cpu.Quantile(.5), cpu.Quantile(.99), float64(s.memory)/1024)
	return cpu.Quantile(.5)
}
