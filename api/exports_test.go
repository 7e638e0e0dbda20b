package api

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apievidence "github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/commands/evidence"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/policy"
)

// exportKeys returns the public keys of a node that signs checkpoints.
func exportKeys(n *node) (keys []bundle.Key) {
	for purpose, public := range map[string]ed25519.PublicKey{"record": n.app.Signer.Public(),
		"checkpoint": ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0xc4}, 32)).Public().(ed25519.PublicKey)} {
		keys = append(keys, bundle.Key{Purpose: purpose, Public: public, Partition: bundle.AnyPartition})
	}
	return keys
}

// openBundle opens a bundle that was downloaded.
func openBundle(t *testing.T, packed []byte) *bundle.Bundle {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.tar.gz")
	if err := os.WriteFile(file, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := bundle.Open(t.Context(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	return files
}

// TestExportOverHTTP checks that an export over HTTP is an event, can be verified with public keys
// alone, has the same bytes each time, and is refused after the erasure of a person in it.
func TestExportOverHTTP(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	o, err := n.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "owner@export.example.com")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := n.app.Operator(t.Context(), o.OrgID)
	if err != nil {
		t.Fatal(err)
	}
	token := func(scopes ...string) []string {
		issued, err := n.app.IssueToken(t.Context(), operator, organizations.TokenOrder{Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return []string{"Content-Type", "application/json", "Authorization", "Bearer " + issued.Token}
	}
	exporter := token("export:read")
	created := n.send(http.MethodPost, apievidence.ExportsPath, `{}`, exporter...)
	var manifest apievidence.CreatedExport
	if err := json.Unmarshal(created.body, &manifest); created.status != http.StatusCreated || err != nil || manifest.CheckpointSize == 0 || !strings.HasSuffix(manifest.URL, manifest.ExportID) {
		t.Fatalf("%v %v", created, err)
	}
	path := strings.TrimPrefix(manifest.URL, n.app.BaseURL)
	first, again := n.send(http.MethodGet, path, "", exporter...), n.send(http.MethodGet, path, "", exporter...)
	if first.status != http.StatusOK || !bytes.Equal(first.body, again.body) {
		t.Fatalf("%d, %d", first.status, again.status)
	}
	files := openBundle(t, first.body)
	note, err := files.Text("checkpoint.txt")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: exportKeys(n), Pin: note}, nil); err != nil || !r.Valid || r.Tenant != o.OrgID {
		t.Errorf("%+v, %v", r, err)
	}
	if second := n.send(http.MethodPost, apievidence.ExportsPath, `{}`, exporter...); second.status != http.StatusCreated {
		t.Error(second)
	} else if err := json.Unmarshal(second.body, &manifest); err != nil || manifest.Count < 2 {
		t.Errorf("the first export is an event: %+v, %v", manifest, err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, apievidence.ExportsPath, `{"from":"yesterday"}`, 400},
		{http.MethodPost, apievidence.ExportsPath, `{"from":"2090-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, 400},
		{http.MethodPost, apievidence.ExportsPath, `{"agent":"agent-7","from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, 400},
		{http.MethodPost, apievidence.ExportsPath, `{"secret":1}`, 400},
		{http.MethodGet, apievidence.ExportsPath + "/exp_unknown", "", 404},
	} {
		if a := n.send(c.method, c.path, c.body, exporter...); a.status != c.status {
			t.Errorf("%s %s: %v", c.path, c.body, a)
		}
	}
	if a := n.send(http.MethodPost, apievidence.ExportsPath, `{}`, token("assurance:read")...); a.status != http.StatusForbidden {
		t.Errorf("without the scope: %v", a)
	}
	held, err := n.app.Vault.Find(t.Context(), o.OrgID, "email:owner@export.example.com")
	if err != nil || held == "" {
		t.Fatal(held, err)
	}
	if _, err := n.app.EraseSubject(t.Context(), evidence.Erasure{Tenant: o.OrgID, KeyID: held, Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}); err != nil {
		t.Fatal(err)
	}
	if a := n.send(http.MethodGet, path, "", exporter...); a.status != http.StatusConflict {
		t.Errorf("after an erasure: %v", a)
	}
}

// TestStatementsAndDisputePacksOverHTTP checks that a member without a shell on the server can
// create the statement about an agent and the dispute pack of a decision. Both verify with public
// keys alone, have the same bytes each time, and are not found in another organization.
func TestStatementsAndDisputePacksOverHTTP(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	token, foreign := n.tokenWithPolicy(), n.tokenWithPolicy()
	as := func(token string) []string {
		return []string{"Content-Type", "application/json", "Authorization", "Bearer " + token}
	}
	asked := n.send(http.MethodPost, "/api/assurance/decisions", `{"protocol":"mcp","idempotencyKey":"k1","subject":{"runId":"run-1","agentId":"agent-7"},"intent":{"serverId":"files","toolName":"read"}}`, as(token)...)
	n.wants(asked, http.StatusCreated)
	id := asked.members(t)["record"].(map[string]any)["decisionId"].(string)
	n.clock.Add(time.Second)
	from, to := n.clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339), n.clock.Now().UTC().Format(time.RFC3339)
	n.clock.Add(time.Second)
	for _, c := range []struct{ body, page, says string }{
		{fmt.Sprintf(`{"statement":true,"agent":"agent-7","from":%q,"to":%q}`, from, to), "views/statement.html", "agent-7"},
		{`{"statement":true,"agent":"agent-7"}`, "views/statement.html", "agent-7"},
		{fmt.Sprintf(`{"dispute":%q}`, id), "views/dispute.html", id},
		{fmt.Sprintf(`{"dispute":%q,"noPersonal":true}`, id), "views/dispute.html", "(personal, not shown)"},
	} {
		created := n.send(http.MethodPost, apievidence.ExportsPath, c.body, as(token)...)
		var made apievidence.CreatedExport
		if err := json.Unmarshal(created.body, &made); err != nil || created.status != http.StatusCreated {
			t.Fatalf("%s: %v, %v", c.body, created, err)
		}
		if (made.Statement != nil) != strings.Contains(c.body, "statement") || (made.Dispute != nil) != strings.Contains(c.body, "dispute") {
			t.Errorf("%s: the answer is %s", c.body, created.body)
		}
		path := strings.TrimPrefix(made.URL, n.app.BaseURL)
		first, again := n.send(http.MethodGet, path, "", as(token)...), n.send(http.MethodGet, path, "", as(token)...)
		if first.status != http.StatusOK || !bytes.Equal(first.body, again.body) {
			t.Errorf("%s: %d, %d", c.body, first.status, again.status)
		}
		if a := n.send(http.MethodGet, path, "", as(foreign)...); a.status != http.StatusNotFound {
			t.Errorf("%s, fetched by another organization: %v", c.body, a)
		}
		files := openBundle(t, first.body)
		if r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: exportKeys(n)}, nil); err != nil || !r.Valid {
			t.Errorf("%s: %+v, %v", c.body, r, err)
		}
		if page, err := files.Text(c.page); err != nil || !bytes.Contains(page, []byte(c.says)) {
			t.Errorf("%s: %s does not have %q, %v", c.body, c.page, c.says, err)
		}
	}
	for _, c := range []struct {
		token, body string
		status      int
		says        string
	}{
		{foreign, fmt.Sprintf(`{"dispute":%q}`, id), 404, "no decision of this organization has this id"},
		{token, `{"dispute":"asd_none"}`, 404, "no decision of this organization has this id"},
		{token, `{"dispute":"pay_00000000000000000000000000000000"}`, 400, "dispute"},
		{token, fmt.Sprintf(`{"dispute":%q,"agent":"agent-7"}`, id), 400, "dispute excludes every other member except noPersonal"},
		{token, fmt.Sprintf(`{"dispute":%q,"statement":true}`, id), 400, "dispute excludes every other member except noPersonal"},
		{token, `{"statement":true}`, 400, "a statement requires agent"},
		{token, `{"statement":true,"agent":"agent-7","decision":"deny"}`, 400, "statement excludes protocol, decision and run"},
		{foreign, `{"statement":true,"agent":"agent-7"}`, 404, "agent must be the id of an agent that a decision of the organization names"},
	} {
		if a := n.send(http.MethodPost, apievidence.ExportsPath, c.body, as(c.token)...); a.status != c.status || !strings.Contains(string(a.body), c.says) {
			t.Errorf("%s: %v, want %d %q", c.body, a, c.status, c.says)
		}
	}
}

// TestAnExportOfAnAgentKeepsNoNameOfIt checks that the manifest of an export of one agent names
// the agent. In the ledger the agent's id is encrypted. Members with the right can decrypt it. An
// erasure removes it from every later export, even if the agent never did anything.
func TestAnExportOfAnAgentKeepsNoNameOfIt(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	o, err := n.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "owner@agent-export.example.com")
	if err != nil {
		t.Fatal(err)
	}
	const agent = "agent-PERSONALALICE"
	export := func(f bundle.Filters) (manifest evidence.Exported, whole string, r bundle.Result) {
		t.Helper()
		folder := t.TempDir()
		manifest, err := n.app.ExportHistory(t.Context(), evidence.Export{Tenant: o.OrgID, Actor: "operator", Folder: folder, Filters: f})
		if err != nil {
			t.Fatal(err)
		}
		for name := range manifest.Files {
			text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			whole += string(text)
		}
		files, err := bundle.Open(t.Context(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		r, err = bundle.Verify(t.Context(), files, bundle.Trust{Keys: exportKeys(n)}, nil)
		if err != nil || !r.Valid {
			t.Errorf("%+v, %v", r, err)
		}
		return manifest, whole, r
	}
	misspelled := evidence.Export{Tenant: o.OrgID, Actor: "operator", Folder: t.TempDir(), Filters: bundle.Filters{Agent: agent + "x"}}
	var unknown *policy.Error
	if _, err := n.app.ExportHistory(t.Context(), misspelled); !errors.As(err, &unknown) || unknown.Code != "not_found" {
		t.Errorf("an agent that no decision names: %v", err)
	}
	if _, _, err := n.app.DataKeyOf(t.Context(), o.OrgID, "agent:"+agent); err != nil {
		t.Fatal(err)
	}
	asked, _, _ := export(bundle.Filters{Agent: agent})
	if asked.Filters.Agent != agent {
		t.Errorf("the manifest is about %q", asked.Filters.Agent)
	}
	history, err := n.app.Ledger.Read(t.Context(), o.OrgID, "export/"+asked.ExportID)
	if err != nil || len(history.Events) != 2 || strings.Contains(string(history.Events[0].Payload)+string(history.Events[1].Payload), agent) {
		t.Errorf("the ledger names the agent, or has no export: %v", err)
	}
	again := t.TempDir()
	if same, err := n.app.ExportAgain(t.Context(), o.OrgID, asked.ExportID, again); err != nil || same.Filters.Agent != agent {
		t.Errorf("made again: %+v, %v", same.Filters, err)
	}
	if _, whole, _ := export(bundle.Filters{NoPersonal: true}); strings.Contains(whole, agent) {
		t.Error("without personal members the name is there")
	}
	_, open, _ := export(bundle.Filters{})
	if !strings.Contains(open, agent) {
		t.Error("those entitled do not read whose export it was")
	}
	if _, err := n.app.EraseSubject(t.Context(), evidence.Erasure{Tenant: o.OrgID, Subject: "agent:" + agent, Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}); err != nil {
		t.Fatalf("something is stored about it: %v", err)
	}
	if _, whole, _ := export(bundle.Filters{}); strings.Contains(whole, agent) {
		t.Error("after the erasure the name is there")
	}
	var refused *policy.Error
	if _, err := n.app.ExportAgain(t.Context(), o.OrgID, asked.ExportID, t.TempDir()); !errors.As(err, &refused) || refused.Code != organizations.CodeConflict {
		t.Errorf("made again after the erasure: %v", err)
	}
	if report, err := audit.Ledger(t.Context(), n.app.Ledger, nil); err != nil || len(report.Faults) > 0 {
		t.Errorf("%v, %v", report.Faults, err)
	}
}

// TestAnExportOfAPeriodIsHeldAgainstTheEvents checks that an export of a period also contains the
// last event before the period and the first event after it, without their payloads, so that
// verifiers can check the limits of the period. Without an event after the period, the export
// extends to the end of the history and states that. An export for an agent decrypts nothing of
// other agents.
func TestAnExportOfAPeriodIsHeldAgainstTheEvents(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	o, err := n.app.CreateOrganization(t.Context(), "operator", "Acme", "team", "owner@period.example.com")
	if err != nil {
		t.Fatal(err)
	}
	export := func(f bundle.Filters) (m evidence.Exported, folder string) {
		t.Helper()
		folder = t.TempDir()
		n.clock.Add(time.Second)
		m, err := n.app.ExportHistory(t.Context(), evidence.Export{Tenant: o.OrgID, Actor: "operator", Folder: folder, Filters: f})
		if err != nil {
			t.Fatal(err)
		}
		files, err := bundle.Open(t.Context(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		if r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: exportKeys(n)}, nil); err != nil || !r.Valid || r.Filters != m.Filters {
			t.Errorf("%+v: %+v, %v", f, r, err)
		}
		again := t.TempDir()
		if _, err := n.app.ExportAgain(t.Context(), o.OrgID, m.ExportID, again); err != nil {
			t.Errorf("%+v: made again: %v", f, err)
		}
		return m, folder
	}
	for _, agent := range []string{"agent-a", "agent-b"} {
		if _, _, err := n.app.DataKeyOf(t.Context(), o.OrgID, "agent:"+agent); err != nil {
			t.Fatal(err)
		}
		export(bundle.Filters{Agent: agent})
	}
	export(bundle.Filters{})
	export(bundle.Filters{})
	stored, err := n.app.Ledger.Tenant(t.Context(), o.OrgID, 1, 100)
	if err != nil || len(stored) < 4 {
		t.Fatalf("%d events, %v", len(stored), err)
	}
	last := len(stored) - 1
	at := func(i int) string { return stored[i].Occurred().UTC().Format("2006-01-02T15:04:05.999999Z") }
	for _, c := range []struct {
		from, to    string
		first, end  int // indices of the range
		period, far string
	}{
		{"", at(last), 0, last + 1, "", at(last)},
		{at(last), "", last - 1, last + 1, at(last), ""},
		{at(last - 1), at(last), last - 2, last + 1, at(last - 1), at(last)},
		{"1970-01-01T02:00:00+02:00", "2999-01-01T00:00:00Z", 0, last + 1, "", ""},
	} {
		m, folder := export(bundle.Filters{From: c.from, To: c.to})
		if got := []int64{m.FirstSequence, m.Count}; m.Filters.From != c.period || m.Filters.To != c.far || got[0] != int64(c.first)+1 || c.far != "" && got[1] != int64(c.end-c.first) {
			t.Errorf("%s to %s: %v, %+v", c.from, c.to, got, m.Filters)
		}
		lines, err := os.ReadFile(filepath.Join(folder, "events.jsonl"))
		if hidden := int64(bytes.Count(lines, []byte(`"payload":null`))); err != nil || hidden != m.Withheld {
			t.Errorf("%s to %s: %d lines without payload, and withheld is %d, %v", c.from, c.to, hidden, m.Withheld, err)
		}
	}
	_, folder := export(bundle.Filters{Agent: "agent-b"})
	openings, err := os.ReadFile(filepath.Join(folder, "openings.jsonl"))
	if err != nil || bytes.Contains(openings, []byte("owner@")) || bytes.Contains(openings, []byte("agent-a")) || !bytes.Contains(openings, []byte("agent-b")) {
		t.Errorf("the export of agent-b opens %s, %v", openings, err)
	}
}

// TestASelectionProvesThatNothingIsMissing checks that a selection contains the decisions that
// match its filters, proves by their sequence numbers that none is missing, and can be made again
// from its event.
func TestASelectionProvesThatNothingIsMissing(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	keepCheckpoints(n)
	token := n.tokenWithPolicy()
	p, err := n.app.AuthenticateOrganization(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	var times []string
	for i := range 12 {
		n.clock.Add(time.Second)
		times = append(times, n.clock.Now().UTC().Format(time.RFC3339))
		tool := []string{"read", "delete"}[i%2]
		n.wants(n.send("POST", "/api/assurance/decisions", fmt.Sprintf(`{"protocol":"mcp","idempotencyKey":"k%d","subject":{"runId":"run-%d","agentId":"agent-%d"},"intent":{"serverId":"files","toolName":%q}}`, i, i%3, i%4/2, tool),
			"Authorization", "Bearer "+token, "Content-Type", "application/json"), 201)
	}
	selection := func(f bundle.Filters) (evidence.Exported, bundle.Result, string) {
		t.Helper()
		n.clock.Add(time.Second)
		folder, again := t.TempDir(), t.TempDir()
		m, err := n.app.ExportHistory(t.Context(), evidence.Export{Tenant: p.OrgID, Actor: "operator", Folder: folder, Filters: f, Statement: f.Receipts})
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		files, err := bundle.Open(t.Context(), folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		r, err := bundle.Verify(t.Context(), files, bundle.Trust{Keys: exportKeys(n)}, nil)
		if err != nil || !r.Valid {
			t.Errorf("%+v: %+v, %v", f, r, err)
		}
		if _, err := n.app.ExportAgain(t.Context(), p.OrgID, m.ExportID, again); err != nil {
			t.Errorf("%+v: made again: %v", f, err)
		}
		return m, r, folder
	}
	series := func(m evidence.Exported) (list []string) {
		for _, r := range m.Selection.Series {
			list = append(list, fmt.Sprintf("%s %d-%d of %d", r.Series, r.First, r.Last, r.Newest))
		}
		return list
	}
	for _, c := range []struct {
		filters   bundle.Filters
		decisions int64
		proven    int
		stated    int
	}{
		{bundle.Filters{Agent: "agent-0"}, 6, 1, 3},
		{bundle.Filters{Agent: "agent-0", From: times[3], To: times[9]}, 3, 1, 2},
		{bundle.Filters{Agent: "agent-0", From: times[6], To: times[7]}, 0, 1, 2},
		{bundle.Filters{Run: "run-1"}, 4, 1, 3},
		{bundle.Filters{Agent: "agent-0", Receipts: true}, 6, 2, 8}, // with a statement about receipts
	} {
		m, r, folder := selection(c.filters)
		if m.Decisions != c.decisions || len(r.Proven) != c.proven || len(r.Stated) != c.stated {
			t.Errorf("%+v: %d decisions, %v; proven %q, stated %q", c.filters, m.Decisions, series(m), r.Proven, r.Stated)
		}
		whole, err := os.ReadFile(filepath.Join(folder, "openings.jsonl"))
		if err != nil || c.filters.Agent != "" && bytes.Contains(whole, []byte("agent-1")) {
			t.Errorf("%+v opens %s, %v", c.filters, whole, err)
		}
	}
	report, err := audit.Ledger(t.Context(), n.app.Ledger, nil)
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("%v, %v", report.Faults, err)
	}
}
