// Package localpg finds, or fetches, a PostgreSQL server and runs it for this
// program alone, so that the ledger works on a bare machine without a second,
// weaker kind of storage.
//
// Everything is in one data folder, and removing that removes everything:
//
//	pg/            the database cluster, 0700, owned by the server's user
//	run/           the socket, 0700
//	lock           a file that is locked while a server is started
//	fetched-…/     binaries, when none were on the machine
//	postgres.log   what the server says
//
// The server listens on a socket only, in a folder that no other user may enter.
// Therefore it trusts every connection and needs no password and no port. Started by
// root, it runs as a user that other programs share. Then only root may log in, which
// the kernel confirms to the server (peer authentication). It is a child of this process
// and ends with it, also by kill -9: on Linux the kernel signals it, elsewhere the orphan
// goes on and the next Start adopts it. A second program that calls Start on the same folder
// adopts the running server.
//
// On Windows Start returns ErrNoPostgres: there a ledger needs DATABASE_URL.
package localpg

import (
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/countersign/countersign/migrations"
)

// Superuser is the role of the launcher, and of tests that tamper. The service
// never uses it.
const Superuser = "postgres"

// Database is the name of the ledger's database on the private server.
const Database = "countersign"

// Options say where the server keeps its data and where it may come from. The
// zero value is the default folder, with fetching allowed and nothing printed.
type Options struct {
	DataDir  string    // the data folder; empty means DefaultDataDir
	NoFetch  bool      // never fetch binaries from the network
	Log      io.Writer // gets one line per step, for a person; nil drops them
	WAL      string    // folder that gets the server's log, for CopyBase and Recover; empty: the same as at the previous start
	Settings []string  // further "name=value" server settings, which override ours

	places []string // tests: search here for binaries and nowhere else
	pin    *pinned  // tests: what the package of this platform must be
}

// DefaultDataDir returns the data folder for a user who names none:
// $XDG_DATA_HOME/countersign if that is set, otherwise /var/lib/countersign for root and
// ~/.local/share/countersign for others. It is empty if the user has no home folder.
func DefaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "countersign")
	}
	if os.Geteuid() == 0 {
		return "/var/lib/countersign"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "share", "countersign")
}

// Made says whether a data folder has a cluster already. A folder that this user may not read
// counts as one: the error of opening it then says what is wrong.
func Made(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "pg", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// URL returns the connection string of the ledger's database for a role:
// migrations.OwnerRole, migrations.AppRole or Superuser.
func (s *Server) URL(role string) string { return s.DatabaseURL(role, Database) }

// DatabaseURL returns the connection string of any database of the server.
func (s *Server) DatabaseURL(role, database string) string {
	return socketURL(s.socketDir, s.port, role, database)
}

// Adopted says whether the server ran before Start; then Stop leaves it running.
func (s *Server) Adopted() bool { return s.child == nil }

// DataDir returns the data folder as an absolute path.
func (s *Server) DataDir() string { return s.dataDir }

func socketURL(dir string, port int, role, database string) string {
	// Every setting that the environment could change (PGPORT, PGSSLMODE) is named.
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// pinned is the size and the hash that a package must have.
type pinned struct{ size, sha512 string }

// roles that the launcher makes; both may log in, since the socket is private.
var roles = []string{migrations.OwnerRole, migrations.AppRole}
