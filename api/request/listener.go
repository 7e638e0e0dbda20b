package request

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/countersign/countersign/api/op"
)

// HTTP returns a server with the time-outs and sizes that all listeners share.
func HTTP(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: op.ReadHeaderTimeout, ReadTimeout: op.ReadTimeout,
		WriteTimeout: op.WriteTimeout, IdleTimeout: op.IdleTimeout, MaxHeaderBytes: op.MaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Bounded returns a listener that limits the number of open connections.
func Bounded(l net.Listener) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, op.MaxConnections)}
}

type boundedListener struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a free slot and a connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &boundedConn{Conn: conn, release: func() { <-l.slots }}, nil
}

type boundedConn struct {
	net.Conn
	closed  atomic.Bool
	release func()
}

// goError is the text after the status line when net/http itself refuses a request, before any
// handler: because the request is not HTTP, or because its headers are too large.
const goError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write writes bytes. A refusal that net/http itself writes is replaced by an answer in the form
// of our own errors.
func (c *boundedConn) Write(p []byte) (int, error) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || !bytes.HasPrefix(line, []byte("HTTP/1.1 4")) || !bytes.HasPrefix(append([]byte("\r\n"), rest[:min(len(rest), len(goError))]...), []byte(goError)) {
		return c.Conn.Write(p)
	}
	body := `{"error":"the request is not valid HTTP","code":"invalid_request"}`
	_, err := fmt.Fprintf(c.Conn, "%s\r\nCache-Control: no-store\r\nContent-Length: %d\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
		line, len(body), body)
	return len(p), err
}

// Close closes the connection, and frees the slot once.
func (c *boundedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.release()
	}
	return c.Conn.Close()
}
