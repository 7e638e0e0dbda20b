//go:build unix

package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api/x402"
	"github.com/countersign/countersign/ledger/localpg"
	"github.com/countersign/countersign/migrations"
)

// world has one ledger, its nodes, and the clients that call them.
type world struct {
	options *Options
	program string // path of the program for commands that run next to the nodes
	rand    *rand.Rand
	dir     string   // folder of all files of the round
	data    string   // data folder of the nodes
	where   []string // settings with the address of the ledger's database, for nodes and commands
	token   string   // access token of an organization that has a policy
	journal *journal
	refused atomic.Int64  // number of calls that clients had to repeat
	back    time.Duration // see Result.Back

	wrongClock atomic.Bool // true while one of the nodes has a wrong clock

	mu     sync.Mutex // guards failed
	failed error      // the first broken promise that a client noticed

	nodes     []*node
	separated bool // true if the ledger's PostgreSQL is not run by the nodes
	postgres  *localpg.Server
	closers   []func()
}

// node is one process of the service. It keeps its address when it is restarted.
type node struct {
	program string
	address string
	more    []string // settings that only this node has
	said    lockedBuffer

	cmd   *exec.Cmd     // the newest process; only the goroutine of the row starts and ends it
	ended chan struct{} // closed when the process has ended
}

func newWorld(o *Options, r *rand.Rand) (*world, error) {
	dir, err := scratchFolder("countersign-fault-")
	if err != nil {
		return nil, err
	}
	w := &world{options: o, program: o.Program, rand: r, dir: dir, data: filepath.Join(dir, "data")}
	w.where = []string{"DATA_DIR=" + w.data}
	if o.Partitions > 0 {
		w.where = append(w.where, fmt.Sprintf("LEDGER_PARTITIONS=%d", o.Partitions))
	}
	w.journal, err = newJournal(dir)
	return w, err
}

// close ends the running processes and removes the folder.
func (w *world) close() {
	for _, n := range w.nodes {
		n.stop()
	}
	for _, end := range w.closers {
		end()
	}
	if w.postgres != nil {
		_ = w.postgres.Stop()
	}
	_ = w.journal.file.Close()
	_ = os.RemoveAll(w.dir)
}

// said returns an error with the last lines of each node's log, without requests and e-mail. It is
// added to the error of a failed round.
func (w *world) said() error {
	var all error
	for _, n := range w.nodes {
		var lines []string
		for line := range strings.Lines(n.said.String()) {
			if strings.HasPrefix(line, "countersign: ") || strings.HasPrefix(line, "{") && !strings.Contains(line, `"level":"INFO"`) {
				lines = append(lines, line)
			}
		}
		all = errors.Join(all, fmt.Errorf("the log of %s ends with: …%s", n.address, strings.Join(lines[max(0, len(lines)-8):], "")))
	}
	return all
}

// separate runs a PostgreSQL for the ledger in this program, not in the nodes, with these
// settings.
func (w *world) separate(ctx context.Context, settings ...string) error {
	var err error
	if w.postgres, err = localpg.Start(ctx, localpg.Options{DataDir: filepath.Join(w.dir, "postgres"), Settings: settings}); err != nil {
		return err
	}
	if err := migrations.UpPartitioned(ctx, w.postgres.URL(migrations.OwnerRole), "faults.example/ledger", w.options.Partitions); err != nil {
		return err
	}
	w.outside(w.postgres.URL(migrations.AppRole))
	return nil
}

// outside configures the nodes for a database that they do not run: its URL, and the secrets that
// the service requires then.
func (w *world) outside(url string) {
	w.separated = true
	w.where = append(w.where, "DATABASE_URL="+url, "SIGNING_KEY="+w.secret(), "CHECKPOINT_KEY="+w.secret(),
		"DATA_KEK="+w.secret(), "TOKEN_KEY="+w.secret(), "X402_MODE=dev", payTo, onNetwork)
}

// Settings of the payee: an address that nobody owns, on the network of the clients' wallets.
const (
	payTo     = "X402_PAY_TO=0x329EdA9C18561571bA257177847A993E354e81b7"
	onNetwork = "X402_NETWORK=" + x402.DevNetwork
)

// secret returns a random 32-byte seed in hexadecimal digits.
func (w *world) secret() string {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(w.rand.Uint32())
	}
	return hex.EncodeToString(seed[:])
}

// private reports whether the nodes run the ledger's PostgreSQL themselves. Only such nodes write
// e-mail to a file, which clients need for signing in.
func (w *world) private() bool { return !w.separated }

// superuser connects to the ledger's database as superuser and passes the connection to the
// function do.
func (w *world) superuser(ctx context.Context, do func(*pgx.Conn) error) error {
	server := w.postgres
	if server == nil {
		var err error
		if server, err = localpg.Start(ctx, localpg.Options{DataDir: w.data}); err != nil { // uses the server that the node has started
			return err
		}
	}
	return superuserOf(ctx, server, do)
}

// superuserOf connects to the ledger's database of a server as superuser and passes the connection
// to the function do.
func superuserOf(ctx context.Context, s *localpg.Server, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.URL(localpg.Superuser))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return do(conn)
}

// serve starts this number of nodes and creates the organization whose agents request decisions.
func (w *world) serve(ctx context.Context, nodes int, settings ...string) error {
	for range nodes {
		address, err := FreeAddress()
		if err != nil {
			return err
		}
		n := &node{program: w.options.Program, address: address, more: settings}
		w.nodes = append(w.nodes, n)
		if err := w.start(ctx, n); err != nil {
			return err
		}
	}
	return w.organization(ctx)
}

// FreeAddress returns an unused loopback address of this machine.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts a node and returns when the node answers.
func (w *world) start(ctx context.Context, n *node) error {
	args := []string{"serve", "--listen", n.address}
	if !w.private() {
		args = append(args, "--x402-dev-allow-remote")
	}
	cmd := exec.Command(n.program, args...)
	cmd.Env = append(append(append(os.Environ(), "RATE_LIMIT=off"), w.where...), n.more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must interrupt only this program, which then ends the nodes
	cmd.Stderr = &n.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	n.cmd, n.ended = cmd, ended
	answers := make(chan struct{})
	go func() {
		lines, known := bufio.NewScanner(out), false
		for lines.Scan() {
			if !known && strings.HasPrefix(lines.Text(), "countersign answers at ") {
				close(answers)
				known = true
			}
		}
		_ = cmd.Wait()
		close(ended)
	}()
	select {
	case <-answers:
		return nil
	case <-ended:
		return errors.New("a node ended during its start")
	case <-ctx.Done():
		return fmt.Errorf("a node did not start: %w", ctx.Err())
	}
}

// signal sends a signal to the node, waits until the process has ended, and returns its exit code.
func (n *node) signal(s syscall.Signal) int {
	if n.cmd == nil {
		return 0
	}
	_ = n.cmd.Process.Signal(s)
	<-n.ended
	return n.cmd.ProcessState.ExitCode()
}

// stop ends the node with SIGTERM, and with SIGKILL if it does not end in time.
func (n *node) stop() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(20 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
}

func (n *node) base() string { return "http://" + n.address }

// command runs a command of the program on the ledger and returns its output. The nodes keep
// running.
func (w *world) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Env = append(os.Environ(), w.where...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("countersign %s: %w: %s%s", strings.Join(args, " "), err, out, said.Bytes())
	}
	return out, nil
}

// organization creates an organization with an active policy and stores an access token of it.
func (w *world) organization(ctx context.Context) error {
	policy := filepath.Join(w.dir, "policy.json")
	text := `{"policyId":"default","maxUsdPerTransaction":1,"allowedHosts":["api.example"]}`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return err
	}
	var made struct{ OrgID, Token string }
	for _, args := range [][]string{
		{"org", "create", "--name", "Acme", "--plan", "team", "--owner", "ada@example.com"},
		{"policy", "activate", "--org", "ORG", "--file", policy, "--reason", "faults"},
		{"org", "token", "issue", "--org", "ORG"},
	} {
		for i := range args {
			if args[i] == "ORG" {
				args[i] = made.OrgID
			}
		}
		out, err := w.command(ctx, append(args, "--json")...)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(out, &made, json.MatchCaseInsensitiveNames(true)); err != nil {
			return err
		}
	}
	w.token = made.Token
	return nil
}

// postmaster returns the process id of the PostgreSQL that the nodes run.
func (w *world) postmaster() int { return postmasterOf(w.data) }

// postmasterOf returns the process id of the PostgreSQL that runs on a data folder, or 0.
func postmasterOf(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "pg", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// killPostgres ends the PostgreSQL of a data folder with SIGKILL. It returns an error for process
// id 0, because a signal to 0 would go to this program and its process group.
func killPostgres(data string) error {
	pid := postmasterOf(data)
	if pid == 0 {
		return errors.New("no PostgreSQL runs that could be killed")
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// ready waits until a node reports that it is ready.
func (w *world) ready(ctx context.Context, n *node) error {
	return w.until(ctx, n.address+" to be ready", func() bool { return status(n.base()+"/readyz") == http.StatusOK })
}

// degraded reports whether the readiness endpoint of a node lists this part as degraded.
func (w *world) degraded(n *node, part string) bool {
	answer, err := http.Get(n.base() + "/readyz")
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var said struct {
		Degraded []string `json:"degraded"`
	}
	return json.UnmarshalRead(answer.Body, &said) == nil && slices.Contains(said.Degraded, part)
}

func status(url string) int {
	answer, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// until waits until done() is true. It returns an error that names what it waited for if the time
// is over or a client noticed a broken promise.
func (w *world) until(ctx context.Context, what string, done func() bool) error {
	for !done() {
		if failed := w.met(); failed != nil {
			return failed
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// fail stores a broken promise, unless one is stored already.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

// met returns the broken promise that fail stored, or nil.
func (w *world) met() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// around starts the clients and causes the fault after their first answers. It then waits until
// every kind of call is answered again, and measures the time until then.
func (w *world) around(ctx context.Context, fault func(context.Context) error) error {
	calling, stop := context.WithCancel(ctx)
	done := w.callers(calling)
	defer func() { stop(); <-done }()
	if err := w.answered(ctx, "calls before the fault", nil, w.options.Calls, w.kinds()...); err != nil {
		return err
	}
	if err := fault(ctx); err != nil {
		return err
	}
	mended, then := time.Now(), w.journal.counts()
	if err := w.answered(ctx, "calls after the fault", then, 1, w.kinds()...); err != nil {
		return fmt.Errorf("%w: calls by kind at the end of the fault %v, now %v", err, then, w.journal.counts())
	}
	w.back = time.Since(mended)
	return w.answered(ctx, "calls after the fault", then, w.options.Calls, w.kinds()...)
}

// nothing is a fault that does nothing, for rows whose fault happens before or after around.
func nothing(context.Context) error { return nil }

// answered waits until enough further calls of each kind have been answered. then is the journal's
// number of calls of each kind at the start, and calls is the number of further calls.
func (w *world) answered(ctx context.Context, what string, then map[string]int, calls int, kinds ...string) error {
	return w.until(ctx, what, func() bool {
		now := w.journal.counts()
		return !slices.ContainsFunc(kinds, func(kind string) bool { return now[kind] < then[kind]+calls })
	})
}

// answeredMore waits until Options.Calls + 1 further calls of each kind have been answered.
func (w *world) answeredMore(ctx context.Context, what string, kinds ...string) error {
	return w.answered(ctx, what, w.journal.counts(), w.options.Calls+1, kinds...)
}

// check repeats every acknowledged call and compares the answers, and then verifies and replays
// the ledger.
func (w *world) check(ctx context.Context) error {
	if failed := w.met(); failed != nil {
		return failed
	}
	for _, n := range w.nodes {
		if err := w.ready(ctx, n); err != nil {
			return err
		}
	}
	err := w.journal.compare(func(a acknowledgement) (int, string, error) {
		for {
			status, answer, err := w.send(ctx, w.nodes[0].base(), a)
			if err == nil && status == http.StatusServiceUnavailable { // the node is overloaded and refused the call before it did anything
				time.Sleep(50 * time.Millisecond)
				continue
			}
			return status, answer, err
		}
	})
	for _, args := range [][]string{{"verify"}, {"replay", "diff"}, {"replay", "decisions"}} {
		if _, failed := w.command(ctx, args...); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// lockedBuffer keeps the newest output of a process. It is safe for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text []byte
}

// Write appends output. Above the limit it drops the oldest output.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if len(b.text) > 1<<16 {
		b.text = bytes.Clone(b.text[len(b.text)-1<<15:])
	}
	return len(p), nil
}

// String returns the output that was kept.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

var _ io.Writer = (*lockedBuffer)(nil)
