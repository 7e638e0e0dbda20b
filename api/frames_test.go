package api

import (
	"context"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/commands/store"
	"github.com/countersign/countersign/ledger/events"
)

// mostFrames is the largest number of our own functions from the handler of an operation to the
// statement that appends its events, both included. A reader of the main path has to read this
// many functions.
const mostFrames = 12

// framesOfAppends records our own functions on the stack at the first statement that inserts
// events after watch: first those of the request, which waits for the append, then those of the
// sequencer, which sends the statement.
type framesOfAppends struct {
	mu                 sync.Mutex // protects the fields below
	request, sequencer []string   // nil if there was no such statement since watch
}

func (f *framesOfAppends) watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.request, f.sequencer = nil, nil
}

// TraceQueryStart implements pgx.QueryTracer. It runs in the goroutine that sends the statement,
// while the request waits for it.
func (f *framesOfAppends) TraceQueryStart(ctx context.Context, _ *pgx.Conn, statement pgx.TraceQueryStartData) context.Context {
	if !strings.Contains(statement.SQL, "insert into events") {
		return ctx
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.request == nil {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		f.request, f.sequencer = ourFrames(stacks, handlerFrame), ourFrames(stacks, sequencerFrame) // request is nil if the event was not caused by a request
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (f *framesOfAppends) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

var (
	stackFunction  = regexp.MustCompile(`(?m)^github\.com/countersign/countersign/(\S+)\(`)
	handlerFrame   = regexp.MustCompile(`^api\S*\.\(\*Path\)\.Handle\.func\d+$`)
	sequencerFrame = regexp.MustCompile(`^ledger\.\(\*sequencer\)\.run$`)
)

// ourFrames returns our functions on the stack of the goroutine that runs a function, starting
// with that function and including inlined ones.
func ourFrames(stacks []byte, from *regexp.Regexp) []string {
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		var frames []string
		for _, found := range stackFunction.FindAllStringSubmatch(stack, -1) {
			if !strings.Contains(found[1], "framesOfAppends") {
				frames = append([]string{found[1]}, frames...)
			}
			if from.MatchString(found[1]) {
				return frames
			}
		}
	}
	return nil
}

// claimedAgent registers an agent that a customer claims, and returns its Authorization header.
func (n *node) claimedAgent(email string) string {
	n.t.Helper()
	bearer := "Bearer " + n.token(n.register(), "")
	n.wants(n.claim("Cookie", n.signIn(email), "Authorization", bearer), 200)
	return bearer
}

// subscribed gives a customer a pass that is paid for one month.
func (n *node) subscribed(email string) {
	n.t.Helper()
	ctx, now := n.t.Context(), n.clock.Now().Unix()
	if err := n.app.RecordSubscription(ctx, store.ProviderEvent{ID: "evt_p", At: now}, "cus_p",
		events.SubscriptionUpdated{Subscription: "sub_p", Product: "pass", Status: "active", Change: "paid", PeriodStart: now, PeriodEnd: now + 30*24*3600}); err != nil {
		n.t.Fatal(err)
	}
	if err := n.app.FulfilCheckout(ctx, store.ProviderEvent{ID: "evt_c", At: now},
		store.CompletedCheckout{Session: "cs_p", Customer: "cus_p", Subscription: "sub_p", Product: "pass", Email: email}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) quick(bearer, path, command string) answer {
	n.t.Helper()
	return n.send("POST", path, `{"command":"`+command+`"}`, "Content-Type", "application/json", "Authorization", bearer)
}

func TestFewFramesBetweenHandlerAndStatement(t *testing.T) { // not parallel: it reads the stacks of all goroutines of this process
	seen := &framesOfAppends{}
	n := startNode(t, setup{tracer: seen, dev: true})
	key, token := n.issueKey(), n.tokenWithPolicy()
	n.app.Products = []store.Product{{Slug: "pass", Kind: store.Subscription, PriceCents: 100, CreditCents: 1000}}
	credit, pass := n.claimedAgent("ada@example.com"), n.claimedAgent("bob@example.com")
	n.subscribed("bob@example.com")
	for range 4 { // spends the whole credit, so that later calls are charged to the pass
		n.wants(n.quick(pass, runPath, "ls"), 200)
	}
	decision := func(i int) answer {
		return n.send("POST", decisions.Decide.Path, `{"protocol":"mcp","idempotencyKey":"k`+strconv.Itoa(i)+`","subject":{"runId":"r"},"intent":{"serverId":"files","toolName":"read"}}`,
			"Authorization", "Bearer "+token, "Content-Type", "application/json")
	}
	for _, path := range []struct {
		name   string
		status int
		send   func(i int) answer
	}{
		{"decide", 201, decision},
		{"workflow", 200, func(i int) answer { return n.post(runPath, key, `{"command":"ls `+strconv.Itoa(i)+`"}`) }},
		{"quick", 200, func(i int) answer {
			return n.post("/api/agent-services/action-safety/quick", key, `{"command":"ls `+strconv.Itoa(i)+`"}`)
		}},
		{"credit", 200, func(i int) answer { return n.quick(credit, quickPath, "ls "+strconv.Itoa(i)) }},
		{"pass", 200, func(i int) answer { return n.quick(pass, quickPath, "ls "+strconv.Itoa(i)) }},
		{"x402", 200, func(i int) answer {
			return n.pay(quickPath, n.order(quickPath, strconv.Itoa(i)).Header(), `{"command":"ls"}`)
		}},
	} {
		n.wants(path.send(0), path.status) // fills the caches of callers and heads
		seen.watch()
		n.wants(path.send(1), path.status)
		frames := slices.Concat(seen.request, seen.sequencer)
		if len(seen.request) == 0 || len(seen.sequencer) == 0 || len(frames) > mostFrames {
			t.Errorf("%s: %d frames, wanted at most %d:\n%s", path.name, len(frames), mostFrames, strings.Join(frames, "\n"))
		}
	}
}
