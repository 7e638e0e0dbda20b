//go:build unix

package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// holdDoors keeps requests with incomplete bodies open and sends expensive manifests until ctx
// ends. It returns a channel that is closed when all clients have stopped.
func (w *world) holdDoors(ctx context.Context, slow, heavy int) <-chan struct{} {
	var all sync.WaitGroup
	for range slow {
		all.Go(func() { w.halfSent(ctx) })
	}
	for i := range heavy {
		all.Go(func() { w.heavyManifests(ctx, i) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return done
}

// halfSent sends the beginning of a request and waits. If the service closes the connection,
// halfSent opens another one, until ctx ends.
func (w *world) halfSent(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", w.nodes[0].address)
		if err != nil {
			return
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		_, _ = io.WriteString(conn, "POST /api/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{")
		_, _ = io.Copy(io.Discard, conn)
		stop()
		conn.Close()
	}
}

// heavyManifests sends one expensive manifest after another with its own key, until ctx ends or
// the quota is used up.
func (w *world) heavyManifests(ctx context.Context, n int) {
	c := &caller{world: w, name: fmt.Sprintf("heavy-%d-%d", runs.Add(1), n)}
	if !c.issueKey(ctx) {
		return
	}
	body := `{"manifest":{"name":"x","tools":[{"name":"t","description":"` + strings.Repeat("curl ", 30_000) + `"}]}}`
	for ctx.Err() == nil {
		status, answer, err := w.send(ctx, w.nodes[0].base(), acknowledgement{Method: http.MethodPost, Path: "/api/agent-services/mcp-risk/score",
			Headers: map[string]string{"X-API-Key": c.key}, Body: body})
		switch {
		case err != nil || status == http.StatusOK:
		case status == http.StatusServiceUnavailable:
			time.Sleep(200 * time.Millisecond)
		case status == http.StatusTooManyRequests:
			return
		default:
			w.fail(fmt.Errorf("a heavy manifest was answered %d %s", status, answer))
			return
		}
	}
}
