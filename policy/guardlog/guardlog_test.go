package guardlog_test

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/countersign/countersign/policy/guardlog"
)

// chain returns a log of n lines.
func chain(t *testing.T, n int) []guardlog.Line {
	t.Helper()
	lines := make([]guardlog.Line, n)
	before := ""
	for i := range lines {
		lines[i] = guardlog.Line{Number: int64(i + 1), At: "2026-11-22T10:00:00Z", Agent: "claude", Decision: "deny", Level: "critical", Command: "rm -rf /", Before: before}
		var err error
		if lines[i].Hash, err = lines[i].Sum(); err != nil {
			t.Fatal(err)
		}
		before = lines[i].Hash
	}
	return lines
}

// Check accepts only a complete chain of lines that its machine signed.
func TestReport(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	for name, c := range map[string]struct {
		change func(*guardlog.Report)
		good   bool
	}{
		"whole":            {func(*guardlog.Report) {}, true},
		"edited":           {func(r *guardlog.Report) { r.Lines[1].Command = "ls" }, false},
		"cut in between":   {func(r *guardlog.Report) { r.Lines = append(r.Lines[:1], r.Lines[2:]...) }, false},
		"cut at the end":   {func(r *guardlog.Report) { r.Lines = r.Lines[:2] }, false},
		"cut at the start": {func(r *guardlog.Report) { r.Lines = r.Lines[1:] }, false},
		"empty":            {func(r *guardlog.Report) { r.Lines = nil }, false},
		"of another key": {func(r *guardlog.Report) {
			r.PublicKey = guardlog.Sign(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)), r.Lines).PublicKey
		}, false},
		"no key": {func(r *guardlog.Report) { r.PublicKey = "" }, false},
	} {
		report := guardlog.Sign(key, chain(t, 3))
		c.change(&report)
		if err := report.Check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The hash of a line must never change. Otherwise existing logs could not be verified.
func TestLineIsGolden(t *testing.T) {
	if got, want := chain(t, 2)[1].Hash, "306a8ac94e70f78ca2ec2ced26711c6570ee1a7a2a058f7a74a6779b1c3f0bfa"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
