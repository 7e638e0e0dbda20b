package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the tutorial work one after the other, and print the output that the page shows.
// Steps that need a browser are left out; another test covers the approval.
func TestTutorial(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tutorial needs %s", tool)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "api", "site", "content", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	data := dataDir(t)
	s := serveIn(t, data)
	script, expected := tutorialSteps(strings.ReplaceAll(string(page), "{{.Base}}", s.base))
	if len(expected) < 2 {
		t.Fatalf("%d outputs are shown", len(expected))
	}

	folder, self := t.TempDir(), filepath.Join(t.TempDir(), "countersign")
	if err := os.Symlink(mustAbs(t, os.Args[0]), self); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = folder
	cmd.Env = append(program().Env, "DATA_DIR="+data, "PATH="+filepath.Dir(self)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, text := range append(expected, "git.push.force-protected", "EXECUTE", "not executed", "the change was found", "3 come out the same") {
		if !strings.Contains(string(printed), text) {
			t.Errorf("the tutorial does not print %q:\n%s", text, printed)
		}
	}
}

// tutorialSteps returns the code blocks of the page as one script, and the output that the page
// shows for them.
func tutorialSteps(markdown string) (script string, expected []string) {
	steps := []string{"set -eo pipefail"}
	blocks := strings.Split("\n"+markdown, "\n```")
	for i := 1; i < len(blocks); i += 2 {
		info, text, _ := strings.Cut(blocks[i], "\n")
		switch info {
		case "sh tutorial":
			steps = append(steps, text)
		case "text prints tutorial":
			expected = append(expected, text)
		}
	}
	return strings.Join(steps, "\n") + "\n", expected
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}
