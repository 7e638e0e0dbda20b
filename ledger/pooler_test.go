package ledger

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/countersign/countersign/ledger/internal/pooler"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// lender imitates PgBouncer between clients and PostgreSQL. It answers each client itself with a
// made-up process number, and lends it a session for one transaction or, if session is set, until
// the client disconnects.
type lender struct {
	server  *pgconn.Config
	session bool // each client keeps its session
	oldest  bool // lend the session that was idle longest, otherwise the one that was used last

	mu   sync.Mutex // guards idle
	idle []*pgconn.HijackedConn
}

// startPooler starts a pooler with some idle sessions in front of a database, and returns the URL
// that leads through the pooler.
func startPooler(t *testing.T, databaseURL string, p *lender, idle int) string {
	t.Helper()
	var err error
	if p.server, err = pgconn.ParseConfig(databaseURL); err != nil {
		t.Fatal(err)
	}
	for range idle {
		server, err := p.dial(t)
		if err != nil {
			t.Fatal(err)
		}
		p.idle = append(p.idle, server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		clients.Wait()
		for _, server := range p.idle {
			server.Conn.Close()
		}
	})
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer conn.Close()
				_ = p.serve(t, conn)
			})
		}
	})
	u := url.URL{Scheme: "postgres", User: url.User(p.server.User), Host: listener.Addr().String(), Path: "/" + p.server.Database, RawQuery: "sslmode=disable"}
	return u.String()
}

func (p *lender) dial(t *testing.T) (*pgconn.HijackedConn, error) {
	conn, err := pgconn.ConnectConfig(t.Context(), p.server.Copy())
	if err != nil {
		return nil, err
	}
	return conn.Hijack()
}

// take returns an idle session.
func (p *lender) take(t *testing.T) (*pgconn.HijackedConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 || p.session {
		return p.dial(t)
	}
	at := len(p.idle) - 1
	if p.oldest {
		at = 0
	}
	server := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	return server, nil
}

// serve serves one client until it disconnects.
func (p *lender) serve(t *testing.T, conn net.Conn) error {
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return err
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 4_000_000_000, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if err := client.Flush(); err != nil {
		return err
	}
	var server *pgconn.HijackedConn
	defer func() {
		if server != nil {
			server.Conn.Close()
		}
	}()
	for {
		said, err := client.Receive()
		if err != nil {
			return err
		}
		if _, leaves := said.(*pgproto3.Terminate); leaves {
			return nil
		}
		if server == nil {
			if server, err = p.take(t); err != nil {
				return err
			}
		}
		server.Frontend.Send(said)
		switch said.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			status, err := relay(client, server.Frontend)
			if err != nil {
				return err
			}
			if status == 'I' && !p.session {
				p.mu.Lock()
				p.idle = append(p.idle, server)
				p.mu.Unlock()
				server = nil
			}
		}
	}
}

// relay forwards an answer and returns the transaction status of the session after it.
func relay(client *pgproto3.Backend, server *pgproto3.Frontend) (status byte, err error) {
	if err := server.Flush(); err != nil {
		return 0, err
	}
	for {
		said, err := server.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(said)
		if ready, ok := said.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, client.Flush()
		}
	}
}

// A node refuses to start through a pooler that mixes sessions, and the error says what to do.
// Through a pooler that keeps sessions apart it starts.
func TestATransactionPoolerIsRefused(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	for _, oldest := range []bool{true, false} {
		for idle := range 4 {
			t.Run(fmt.Sprintf("transaction mode, %d idle, oldest first %v", idle, oldest), func(t *testing.T) {
				l, err := Open(t.Context(), startPooler(t, db.URL, &lender{oldest: oldest}, idle), Options{})
				if err == nil {
					l.Close()
				}
				if !errors.Is(err, pooler.ErrMixes) || !strings.Contains(err.Error(), "session mode") {
					t.Errorf("opened: %v", err)
				}
			})
		}
	}
	t.Run("session mode", func(t *testing.T) {
		l, err := Open(t.Context(), startPooler(t, db.URL, &lender{session: true}, 0), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, err := l.Append(t.Context(), simple("s", "evt_1", New())); err != nil {
			t.Error(err)
		}
	})
}
