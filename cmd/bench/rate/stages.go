package rate

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
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// stages prints the processor time of the stages of a quick gate call, each measured alone, and of
// the rest of the call: limits, schema, answer, metrics and read models. It prints processor time
// because elapsed time varies more under load.
func stages(ctx context.Context, b *rig.Service, callers int, during time.Duration) error {
	keys, err := b.QuickKeys(ctx, callers, during)
	if err != nil {
		return err
	}
	// Measure the complete call, and read its event for the measurements of the stages.
	whole, err := b.Measured(ctx, func() (rig.Sample, error) { return b.Quick(keys, during) })
	if err != nil {
		return err
	}
	stored, err := last(ctx, b, events.TypeCallCompleted)
	if err != nil {
		return err
	}
	dataKey, err := b.App.Vault.Subject(ctx, ledger.ServiceTenant, "bench", b.App.NewID("sub_"))
	if err != nil {
		return err
	}
	var opened events.CallCompleted
	if err := b.App.Vault.Open(ctx, stored, &opened); err != nil {
		return err
	}
	// Measure each stage alone.
	gate := rig.QuickGate()
	body, err := canon.Canonical([]byte(rig.QuickBody))
	if err != nil {
		return err
	}
	bare, err := newBareServer(len(rig.QuickBody) * 6)
	if err != nil {
		return err
	}
	defer bare.close()
	fmt.Printf("%-34s %28s\n", fmt.Sprintf("quick gate, %d in flight", callers), "us of CPU, program + database")
	used := rig.CPU{}
	for _, stage := range []struct {
		name string
		once func() error
	}{
		{"client and HTTP", bare.call},
		{"credential", func() error { _, err := b.App.Authenticate(ctx, keys[0][0]); return err }},
		{"request as JSON", func() error { _, err := canon.Canonical([]byte(rig.QuickBody)); return err }},
		{"gate", func() error { _, err := gate.EvaluateCanonical(body); return err }},
		{"seal", func() error {
			_, err := b.App.Vault.Seal(ctx, ledger.ServiceTenant, stored.ID, dataKey, opened)
			return err
		}},
	} {
		alone, err := b.Measured(ctx, func() (rig.Sample, error) {
			return rig.Load(1, during/2, func(int, int) error { return stage.once() })
		})
		if err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		used = printStage(stage.name, alone, used)
	}
	// The append is measured with all callers, because its cost depends on the size of a batch.
	appended, err := b.Measured(ctx, func() (rig.Sample, error) {
		return rig.AppendLoad(ctx, b.Scratch, 1, callers, during, stored.Payload)
	})
	if err != nil {
		return err
	}
	used = printStage("append, packing included", appended, used)
	// The rest is the difference between the complete call and the stages.
	n := time.Duration(len(whole.Latencies))
	fmt.Printf("%-34s %28s\n", "all else", (rig.CPU{Process: whole.Used.Process - used.Process*n, Database: whole.Used.Database - used.Database*n}).Per(int(n)))
	fmt.Printf("%-34s %28s\n", "the whole call", whole.Used.Per(int(n)))
	return nil
}

// printStage prints the processor time of a stage and returns the sum of the stages so far.
func printStage(name string, s rig.Sample, sum rig.CPU) rig.CPU {
	n := time.Duration(len(s.Latencies))
	fmt.Printf("%-34s %28s\n", name, s.Used.Per(int(n)))
	return rig.CPU{Process: sum.Process + s.Used.Process/n, Database: sum.Database + s.Used.Database/n}
}

// last returns the newest event of a type among the last hundred events.
func last(ctx context.Context, b *rig.Service, eventType string) (ledger.Event, error) {
	p := b.App.Ledger.Partitions()[0]
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

// bareServer is an HTTP server that reads a body and answers with a fixed number of bytes. It
// measures the cost of client and HTTP without the service.
type bareServer struct {
	server *http.Server
	client *rig.Client
}

func newBareServer(size int) (*bareServer, error) {
	answer := rig.Padded(size)
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
	c, err := rig.NewClient(listener.Addr().String())
	return &bareServer{server, c}, err
}

func (s *bareServer) call() error {
	_, _, err := s.client.Post("/", "X-API-Key: none\r\n", []byte(rig.QuickBody))
	return err
}

func (s *bareServer) close() {
	s.client.Close()
	_ = s.server.Close()
}
