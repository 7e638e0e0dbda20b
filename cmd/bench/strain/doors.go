package strain

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/cmd/bench/rig"
)

// Doors measures the quick gate while other clients occupy the service: with incomplete bodies,
// and with expensive manifests. All clients run in this process and stop at the end of the
// measurement.
type Doors struct {
	During time.Duration `help:"Length of each part." default:"60s"`
	Slow   int           `help:"Number of concurrent requests whose body arrives at one byte per second." default:"1400"`
	Heavy  int           `help:"Number of expensive manifests at once." default:"50"`
}

// Run prints one line for each part of the measurement.
func (c *Doors) Run(ctx context.Context) error {
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Printf("%-24s %20s %12s  %s\n", "while", "gate p50/p99 ms", "health", "others")
	for _, part := range []struct {
		name string
		do   func(context.Context, *rig.Service) (string, error)
	}{
		{"nothing", func(ctx context.Context, _ *rig.Service) (string, error) { <-ctx.Done(); return "", nil }},
		{fmt.Sprintf("%d slow bodies", c.Slow), c.slowBodies},
		{fmt.Sprintf("%d heavy manifests", c.Heavy), c.heavyManifests},
	} {
		keys, err := service.QuickKeys(ctx, 1, c.During)
		if err != nil {
			return err
		}
		while, stop := context.WithTimeout(ctx, c.During+time.Second)
		var said string
		var failed error
		var running sync.WaitGroup
		running.Go(func() { said, failed = part.do(while, service) })
		var health atomic.Int64
		running.Go(func() { health.Store(watchHealth(while, service)) })
		calls, err := service.Quick(keys, c.During)
		stop()
		running.Wait()
		if err != nil || failed != nil {
			return fmt.Errorf("%s: %v, %v", part.name, err, failed)
		}
		fmt.Printf("%-24s %20s %12s  %s\n", part.name, calls.P50P99(), fmt.Sprintf("%d not 200", health.Load()), said)
	}
	return nil
}

// watchHealth calls the health endpoint until ctx ends and returns the number of answers other
// than 200.
func watchHealth(ctx context.Context, b *rig.Service) (bad int64) {
	for ctx.Err() == nil {
		r, err := http.Get(b.Base + "/api/health")
		if err != nil || r.StatusCode != http.StatusOK {
			bad++
		}
		if err == nil {
			r.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return bad
}

// slowBodies opens many requests and sends each body at one byte per second.
func (c *Doors) slowBodies(ctx context.Context, b *rig.Service) (string, error) {
	var opened, answered atomic.Int64
	var all sync.WaitGroup
	for range c.Slow {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := net.Dial("tcp", strings.TrimPrefix(b.Base, "http://"))
				if err != nil {
					return
				}
				opened.Add(1)
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				go trickle(ctx, conn)
				if text, _ := io.ReadAll(conn); len(text) > 0 {
					answered.Add(1)
				}
				stop()
				conn.Close()
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d opened, %d answered", opened.Load(), answered.Load()), nil
}

func trickle(ctx context.Context, conn net.Conn) {
	_, err := io.WriteString(conn, "POST /api/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n")
	for err == nil && ctx.Err() == nil {
		_, err = io.WriteString(conn, " ")
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// heavyManifests sends expensive manifests from several concurrent clients until ctx ends, and
// returns a summary of the answers.
func (c *Doors) heavyManifests(ctx context.Context, b *rig.Service) (string, error) {
	body := `{"manifest":{"name":"x","tools":[{"name":"t","description":"` + strings.Repeat("curl ", 30_000) + `"}]}}`
	// Issue a key for each client.
	var keys []string
	for i := range c.Heavy {
		issued, err := b.App.IssueFreeKey(ctx, fmt.Sprintf("heavy-%d-%d@example.com", time.Now().UnixNano(), i), "")
		if err != nil {
			return "", err
		}
		keys = append(keys, issued.APIKey)
	}
	// Send the manifest from all clients and count the answers.
	var charged, refused, other atomic.Int64
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.Base+"/api/agent-services/mcp-risk/score", strings.NewReader(body))
				if err != nil {
					return
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-API-Key", key)
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					continue
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				switch answer.StatusCode {
				case http.StatusOK:
					charged.Add(1)
				case http.StatusServiceUnavailable: // the client waits before it repeats the call
					refused.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(2 * time.Second):
					}
				case http.StatusTooManyRequests:
					return
				default:
					other.Add(1)
				}
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d answered and charged, %d refused early, %d otherwise", charged.Load(), refused.Load(), other.Load()), nil
}
