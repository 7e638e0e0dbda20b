package screen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTable checks that a table is aligned and coloured on a terminal and plain in a pipe, and
// that text from outside can neither control the terminal nor start a row.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := Table{Heads: []string{"name", "state", "note"}}
	rows.Add("a", "active", "")
	rows.Add("日本", "revoked", "\x1b[2J\nb\tc\u202e")
	for _, c := range []struct {
		name string
		o    Look
		want string
	}{
		{"pipe", Look{}, "a\tactive\t\n日本\trevoked\t\ufffd[2J\ufffdb\ufffdc\ufffd\n"},
		{"terminal", Look{Terminal: true}, "NAME  STATE    NOTE\na     active\n日本  revoked  \ufffd[2J\ufffdb\ufffdc\ufffd\n"},
		{"colours", Look{Terminal: true, Colour: true}, "\x1b[2mNAME\x1b[0m  \x1b[2mSTATE\x1b[0m    \x1b[2mNOTE\x1b[0m\na     \x1b[32mactive\x1b[0m\n日本  \x1b[31mrevoked\x1b[0m  \ufffd[2J\ufffdb\ufffdc\ufffd\n"},
	} {
		if diff := cmp.Diff(c.want, c.o.Table(rows)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	wide := Table{Heads: []string{"state", "what", "found"}}
	wide.Add("ok", "ledger", "23 events verify, and more is said")
	wide.Add("bad", "/a/path/that/is/long/as/it/is", "no")
	const want = "STATE  WHAT          FOUND\nok     ledger        23 events\n                     verify,\n                     and more\n                     is said\nbad    /a/path/that/is/long/as/it/is\n                     no\n"
	if diff := cmp.Diff(want, (Look{Terminal: true, Width: 30}).Table(wide)); diff != "" {
		t.Errorf("narrow: %s", diff)
	}
	if got := (Look{Terminal: true}).Table(Table{Heads: []string{"a"}}); got != "" {
		t.Errorf("no rows: %q", got)
	}
}

// TestColour checks colours by flag, by the kind of terminal, and with NO_COLOR.
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
		if got := Coloured(c.when, c.terminal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// On a terminal, a long text continues in its column, and words are not broken. In a pipe, lines
// are not broken.
func TestTextIsAsWideAsTheTerminal(t *testing.T) {
	t.Parallel()
	const text = "VALID\nNOT PROVEN  that every action was submitted\nhead 0123456789012345678901234567890123456789 of it\n            and on it goes beneath\n"
	if got := (Look{}).Wrapped("%s", text); got != text {
		t.Errorf("in a pipe: %q", got)
	}
	const want = "VALID\nNOT PROVEN  that every\n            action was\n            submitted\nhead\n0123456789012345678901234567890123456789\nof it\n            and on it\n            goes beneath\n"
	if got := (Look{Terminal: true, Width: 25}).Wrapped("%s", text); got != want {
		t.Errorf("on a terminal: %q", got)
	}
}

// A new progress line replaces the previous one, and End leaves nothing on the screen.
func TestProgressIsOneLineAndGoesAway(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &Progress{to: file}
	p.End()
	p.Say("verified %d of %d", 10, 20)
	p.Say("%s", "done")
	p.End()
	p.End()
	(*Progress)(nil).Say("nobody looks")
	text, err := os.ReadFile(file.Name())
	if want := fmt.Sprintf("\rverified 10 of 20\rdone%s\r    \r", strings.Repeat(" ", 13)); err != nil || string(text) != want {
		t.Errorf("%q, want %q, %v", text, want, err)
	}
}
