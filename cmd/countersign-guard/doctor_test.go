package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/actionrisk"
)

// doctor --hook compares the rule sets of countersign and countersign-guard if both are installed,
// and names the older one.
func TestDoctorComparesTheRuleSets(t *testing.T) {
	version, hash := actionrisk.Ruleset()
	folder := t.TempDir()
	own, other := filepath.Join(folder, "countersign-guard"), filepath.Join(folder, "countersign")
	// This test uses countersign-guard for both programs, because these commands are the same in
	// both.
	newest, older := filepath.Join(folder, "newest"), filepath.Join(folder, "older")
	build(t, newest, "")
	build(t, older, "2026.01.01")
	script := filepath.Join(folder, "script")
	for _, c := range []struct {
		own, other string
		script     string // content of the other file, if it is not one of the two programs
		state      string
		says       string
	}{
		{newest, newest, "", "ok", "has the same rule set"},
		{newest, older, "", "warning", "has rule set 2026.01.01, " + hash + ", which differs from the rule set of this program; update " + other + ": go install ./cmd/countersign "},
		{older, newest, "", "warning", "has rule set " + version + ", " + hash + ", which differs from the rule set of this program; update " + own + ": go install ./cmd/countersign-guard "},
		{newest, script, `echo '{"rulesetVersion":"` + version + `","rulesetHash":"00"}'`, "warning", "install both from the same source"},
		{newest, script, "exit 1", "warning", "does not report its rule set; update " + other},
	} {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		install(t, c.own, own)
		install(t, c.other, other)
		for _, path := range []string{folder, "/nowhere"} { // the other program is found in PATH, or next to this program
			if got := rulesFinding(t, own, path, other); got.State != c.state || !strings.Contains(got.Detail, c.says) {
				t.Errorf("%+v: %+v", c, got)
			}
		}
	}
}

// install copies a program to a path and replaces the file there.
func install(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		_ = os.Remove(to)
		err = os.WriteFile(to, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// build builds countersign-guard. If version is not empty, its rule set gets that version.
func build(t *testing.T, program, version string) {
	t.Helper()
	command := []string{"build", "-o", program}
	if version != "" {
		source, err := filepath.Abs("../../policy/actionrisk/facts/facts.go")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		changed := regexp.MustCompile(`const RulesetVersion = ".*"`).ReplaceAll(text, []byte(`const RulesetVersion = "`+version+`"`))
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: program + ".go"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{program + ".go": changed, program + ".json": overlay} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		command = append(command, "-overlay", program+".json")
	}
	if out, err := exec.Command("go", append(command, ".")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

type finding struct{ Name, State, Detail string }

// rulesFinding returns the finding of a program's doctor about the rule set of the other program.
func rulesFinding(t *testing.T, program, path, other string) finding {
	t.Helper()
	cmd := exec.Command(program, "--json", "doctor", "--hook", "--", program+" gate hook --agent claude --no-log")
	cmd.Env = append(os.Environ(), "PATH="+path+":/usr/bin:/bin")
	out, err := cmd.Output()
	var found []finding
	if err != nil || json.Unmarshal(out, &found) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range found {
		if f.Name == "rules" && strings.HasPrefix(f.Detail, other+" ") {
			return f
		}
	}
	t.Fatalf("nothing about %s: %+v", other, found)
	return finding{}
}
