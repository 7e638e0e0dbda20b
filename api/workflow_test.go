package api

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

const statusPath = "/api/agent-workflows/action-safety/status/"

var workflowID = regexp.MustCompile(`^asw_[0-9a-f-]{36}$`)

// runWorkflow runs one action, and returns the answer and its members.
func (n *node) runWorkflow(key, body string, headers ...string) (answer, map[string]any) {
	n.t.Helper()
	a := n.post(runPath, key, body, headers...)
	n.wants(a, http.StatusOK)
	return a, a.members(n.t)
}

func TestWorkflowAnswer(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, v := range verdicts {
		a, m := n.runWorkflow(key, strings.Replace(v.body, "}", `,"reference":"ticket-1"}`, 1))
		high := v.risk == "high" || v.risk == "critical"
		if m["risk"] != v.risk || m["service"] != "action-safety-run" || m["version"] != "1.0.0" || m["reference"] != "ticket-1" || m["requiresHumanReview"] != high {
			t.Errorf("%s: %v", v.risk, a)
		}
		// Triage runs only if the risk is high or critical.
		audit, _ := m["audit"].(map[string]any)
		score, _ := m["commandScore"].(map[string]any)
		triage, _ := m["reviewTriage"].(map[string]any)
		if (triage != nil) != high || (audit["reviewTriageRequestId"] != nil) != high || audit["commandScoreRequestId"] != score["requestId"] {
			t.Errorf("%s: audit %v", v.risk, audit)
		}
		if high && (triage["requestId"] != audit["reviewTriageRequestId"] || triage["humanApprovalIncluded"] != false) {
			t.Errorf("%s: triage %v", v.risk, triage["requestId"])
		}
		// The parts have the same ids as in separate calls.
		if alone := n.post(scorePath, key, v.body).members(t); alone["requestId"] != audit["commandScoreRequestId"] {
			t.Errorf("%s: score alone is %v, in the workflow %v", v.risk, alone["requestId"], audit["commandScoreRequestId"])
		}
		if alone := n.post(triagePath, key, v.body).members(t); high && alone["requestId"] != audit["reviewTriageRequestId"] {
			t.Errorf("%s: triage alone is %v, in the workflow %v", v.risk, alone["requestId"], audit["reviewTriageRequestId"])
		}
		boundaries, _ := m["boundaries"].(map[string]any)
		if boundaries["humanApprovalIncluded"] != false || len(boundaries) != 2 || !strings.HasPrefix(fmt.Sprint(boundaries["note"]), "A review recommendation is not a human approval.") {
			t.Errorf("%s: boundaries %v", v.risk, boundaries)
		}
		id := fmt.Sprint(m["workflowId"])
		if !workflowID.MatchString(id) || m["statusUrl"] != n.url+statusPath+id {
			t.Errorf("%s: workflowId %s, statusUrl %v", v.risk, id, m["statusUrl"])
		}
		created, err1 := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(m["createdAt"]))
		expires, err2 := time.Parse("2006-01-02T15:04:05.000Z", fmt.Sprint(m["expiresAt"]))
		if err1 != nil || err2 != nil || expires.Sub(created) != 720*time.Hour || !created.Equal(n.clock.Now().Truncate(time.Millisecond)) {
			t.Errorf("%s: created %v, expires %v", v.risk, m["createdAt"], m["expiresAt"])
		}
		n.checkOutputHash(a)
		n.checkReceipt(a, v.body)
	}
}

// jcsOf returns the RFC 8785 form, computed by another implementation than ours.
func jcsOf(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		text, err = jcs.Transform(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sha256Hex(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// checkOutputHash computes the output hash from the answer, like a caller who requests a refund.
func (n *node) checkOutputHash(a answer) {
	n.t.Helper()
	m := a.members(n.t)
	want := m["outputHash"]
	for _, outside := range []string{"outputHash", "receipt", "record", "integrity", "verifyUrl", "workflowId", "statusUrl", "createdAt", "expiresAt"} {
		delete(m, outside)
	}
	if got := sha256Hex(jcsOf(n.t, m)); got != want {
		n.t.Errorf("the answer hashes to %s, outputHash is %v", got, want)
	}
}

// publishedKey returns a public key of the service's key set, and its first position.
func (n *node) publishedKey(kid string) (public ed25519.PublicKey, from float64) {
	n.t.Helper()
	a := n.get("/.well-known/jwks.json")
	if a.status != 200 || a.header.Get("Content-Type") != "application/jwk-set+json" {
		n.t.Fatalf("jwks: %v", a)
	}
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	a.decode(n.t, &set)
	for _, k := range set.Keys {
		if _, private := k["d"]; private {
			n.t.Fatal("the key set holds a private key")
		}
		if k["kid"] == kid && k["kty"] == "OKP" && k["crv"] == "Ed25519" && k["alg"] == "EdDSA" && k["use"] == "sig" {
			public, err := base64.RawURLEncoding.DecodeString(fmt.Sprint(k["x"]))
			if err != nil {
				n.t.Fatal(err)
			}
			from, _ := k["svc_from_position"].(float64)
			return public, from
		}
	}
	n.t.Fatalf("key %s is not published: %s", kid, a.body)
	return nil, 0
}

// checkReceipt verifies a receipt with only the published keys and the documentation.
func (n *node) checkReceipt(a answer, request string) {
	n.t.Helper()
	m := a.members(n.t)
	receipt, _ := m["receipt"].(map[string]any)
	record, _ := receipt["record"].(map[string]any)
	integrity, _ := receipt["integrity"].(map[string]any)
	place, _ := receipt["ledger"].(map[string]any)
	canonical := jcsOf(n.t, record)
	if sha256Hex(canonical) != integrity["recordHash"] || integrity["canonicalization"] != "svc-stable-json-v1" || integrity["hashAlgorithm"] != "sha256" ||
		integrity["signatureAlgorithm"] != "Ed25519" || integrity["payloadType"] != "application/vnd.svc.receipt.v1+json" {
		n.t.Errorf("integrity %v", integrity)
	}
	public, from := n.publishedKey(fmt.Sprint(integrity["keyId"]))
	if sum := sha256.Sum256(public); hex.EncodeToString(sum[:8]) != integrity["keyId"] {
		n.t.Error("keyId is not of the key")
	}
	signature, err := base64.StdEncoding.DecodeString(fmt.Sprint(integrity["signature"]))
	signed := fmt.Sprintf("DSSEv1 %d %s %d %s", len("application/vnd.svc.receipt.v1+json"), "application/vnd.svc.receipt.v1+json", len(canonical), canonical)
	if err != nil || !ed25519.Verify(public, []byte(signed), signature) {
		n.t.Error("the signature does not verify")
	}
	if position, _ := place["position"].(float64); position < from || !ledger.IsService(fmt.Sprint(place["tenant"])) || !isHex64(fmt.Sprint(place["eventHash"])) {
		n.t.Errorf("ledger %v", place)
	}
	if verify, _ := receipt["verify"].(map[string]any); verify["url"] != n.url+"/api/verify" || verify["method"] != "POST" {
		n.t.Errorf("verify %v", verify)
	}
	n.checkRecord(m, record, request)
}

// checkRecord compares the signed record with the answer. The record must not contain the
// command's text.
func (n *node) checkRecord(m, record map[string]any, request string) {
	n.t.Helper()
	for _, name := range []string{"service", "inputHash", "outputHash", "decision"} {
		if record[name] != m[name] {
			n.t.Errorf("record's %s is %v, the answer's %v", name, record[name], m[name])
		}
	}
	if id := fmt.Sprint(record["receiptId"]); !strings.HasPrefix(id, "asr_") || len(id) != 30 || record["receiptVersion"] != "svc-receipt-v1" || record["issuedAt"] != m["createdAt"] {
		n.t.Errorf("record %v", record)
	}
	workflow, _ := record["workflow"].(map[string]any)
	for _, name := range []string{"workflowId", "status", "risk", "riskScore", "decision", "requiresHumanReview", "actionBindingVersion", "actionHash", "audit", "createdAt", "expiresAt"} {
		if diff := cmp.Diff(m[name], workflow[name]); diff != "" {
			n.t.Errorf("the record's workflow: %s %s", name, diff)
		}
	}
	if workflow["humanApprovalIncluded"] != false {
		n.t.Errorf("humanApprovalIncluded is %v", workflow["humanApprovalIncluded"])
	}
	var asked struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(request), &asked)
	if text := string(jcsOf(n.t, record)); asked.Command == "" || strings.Contains(text, asked.Command) {
		n.t.Errorf("the command stands in the signed record: %s", text)
	}
}

// TestStatusRecordShapeA checks that the status record of shape A in the specification has the
// values of the run.
func TestStatusRecordShapeA(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, v := range verdicts {
		_, run := n.runWorkflow(key, v.body)
		a := n.get(statusPath + fmt.Sprint(run["workflowId"])) // without a credential, and immediately
		n.wants(a, http.StatusOK)
		m := a.members(t)
		want := []string{"actionBindingVersion", "actionHash", "audit", "boundaries", "createdAt", "decision", "expiresAt", "receipt", "requiresHumanReview", "risk", "status", "workflowId"}
		if got := sortedKeys(m); !slices.Equal(got, want) {
			t.Errorf("%s: members %v", v.risk, got)
		}
		for _, name := range want {
			if diff := cmp.Diff(run[name], m[name]); diff != "" {
				t.Errorf("%s: %s differs from the run: %s", v.risk, name, diff)
			}
		}
		receipt, _ := m["receipt"].(map[string]any)
		if got := sortedKeys(receipt); !slices.Equal(got, []string{"integrity", "ledger", "record", "verify"}) {
			t.Errorf("receipt has %v", got)
		}
		if a.header.Get("Cache-Control") != "private, no-store" {
			t.Errorf("Cache-Control %q", a.header.Get("Cache-Control"))
		}
		if valid := n.post("/api/verify", "", string(jcsOf(t, receipt))).members(t)["valid"]; valid != true {
			t.Errorf("the status record's receipt is not valid: %v", valid)
		}
		if head := n.send(http.MethodHead, statusPath+fmt.Sprint(run["workflowId"]), ""); head.status != 200 || len(head.body) != 0 {
			t.Errorf("HEAD: %v", head)
		}
	}
}

// appendLegacy appends the event of a legacy status record, which has no hash of the action.
func (n *node) appendLegacy(id string, created time.Time) {
	n.t.Helper()
	score := "crs_00000000000000000000000000000000"
	payload, err := canon.Marshal(events.WorkflowCompleted{Workflow: events.Workflow{
		WorkflowID: id, Status: "review_required", Risk: "high", RiskScore: 80, Decision: "needs_review", RequiresHumanReview: true,
		MatchedRuleIDs: []string{"git.push.force-branch"}, Audit: events.Audit{CommandScoreRequestID: &score},
		CreatedAt: created.UTC().Format("2006-01-02T15:04:05.000Z"), ExpiresAt: created.Add(720 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"),
	}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.appendWorkflow(id, payload)
}

func (n *node) appendWorkflow(id string, payload []byte) {
	n.t.Helper()
	_, err := n.app.Ledger.Append(n.t.Context(), ledger.Append{Tenant: n.app.Ledger.Service(id), Events: []ledger.Pending{{
		Stream: "workflow/" + id, Expect: ledger.New(), ID: n.app.NewID("evt_"), Type: events.TypeWorkflowCompleted,
		Actor: "system", Payload: payload}}})
	if err != nil {
		n.t.Fatal(err)
	}
}

func TestStatusRecordShapeB(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	const id = "asw_00000000-0000-4000-8000-000000000001"
	created := n.clock.Now()
	n.appendLegacy(id, created)
	a := n.get(statusPath + id)
	n.wants(a, http.StatusOK)
	want := map[string]any{
		"workflowId": id, "status": "review_required", "risk": "high", "decision": "needs_review", "requiresHumanReview": true,
		"audit":     map[string]any{"commandScoreRequestId": "crs_00000000000000000000000000000000", "reviewTriageRequestId": nil},
		"createdAt": created.UTC().Format("2006-01-02T15:04:05.000Z"), "expiresAt": created.Add(720 * time.Hour).UTC().Format("2006-01-02T15:04:05.000Z"),
		"binding": map[string]any{"available": false, "reason": "legacy_status_record_without_versioned_action_binding"},
		"boundaries": map[string]any{"humanApprovalIncluded": false,
			"note": "A review recommendation is not a human approval. Human approval needs a connected approval system or a hosted assurance plan."},
	}
	if diff := cmp.Diff(want, a.members(t)); diff != "" {
		t.Error(diff)
	}
}

func TestStatusRefusals(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	_, run := n.runWorkflow(n.issueKey(), verdicts[0].body)
	id := fmt.Sprint(run["workflowId"])
	for _, bad := range []string{
		"asw_", "asw_" + strings.Repeat("0", 35), "asw_" + strings.Repeat("0", 37), strings.ToUpper(id), "asw_" + strings.ToUpper(id[4:39]) + "A",
		"asr_" + id[4:], id[:39] + "g", id + "%20", id + "%0a", canary, "asw_" + strings.Repeat("%c3%a9", 18), id + "'--", "ASW_" + id[4:],
	} {
		a := n.get(statusPath + bad)
		n.bare(a, 400, "invalid workflow id")
		n.discreet(a)
	}
	n.bare(n.get(statusPath+"asw_00000000-0000-0000-0000-000000000000"), 404, "status not found or expired")
	n.bare(n.get(statusPath+"asw_"+strings.Repeat("-", 36)), 404, "status not found or expired")
	n.bare(n.get(strings.TrimSuffix(statusPath, "/")), 404, "not found")

	// After the expiry, a status request returns 404. The event remains.
	n.wants(n.get(statusPath+id), 200)
	n.super(`update readmodels.workflow_status set expires_at = now() where workflow_id = $1`, id)
	n.bare(n.get(statusPath+id), 404, "status not found or expired")
	if !slices.ContainsFunc(Since(t, n.app, nil), func(e ledger.Event) bool { return bytes.Contains(e.Payload, []byte(id)) }) {
		t.Error("the event of an expired record is gone")
	}
	n.appendLegacy("asw_00000000-0000-4000-8000-000000000002", n.clock.Now().Add(-721*time.Hour))
	n.bare(n.get(statusPath+"asw_00000000-0000-4000-8000-000000000002"), 404, "status not found or expired")
}

// TestStatusTemporarilyUnavailable checks that a read model that has stopped, or has parked the
// workflow's event, leads to 503 and never to a wrong answer.
func TestStatusTemporarilyUnavailable(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	_, good := n.runWorkflow(key, verdicts[0].body)
	const poison = "asw_00000000-0000-4000-8000-00000000000a"
	n.appendWorkflow(poison, []byte(`{"`+canary+`":1}`))
	n.bare(n.get(statusPath+poison), 503, "status temporarily unavailable")
	_, after := n.runWorkflow(key, verdicts[0].body)
	n.wants(n.get(statusPath+fmt.Sprint(good["workflowId"])), 200)
	n.wants(n.get(statusPath+fmt.Sprint(after["workflowId"])), 200)

	n.projections.Close()
	n.projections.Patience = time.Millisecond
	n.runWorkflow(key, verdicts[0].body) // commands do not need read models
	a := n.get(statusPath + fmt.Sprint(good["workflowId"]))
	n.bare(a, 503, "status temporarily unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

func TestIdempotencyOfAWorkflow(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	body := `{"command":"rm -rf /","idempotencyKey":"k-1"}`
	first, _ := n.runWorkflow(key, body)
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a replay")
	}
	n.unchanged(func() {
		for name, replay := range map[string]answer{
			"member":         n.post(runPath, key, body),
			"header":         n.post(runPath, key, `{"command":"rm -rf /"}`, "Idempotency-Key", "k-1"),
			"both":           n.post(runPath, key, body, "Idempotency-Key", "k-1"),
			"other spelling": n.post(runPath, key, "{ \"idempotencyKey\" : \"k\\u002d1\",\n \"command\":\"rm -rf \\/\" }"),
			"bearer":         n.send("POST", runPath, body, "Content-Type", "application/json", "Authorization", "Bearer "+key),
			"another node":   startNode(t, setup{on: n.db, clock: n.clock}).post(runPath, key, body),
		} {
			if replay.status != 200 || string(replay.body) != string(first.body) || replay.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: %v", name, replay)
			}
		}
		n.refused(n.post(runPath, key, body, "Idempotency-Key", "k-2"), 400, "inconsistent_input", "/idempotencyKey")
		for name, other := range map[string]string{
			"command":    `{"command":"rm -rf /tmp","idempotencyKey":"k-1"}`,
			"one more":   `{"command":"rm -rf /","repo":"r","idempotencyKey":"k-1"}`,
			"reference":  `{"command":"rm -rf /","reference":"r","idempotencyKey":"k-1"}`,
			"flag":       `{"command":"rm -rf /","failClosedOnUnmatched":true,"idempotencyKey":"k-1"}`,
			"false flag": `{"command":"rm -rf /","failClosedOnUnmatched":false,"idempotencyKey":"k-1"}`,
		} {
			a := n.post(runPath, key, other)
			n.refused(a, 409, "idempotency_key_reused", "")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
	if used := n.used(key); used != 1 {
		t.Errorf("%d calls metered, want 1", used)
	}
	// An idempotency key belongs to a caller and an operation.
	other := n.issueKey()
	if a := n.post(runPath, other, body); a.status != 200 || string(a.body) == string(first.body) {
		t.Errorf("another caller's key: %v", a)
	}
	n.wants(n.post(quickPath, key, `{"command":"ls"}`, "Idempotency-Key", "k-1"), 200)
	n.wants(n.post(runPath, key, `{"command":"ls","idempotencyKey":"k-2"}`), 200)
	// Without a key, every call is separate.
	a, b := n.post(runPath, key, `{"command":"ls"}`).members(t), n.post(runPath, key, `{"command":"ls"}`).members(t)
	if a["workflowId"] == b["workflowId"] || a["outputHash"] != b["outputHash"] {
		t.Error("two runs without a key are not two runs of one content")
	}
}

// TestARefusedCallLeavesTheIdempotencyKeyFree checks that a refused request does not use its key.
func TestARefusedCallLeavesTheIdempotencyKeyFree(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.refused(n.post(runPath, key, `{"command":"","idempotencyKey":"k"}`), 400, "-", "/command")
	n.refused(n.post(runPath, key, `{"command":"ls","idempotencyKey":"k","x":1}`), 400, "unknown_field", "")
	n.runWorkflow(key, `{"command":"ls","idempotencyKey":"k"}`)
}

// TestParallelEqualRequests checks that 32 equal concurrent requests on two nodes append one event
// and get identical bytes.
func TestParallelEqualRequests(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	second := startNode(t, setup{on: n.db, clock: n.clock})
	key := n.issueKey()
	for _, c := range []struct {
		path, body string
		nodes      []*node
	}{
		{runPath, `{"command":"rm -rf /","idempotencyKey":"one"}`, []*node{n}},
		{quickPath, `{"command":"rm -rf /"}`, []*node{n}},
		{runPath, `{"command":"rm -rf /","idempotencyKey":"two"}`, []*node{n, second}},
	} {
		before, answers := n.head(), make([]answer, 32)
		parallel(len(answers), func(i int) {
			headers := asJSON(key)
			if c.path == quickPath {
				headers = append(headers, "Idempotency-Key", "quick")
			}
			answers[i], _ = c.nodes[i%len(c.nodes)].try("POST", c.path, c.body, headers...)
		})
		fresh := 0
		for _, a := range answers {
			if a.status != 200 || string(a.body) != string(answers[0].body) {
				t.Errorf("%s: %v, the first was %v", c.path, a, answers[0])
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				fresh++
			}
		}
		if after := n.head(); after-before != 1 || fresh != 1 {
			t.Errorf("%s: %d events and %d first answers", c.path, after-before, fresh)
		}
	}
	if used := n.used(key); used != 3 {
		t.Errorf("%d calls metered, want 3", used)
	}
}

// TestParallelRequestsWithOtherContent checks that of many concurrent requests with one key
// exactly one content succeeds. All others get 409, and repeats of the first get its answer.
func TestParallelRequestsWithOtherContent(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	second := startNode(t, setup{on: n.db, clock: n.clock})
	key := n.issueKey()
	var mu sync.Mutex
	bodies := map[string]int{}
	parallel(32, func(i int) {
		at := []*node{n, second}[i%2]
		a, err := at.try("POST", runPath, fmt.Sprintf(`{"command":"rm -rf /%d","idempotencyKey":"k"}`, i/4), asJSON(key)...)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil || a.status != 200 && a.status != 409:
			t.Errorf("%v %v", a, err)
		case a.status == 200:
			bodies[string(a.body)]++
		}
	})
	if len(bodies) != 1 {
		t.Errorf("%d answers won", len(bodies))
	}
	for _, count := range bodies {
		if count != 4 {
			t.Errorf("the winner was answered %d times, want 4", count)
		}
	}
	if used := n.used(key); used != 1 {
		t.Errorf("%d calls metered", used)
	}
}

// TestCommandIsStoredSealed checks that no column of the ledger contains the command unencrypted.
func TestCommandIsStoredSealed(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	secret := "frobnicate-" + canary
	for _, path := range actionPaths {
		n.wants(n.post(path, key, `{"command":"`+secret+`"}`), 200)
	}
	n.get(statusPath + "asw_00000000-0000-0000-0000-000000000000") // waits until the read models have caught up
	n.absent(secret)
	history := slices.DeleteFunc(Since(t, n.app, nil), func(e ledger.Event) bool { return e.Type != events.TypeCallCompleted })
	var call events.CallCompleted
	if err := n.app.Vault.Open(t.Context(), history[len(history)-1], &call); err != nil {
		t.Fatal(err)
	}
	stored, err := canon.Marshal(call.Request)
	if err != nil || !strings.Contains(string(stored), secret) || call.Charge != "free" {
		t.Errorf("the sealed request is %s, charge %s", stored, call.Charge)
	}
}
