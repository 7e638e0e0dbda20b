// Package localpg finds, or fetches, a PostgreSQL server and runs it for this
// program alone, so that the ledger works on a bare machine without a second,
// weaker kind of storage.
//
// Everything lies in one data folder, and removing that removes everything:
//
//	pg/            the database cluster, 0700, owned by the server's user
//	run/           the socket, 0700
//	lock           held while a server is started
//	fetched-…/     binaries, when none were on the machine
//	postgres.log   what the server says
//
// The server listens on a socket only, in a folder that no other user may enter.
// Therefore it trusts every connection and needs no password and no port. Started by
// root, it runs as a user that other programs share. Then only root may log in, which
// the kernel confirms to the server (peer authentication). It is a child of this process
// and ends with it, also by kill -9: on Linux the kernel signals it, elsewhere the orphan
// goes on and the next Start adopts it. Whoever
// starts second on the same folder adopts the running server.
//
// Windows has no such server: Start says so, and DATABASE_URL is the way.
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
// never works as it.
const Superuser = "postgres"

// Database is the name of the ledger's database on the private server.
const Database = "countersign"

// Options say where the server keeps its data and where it may come from. The
// zero value is the default folder, with fetching allowed and nothing printed.
type Options struct {
	DataDir  string    // the data folder; empty means DefaultDataDir
	NoFetch  bool      // never fetch binaries from the network
	Log      io.Writer // gets one line per step, for a person; nil drops them
	WAL      string    // folder that takes the server's log, for CopyBase and Recover; empty: as at the start before
	Settings []string  // further "name=value" server settings, stronger than ours

	places []string // tests: search here for binaries and nowhere else
	pin    *pinned  // tests: what the package of this platform must be
}

// DefaultDataDir is where the data lies unless somebody says otherwise:
// $XDG_DATA_HOME/countersign where that is set, else /var/lib/countersign for root and
// ~/.local/share/countersign for others. It is empty when there is no home.
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

// Made says whether a data folder has a cluster already. A folder that this user may
// not look into counts as one: opening it says what is wrong.
func Made(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "pg", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// URL is the connection string of the ledger's database for a role:
// migrations.OwnerRole, migrations.AppRole or Superuser.
func (s *Server) URL(role string) string { return s.DatabaseURL(role, Database) }

// DatabaseURL is the connection string of any database of the server.
func (s *Server) DatabaseURL(role, database string) string {
	return socketURL(s.socketDir, s.port, role, database)
}

// Adopted tells whether the server ran before Start; then Stop leaves it running.
func (s *Server) Adopted() bool { return s.child == nil }

// DataDir is the folder that holds everything, as an absolute path.
func (s *Server) DataDir() string { return s.dataDir }

func socketURL(dir string, port int, role, database string) string {
	// Every setting that the environment could change (PGPORT, PGSSLMODE) is named.
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// pinned is what a package must be, octet for octet.
type pinned struct{ size, sha512 string }

// roles that the launcher makes; both may log in, since the socket is private.
var roles = []string{migrations.OwnerRole, migrations.AppRole}
