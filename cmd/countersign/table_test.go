package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/cmd/countersign/screen"
)

// TestTable: aligned and coloured on a terminal, plain in a pipe, and nothing that
// somebody else wrote steers the terminal or makes a row of its own.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := screen.Table{Heads: []string{"name", "state", "note"}}
	rows.Add("a", "active", "")
	rows.Add("日本", "revoked", "\x1b[2J\nb\tc\u202e")
	for _, c := range []struct {
		name string
		o    output
		want string
	}{
		{"pipe", output{}, "a\tactive\t\n日本\trevoked\t\ufffd[2J\ufffdb\ufffdc\ufffd\n"},
		{"terminal", output{terminal: true}, "NAME  STATE    NOTE\na     active\n日本  revoked  \ufffd[2J\ufffdb\ufffdc\ufffd\n"},
		{"colours", output{terminal: true, colour: true}, "\x1b[2mNAME\x1b[0m  \x1b[2mSTATE\x1b[0m    \x1b[2mNOTE\x1b[0m\na     \x1b[32mactive\x1b[0m\n日本  \x1b[31mrevoked\x1b[0m  \ufffd[2J\ufffdb\ufffdc\ufffd\n"},
	} {
		if diff := cmp.Diff(c.want, c.o.table(rows)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	wide := screen.Table{Heads: []string{"state", "what", "found"}}
	wide.Add("ok", "ledger", "23 events verify, and more is said")
	wide.Add("bad", "/a/path/that/is/long/as/it/is", "no")
	const want = "STATE  WHAT          FOUND\nok     ledger        23 events\n                     verify,\n                     and more\n                     is said\nbad    /a/path/that/is/long/as/it/is\n                     no\n"
	if diff := cmp.Diff(want, (&output{terminal: true, width: 30}).table(wide)); diff != "" {
		t.Errorf("narrow: %s", diff)
	}
	if got := (&output{terminal: true}).table(screen.Table{Heads: []string{"a"}}); got != "" {
		t.Errorf("no rows: %q", got)
	}
}

// TestColour: asked for, forbidden, or by the terminal and NO_COLOR.
func TestColour(t *testing.T) {
	for _, c := range []struct {
		when, noColor, term string
		terminal, want      bool
	}{
		{"auto", "", "xterm", true, true}, {"auto", "", "xterm", false, false}, {"auto", "1", "xterm", true, false}, {"auto", "", "dumb", true, false},
		{"always", "1", "dumb", false, true}, {"never", "", "xterm", true, false},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := screen.Coloured(c.when, c.terminal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"gate", "--color", "sometimes", "ls"}, &stdout, &stderr); code != 2 {
		t.Errorf("an unknown word: exit %d", code)
	}
}
