// Package localpg finds or fetches a PostgreSQL server and runs it only for this program, so that
// the ledger works on a bare machine without a second, weaker kind of storage.
//
// Everything is in one data folder, and removing that folder removes everything:
//
//	pg/            the database cluster, mode 0700, owned by the server's user
//	run/           the socket, mode 0700
//	lock           a file that is locked while a server is started
//	fetched-…/     binaries, if the machine had none
//	postgres.log   output of the server
//
// The server listens only on a socket, in a folder that no other user may enter. So it trusts
// every connection and needs neither password nor port. If root starts it, the server runs as the
// user postgres or nobody, and other programs may run as that user, too. Then only root may log
// in; the kernel tells the server which user connects (peer authentication). The server is a child
// of this process and ends with it, even after kill -9: on Linux the kernel signals it; on other
// systems the orphan continues and the next Start adopts it. A second program that calls Start for
// the same folder adopts the running server.
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

// Superuser is the role of the launcher, and of tests that tamper with the database. The service
// never uses it.
const Superuser = "postgres"

// Database is the name of the ledger's database on the private server.
const Database = "countersign"

// Options are the settings of a private server. The zero value means the default folder, fetching
// allowed and no output.
type Options struct {
	DataDir  string    // data folder; empty means DefaultDataDir
	NoFetch  bool      // never fetch binaries from the network
	Log      io.Writer // gets one line per step for the user; nil means no output
	WAL      string    // folder for the write-ahead log, which CopyBase and Recover need; empty means the folder of the previous start
	Settings []string  // additional server settings "name=value", which override ours

	places []string // for tests: the only folders in which to search for binaries
	pin    *pinned  // for tests: expected size and hash of the package
}

// DefaultDataDir returns the data folder if the user configures none: $XDG_DATA_HOME/countersign
// if that is set, otherwise /var/lib/countersign for root and ~/.local/share/countersign for
// others. It is empty if the user has no home folder.
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

// Made reports whether a data folder contains a cluster. It returns true for a folder that this
// user may not read: the error of opening it then explains the problem.
func Made(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "pg", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// URL returns the connection string of the ledger's database for a role: migrations.OwnerRole,
// migrations.AppRole or Superuser.
func (s *Server) URL(role string) string { return s.DatabaseURL(role, Database) }

// DatabaseURL returns the connection string of any database of the server.
func (s *Server) DatabaseURL(role, database string) string {
	return socketURL(s.socketDir, s.port, role, database)
}

// Adopted reports whether the server was already running before Start. Then Stop leaves it
// running.
func (s *Server) Adopted() bool { return s.child == nil }

// DataDir returns the data folder as an absolute path.
func (s *Server) DataDir() string { return s.dataDir }

func socketURL(dir string, port int, role, database string) string {
	// The query sets all parameters that the environment could change (PGPORT, PGSSLMODE).
	query := url.Values{"host": {dir}, "port": {strconv.Itoa(port)}, "user": {role}, "sslmode": {"disable"}}
	return "postgres:///" + url.PathEscape(database) + "?" + query.Encode()
}

// pinned is the size of a package for people, and the hash that it must have.
type pinned struct{ size, sha512 string }

// roles lists the roles that the launcher creates. They may log in, because the socket is private.
var roles = []string{migrations.OwnerRole, migrations.AppRole}
