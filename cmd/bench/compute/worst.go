package compute

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/api/largebody"
	"github.com/countersign/countersign/cmd/bench/rig"
	"github.com/countersign/countersign/commands/accounts"
)

// Limits of the processor time of a body, per MB.
const (
	mostPerMB = 100 * time.Millisecond
	// A command is judged by an engine with its own limit: 50 ms for the maximum of 65,536
	// characters.
	mostPerCommand = 50 * time.Millisecond
)

// Limits of the memory of a run. A body whose cost grew with the square of its size once took
// all memory of a machine. Now such a body ends the run and is named.
const (
	memoryAimedAt = 1 << 30 // bytes; above it the collector works harder
	memoryMost    = 3 << 30
	bodiesPerGC   = 64 // bodies between two forced collections
)

// worst sends to every operation with a large body the most expensive bodies that can be built
// from its published schema, over loopback HTTP. It prints the cost of the worst: processor
// time of the process, with client and collector, and allocated memory. It sends one body at a
// time.
func (c *Services) worst(ctx context.Context) error {
	debug.SetMemoryLimit(memoryAimedAt)
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	w := &worstRun{service: service, progress: os.Stderr}
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	go w.watchMemory(ctx)
	if c.Profile != "" {
		stop, err := startProfile(c.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if w.token, err = service.Organization(ctx); err != nil {
		return err
	}
	operations, err := w.largeOperations(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %8s %7s %8s %9s %9s %6s  %s\n", "operation", "bytes", "bodies", "answered", "ms/MB", "MB asked", "status", "the worst body")
	over := 0
	for _, o := range operations {
		if c.Only != "" && !strings.Contains(o.ID, c.Only) {
			continue
		}
		line, err := w.measure(ctx, o, c.Body)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.ID, err)
		}
		mark := ""
		if line.worst.cost > line.most() {
			mark, over = "  OVER", over+1
		}
		fmt.Printf("%-34s %8d %7d %8d %9.1f %9.0f %6d  %s%s\n", o.ID, o.size, line.bodies, line.answered,
			line.worst.perMB(), line.memory, line.worst.status, line.worst.name, mark)
	}
	if over > 0 {
		return fmt.Errorf("%d operations cost more than they may", over)
	}
	return nil
}

// worstRun is one run of all bodies against one service.
type worstRun struct {
	service *rig.Service
	token   string // of an organization
	key     string
	calls   int // number of calls with the key
	keys    int

	progress io.Writer
	now      atomic.Pointer[string] // the name of the body being sent
	stop     context.CancelCauseFunc
}

// watchMemory ends the run when a body takes more memory than allowed.
func (w *worstRun) watchMemory(ctx context.Context) {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(held)
		if taken := held[0].Value.Uint64() - held[1].Value.Uint64(); taken > memoryMost {
			name := "the start"
			if now := w.now.Load(); now != nil {
				name = *now
			}
			w.stop(fmt.Errorf("%d MB of memory are in use at %s", taken>>20, name))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// asked returns the number of bytes allocated since the start.
func asked() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// startProfile writes a CPU profile to a file until it is stopped.
func startProfile(name string) (stop func(), err error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, nil
}

// described is one operation of the OpenAPI document.
type described struct {
	ID      string `json:"operationId"`
	Request *struct {
		Content map[string]struct {
			Schema  any `json:"schema"`
			Example any `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
	Security []map[string]any `json:"security"`

	path string
	size int // maximum size of a body
}

// largeOperations returns the operations that accept a body of at least 64 KiB.
func (w *worstRun) largeOperations(ctx context.Context) (found []described, err error) {
	answer, err := http.Get(w.service.Base + "/openapi-full.json")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var document struct {
		Paths      map[string]map[string]jsontext.Value `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.UnmarshalRead(answer.Body, &document); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		post, has := document.Paths[path]["post"]
		if !has {
			continue
		}
		var o described
		if err := json.Unmarshal(post, &o); err != nil {
			return nil, err
		}
		o.path = strings.NewReplacer("{", "", "}", "").Replace(path)
		if o.Request == nil || o.Request.Content["application/json"].Schema == nil {
			continue
		}
		media := o.Request.Content["application/json"]
		media.Schema = withoutReferences(media.Schema, document.Components.Schemas)
		o.Request.Content["application/json"] = media
		for _, size := range []int{1 << 20, 1 << 19, 1 << 18, 1 << 16} {
			status, _, err := w.send(ctx, o, []byte(`{}`+strings.Repeat(" ", size-2)))
			if err != nil {
				return nil, err
			}
			if status == http.StatusRequestEntityTooLarge {
				continue
			}
			if status != http.StatusForbidden && status != http.StatusNotFound { // answers given before the body is read
				o.size = size
				found = append(found, o)
			}
			break
		}
	}
	return found, nil
}

// withoutReferences replaces references to schemas of the document by the schemas.
func withoutReferences(value any, schemas map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		if reference, is := v["$ref"].(string); is {
			return withoutReferences(schemas[strings.TrimPrefix(reference, "#/components/schemas/")], schemas)
		}
		resolved := map[string]any{}
		for name, member := range v {
			resolved[name] = withoutReferences(member, schemas)
		}
		return resolved
	case []any:
		resolved := make([]any, len(v))
		for i := range v {
			resolved[i] = withoutReferences(v[i], schemas)
		}
		return resolved
	}
	return value
}

// send posts a body and returns the processor time that it cost the process.
func (w *worstRun) send(ctx context.Context, o described, body []byte) (status int, cost time.Duration, err error) {
	if w.key == "" || w.calls >= accounts.FreeCallsPerMonth {
		issued, err := w.service.App.IssueFreeKey(ctx, fmt.Sprintf("worst-%d-%d@example.com", time.Now().UnixNano(), w.keys), "")
		if err != nil {
			return 0, 0, err
		}
		w.key, w.calls, w.keys = issued.APIKey, 0, w.keys+1
	}
	w.calls++
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.service.Base+o.path, strings.NewReader(string(body)))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if slices.ContainsFunc(o.Security, func(s map[string]any) bool { _, is := s["organizationToken"]; return is }) {
		r.Header.Set("Authorization", "Bearer "+w.token)
	} else {
		r.Header.Set("X-API-Key", w.key)
	}
	before := processTime()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, processTime() - before, err
}

func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cost is the cost of one body.
type cost struct {
	name   string
	size   int
	status int
	cost   time.Duration
}

// String is the text printed while the search continues.
func (c cost) String() string { return fmt.Sprintf("at most %.1f ms/MB so far", c.perMB()) }

func (c cost) perMB() float64 {
	return float64(c.cost) / float64(time.Millisecond) * 1e6 / float64(max(c.size, 1))
}

type worstLine struct {
	bodies, answered int
	worst            cost
	memory           float64 // maximum of MB allocated for one body
}

func (l worstLine) most() time.Duration {
	if l.worst.size <= 1<<16 {
		return mostPerCommand
	}
	return mostPerMB * time.Duration(l.worst.size) / 1e6
}

// measure sends all bodies of an operation. A body that seems expensive is sent several times
// and its cheapest run counts, because a garbage collection during a run can cost more than a
// small body.
func (w *worstRun) measure(ctx context.Context, o described, c string) (line worstLine, err error) {
	media := o.Request.Content["application/json"]
	for name, body := range largebody.All(media.Schema, media.Example, o.size) {
		if c != "" && !strings.Contains(name, c) {
			continue
		}
		one := cost{name: name, size: len(body)}
		where := o.ID + ", " + name
		w.now.Store(&where)
		tries := 3
		if len(body) <= 1<<16 {
			tries = 12
		}
		for try := range tries {
			before := asked()
			status, took, err := w.send(ctx, o, []byte(body))
			if err != nil {
				return line, fmt.Errorf("%s: %w", name, err)
			}
			line.memory = max(line.memory, float64(asked()-before)/1e6)
			if try == 0 || took < one.cost {
				one.status, one.cost = status, took
			}
			if one.cost <= line.worst.cost {
				break
			}
		}
		if line.bodies++; line.bodies%bodiesPerGC == 0 {
			debug.FreeOSMemory()
			fmt.Fprintf(w.progress, "%s: %d bodies, %s\n", o.ID, line.bodies, line.worst)
		}
		if one.status < 300 {
			line.answered++
		}
		if one.cost > line.worst.cost {
			line.worst = one
		}
	}
	return line, nil
}
