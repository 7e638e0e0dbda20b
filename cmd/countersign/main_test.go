package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/cmd/countersign/guard"
	"github.com/countersign/countersign/cmd/countersign/screen"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program, so that
// a test can start and kill it as a process.
const asProgram = "COUNTERSIGN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	ownAccount = func() guard.Account { // uses HOME, which the program itself ignores
		a := guard.OwnAccount()
		a.Home = os.Getenv("HOME")
		a.Machine = filepath.Join(a.Home, "machine.json")
		return a
	}
	if answer := os.Getenv("COUNTERSIGN_TEST_ANSWER"); answer != "" {
		askOnTerminal = func(string) (string, error) { return answer, nil }
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	_ = os.Setenv("DURABILITY", "provider") // the PostgreSQL servers of the tests have fsync off
	ledgertest.Overlap()
	code := m.Run()
	_ = os.RemoveAll(model.folder)
	os.Exit(code)
}

// program returns a command that runs the program with args.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL=")
	return cmd
}

// No help text is wider than a usual terminal, and the usage line shows flags as alternatives if
// one of them is enough.
func TestHelpFitsATerminal(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	var walk func(path ...string) int
	walk = func(path ...string) int {
		var help, children bytes.Buffer
		if code := run(append(slices.Clone(path), "--help-all"), &help, &help); code != 0 {
			t.Fatalf("%v: exit %d: %s", path, code, help.String())
		}
		for line := range strings.Lines(help.String()) {
			if screen.Columns(strings.TrimSpace(line)) > 0 && screen.Columns(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%v: %s", path, line)
			}
		}
		found := 1
		run(slices.Concat([]string{"completion", "bash", "--", "countersign"}, path, []string{""}), &children, &children)
		for _, child := range strings.Fields(children.String()) {
			if len(path) < 3 && strings.Contains(help.String(), strings.Join(append(slices.Clone(path), child), " ")) {
				found += walk(append(slices.Clone(path), child)...)
			}
		}
		return found
	}
	if found := walk(); found < 60 {
		t.Errorf("there are %d commands", found)
	}
	for command, want := range map[string]string{"policy activate": "(--file=STRING | --draft=ID) --reason=TEXT", "entitlements grant": "(--customer=ID | --email=STRING)"} {
		var help bytes.Buffer
		run(append(strings.Fields(command), "--help"), &help, &help)
		if got := strings.Join(strings.Fields(help.String()), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s", command, help.String())
		}
	}
}

// Parsing a command line with only its own command gives the same result as with all commands.
func TestACommandIsTheSameWithoutTheOthers(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, field := range reflect.VisibleFields(reflect.TypeFor[cli]()) {
		if _, is := field.Tag.Lookup("cmd"); !is {
			continue
		}
		commands++
		name := strings.ToLower(field.Name)
		if given := field.Tag.Get("name"); given != "" {
			name = given
		}
		for _, asked := range []string{"--help", "--help-all", "--no-such-flag"} {
			var alone, among bytes.Buffer
			code, want := run([]string{name, asked}, &alone, &alone), run([]string{"--json", name, asked}, &among, &among)
			if code != want || alone.String() != among.String() || alone.Len() == 0 {
				t.Errorf("%s %s: %d\n%s\nand among the others %d\n%s", name, asked, code, alone.String(), want, among.String())
			}
		}
		if part := commandNamed([]string{name}); (part == nil) != (name == "completion") {
			t.Errorf("%s is read with all others: %v", name, part == nil)
		}
	}
	if commands < 20 {
		t.Errorf("%d commands", commands)
	}
	if code := run([]string{"no-such-command"}, io.Discard, io.Discard); code != 2 {
		t.Errorf("an unknown command ends with %d", code)
	}
}

func TestAnUnknownColourIsRefused(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"gate", "--color", "sometimes", "ls"}, &stdout, &stderr); code != 2 {
		t.Errorf("an unknown word: exit %d", code)
	}
}

// A file whose name contains control characters cannot change what the terminal shows.
func TestAnErrorDoesNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"verify record.json --keys", "policy lint"} {
		var stderr bytes.Buffer
		if code := run(append(strings.Fields(command), "missing\x1b[31m\u202e.json"), io.Discard, &stderr); code != 2 || strings.ContainsAny(stderr.String(), "\x1b\u202e") || !strings.Contains(stderr.String(), "missing") {
			t.Errorf("%s: exit %d, %q", command, code, stderr.String())
		}
	}
}
