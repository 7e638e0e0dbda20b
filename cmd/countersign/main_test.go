package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/ledgertest"
)

// asProgram in the environment makes the test binary the program itself, so that
// a test can start it as a process, and kill it.
const asProgram = "COUNTERSIGN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	ledgertest.Overlap()
	code := m.Run()
	_ = os.RemoveAll(model.folder)
	os.Exit(code)
}

// program is the command line of a countersign process.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL=")
	return cmd
}

// A command line that begins with a command is read without the others, and says and
// does the same as one that is read with all of them.
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
