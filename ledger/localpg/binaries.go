//go:build unix

package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPostgres means that a machine has no PostgreSQL. Its text is the first line of the error;
// the next lines say what was tried and list three ways to proceed.
var ErrNoPostgres = errors.New("no PostgreSQL to keep the ledger in")

// usualPlaces lists the folders in which distributions and installers put the server.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/libexec/postgresql*",
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/usr/local/pgsql/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// binaries are one installation of the server.
type binaries struct {
	dir     string
	version string // such as "15.13"
	major   int
}

// binaries chooses the server's programs: first those on the machine, the newest major version
// first, then those fetched earlier, then those that it fetches now. If a cluster exists, the
// programs must have its major version, because a cluster is never upgraded silently.
func (l *launcher) binaries(ctx context.Context) (binaries, error) {
	need, err := l.clusterMajor()
	if err != nil {
		return binaries{}, err
	}
	found := l.installed()
	if b, ok := l.fetched(); ok {
		found = append(found, b)
	}
	for _, b := range found {
		if b.major == need || need == 0 && b.major >= oldestMajor {
			return b, nil
		}
	}
	fetching := errors.New("fetch: forbidden by --no-fetch")
	if need != 0 && need != fetchedMajor {
		return binaries{}, l.wrongMajor(need, found, nil)
	}
	if !l.NoFetch {
		var b binaries
		if b, fetching = l.fetch(ctx); fetching == nil {
			return b, nil
		}
		if errors.Is(fetching, errUnusable) || ctx.Err() != nil {
			return binaries{}, fetching
		}
	}
	if need != 0 {
		return binaries{}, l.wrongMajor(need, found, fetching)
	}
	return binaries{}, l.nothing(found, fetching)
}

// installed returns the installations on the machine that the server's user can run: the newest
// major version first, PATH before the usual places.
func (l *launcher) installed() []binaries {
	var dirs []string
	places := l.places
	if places == nil {
		places = usualPlaces
		if path, err := exec.LookPath("postgres"); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	for _, place := range places {
		matches, _ := filepath.Glob(place) // cannot fail: the patterns are well-formed
		dirs = append(dirs, matches...)
	}
	var found []binaries
	for _, dir := range dirs {
		if b, ok := l.look(dir); ok && !slices.Contains(found, b) {
			found = append(found, b)
		}
	}
	slices.SortStableFunc(found, func(a, b binaries) int { return cmp.Compare(b.major, a.major) })
	return found
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`)

// look returns the installation in dir, if there is one that the server's user can run.
func (l *launcher) look(dir string) (binaries, bool) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, false
	}
	if _, closed := l.user.closedParent(dir); closed {
		return binaries{}, false
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, false
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(string(m[2]))
	return binaries{dir: dir, version: string(m[1]), major: major}, err == nil
}

// wrongMajor returns the error for a cluster whose major version no installation has.
func (l *launcher) wrongMajor(need int, found []binaries, fetching error) error {
	text := fmt.Sprintf("the data in %s needs PostgreSQL %d; %s", l.pgDir, need, describe(found))
	if fetching != nil {
		text += "; " + fetching.Error()
	}
	return errors.New(text)
}

// nothing returns the error for a machine without a server.
func (l *launcher) nothing(found []binaries, fetching error) error {
	places := append([]string{"PATH"}, usualPlaces...)
	if l.places != nil {
		places = l.places
	}
	install := "apt-get install postgresql                (macOS: brew install postgresql@17)"
	if musl() {
		install = "apk add postgresql"
	}
	return fmt.Errorf(`%w
  looked for %d or newer in: %s: %s
  %w
do one of these and start again:
  %s
  docker run -d -e POSTGRES_PASSWORD=change-me -p 127.0.0.1:5432:5432 postgres:17
  DATABASE_URL=postgres://user:password@host:5432/name countersign serve --migrate`,
		ErrNoPostgres, oldestMajor, strings.Join(places, ", "), describe(found), fetching, install)
}

func describe(found []binaries) string {
	if len(found) == 0 {
		return "found none"
	}
	parts := make([]string, len(found))
	for i, b := range found {
		parts[i] = b.version + " in " + b.dir
	}
	return "found only " + strings.Join(parts, ", ")
}

// musl reports whether this is a Linux without glibc, on which the fetched binaries do not run.
func musl() bool {
	if runtime.GOOS != "linux" {
		return false
	}
	loaders, _ := filepath.Glob("/lib/ld-musl-*.so.1")
	glibc, _ := filepath.Glob("/lib*/ld-linux-*.so.*")
	return len(loaders) > 0 && len(glibc) == 0
}
