package localpg

import (
	"context"
	"errors"
	"io"
	"time"
)

// A Server is never created on Windows.
type Server struct {
	dataDir, socketDir string
	port               int
	child              *struct{}
	done               chan struct{}
}

// ErrNoPostgres is the error that Start always returns.
var ErrNoPostgres = errors.New("no PostgreSQL to keep the ledger in: on Windows countersign starts none; install one and set DATABASE_URL")

// Start returns ErrNoPostgres.
func Start(context.Context, Options) (*Server, error) { return nil, ErrNoPostgres }

// Stop does nothing.
func (s *Server) Stop() error { return nil }

// Done is never closed.
func (s *Server) Done() <-chan struct{} { return s.done }

// DieWithGoRun does nothing on Windows.
func DieWithGoRun() {}

// ErrNoLog is the error that CopyBase always returns.
var ErrNoLog = ErrNoPostgres

// CopyBase returns ErrNoLog.
func (s *Server) CopyBase(context.Context, io.Writer) error { return ErrNoLog }

// ErrBeforeBase is never returned on Windows.
var ErrBeforeBase = ErrNoPostgres

// Recovery says to which moment a base copy is recovered.
type Recovery struct {
	WAL string
	At  time.Time
	XID string
}

// Recover returns ErrNoPostgres.
func Recover(context.Context, Options, io.Reader, Recovery) error { return ErrNoPostgres }
