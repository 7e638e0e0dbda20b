package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/services"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
)

// verification sends an envelope to POST /api/verify, and returns the result and the status of
// each check.
func (n *node) verification(envelope any) (valid bool, checks map[string]string) {
	n.t.Helper()
	text, err := json.Marshal(envelope)
	if err != nil {
		n.t.Fatal(err)
	}
	a := n.post("/api/verify", "", string(text))
	n.wants(a, http.StatusOK)
	m := a.members(n.t)
	checks = map[string]string{}
	for _, c := range asList(m["checks"]) {
		check, _ := c.(map[string]any)
		checks[fmt.Sprint(check["name"])] = fmt.Sprint(check["result"])
	}
	valid, _ = m["valid"].(bool)
	return valid, checks
}

// copyOf returns a deep copy that a test may change.
func copyOf(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestVerifyAGoodReceipt(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	_, run := n.runWorkflow(n.issueKey(), verdicts[3].body)
	receipt, _ := run["receipt"].(map[string]any)
	n.unchanged(func() {
		valid, checks := n.verification(receipt)
		want := map[string]string{"algorithms": "pass", "recordHash": "pass", "key": "pass", "signature": "pass", "ledger": "pass"}
		if diff := cmp.Diff(want, checks); !valid || diff != "" {
			t.Errorf("valid %v %s", valid, diff)
		}
		// Without its ledger position, the record is still valid.
		alone := copyOf(t, receipt)
		delete(alone, "ledger")
		delete(alone, "verify")
		if valid, checks := n.verification(alone); !valid || checks["ledger"] != "unknown" {
			t.Errorf("without its place: valid %v %v", valid, checks)
		}
		// Another spelling of the same record is the same record.
		text, err := json.Marshal(receipt, json.Deterministic(false))
		if err != nil {
			t.Fatal(err)
		}
		spaced := strings.ReplaceAll(string(text), `":`, "\" :\n\t")
		if m := n.post("/api/verify", "", spaced).members(t); m["valid"] != true {
			t.Errorf("with white space: %v", m)
		}
	})
}

// TestVerifyFindsEveryMutation checks that verification detects every change of a value in record,
// integrity and ledger position, and every added or removed member.
func TestVerifyFindsEveryMutation(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	_, run := n.runWorkflow(key, verdicts[3].body)
	_, other := n.runWorkflow(key, verdicts[0].body)
	receipt, _ := run["receipt"].(map[string]any)
	mutations := 0
	for _, part := range []string{"record", "integrity", "ledger"} {
		for _, path := range pathsOf(receipt[part], part) {
			changed := copyOf(t, receipt)
			if !mutate(changed, strings.Split(path, "/")) {
				continue
			}
			mutations++
			if valid, checks := n.verification(changed); valid {
				t.Errorf("a change of %s is not found: %v", path, checks)
			}
		}
	}
	if mutations < 35 {
		t.Errorf("only %d mutations were tried", mutations)
	}
	for name, change := range map[string]func(map[string]any){
		"member added":   func(e map[string]any) { e["record"].(map[string]any)["x"] = 1.0 },
		"member removed": func(e map[string]any) { delete(e["record"].(map[string]any), "outputHash") },
		"empty record":   func(e map[string]any) { e["record"] = map[string]any{} },
		"record of another receipt": func(e map[string]any) {
			e["record"] = other["receipt"].(map[string]any)["record"]
		},
		"place of another receipt": func(e map[string]any) {
			e["ledger"] = other["receipt"].(map[string]any)["ledger"]
		},
		"position beyond the ledger": func(e map[string]any) {
			e["ledger"].(map[string]any)["position"] = 1e9
		},
		"position before the key": func(e map[string]any) {
			e["ledger"].(map[string]any)["position"] = 0.0
		},
		"negative position": func(e map[string]any) {
			e["ledger"].(map[string]any)["position"] = -1.0
		},
		"padded signature": func(e map[string]any) {
			i := e["integrity"].(map[string]any)
			i["signature"] = fmt.Sprint(i["signature"]) + "\n"
		},
		"url alphabet": func(e map[string]any) {
			i := e["integrity"].(map[string]any)
			raw, _ := base64.StdEncoding.DecodeString(fmt.Sprint(i["signature"]))
			i["signature"] = base64.RawURLEncoding.EncodeToString(raw)
		},
		"upper-case hash": func(e map[string]any) {
			i := e["integrity"].(map[string]any)
			i["recordHash"] = strings.ToUpper(fmt.Sprint(i["recordHash"]))
		},
	} {
		changed := copyOf(t, receipt)
		change(changed)
		if valid, checks := n.verification(changed); valid {
			t.Errorf("%s is not found: %v", name, checks)
		}
	}
}

// TestVerifyRefusesAForeignSignature checks that a record that another key signed is not valid,
// even if its content is.
func TestVerifyRefusesAForeignSignature(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	_, run := n.runWorkflow(n.issueKey(), verdicts[3].body)
	receipt, _ := run["receipt"].(map[string]any)
	foreign, err := seal.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := foreign.Sign(seal.TypeReceipt, receipt["record"])
	if err != nil {
		t.Fatal(err)
	}
	if valid, checks := n.verification(forged); valid || checks["key"] != "fail" || checks["signature"] != "unknown" {
		t.Errorf("valid %v %v", valid, checks)
	}
	forged.Integrity.KeyID = n.app.Signer.KeyID()
	if valid, checks := n.verification(forged); valid || checks["signature"] != "fail" {
		t.Errorf("under our key's name: valid %v %v", valid, checks)
	}
}

// handed returns complete answers of every kind with a signature, as a person would keep them.
func (n *node) handed(key string) map[string]map[string]any {
	n.t.Helper()
	_, run := n.runWorkflow(key, verdicts[3].body)
	files := map[string]map[string]any{
		"workflow": run,
		"status":   n.get(statusPath + fmt.Sprint(run["workflowId"])).members(n.t),
	}
	for _, s := range services.List() {
		if s.Signed {
			a := n.post(op.ServicePath(s), key, s.Example)
			n.wants(a, http.StatusOK)
			files[s.Name] = a.members(n.t)
		}
	}
	return files
}

// TestVerifyFindsEveryMutationAroundAReceipt checks that verification detects every change,
// addition or removal in an answer, or lists the member as not covered: a forged answer around a
// valid receipt is not valid.
func TestVerifyFindsEveryMutationAroundAReceipt(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	verify := func(file any) map[string]any {
		a := n.post("/api/verify", "", string(jcsOf(t, file)))
		n.wants(a, http.StatusOK)
		return a.members(t)
	}
	gaps := func(m map[string]any) (paths []string) {
		for _, g := range asList(m["notCovered"]) {
			paths = append(paths, fmt.Sprint(g.(map[string]any)["path"]))
		}
		return paths
	}
	for name, file := range n.handed(n.issueKey()) {
		untouched := verify(file)
		if untouched["valid"] != true || !strings.HasPrefix(fmt.Sprint(untouched["says"]), "VALID ") {
			t.Errorf("%s: %v", name, untouched)
			continue
		}
		named := gaps(untouched)
		for _, path := range pathsOf(file, "") {
			changed := copyOf(t, file)
			// TestVerifyFindsEveryMutation covers changes of integrity.
			if strings.Contains(path, "/integrity/") || !mutate(changed, strings.Split(path[1:], "/")) {
				continue
			}
			covered := !slices.ContainsFunc(named, func(gap string) bool { return path == gap || strings.HasPrefix(path, gap+"/") })
			if m := verify(changed); covered && m["valid"] != false {
				t.Errorf("%s: a change of %s is not found: %v", name, path, m)
			}
		}
		for _, change := range []func(map[string]any){
			func(m map[string]any) { m["x"] = 1.0 },
			func(m map[string]any) { m["paymentId"] = "pay_0" },
			func(m map[string]any) { delete(m, "findings") },
		} {
			changed := copyOf(t, file)
			change(changed)
			if m := verify(changed); !cmp.Equal(changed, file) && m["valid"] != false {
				t.Errorf("%s: a member that came or went is not found: %v", name, m)
			}
		}
	}
}

// TestVerifySaysWhatWasForged checks that the sentence contains what the file claims and what was
// signed.
func TestVerifySaysWhatWasForged(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	_, run := n.runWorkflow(n.issueKey(), verdicts[3].body)
	forged := copyOf(t, run)
	forged["risk"], forged["decision"], forged["riskScore"], forged["findings"] = "low", "allow", 0.0, []any{}
	a := n.post("/api/verify", "", string(jcsOf(t, forged)))
	n.wants(a, http.StatusOK)
	for _, want := range []string{
		"decision: the file says allow, the signed record says needs_review",
		"risk: the file says low, the signed record says critical",
		"riskScore: the file says 0, the signed record says ",
		"the members of the answer hash to ",
		`"says":"NOT VALID decision: the file says allow`,
	} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%q is missing: %s", want, a.body)
		}
	}
	says := fmt.Sprint(n.post("/api/verify", "", string(jcsOf(t, run))).members(t)["says"])
	if want := regexp.MustCompile(`^VALID needs_review · critical · [a-z0-9.-]+.* · \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ · key [0-9a-f]{16}$`); !want.MatchString(says) {
		t.Errorf("says %q", says)
	}
}

// pathsOf lists the paths of all values that have no members.
func pathsOf(v any, path string) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			found = append(found, pathsOf(v[name], path+"/"+name)...)
		}
	case []any:
		for i, element := range v {
			found = append(found, pathsOf(element, fmt.Sprintf("%s/%d", path, i))...)
		}
	default:
		return []string{path}
	}
	return found
}

// mutate changes the value at a path into another value of the same type.
func mutate(v any, path []string) bool {
	if list, ok := v.([]any); ok {
		var i int
		_, _ = fmt.Sscan(path[0], &i)
		if len(path) > 1 {
			return mutate(list[i], path[1:])
		}
		list[i] = other(list[i])
		return true
	}
	m := v.(map[string]any)
	if len(path) > 1 {
		return mutate(m[path[0]], path[1:])
	}
	m[path[0]] = other(m[path[0]])
	return true
}

func other(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return "x"
		}
		last := byte('0')
		if v[len(v)-1] == '0' {
			last = '1'
		}
		return v[:len(v)-1] + string(last)
	case float64:
		return v + 1
	case bool:
		return !v
	}
	return "x" // other types: null
}

func TestVerifyRefusesWhatIsNoEnvelope(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	_, run := n.runWorkflow(n.issueKey(), verdicts[0].body)
	receipt, _ := run["receipt"].(map[string]any)
	good := string(jcsOf(t, receipt))
	for name, body := range map[string]string{
		"empty": "", "garbage": canary, "list": "[]", "string": `"` + canary + `"`, "null": "null", "empty object": "{}",
		"record only":        `{"record":{}}`,
		"record a string":    `{"record":"` + canary + `","integrity":` + string(jcsOf(t, receipt["integrity"])) + `}`,
		"record null":        `{"record":null,"integrity":` + string(jcsOf(t, receipt["integrity"])) + `}`,
		"record a list":      `{"record":[],"integrity":` + string(jcsOf(t, receipt["integrity"])) + `}`,
		"integrity null":     `{"record":{},"integrity":null}`,
		"no signature":       strings.Replace(good, `"signature":`, `"signaturE":`, 1),
		"unknown inside":     strings.Replace(good, `"integrity":{`, `"integrity":{"`+canary+`":1,`, 1),
		"duplicate record":   strings.Replace(good, `"record":`, `"record":{},"record":`, 1),
		"duplicate inside":   strings.Replace(good, `"issuedAt":`, `"issuedAt":1,"issuedAt":`, 1),
		"position a string":  strings.Replace(good, `"position":`, `"position":"`+canary+`","x":`, 1),
		"position fraction":  strings.Replace(good, `"position":`, `"position":0.5,"x":`, 1),
		"trailing":           good + good,
		"deep":               `{"record":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64) + `,"integrity":{}}`,
		"lone surrogate":     strings.Replace(good, `"service":"`, `"service":"\ud800`, 1),
		"position beyond":    strings.Replace(good, `"position":`, `"position":9007199254740993,"x":`, 1),
		"signature a number": strings.Replace(good, `"signature":"`, `"signature":1,"z":"`, 1),
	} {
		n.refused(n.post("/api/verify", "", body), 400, "-", "-")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	n.refused(n.send("POST", "/api/verify", good, "Content-Type", "text/plain"), 400, "invalid_request", "")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	a := n.get("/api/health")
	n.wants(a, 200)
	if diff := cmp.Diff(map[string]any{"status": "ok", "site": n.url, "name": "Countersign", "payments": "off"}, a.members(t)); diff != "" {
		t.Error(diff)
	}
	n.wants(n.get("/healthz"), 200)
	ready := n.get("/readyz")
	n.wants(ready, 200)
	if diff := cmp.Diff(map[string]any{"ready": true, "failed": []any{}, "degraded": []any{}}, ready.members(t)); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{"/api/health", "/healthz", "/readyz"} {
		if head := n.send("HEAD", path, ""); head.status != 200 || len(head.body) != 0 {
			t.Errorf("HEAD %s: %v", path, head)
		}
		if got := n.get(path).header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
	}

	// Readiness fails first when the node stops; requests are still answered.
	n.server.Drain()
	n.notReady("draining")
	n.wants(n.get("/healthz"), 200)
	n.wants(n.post(quickPath, n.issueKey(), `{"command":"ls"}`), 200)
	if m := n.get("/api/health").members(t); m["status"] != "degraded" {
		t.Errorf("health says %v", m["status"])
	}
}

// notReady fails the test unless readiness lists exactly these reasons.
func (n *node) notReady(reasons ...any) {
	n.t.Helper()
	n.says(http.StatusServiceUnavailable, map[string]any{"ready": false, "failed": reasons, "degraded": []any{}})
}

// degraded fails the test unless the node is ready and degraded for exactly these reasons.
func (n *node) degraded(reasons ...any) {
	n.t.Helper()
	n.says(http.StatusOK, map[string]any{"ready": true, "failed": []any{}, "degraded": reasons})
}

func (n *node) says(status int, want map[string]any) {
	n.t.Helper()
	a := n.get("/readyz")
	n.wants(a, status)
	if diff := cmp.Diff(want, a.members(n.t)); diff != "" {
		n.t.Error(diff)
	}
	n.discreet(a)
}

// TestReadinessNamesAWrongClock checks that a clock that differs from the database's is reported,
// and that requests are not refused because of it.
func TestReadinessNamesAWrongClock(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{clock: ledgertest.NewClock(ledgertest.Present().Add(time.Hour))})
	n.degraded("clock")
	n.wants(n.post(quickPath, n.issueKey(), `{"command":"ls"}`), 200)
}

// stopsAt advances the clock by an hour after the database has returned the time.
type stopsAt struct{ clock *ledgertest.Clock }

type asksTheTime struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (stopsAt) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, asksTheTime{}, strings.HasPrefix(q.SQL, "select now(), "))
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s stopsAt) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if asked, _ := ctx.Value(asksTheTime{}).(bool); asked {
		s.clock.Add(time.Hour)
	}
}

// TestReadinessTakesNoWaitForAWrongClock checks that a node that waited for the database or the
// processor is not reported for a wrong clock.
func TestReadinessTakesNoWaitForAWrongClock(t *testing.T) {
	t.Parallel()
	clock := ledgertest.NewClock(time.Now())
	n := startNode(t, setup{clock: clock, tracer: stopsAt{clock}})
	clock.Set(time.Now())
	n.says(http.StatusOK, map[string]any{"ready": true, "failed": []any{}, "degraded": []any{}})
}

// TestReadinessNamesAnotherSchema checks that a schema version that differs from the program's is
// reported.
func TestReadinessNamesAnotherSchema(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	n.super(`update public.schema_migrations set version = version + 1`)
	n.notReady("migrations")
	n.super(`update public.schema_migrations set version = version - 1`)
	n.wants(n.get("/readyz"), 200)
}

// TestReadinessNamesAFailedVerification checks that an altered ledger is reported but does not
// make a node unready. The metrics report the same.
func TestReadinessNamesAFailedVerification(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	ledger := n.app.Ledger
	if check := audit.SelfCheck(t.Context(), ledger, nil); check.Failed() || check.Events == 0 {
		t.Fatalf("%+v", check)
	}
	n.wants(n.get("/readyz"), 200)
	n.super(`set session_replication_role = replica; update events set actor = actor || 'x' where p = 0 and pos = 1`)
	n.says(http.StatusOK, map[string]any{"ready": true, "failed": []any{}, "degraded": []any{}}) // nothing has detected the alteration yet
	check := audit.SelfCheck(t.Context(), ledger, nil)
	if check.Faults == 0 || !strings.HasPrefix(check.First, "events, ") || !strings.Contains(check.First, "pos 1,") || ledger.LastCheck() != check {
		t.Errorf("%+v", check)
	}
	altered := map[string]any{"ready": true, "failed": []any{}, "degraded": []any{"verification"}, "ledger": "the ledger was altered: stored events differ from those that were appended"}
	n.says(http.StatusOK, altered)
	answer := httptest.NewRecorder()
	n.server.Internal().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	metrics := answer.Body.String()
	for _, line := range []string{"countersign_verification_failed 1\n", fmt.Sprintf("countersign_verification_events %d\n", check.Events)} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	n.super(`set session_replication_role = replica; update events set actor = left(actor, -1) where p = 0 and pos = 1`)
	audit.SelfCheck(t.Context(), ledger, nil)
	n.says(http.StatusOK, map[string]any{"ready": true, "failed": []any{}, "degraded": []any{}})
}

// TestReadinessNamesAParkedEvent checks that a parked event is reported but does not make a node
// unready, because every other node has it, too.
func TestReadinessNamesAParkedEvent(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	const poison = "asw_00000000-0000-4000-8000-00000000000a"
	n.appendWorkflow(poison, []byte(`{}`))
	n.bare(n.get(statusPath+poison), 503, "status temporarily unavailable")
	n.degraded("projections")
	if m := n.get("/api/health").members(t); m["status"] != "degraded" {
		t.Errorf("health says %v", m["status"])
	}
}

// TestReadinessNamesARefusedAppend checks that a full disk, or any other refusal of an append, is
// reported at once, until the database accepts appends again.
func TestReadinessNamesARefusedAppend(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	key := n.issueKey()
	n.super(`create function full_disk() returns trigger language plpgsql as
		$$ begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`)
	for _, table := range []string{"events", "projection_dead"} {
		n.super(`create trigger full_disk before insert on ` + table + ` execute function full_disk()`)
	}
	n.refused(n.post(quickPath, key, `{"command":"ls"}`), 503, "temporarily_unavailable", "")
	n.notReady("ledger")
	n.notReady("ledger")
	for _, table := range []string{"events", "projection_dead"} {
		n.super(`drop trigger full_disk on ` + table)
	}
	n.wants(n.get("/readyz"), 200)
	n.wants(n.post(quickPath, key, `{"command":"ls"}`), 200)
	n.super(`revoke insert on events from countersign_app`) // the trial append does not detect this
	n.refused(n.post(quickPath, key, `{"command":"ls"}`), 503, "temporarily_unavailable", "")
	n.notReady("ledger")
	n.super(`grant insert on events to countersign_app`)
	n.wants(n.post(quickPath, key, `{"command":"ls"}`), 200)
	n.wants(n.get("/readyz"), 200)
}

// TestDatabaseGone checks that a node without its database stays up: every endpoint that needs the
// database answers 503 without the reason, and the node recovers by itself.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{machineClock: true})
	key := n.issueKey()
	body := `{"command":"ls","idempotencyKey":"k"}`
	first, run := n.runWorkflow(key, body)
	n.db.Away(t)
	for _, path := range actionPaths {
		a := n.post(path, key, `{"command":"ls"}`)
		n.refused(a, 503, "temporarily_unavailable", "")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", path)
		}
	}
	n.refused(n.post(runPath, key, body), 503, "temporarily_unavailable", "")
	n.refused(n.post(quickPath, unknownKey("000000000000"), `{"command":"ls"}`), 503, "temporarily_unavailable", "")
	n.refused(n.post("/api/keys/free", "", `{"email":"gone@example.com"}`), 503, "temporarily_unavailable", "")
	n.refused(n.send("GET", "/api/keys/free/status", "", "X-API-Key", key), 503, "temporarily_unavailable", "")
	n.bare(n.get(statusPath+fmt.Sprint(run["workflowId"])), 503, "status temporarily unavailable")
	n.refused(n.get("/.well-known/jwks.json"), 503, "temporarily_unavailable", "")
	if a := n.post("/api/verify", "", string(jcsOf(t, run["receipt"]))); a.status != 503 {
		t.Errorf("verify: %v", a)
	}
	n.wants(n.get("/healthz"), 200)
	n.wants(n.get("/openapi.json"), 200)
	health := n.get("/api/health")
	n.wants(health, 200)
	if health.members(t)["status"] != "degraded" {
		t.Errorf("%v", health)
	}
	n.notReady("database")
	n.refused(n.post(quickPath, "malformed", "{}"), 401, "unauthorized", "")

	n.db.Back(t)
	ledgertest.Until(t, "the node to be ready again", func() bool { return n.get("/readyz").status == 200 })
	if replay := n.post(runPath, key, body); replay.status != 200 || !bytes.Equal(replay.body, first.body) {
		t.Errorf("replay afterwards: %v", replay)
	}
	n.wants(n.post(runPath, key, `{"command":"ls"}`), 200)
	if used := n.used(key); used != 2 {
		t.Errorf("%d calls metered: what was 503 left a trace", used)
	}
}

// TestPanicAndOverload checks that a panic leads to one 500 with a request id and one log line,
// and that the node continues. Above the limit of requests in progress, the answer is 503.
func TestPanicAndOverload(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	n.server.table = append(n.server.table, &op.Operation{ID: "panic", Method: http.MethodGet, Path: "/api/panic", Success: 200,
		Run: func(*op.Call) (op.Reply, error) { panic("broken") }})
	handler := n.server.Handler()
	answerTo := func(path string) answer {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return answer{w.Code, w.Header(), w.Body.Bytes()}
	}
	a := answerTo("/api/panic")
	n.refused(a, 500, "internal_error", "")
	id := a.header.Get("X-Request-Id")
	if Plain(string(a.body)) != `{"code":"internal_error","error":"internal error"}` || !strings.HasPrefix(id, "req_") {
		t.Errorf("%v, request %s", a, id)
	}
	if line := linesWith(n.log.String(), id); !strings.Contains(line, "panic: broken") || !strings.Contains(line, `"status":500`) {
		t.Errorf("logged: %s", line)
	}
	n.wants(answerTo("/healthz"), 200)

	for range op.MaxInFlight {
		n.server.entry.Seats <- struct{}{}
	}
	n.wants(answerTo("/api/health"), 200) // the health check is answered above the limit
	full := answerTo("/api/pricing")
	n.refused(full, 503, "temporarily_unavailable", "")
	if full.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	for range op.MaxInFlight {
		<-n.server.entry.Seats
	}
	n.wants(answerTo("/api/pricing"), 200)
}

// TestTheKitsVerifierTakesEveryAnswer checks that the verifier of the verification kit accepts the
// answer of every signed service, and refuses a changed answer. cmd/countersign tests the steps of
// the kit.
func TestTheKitsVerifierTakesEveryAnswer(t *testing.T) {
	t.Parallel()
	interpreter, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node.js is not installed")
	}
	n := startNode(t, setup{})
	dir := t.TempDir()
	keep := func(name string, text []byte) string {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	kit := filepath.Join("catalog", "files", "verification-kit", "verify.mjs")
	keys := keep("jwks.json", n.get("/.well-known/jwks.json").body)
	verify := func(file string) (string, bool) {
		out, err := exec.CommandContext(t.Context(), interpreter, kit, "--keys", keys, file).CombinedOutput()
		return string(out), err == nil
	}
	for name, answer := range n.handed(n.issueKey()) {
		file := keep(strings.ReplaceAll(name, "/", "-")+".json", jcsOf(t, answer))
		if out, valid := verify(file); !valid {
			t.Errorf("%s: %s", name, out)
		}
	}
	_, run := n.runWorkflow(n.issueKey(), verdicts[3].body)
	for name, change := range map[string]func(map[string]any){
		"record": func(m map[string]any) { m["receipt"].(map[string]any)["record"].(map[string]any)["decision"] = "allow" },
		"answer": func(m map[string]any) { m["risk"] = "low" },
		"time":   func(m map[string]any) { m["createdAt"] = "2020-01-01T00:00:00.000Z" },
	} {
		forged := copyOf(t, run)
		change(forged)
		if out, valid := verify(keep("forged.json", jcsOf(t, forged))); valid || !strings.Contains(out, "INVALID") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
