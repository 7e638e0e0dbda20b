package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the scripts in testdata/script, one per subject, as a user in a shell would.
// Each script has an empty home folder and no database.
func TestScripts(t *testing.T) {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Setup: func(e *testscript.Env) error {
			bin := filepath.Join(e.WorkDir, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				return err
			}
			for name, value := range map[string]string{
				asProgram: "1", "PATH": bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME": filepath.Join(e.WorkDir, "home"),
				"XDG_DATA_HOME": filepath.Join(e.WorkDir, "share"), "DATABASE_URL": "", "DATA_DIR": "",
			} {
				e.Setenv(name, value)
			}
			if err := os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o755); err != nil {
				return err
			}
			return os.Symlink(self, filepath.Join(bin, "countersign"))
		},
	})
}
