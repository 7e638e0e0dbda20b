package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Install refuses to add a program to the system's settings unless only root can write it.
func TestInstallSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root writes the machine's settings")
	}
	folder := t.TempDir()
	before := systemFile
	systemFile = func() string { return filepath.Join(folder, "claude-code", "managed-settings.json") }
	t.Cleanup(func() { systemFile = before })
	program := filepath.Join(folder, "countersign")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(program, 4711, -1); err != nil {
		t.Skip(err)
	}
	if _, err := Claude.Install(program, OfSystem); err == nil || !strings.Contains(err.Error(), "only root can write") {
		t.Error(err)
	}
	if err := os.Chown(program, 0, -1); err != nil {
		t.Fatal(err)
	}
	done, err := Claude.Install(program, OfSystem)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(done.Settings)
	text, err2 := os.ReadFile(done.Settings)
	if err != nil || err2 != nil || info.Mode().Perm() != 0o644 || !strings.Contains(string(text), program+" gate hook --agent claude") {
		t.Errorf("%v %v %v %s", err, err2, info.Mode(), text)
	}
	if _, err := Codex.Install(program, OfSystem); err == nil {
		t.Error("the machine's settings of Codex were not tried")
	}
	if _, err := Windsurf.Install(program, OfUser); err == nil {
		t.Error("an installer that nobody tried")
	}
}

// Uninstall restores the old file byte for byte, or removes the file if there was none.
func TestUninstallLeavesTheFileAsItWas(t *testing.T) {
	for _, a := range Agents {
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Setenv("CLAUDE_CONFIG_DIR", "")
		t.Setenv("CODEX_HOME", "")
		place, err := a.fileOf(OfUser, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, before := range []string{"", "{\n    \"hooks\": {\"Other\": [ {\"hooks\":[{\"command\":\"mine\"}]} ]}}\n\n", "{ }"} {
			if a == OpenCode && before != "" {
				continue // its plugin is a file of this project
			}
			_ = os.RemoveAll(filepath.Dir(place))
			if before != "" {
				if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(place, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := a.Install("/opt/countersign", OfUser); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Uninstall(OfUser); err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(place)
			if before == "" && err == nil || before != "" && string(after) != before {
				t.Errorf("%s: %q became %q, %v", a, before, after, err)
			}
		}
	}
}
