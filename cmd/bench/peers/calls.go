package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/policy/canon"
)

// calls compares calls of the service over HTTP with bare handlers. A handler of a few lines shows
// what HTTP, JSON, one insert and one signature cost on this machine.
type calls struct {
	Runs    int           `help:"Number of rounds. The median of each measurement is printed." default:"3"`
	During  time.Duration `help:"Length of each run." default:"3s"`
	Callers []int         `help:"Numbers of callers." default:"1,8,32,64"`
}

// Run prints one line for each number of callers and contestant, and the ratio of a call of the
// quick gate to its bare parts.
func (c *calls) Run(ctx context.Context) error {
	service, token, err := rig.StartOrganization(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	list := []contestant{
		{"plain insert", func(callers int, during time.Duration) (rig.Sample, error) {
			return rig.Anchor(ctx, service.Scratch, callers, during)
		}},
		{"HTTP handler with JSON", func(callers int, during time.Duration) (rig.Sample, error) {
			return posts(http.HandlerFunc(answerOnly), callers, during)
		}},
		{"HTTP handler with JSON, insert, signature", func(callers int, during time.Duration) (rig.Sample, error) {
			pool, err := pool(ctx, service.Scratch, callers)
			if err != nil {
				return rig.Sample{}, err
			}
			defer pool.Close()
			if _, err := pool.Exec(ctx, `create table if not exists public.peers_calls (id bytea primary key, body bytea, answer bytea, signature bytea, at bigint)`); err != nil {
				return rig.Sample{}, err
			}
			return posts(insertAndSign(pool), callers, during)
		}},
		{"countersign: quick gate", func(callers int, during time.Duration) (rig.Sample, error) {
			keys, err := service.QuickKeys(ctx, callers, during)
			if err != nil {
				return rig.Sample{}, err
			}
			return service.Measured(ctx, func() (rig.Sample, error) { return service.Quick(keys, during) })
		}},
		{"countersign: signed decision", func(callers int, during time.Duration) (rig.Sample, error) {
			return service.Measured(ctx, func() (rig.Sample, error) { return service.Decide(token, callers, 100, during) })
		}},
	}
	engine, err := engineTime(service.Scratch, c.During/3)
	if err != nil {
		return err
	}
	printHeading()
	for _, callers := range c.Callers {
		medians, err := rounds(service.Scratch, list, c.Runs, callers, c.During)
		if err != nil {
			return err
		}
		printLines(list, medians, callers)
		insert, handler, together, quick := perCall(medians[0]), perCall(medians[1]), perCall(medians[2]), perCall(medians[3])-engine
		fmt.Printf("%-10d quick gate without its engine (%d us): %d us, %.2f of handler + insert (%d us), %.2f of the handler that inserts and signs\n",
			callers, engine.Microseconds(), quick.Microseconds(), ratio(quick, insert+handler), (insert + handler).Microseconds(), ratio(quick, together))
	}
	return rig.Check(ctx, service.Scratch)
}

// perCall returns the processor time of program and database for each call.
func perCall(s rig.Sample) time.Duration {
	return (s.Used.Process + s.Used.Database) / time.Duration(max(1, len(s.Latencies)))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(1, b)) }

// engineTime returns the processor time of the verdict of a call of the quick gate.
func engineTime(s *rig.Scratch, during time.Duration) (time.Duration, error) {
	gate := rig.QuickGate()
	body, err := canon.Canonical([]byte(rig.QuickBody))
	if err != nil {
		return 0, err
	}
	var sample rig.Sample
	used, err := s.Spent(func() (err error) {
		sample, err = rig.Load(1, during, func(int, int) error {
			_, err := gate.EvaluateCanonical(body)
			return err
		})
		return err
	})
	return used.Process / time.Duration(max(1, len(sample.Latencies))), err
}

// posts serves a handler on a loopback address and posts the body of a call of the quick gate to
// it.
func posts(h http.Handler, callers int, during time.Duration) (rig.Sample, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return rig.Sample{}, err
	}
	server := &http.Server{Handler: h}
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	clients := make([]*rig.Client, callers)
	for i := range clients {
		client, err := rig.NewClient(listener.Addr().String())
		if err != nil {
			return rig.Sample{}, err
		}
		defer client.Close()
		clients[i] = client
	}
	return rig.Load(callers, during, func(caller, _ int) error {
		status, answer, err := clients[caller].Post("/", "Authorization: Bearer none\r\n", []byte(rig.QuickBody))
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %s %w", status, answer, err)
		}
		return nil
	})
}

// request and answer have the members of a call that the bare handlers read and write. pad makes
// the answer as long as that of the quick gate.
type request struct {
	Command     string `json:"command"`
	Environment string `json:"environment"`
}

type answer struct {
	Decision  string `json:"decision"`
	Command   string `json:"command"`
	Signature []byte `json:"signature,omitempty"`
	Pad       string `json:"pad"`
}

var padding = strings.Repeat("x", 290)

func answerOnly(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "invalid JSON", http.StatusBadRequest)
		return
	}
	write(w, answer{Decision: "deny", Command: in.Command, Pad: padding})
}

// insertAndSign returns a handler that signs its answer and inserts it with the request.
func insertAndSign(pool *pgxpool.Pool) http.HandlerFunc {
	_, key, _ := ed25519.GenerateKey(rand.Reader) // cannot fail with this reader
	return func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, "invalid JSON", http.StatusBadRequest)
			return
		}
		out := answer{Decision: "deny", Command: in.Command, Pad: padding}
		text, _ := json.Marshal(out) // cannot fail: the answer has only strings
		out.Signature = ed25519.Sign(key, text)
		id := make([]byte, 16)
		rand.Read(id)
		if _, err := pool.Exec(r.Context(), `insert into public.peers_calls values ($1, $2, $3, $4, $5)`,
			id, []byte(in.Command), text, out.Signature, time.Now().UnixMicro()); err != nil {
			http.Error(w, "database", http.StatusServiceUnavailable)
			return
		}
		write(w, out)
	}
}

func write(w http.ResponseWriter, out answer) {
	text, _ := json.Marshal(out) // cannot fail: the answer has only strings and bytes
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}
