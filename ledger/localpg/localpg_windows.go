package localpg

import (
	"context"
	"errors"
)

// A Server is never made on Windows.
type Server struct {
	dataDir, socketDir string
	port               int
	child              *struct{}
	done               chan struct{}
}

// ErrNoPostgres is what Start returns.
var ErrNoPostgres = errors.New("no PostgreSQL to keep the ledger in: on Windows countersign starts none; install one and set DATABASE_URL")

// Start returns ErrNoPostgres.
func Start(context.Context, Options) (*Server, error) { return nil, ErrNoPostgres }

// Stop does nothing.
func (s *Server) Stop() error { return nil }

// Done is never closed.
func (s *Server) Done() <-chan struct{} { return s.done }

// DieWithGoRun does something on Linux only.
func DieWithGoRun() {}
