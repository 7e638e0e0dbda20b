//go:build unix

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
)

// readModels are those that a release may give another version: they are made anew
// from the events.
var readModels = []string{"status", "organizations", "history", "payments"}

// versions finds the version of a read model's table in its declaration.
var versions = regexp.MustCompile(`(?m)^(\s+version:\s+)(\d+),`)

// releases are what the nodes of some rows run beside the program. They are built
// before the time of a round begins.
var releases = map[string][]func(*Options, context.Context) (string, error){
	"rolling-upgrade": {(*Options).otherRelease},
	"poison-event":    {(*Options).poisonedRelease, (*Options).otherRelease},
	"clock-jumps":     {(*Options).jumpingRelease},
}

// change is one file of a release that differs from ours: what a text of it becomes,
// or a file that we have not.
type change struct {
	file string
	edit func(text string) (string, error)
}

// otherRelease builds the program with every read model at another version.
func (o *Options) otherRelease(ctx context.Context) (string, error) {
	var changes []change
	for _, name := range readModels {
		changes = append(changes, change{filepath.Join(o.Source, "projections", name+".go"), func(text string) (string, error) {
			changed := versions.ReplaceAllString(text, "${1}1000$2,")
			if changed == text {
				return "", fmt.Errorf("read model %s declares no version where it is looked for", name)
			}
			return changed, nil
		}})
	}
	return o.release(ctx, "other", changes)
}

// poisonedRelease builds the program with a fault in the read model of decisions: it
// panics at every event whose position can be divided by seven.
func (o *Options) poisonedRelease(ctx context.Context) (string, error) {
	return o.release(ctx, "poisoned", []change{{filepath.Join(o.Source, "projections", "history.go"), func(text string) (string, error) {
		const each = "\tid, err := memberOf(e, \"decisionId\")\n"
		return replaceOnce(text, each, "\tif e.Position%7 == 0 {\n\t\tpanic(\"poison\")\n\t}\n"+each)
	}}})
}

// jumpingRelease builds the program with a clock that can be put wrong: all of it,
// libraries too, reads a time that is as many seconds off as the file says that
// CLOCK_JUMP names. A static program reads the machine's clock without a library
// between, so that the usual liars (libfaketime) have no hold on it. What measures
// durations is not touched, as it is not when a machine's clock is set.
func (o *Options) jumpingRelease(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the standard library: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	return o.release(ctx, "jumping", []change{
		{filepath.Join(library, "time.go"), func(text string) (string, error) {
			return replaceOnce(text, "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {", "\tsec, nsec, mono := runtimeNow()\n\tsec += jumped()\n\tif mono == 0 {")
		}},
		{filepath.Join(library, "jump.go"), func(string) (string, error) { return jump, nil }},
	})
}

// jump is the file that jumpingRelease adds to package time. The file that CLOCK_JUMP
// names holds the seconds as eight octets and is mapped: timers ask for the time where
// nothing may be allocated or wait.
const jump = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var jumpAt = func() *int64 {
	name, ok := syscall.Getenv("CLOCK_JUMP")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	mapped, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*int64)(unsafe.Pointer(&mapped[0]))
}()

func jumped() int64 {
	if jumpAt == nil {
		return 0
	}
	return atomic.LoadInt64(jumpAt)
}
`

// replaceOnce replaces what must be there exactly once.
func replaceOnce(text, old, with string) (string, error) {
	if n := strings.Count(text, old); n != 1 {
		return "", fmt.Errorf("%q is there %d times, wanted once", old, n)
	}
	return strings.Replace(text, old, with, 1), nil
}

// release builds the program with some files changed, once in a run.
func (o *Options) release(ctx context.Context, name string, changes []change) (string, error) {
	dir := filepath.Join(o.scratch, name)
	program := filepath.Join(dir, "countersign")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for _, c := range changes {
		text, err := os.ReadFile(c.file)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		changed, err := c.edit(string(text))
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.file, err)
		}
		copied := filepath.Join(dir, filepath.Base(c.file))
		if err := os.WriteFile(copied, []byte(changed), 0o600); err != nil {
			return "", err
		}
		replaced[c.file] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Log, "faults: building the %s release\n", name)
	build := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", program, "./cmd/countersign")
	build.Dir = o.Source
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the %s release: %w: %s", name, err, said)
	}
	return program, nil
}
