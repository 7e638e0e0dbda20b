package main

import (
	"os"
	"os/exec"
	"testing"
)

// asProgram in the environment makes the test binary the program itself, so that
// a test can start it as a process, and kill it.
const asProgram = "COUNTERSIGN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the command line of a countersign process.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL=")
	return cmd
}
