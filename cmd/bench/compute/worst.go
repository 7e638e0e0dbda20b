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

// Limits of the processor time that a body may cost.
const (
	mostPerMB = 100 * time.Millisecond
	// A body of at most 65,536 bytes, which can contain one command of the longest length, has
	// this limit instead of the one per MB.
	mostPerCommand = 50 * time.Millisecond
)

// Limits of the memory of a run. The cost of a body once grew with the square of its size and used
// all memory of a machine. These limits end the run instead, with the name of the body.
const (
	memoryAimedAt = 1 << 30 // bytes; above this the garbage collector runs more often
	memoryMost    = 3 << 30
	bodiesPerGC   = 64 // bodies between two forced garbage collections
)

// worst sends the most expensive bodies that can be built from the published schemas to every
// operation that accepts a large body, over loopback HTTP and one at a time. For each operation it
// prints the cost of the most expensive body: the allocated memory, and the processor time of the
// process, including client and garbage collector.
func (c *Services) worst(ctx context.Context) error {
	debug.SetMemoryLimit(memoryAimedAt)
	service, err := rig.StartService(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	// Watch the memory in the background. A body that uses too much ends the run.
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
	// Send the bodies of one operation after the other and print a line for each operation.
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
		return fmt.Errorf("%d operations cost more than the limit", over)
	}
	return nil
}

// worstRun is the state of one run that sends all bodies to one service.
type worstRun struct {
	service *rig.Service
	token   string // access token of the organization
	key     string
	calls   int // number of calls made with the current key
	keys    int

	progress io.Writer
	now      atomic.Pointer[string] // name of the body that is being sent
	stop     context.CancelCauseFunc
}

// watchMemory ends the run when a body uses more memory than allowed.
func (w *worstRun) watchMemory(ctx context.Context) {
	held := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for ctx.Err() == nil {
		metrics.Read(held)
		if taken := held[0].Value.Uint64() - held[1].Value.Uint64(); taken > memoryMost {
			name := "the start"
			if now := w.now.Load(); now != nil {
				name = *now
			}
			w.stop(fmt.Errorf("the process uses %d MB of memory at %s", taken>>20, name))
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// asked returns the number of bytes that the process has allocated since its start, including
// those it has freed.
func asked() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// startProfile writes a CPU profile to a file until stop is called.
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

// described is one operation, as the OpenAPI document describes it.
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
	size int // maximum size of a request body in bytes
}

// largeOperations returns the operations of the OpenAPI document that accept a body of at least 64
// KiB.
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
	// Read every POST operation with a JSON body from the document.
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
		// Find the size limit of the body: the first size that is not answered 413.
		for _, size := range []int{1 << 20, 1 << 19, 1 << 18, 1 << 16} {
			status, _, err := w.send(ctx, o, []byte(`{}`+strings.Repeat(" ", size-2)))
			if err != nil {
				return nil, err
			}
			if status == http.StatusRequestEntityTooLarge {
				continue
			}
			if status != http.StatusForbidden && status != http.StatusNotFound { // the service gives these answers before it reads the body
				o.size = size
				found = append(found, o)
			}
			break
		}
	}
	return found, nil
}

// withoutReferences replaces each reference to a schema of the document by that schema.
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

// send posts a body and returns the processor time that the process, client included, used for it.
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

// cost is the size of one body, the processor time that it cost, and the status of the answer.
type cost struct {
	name   string
	size   int
	status int
	cost   time.Duration
}

// String returns the text that is printed while the search continues.
func (c cost) String() string { return fmt.Sprintf("at most %.1f ms/MB so far", c.perMB()) }

func (c cost) perMB() float64 {
	return float64(c.cost) / float64(time.Millisecond) * 1e6 / float64(max(c.size, 1))
}

type worstLine struct {
	bodies, answered int
	worst            cost
	memory           float64 // largest allocation for one body, in MB
}

func (l worstLine) most() time.Duration {
	if l.worst.size <= 1<<16 {
		return mostPerCommand
	}
	return mostPerMB * time.Duration(l.worst.size) / 1e6
}

// measure sends all bodies of an operation. It sends a body that seems expensive several times and
// counts the cheapest attempt, because a garbage collection can cost more than a small body.
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
