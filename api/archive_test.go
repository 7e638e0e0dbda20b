package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger/archive"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/projections"
)

// TestArchivedRecordsAreAnsweredAsBefore checks that archived events do not change answers: a
// repeated call, the history, a receipt bound to an old decision, and the read model that is
// rebuilt from these events. If the archive is unavailable, the answer is 503 and names the
// object; other calls work.
func TestArchivedRecordsAreAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	on := setup{on: ledgertest.NewPartitioned(t, 1), archive: folder}
	n := startNode(t, on)
	token, key := n.organizationToken(), n.issueKey()
	ctx := t.Context()
	orgs, err := n.app.Ledger.Directory(ctx, events.Organizations)
	if err != nil || len(orgs) != 1 {
		t.Fatal(orgs, err)
	}
	operator, err := n.app.Operator(ctx, orgs[0])
	if err == nil {
		_, err = n.app.DraftAndActivate(ctx, operator, []byte(`{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"],"requireHttps":true}`), "test")
	}
	if err != nil {
		t.Fatal(err)
	}
	body := func(run string) string {
		return fmt.Sprintf(`{"protocol":"x402","idempotencyKey":%q,"subject":{"runId":%q,"agentId":"a"},"intent":{"resourceUrl":"https://api.example/","method":"GET","amountUsd":0.5}}`, run, run)
	}
	decide := func(n *node, run string) answer {
		return n.send(http.MethodPost, "/api/assurance/decisions", body(run), "Authorization", "Bearer "+token, "Content-Type", "application/json")
	}
	history := func(n *node) answer {
		return n.send(http.MethodGet, "/api/assurance/history", "", "Authorization", "Bearer "+token)
	}
	quick := func(n *node) answer {
		return n.post(quickPath, key, `{"command":"ls -la"}`, "Idempotency-Key", "once")
	}
	type decided struct {
		Record struct {
			DecisionID  string `json:"decisionId"`
			BindingHash string `json:"bindingHash"`
		} `json:"record"`
		Integrity seal.Integrity `json:"integrity"`
	}
	var first decided
	old, gated := decide(n, "r1"), quick(n)
	n.wants(old, http.StatusCreated)
	n.wants(gated, http.StatusOK)
	old.decode(t, &first)
	listed := history(n)
	n.wants(listed, http.StatusOK)

	heads, err := seal.NewSigner([]byte(strings.Repeat("h", 32)))
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(ctx, n.app.Ledger, keeper.Options{Signer: heads, Folder: checkpoint.Folder{Path: t.TempDir()}, Every: 10 * time.Millisecond},
		func() string { return n.app.NewID("evt_") }); err != nil {
		t.Fatal(err)
	}
	keeper.Covered(ctx, n.app.Ledger.Partition(0), n.head())
	moved, err := archive.Move(ctx, n.app.Ledger, archive.Options{OwnerURL: n.db.OwnerURL, Files: folder, Signer: n.app.Signer, Before: time.Now().Add(time.Hour), Events: 1})
	if err != nil || moved < n.head()-2 {
		t.Fatalf("%d events were archived, %v", moved, err)
	}

	same := func(t *testing.T, n, of *node, got, want answer) {
		t.Helper()
		hosts := strings.NewReplacer(n.url, "", of.url, "")
		if hosts.Replace(string(got.body)) != hosts.Replace(string(want.body)) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
	again := startNode(t, on)
	t.Run("a node with the archive answers as before", func(t *testing.T) {
		again := again.in(t)
		same(t, again, n, decide(again, "r1"), old)
		same(t, again, n, quick(again), gated)
		same(t, again, n, history(again), listed)
	})

	empty := t.TempDir()
	away := startNode(t, setup{on: on.on, archive: checkpoint.Folder{Path: empty}})
	t.Run("a node without the archive refuses what is in it", func(t *testing.T) {
		away := away.in(t)
		for what, a := range map[string]answer{"decision": decide(away, "r1"), "gate": quick(away)} {
			if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "ledger.example.com_countersign_0/") || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %v", what, a)
			}
		}
		away.wants(decide(away, "r2"), http.StatusCreated) // keys, policies and members are not archived
	})
	receipt := fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"rejected"}`,
		first.Record.DecisionID, first.Integrity.RecordHash, first.Record.BindingHash)
	bind := func(n *node) answer {
		return n.send(http.MethodPost, "/api/assurance/receipts", receipt, "Authorization", "Bearer "+token, "Content-Type", "application/json")
	}
	t.Run("a receipt needs its decision", func(t *testing.T) {
		again, away := again.in(t), away.in(t)
		if a := bind(away); a.status != http.StatusServiceUnavailable {
			t.Errorf("a receipt without its decision: %v", a)
		}
		again.wants(bind(again), http.StatusCreated)
	})
	t.Run("the history is rebuilt", func(t *testing.T) {
		again := again.in(t)
		if _, err := projections.Rebuild(ctx, again.app.Ledger, slog.New(slog.DiscardHandler), "history"); err != nil {
			t.Error(err)
		}
		if a := history(again); a.status != http.StatusOK || !strings.Contains(string(a.body), `"kind":"receipt"`) {
			t.Errorf("history after it was rebuilt: %v", a)
		}
		if n := again.parked(); n != 0 {
			t.Errorf("%d events are parked", n)
		}
	})
	if err := os.CopyFS(empty, os.DirFS(folder.Path)); err != nil {
		t.Fatal(err)
	}
	t.Run("an archive that is back is read", func(t *testing.T) {
		away := away.in(t)
		same(t, away, n, decide(away, "r1"), old)
	})
}

func (n *node) parked() (rows int) {
	n.t.Helper()
	if err := n.app.Ledger.Pool().QueryRow(n.t.Context(), `select count(*) from projection_dead`).Scan(&rows); err != nil {
		n.t.Fatal(err)
	}
	return rows
}
