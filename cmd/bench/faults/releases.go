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

	"github.com/countersign/countersign/projections"
)

// versions matches the version of a read model's table in the source of its declaration.
var versions = regexp.MustCompile(`(?m)^(\s+version:\s+)(\d+),`)

// release is the program built from a source in which some files are changed.
type release struct {
	name    string
	changes []change
}

// change edits one file of a release. A file that does not exist yet is passed to the edit
// function as empty text.
type change struct {
	library bool   // true: a file of the standard library; false: a file of the module
	file    string // path below the source folder, with slashes
	edit    func(text string) (string, error)
}

// otherRelease has another version of every read model, so that a node rebuilds all of them.
var otherRelease = release{"other", otherVersions()}

func otherVersions() (changes []change) {
	for _, name := range projections.Names() {
		changes = append(changes, change{file: "projections/" + name + ".go", edit: func(text string) (string, error) {
			changed := versions.ReplaceAllString(text, "${1}1000$2,")
			if changed == text {
				return "", fmt.Errorf("read model %s has no version in its declaration", name)
			}
			return changed, nil
		}})
	}
	return changes
}

// poisonedRelease has a bug in the read model of the history: it panics at every event whose
// position is divisible by seven.
var poisonedRelease = release{"poisoned", []change{
	{file: "projections/history.go", edit: before("\td, err := assurance.ReadSummary(record)\n", "\tif e.Position%7 == 0 {\n\t\tpanic(\"poison\")\n\t}\n")},
}}

// jumpingRelease has a clock that can be set wrong. All of its code, including libraries, reads a
// time with the offset in seconds that the file in CLOCK_JUMP contains. The usual tool
// (libfaketime) replaces a library function and cannot change the time of a static Go program.
// Measured durations do not change, as when an operator sets the clock of a machine.
var jumpingRelease = release{"jumping", []change{
	{library: true, file: "time/time.go", edit: before("\tif mono == 0 {\n\t\treturn Time{", "\tsec += jumped()\n")},
	{library: true, file: "time/jump.go", edit: func(string) (string, error) { return jump, nil }},
}}

// releases lists, by the name of a row in the table of faults, the changed releases that the nodes
// run in this row. They are built before the first round, so that the build does not use the time
// limit of a round.
var releases = map[string][]release{
	"rolling-upgrade": {otherRelease},
	"poison-event":    {poisonedRelease, otherRelease},
	"clock-jumps":     {jumpingRelease},
}

// jump is the file that jumpingRelease adds to package time. It maps the file in CLOCK_JUMP, which
// contains the seconds in eight bytes, into memory: timers read the time in code that may neither
// allocate memory nor wait.
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

// before returns a function that inserts lines before a text, which must occur exactly once.
func before(place, lines string) func(text string) (string, error) {
	return func(text string) (string, error) {
		if n := strings.Count(text, place); n != 1 {
			return "", fmt.Errorf("%q occurs %d times, not once", place, n)
		}
		return strings.Replace(text, place, lines+place, 1), nil
	}
}

// texts returns the changed files of a release: the new text by path. source is the folder of the
// module.
func (r release) texts(ctx context.Context, source string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find the standard library: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(out)), "src")
	texts := map[string]string{}
	for _, c := range r.changes {
		file := filepath.Join(source, filepath.FromSlash(c.file))
		if c.library {
			file = filepath.Join(library, filepath.FromSlash(c.file))
		}
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if texts[file], err = c.edit(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return texts, nil
}

// built builds a release, unless this run has built it already, and returns the path of its
// program.
func (o *Options) built(ctx context.Context, r release) (program string, err error) {
	dir := filepath.Join(o.scratch, r.name)
	program = filepath.Join(dir, "countersign")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	texts, err := r.texts(ctx, o.Source)
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for file, text := range texts {
		replaced[file] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replaced[file], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Log, "faults: building the %s release\n", r.name)
	build := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", program, "./cmd/countersign")
	build.Dir = o.Source
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the %s release: %w: %s", r.name, err, said)
	}
	return program, nil
}
