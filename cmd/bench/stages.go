package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// stages prints the processor time of the parts of a quick gate call, each measured alone, and
// the rest of the call: limits, schema, answer, metrics, read models. Under load, processor
// time varies less than elapsed time.
func (b *benchService) stages(ctx context.Context, callers int, during time.Duration) error {
	keys, err := b.quickKeys(ctx, callers, during)
	if err != nil {
		return err
	}
	whole, err := b.measured(ctx, func() (sample, error) { return b.quick(keys, during) })
	if err != nil {
		return err
	}
	stored, err := b.last(ctx, events.TypeCallCompleted)
	if err != nil {
		return err
	}
	dataKey, err := b.app.Vault.Subject(ctx, ledger.ServiceTenant, "bench", b.app.NewID("sub_"))
	if err != nil {
		return err
	}
	var opened events.CallCompleted
	if err := b.app.Vault.Open(ctx, stored, &opened); err != nil {
		return err
	}
	gate := services.List()[slices.IndexFunc(services.List(), func(s policy.Service) bool { return s.Name == "action-safety/quick" })]
	body, err := canon.Canonical([]byte(quickBody))
	if err != nil {
		return err
	}
	bare, err := newBareServer(len(quickBody) * 6)
	if err != nil {
		return err
	}
	defer bare.close()
	fmt.Printf("%-34s %28s\n", fmt.Sprintf("quick gate, %d in flight", callers), "us of CPU, program + database")
	used := cpu{}
	for _, stage := range []struct {
		name string
		once func() error
	}{
		{"client and HTTP", bare.call},
		{"credential", func() error { _, err := b.app.Authenticate(ctx, keys[0][0]); return err }},
		{"request as JSON", func() error { _, err := canon.Canonical([]byte(quickBody)); return err }},
		{"gate", func() error { _, err := gate.EvaluateCanonical(body); return err }},
		{"seal", func() error {
			_, err := b.app.Vault.Seal(ctx, ledger.ServiceTenant, stored.ID, dataKey, opened)
			return err
		}},
	} {
		alone, err := b.measured(ctx, func() (sample, error) {
			return load(1, during/2, func(int, int) error { return stage.once() })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		used = printStage(stage.name, alone, used)
	}
	appended, err := b.measured(ctx, func() (sample, error) {
		return appendLoad(ctx, b.scratch, 1, callers, during, stored.Payload)
	})
	if err != nil {
		return err
	}
	used = printStage("append, packing included", appended, used)
	n := time.Duration(len(whole.latencies))
	fmt.Printf("%-34s %28s\n", "all else", (cpu{whole.used.process - used.process*n, whole.used.database - used.database*n}).per(int(n)))
	fmt.Printf("%-34s %28s\n", "the whole call", whole.used.per(int(n)))
	return nil
}

// printStage prints a stage and adds its cost per call to the sum.
func printStage(name string, s sample, sum cpu) cpu {
	n := time.Duration(len(s.latencies))
	fmt.Printf("%-34s %28s\n", name, s.used.per(int(n)))
	return cpu{sum.process + s.used.process/n, sum.database + s.used.database/n}
}

// last returns the newest event of a type, among the last hundred events.
func (b *benchService) last(ctx context.Context, eventType string) (ledger.Event, error) {
	p := b.app.Ledger.Partitions()[0]
	head, err := p.Head(ctx)
	if err != nil {
		return ledger.Event{}, err
	}
	last, err := p.After(ctx, max(0, head-100), 100)
	if err != nil {
		return ledger.Event{}, err
	}
	for _, e := range slices.Backward(last) {
		if e.Type == eventType {
			return e, nil
		}
	}
	return ledger.Event{}, fmt.Errorf("no %s among the last events", eventType)
}

// bareServer reads a body and answers with a number of bytes, as fast as the library can.
type bareServer struct {
	server *http.Server
	client *client
}

func newBareServer(size int) (*bareServer, error) {
	answer := padded(size)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := request.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		_, _ = w.Write(answer)
	}), slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(listener) }()
	c, err := newClient(listener.Addr().String())
	return &bareServer{server, c}, err
}

func (s *bareServer) call() error {
	_, _, err := s.client.post("/", "X-API-Key: none\r\n", []byte(quickBody))
	return err
}

func (s *bareServer) close() {
	s.client.close()
	_ = s.server.Close()
}
