//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeServers creates folders with programs that only print a version, and returns the pattern
// that finds them.
func fakeServers(t *testing.T, versions ...string) (place string) {
	t.Helper()
	parent := filepath.Dir(dataDir(t))
	for _, version := range versions {
		dir := filepath.Join(parent, version, "bin")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Fake 1.pgdg)'\n", version)
		for _, name := range []string{"postgres", "initdb"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(parent, "*", "bin")
}

// cluster creates a data folder with an empty cluster of a major version.
func cluster(t *testing.T, major string) string {
	t.Helper()
	dir := dataDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "pg"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pg", "PG_VERSION"), []byte(major+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newTestLauncher(t *testing.T, o Options) *launcher {
	t.Helper()
	l, err := newLauncher(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNewestMajorFirst(t *testing.T) {
	place := fakeServers(t, "9.6.24", "15.13", "17.2", "16.9", "14.18")
	for name, test := range map[string]struct {
		dir  string
		want string
	}{
		"no cluster yet":      {dataDir(t), "17.2"},
		"a cluster of 16":     {cluster(t, "16"), "16.9"},
		"a cluster of 14 too": {cluster(t, "14"), "14.18"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestLauncher(t, Options{DataDir: test.dir, NoFetch: true, places: []string{place}})
			b, err := l.binaries(t.Context())
			if err != nil || b.version != test.want {
				t.Errorf("chose %q, %v; want %q", b.version, err, test.want)
			}
		})
	}
}

func TestAPlaceCountsWithBothPrograms(t *testing.T) {
	for _, missing := range []string{"postgres", "initdb"} {
		place := fakeServers(t, "17.2")
		dirs, err := filepath.Glob(place)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dirs[0], missing)); err != nil {
			t.Fatal(err)
		}
		l := newTestLauncher(t, Options{DataDir: dataDir(t), NoFetch: true, places: []string{place}})
		if b, err := l.binaries(t.Context()); !errors.Is(err, ErrNoPostgres) {
			t.Errorf("without %s: chose %q, %v", missing, b.dir, err)
		}
	}
}

func TestPostgresOnPathIsFoundThroughItsLink(t *testing.T) {
	place := fakeServers(t, "99.1")
	dirs, err := filepath.Glob(place)
	if err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	if err := os.Symlink(filepath.Join(dirs[0], "postgres"), filepath.Join(links, "postgres")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", links+":/usr/bin:/bin")
	l := newTestLauncher(t, Options{DataDir: dataDir(t), NoFetch: true})
	if b, err := l.binaries(t.Context()); err != nil || b.dir != dirs[0] {
		t.Errorf("chose %q, %v; want %q", b.dir, err, dirs[0])
	}
}

func TestAClusterNeedsItsOwnMajor(t *testing.T) {
	place := fakeServers(t, "18.4")
	found := strings.Replace(place, "*", "18.4", 1)
	nowhere := []string{filepath.Join(t.TempDir(), "*")}
	dir15, dir18 := cluster(t, "15"), cluster(t, "18")
	for name, test := range map[string]struct {
		o    Options
		want string
	}{
		"another one is there": {Options{DataDir: dir15, places: []string{place}},
			"the data in " + dir15 + "/pg needs PostgreSQL 15; found only 18.4 in " + found},
		"none is there": {Options{DataDir: dir15, places: nowhere},
			"the data in " + dir15 + "/pg needs PostgreSQL 15; found none"},
		"none is there, and fetching is forbidden": {Options{DataDir: dir18, places: nowhere, NoFetch: true},
			"the data in " + dir18 + "/pg needs PostgreSQL 18; found none; fetch: forbidden by --no-fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), test.o)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

const waysOut = `do one of these and start again:
  apt-get install postgresql                (macOS: brew install postgresql@17)
  docker run -d -e POSTGRES_PASSWORD=change-me -p 127.0.0.1:5432:5432 postgres:17
  DATABASE_URL=postgres://user:password@host:5432/name countersign serve --migrate`

func TestNothingThereEndsAtOnceWithThreeWaysOut(t *testing.T) {
	if musl() {
		t.Skip("the ways out are others on musl")
	}
	const registry = "http://127.0.0.1:1" // nothing listens there
	t.Setenv("PATH", "")
	t.Setenv("NPM_CONFIG_REGISTRY", registry)
	place := filepath.Join(t.TempDir(), "*", "bin")
	old := fakeServers(t, "14.18")
	for name, test := range map[string]struct {
		o    Options
		want string
	}{
		"fetching is forbidden": {Options{NoFetch: true, places: []string{"/nonexistent", place}},
			"  looked for 15 or newer in: /nonexistent, " + place + ": found none\n  fetch: forbidden by --no-fetch\n"},
		"the network is not there": {Options{places: []string{place}, pin: &pinned{"1 B", ""}},
			"  looked for 15 or newer in: " + place + ": found none\n  fetch " + packageURL(registry) + ": connection refused\n"},
		"only an old one": {Options{NoFetch: true, places: []string{old}},
			"  looked for 15 or newer in: " + old + ": found only 14.18 in " + strings.Replace(old, "*", "14.18", 1) + "\n  fetch: forbidden by --no-fetch\n"},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.DataDir = dataDir(t)
			_, err := Start(t.Context(), test.o)
			if !errors.Is(err, ErrNoPostgres) {
				t.Fatalf("got %v, want ErrNoPostgres", err)
			}
			want := "no PostgreSQL to keep the ledger in\n" + test.want + waysOut
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("the text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsualPlacesAreNamedInTheText(t *testing.T) {
	l := newTestLauncher(t, Options{DataDir: dataDir(t)})
	text := l.nothing(nil, errors.New("fetch: no")).Error()
	if !strings.Contains(text, "in: PATH, /usr/lib/postgresql/*/bin, ") {
		t.Errorf("the text does not say where it looked:\n%s", text)
	}
}
