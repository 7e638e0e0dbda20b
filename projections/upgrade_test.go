package projections

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	orgs "github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/vault"
	"github.com/countersign/countersign/policy/assurance"
)

// node is a separate program on the shared database.
type node struct {
	app     *commands.App
	token   orgs.Principal
	version int // version of its read model history
	reads   *Projections
}

// startNode starts a node that uses an organization's token. If token is empty, it creates the
// organization.
func startNode(t *testing.T, db *ledgertest.DB, token string) (*node, string) {
	t.Helper()
	ctx := t.Context()
	l := openLedger(t, db)
	signer, err := seal.NewSigner(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{app: commands.New(&ground.Ground{Ledger: l, Signer: signer, Clock: time.Now}), version: history.version}
	if err := l.Activate(ctx, signer, n.app.NewID("evt_")); err != nil {
		t.Fatal(err)
	}
	if n.app.Vault, err = vault.Open(ctx, l, bytes.Repeat([]byte{9}, 32)); err != nil {
		t.Fatal(err)
	}
	if token == "" {
		token = newOrganization(t, n.app)
	}
	if n.token, err = n.app.AuthenticateOrganization(ctx, token); err != nil {
		t.Fatal(err)
	}
	n.read(t)
	t.Cleanup(func() { n.reads.Close() })
	return n, token
}

func newOrganization(t *testing.T, a *commands.App) string {
	t.Helper()
	o, err := a.CreateOrganization(t.Context(), "operator", "Acme", orgs.PlanTeam, "ada@example.com")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := a.Operator(t.Context(), o.OrgID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.DraftAndActivate(t.Context(), operator, []byte(`{"policyId":"default","maxUsdPerTransaction":1}`), "test"); err != nil {
		t.Fatal(err)
	}
	issued, err := a.IssueToken(t.Context(), operator, orgs.TokenOrder{})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Token
}

// read starts the node's read models.
func (n *node) read(t *testing.T) {
	t.Helper()
	list := followers(n.app.Ledger)
	for i := range list {
		if list[i].name == history.name {
			list[i].version = n.version
		}
	}
	var err error
	if n.reads, err = follow(t.Context(), n.app.Ledger, slog.New(slog.DiscardHandler), list); err != nil {
		t.Fatal(err)
	}
}

// upgrade restarts the read models with the version of a newer program.
func (n *node) upgrade(t *testing.T) {
	t.Helper()
	n.reads.Close()
	n.version++
	n.read(t)
}

// decide records a decision and returns its id.
func (n *node) decide(t *testing.T, key string) string {
	request, err := assurance.ParseDecision(fmt.Appendf(nil, `{"protocol":"mcp","idempotencyKey":%q,"subject":{"runId":"run"},"intent":{"serverId":"files","toolName":"read"}}`, key))
	if err != nil {
		t.Error(err)
		return ""
	}
	recorded, err := n.app.Decide(t.Context(), n.token, request)
	if err != nil {
		t.Errorf("decision %s: %v", key, err)
		return ""
	}
	d, err := assurance.ReadDecision(recorded.Envelope.Record)
	if err != nil {
		t.Error(err)
	}
	return d.DecisionID
}

// listed returns the decision of every row in the history. It repeats the query while the answer
// is ErrBehind, because the machine may be slow.
func (n *node) listed(t *testing.T) []string {
	t.Helper()
	for {
		_, err := n.reads.History(t.Context(), n.token.OrgID, nil, 1, "")
		if err == nil {
			break
		}
		if !errors.Is(err, ErrBehind) || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	rows, err := n.app.Ledger.Pool().Query(t.Context(), `select decision_id from readmodels.history where tenant = $1`, n.token.OrgID)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// rounds returns the number of repetitions of slow tests. The environment variable ROUNDS sets it;
// 20 is the long form.
func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ROUNDS"))
	if os.Getenv("ROUNDS") == "" {
		return 3
	}
	if err != nil || n < 1 {
		t.Fatalf("ROUNDS: want a number above 0")
	}
	return n
}

// Two nodes record decisions and are upgraded one after the other to a newer version of the read
// model history. The load is on both nodes or, in every other round, only on the upgraded one.
// Afterwards each node lists every acknowledged decision exactly once.
func TestHistoryListsEveryDecisionAfterAVersionBumpOnTwoNodes(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	first, token := startNode(t, db, "")
	second, _ := startNode(t, db, token)
	nodes := []*node{first, second}
	var mu sync.Mutex
	var decided []string
	for round := range rounds(t) {
		quiet := round%2 == 1 // the node that is upgraded last records no decisions
		stop := make(chan struct{})
		var working sync.WaitGroup
		for i, n := range nodes {
			if quiet && i == 0 {
				continue
			}
			for caller := range 4 {
				working.Go(func() {
					for k := 0; ; k++ {
						select {
						case <-stop:
							return
						default:
						}
						id := n.decide(t, fmt.Sprintf("round %d node %d caller %d decision %d", round, i, caller, k))
						mu.Lock()
						decided = append(decided, id)
						mu.Unlock()
						if t.Failed() {
							return
						}
					}
				})
			}
		}
		for _, n := range []*node{second, first} {
			n.upgrade(t)
			n.listed(t) // wait until the new read model is in use before the other node is upgraded
		}
		close(stop)
		working.Wait()
		slices.Sort(decided)
		for i, n := range nodes {
			if diff := cmp.Diff(decided, n.listed(t)); diff != "" {
				t.Fatalf("round %d, node %d lists other decisions than were made (-made +listed):\n%s", round, i, diff)
			}
		}
		if lags, err := first.reads.Lags(t.Context()); err != nil || lags[history.name].Parked > 0 {
			t.Fatalf("round %d: %+v, %v", round, lags[history.name], err)
		}
		t.Logf("round %d: %d decisions, as many rows on both nodes", round, len(decided))
	}
	noScratch(t, first.app.Ledger)
	if report, err := audit.Ledger(t.Context(), first.app.Ledger, nil); err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v, %v", report.Faults, err)
	}
}
