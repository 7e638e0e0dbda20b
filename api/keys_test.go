package api

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/payments"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

var keyForm = regexp.MustCompile(`^svck_[0-9a-z]{12}_[A-Za-z0-9_-]{43}_[A-Za-z0-9_-]{6}$`)

func nextMonth(now time.Time) string {
	now = now.UTC()
	return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
}

func TestIssueFreeKey(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.post("/api/keys/free", "", `{"email":"Ada.Lovelace@Example.com"}`)
	n.wants(a, http.StatusCreated)
	m := a.members(t)
	want := []string{"apiKey", "callsPerMonth", "keyId", "plan", "resetsAt", "statusUrl"}
	if got := sortedKeys(m); !slices.Equal(got, want) {
		t.Errorf("members %v", got)
	}
	key := fmt.Sprint(m["apiKey"])
	if !keyForm.MatchString(key) || !strings.HasPrefix(fmt.Sprint(m["keyId"]), "key_") || m["plan"] != "free" || m["callsPerMonth"] != 250.0 ||
		m["resetsAt"] != nextMonth(n.clock.Now()) || m["statusUrl"] != n.url+"/api/keys/free/status" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", a)
	}
	// The key is shown once and stored as a hash. The e-mail address is encrypted.
	secret := key[18:61]
	octets, err := base64.RawURLEncoding.DecodeString(secret)
	if err != nil || len(octets) != 32 {
		t.Fatalf("the secret is %d octets, %v", len(octets), err)
	}
	n.wants(n.post(quickPath, key, `{"command":"ls"}`), 200)
	status := n.send("GET", "/api/keys/free/status", "", "X-API-Key", key)
	n.wants(status, 200)
	for _, hidden := range []string{key, secret, string(octets), hex.EncodeToString(octets), "Ada.Lovelace", "ada.lovelace@example.com"} {
		n.absent(hidden)
		if strings.Contains(string(status.body), hidden) || strings.Contains(n.log.String(), hidden) {
			t.Error("status or log show what is a secret")
		}
	}
}

func TestFreeKeyStatus(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.wants(n.post(quickPath, key, `{"command":"ls"}`), 200)
	n.wants(n.post(runPath, key, `{"command":"ls"}`), 200)
	for range 3 { // the status is never metered
		a := n.send("GET", "/api/keys/free/status", "", "Authorization", "bearer "+key)
		n.wants(a, 200)
		want := map[string]any{"plan": "free", "callsPerMonth": 250.0, "callsUsed": 2.0, "callsRemaining": 248.0, "resetsAt": nextMonth(n.clock.Now()), "credits": nil, "pass": nil,
			"upgrade": map[string]any{"url": n.url + "/pricing#monthly-pass", "product": "monthly-pass", "priceCents": 2900.0, "creditCents": 3500.0}}
		if diff := cmp.Diff(want, a.members(t)); diff != "" {
			t.Error(diff)
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Cache-Control %q", a.header.Get("Cache-Control"))
		}
	}
}

func TestBadAddresses(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	n.unchanged(func() {
		for _, email := range []string{"", "a", "a@", "@b", "a b@example.com", "a@example.com, b@example.com", "Ada <ada@example.com>", "<ada@example.com>",
			`a@example.com\r\nBcc: b@example.com`, `a\n@example.com`, `a@example.com\u0000`, strings.Repeat("a", 243) + "@example.com", " a@example.com", "a@example.com ", "a@exa\\u007fmple.com", canary} {
			n.refused(n.post("/api/keys/free", "", `{"email":"`+email+`"}`), 400, "-", "-")
		}
		for body, path := range map[string]string{`{}`: "/email", `{"email":null}`: "/email", `{"email":1}`: "/email", `{"email":"a@example.com","plan":"pro"}`: "", `[]`: ""} {
			n.refused(n.post("/api/keys/free", "", body), 400, "-", path)
		}
	})
	n.wants(n.post("/api/keys/free", "", `{"email":"`+strings.Repeat("a", 242)+`@example.com"}`), 201)
}

// TestThreeKeysPerAddressAndMonth checks that an e-mail address gets at most three keys a month,
// in any spelling and on any node. The error has the same status as that of the rate limit.
func TestThreeKeysPerAddressAndMonth(t *testing.T) {
	t.Parallel()
	clock := ledgertest.NewClock(time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC))
	n := startNode(t, setup{clock: clock})
	second := startNode(t, setup{on: n.db, clock: clock})
	var issued, refused atomic.Int64
	spellings := []string{"ada@example.com", "ADA@example.com", "ada@EXAMPLE.com"}
	parallel(12, func(i int) {
		a, err := []*node{n, second}[i%2].try("POST", "/api/keys/free", `{"email":"`+spellings[i%3]+`"}`, asJSON("")...)
		switch {
		case err == nil && a.status == 201:
			issued.Add(1)
		case err == nil && a.status == 429 && strings.Contains(string(a.body), `"too_many_keys"`) && a.header.Get("Retry-After") == "":
			refused.Add(1)
			// The answer states when the next key is possible.
			if a.members(t)["resetsAt"] != "2026-12-01T00:00:00.000Z" || !strings.Contains(string(a.body), "can be issued from 2026-12-01") {
				t.Errorf("%v", a)
			}
		default:
			t.Errorf("%v %v, Retry-After %q", a, err, a.header.Get("Retry-After"))
		}
	})
	if issued.Load() != 3 || refused.Load() != 9 {
		t.Errorf("%d issued, %d refused", issued.Load(), refused.Load())
	}
	n.wants(n.post("/api/keys/free", "", `{"email":"grace@example.com"}`), 201)
	clock.Set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	n.wants(n.post("/api/keys/free", "", `{"email":"ada@example.com"}`), 201)
}

// TestRateLimitPerNetworkAddress checks that a flood from one network address gets 429 and the
// time after which to try again.
func TestRateLimitPerNetworkAddress(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{rateLimit: true})
	for range op.KeysPerMinute {
		n.issueKey()
	}
	n.unchanged(func() {
		a := n.post("/api/keys/free", "", `{"email":"one-more@example.com"}`, "X-Forwarded-For", "192.0.2.1")
		n.refused(a, 429, "rate_limited", "")
		if a.header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
	})
	n.clock.Add(time.Minute)
	n.issueKey()
}

// TestBadCredentials checks that every kind of invalid credential gets 401 before the body is
// parsed, and that the answer does not tell an unknown key from a revoked one.
func TestBadCredentials(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key, other := n.issueKey(), n.issueKey()
	revoked := n.issueKey()
	if err := n.app.RevokeKey(t.Context(), revoked[5:17], "test"); err != nil {
		t.Fatal(err)
	}
	flipped := []byte(key)
	flipped[20] ^= 1
	mixed := key[:18] + other[18:61]
	var texts []string
	formOf := map[string]string{"twice": "X-API-Key must be given once", "bearer twice": "Authorization must be given once", "basic": "must be Bearer"}
	n.unchanged(func() {
		for name, headers := range map[string][]string{
			"malformed":                    {"X-API-Key", canary},
			"empty":                        {"X-API-Key", ""},
			"space":                        {"X-API-Key", key + " x"},
			"cut":                          {"X-API-Key", key[:len(key)-1]},
			"wrong check":                  {"X-API-Key", string(flipped)},
			"unknown":                      {"X-API-Key", unknownKey("000000000000")},
			"id of one, secret of another": {"X-API-Key", mixed + "_" + check(mixed)},
			"right id, wrong secret":       {"X-API-Key", unknownKey(key[5:17])},
			"revoked":                      {"X-API-Key", revoked},
			"twice":                        {"X-API-Key", key, "X-API-Key", key},
			"bearer twice":                 {"Authorization", "Bearer " + key, "Authorization", "Bearer " + key},
			"bearer empty":                 {"Authorization", "Bearer "},
			"bearer alone":                 {"Authorization", "Bearer"},
			"basic":                        {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))},
			"bearer malformed":             {"Authorization", "Bearer " + canary},
			"bearer revoked":               {"Authorization", "Bearer " + revoked},
			"two spaces":                   {"Authorization", "Bearer  " + key},
			"bad key, good bearer":         {"X-API-Key", "svck_", "Authorization", "Bearer " + key},
		} {
			for _, path := range append([]string{"/api/keys/free/status"}, actionPaths...) {
				method := "POST"
				if path == "/api/keys/free/status" {
					method = "GET"
				}
				a := n.send(method, path, canary, append(headers, "Content-Type", "application/json")...)
				if a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s at %s: %v, WWW-Authenticate %q", name, path, a, a.header.Get("WWW-Authenticate"))
					continue
				}
				n.refused(a, 401, "unauthorized", "")
				if said := formOf[name]; said != "" { // the header does not have the form of this kind of credential
					if !strings.Contains(string(a.body), said) {
						t.Errorf("%s at %s: %v does not say %q", name, path, a, said)
					}
					continue
				}
				texts = append(texts, anyRequest(string(a.body)))
			}
		}
	})
	slices.Sort(texts)
	if texts = slices.Compact(texts); len(texts) != 1 {
		t.Errorf("the answers tell apart why: %v", texts)
	}
	n.wants(n.send("POST", quickPath, `{"command":"ls"}`, "Content-Type", "application/json", "X-API-Key", key, "Authorization", "Bearer "+canary), 200)
	n.wants(n.send("POST", quickPath, `{"command":"ls"}`, "Content-Type", "application/json", "Authorization", "BEARER "+key), 200)
}

// TestOrganizationTokenCannotPay checks that a caller with a valid organization token is asked to
// pay in another way, because such a token cannot pay for a call. An invalid token gets 401.
func TestOrganizationTokenCannotPay(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	token := n.organizationToken()
	n.unchanged(func() {
		for _, path := range actionPaths {
			a := n.send("POST", path, canary, "Content-Type", "application/json", "Authorization", "Bearer "+token)
			n.refused(a, 503, "x402_not_configured", "")
			bad := n.send("POST", path, canary, "Content-Type", "application/json", "Authorization", "Bearer "+token[:62]+"AAAAAA")
			n.refused(bad, 401, "unauthorized", "")
		}
		n.refused(n.send("GET", "/api/keys/free/status", "", "Authorization", "Bearer "+token), 401, "unauthorized", "")
	})
}

// organizationToken returns a valid token of a new organization.
func (n *node) organizationToken() string {
	n.t.Helper()
	o, err := n.app.CreateOrganization(n.t.Context(), "operator", "Acme", "team", fmt.Sprintf("owner%d@example.com", addresses.Add(1)))
	if err != nil {
		n.t.Fatal(err)
	}
	operator, err := n.app.Operator(n.t.Context(), o.OrgID)
	if err != nil {
		n.t.Fatal(err)
	}
	issued, err := n.app.IssueToken(n.t.Context(), operator, organizations.TokenOrder{})
	if err != nil {
		n.t.Fatal(err)
	}
	return issued.Token
}

// check returns the check digits of a key, as documented: CRC-32 (IEEE) in base64url.
func check(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return base64.RawURLEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

func unknownKey(id string) string {
	body := "svck_" + id + "_" + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))
	return body + "_" + check(body)
}

// TestBodyIsNotReadWithABadCredential checks that the service does not wait for the body if the
// credential is invalid.
func TestBodyIsNotReadWithABadCredential(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	// This server would wait for the body for longer than the test runs.
	patient := httptest.NewUnstartedServer(nil)
	patient.Config = request.HTTP(n.server.Handler(), slog.New(slog.DiscardHandler))
	patient.Config.ReadTimeout, n.server.entry.Bodies.Limits.Grace = 0, time.Hour
	patient.Start()
	t.Cleanup(patient.Close)
	n.url = patient.URL
	a := n.raw("POST " + quickPath + " HTTP/1.1\r\nHost: x\r\nX-API-Key: bad\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n{")
	if a.status != 401 || a.header.Get("Connection") != "close" {
		t.Error(a)
	}
}

// TestRevokedKeyOnAnotherNode checks that a revocation takes effect at once, even on a node that
// has used the key.
func TestRevokedKeyOnAnotherNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	second := startNode(t, setup{on: n.db, clock: n.clock})
	key := n.issueKey()
	body := `{"command":"ls","idempotencyKey":"k"}`
	n.wants(n.post(runPath, key, body), 200)
	n.wants(second.post(runPath, key, body), 200)
	if err := second.app.RevokeKey(t.Context(), key[5:17], "leaked"); err != nil {
		t.Fatal(err)
	}
	n.unchanged(func() {
		for _, node := range []*node{n, second} {
			n.refused(node.send("GET", "/api/keys/free/status", "", "X-API-Key", key), 401, "unauthorized", "")
			n.refused(node.post(quickPath, key, `{"command":"ls"}`), 401, "unauthorized", "")
			n.refused(node.post(runPath, key, `{"command":"rm -rf /"}`), 401, "unauthorized", "")
			n.refused(node.post(runPath, key, body), 401, "unauthorized", "") // stored answers are refused, too
		}
	})
}

func TestWithoutACredentialX402IsNotConfigured(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.unchanged(func() {
		for _, path := range actionPaths {
			for _, body := range []string{`{"command":"ls"}`, "", "{", canary} {
				for _, headers := range [][]string{nil, {"X-PAYMENT", canary}, {"Cookie", "countersign_session=" + strings.Repeat("x", 43)}} {
					a := n.send("POST", path+"?api_key="+key+"&access_token="+key, body, headers...)
					n.refused(a, 503, "x402_not_configured", "")
					if m := a.members(t); m["error"] != "x402 not configured" || a.header.Get("Retry-After") != "" {
						t.Errorf("%v", a)
					}
				}
			}
		}
		a := n.send("GET", "/api/keys/free/status?key="+key, "")
		n.refused(a, 401, "unauthorized", "")
	})
}

// spend makes a number of calls with a key.
func (n *node) spend(key string, calls int) {
	n.t.Helper()
	var failed atomic.Int64
	parallel(8, func(worker int) {
		for i := worker; i < calls; i += 8 {
			if a, err := n.try("POST", quickPath, `{"command":"ls"}`, asJSON(key)...); err != nil || a.status != 200 {
				failed.Add(1)
			}
		}
	})
	if failed.Load() > 0 {
		n.t.Fatalf("%d of %d calls failed", failed.Load(), calls)
	}
}

// exhausted fails the test unless the answer is the 429 for a used-up quota.
func (n *node) exhausted(a answer) {
	n.t.Helper()
	if a.status != http.StatusTooManyRequests {
		n.t.Errorf("%v, want 429", a)
		return
	}
	upgrade := n.url + "/pricing#monthly-pass"
	want := map[string]any{"error": "monthly quota is used up", "code": "quota_exhausted", "upgradeUrl": upgrade, "resetsAt": nextMonth(n.clock.Now()),
		"requestId": a.header.Get("X-Request-Id"), "docUrl": n.url + "/errors/quota_exhausted"}
	if payments.Taken(n.app.Settler) {
		want["payPerCall"] = true
	}
	if diff := cmp.Diff(want, a.members(n.t)); diff != "" {
		n.t.Error(diff)
	}
	if link := a.header.Get("Link"); link != "<"+upgrade+`>; rel="upgrade"` || a.header.Get("Retry-After") != "" || a.header.Get("Content-Type") != "application/json" {
		n.t.Errorf("Link %q, Retry-After %q", link, a.header.Get("Retry-After"))
	}
}

// TestTwoHundredAndFiftyCallsAMonth checks that a key has 250 calls over all agent services, and
// then gets 429. Repeated and invalid requests are not counted, and repeated ones are still
// answered.
func TestTwoHundredAndFiftyCallsAMonth(t *testing.T) {
	t.Parallel()
	clock := ledgertest.NewClock(time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.UTC))
	n := startNode(t, setup{clock: clock})
	key, body := n.issueKey(), `{"command":"ls","idempotencyKey":"k"}`
	for _, path := range actionPaths {
		n.wants(n.post(path, key, `{"command":"ls"}`), 200)
	}
	first := n.post(runPath, key, body)
	n.wants(first, 200)
	if got := first.header.Get("RateLimit"); got != `"month";r=245;t=0` {
		t.Errorf("RateLimit %q", got)
	}
	n.spend(key, 244)
	n.refused(n.post(quickPath, key, `{"command":""}`), 400, "-", "/command")
	last := n.post(triagePath, key, `{"command":"ls"}`)
	n.wants(last, 200)
	if got := last.header.Get("RateLimit"); got != `"month";r=0;t=0` {
		t.Errorf("RateLimit %q", got)
	}
	n.unchanged(func() {
		for _, path := range actionPaths {
			n.exhausted(n.post(path, key, `{"command":"ls"}`))
			n.refused(n.post(path, key, `{"command":""}`), 400, "-", "/command") // the body is checked before the quota
		}
		if again := n.post(runPath, key, body); again.status != 200 || string(again.body) != string(first.body) {
			t.Errorf("a replay at the quota: %v", again)
		}
		if used := n.used(key); used != 250 {
			t.Errorf("%d calls used", used)
		}
	})
	n.wants(n.post(quickPath, n.issueKey(), `{"command":"ls"}`), 200) // another key has its own quota
	clock.Set(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))           // UTC, independent of the machine's time zone
	if used := n.used(key); used != 0 {
		t.Errorf("%d calls used in the new month", used)
	}
	a := n.post(quickPath, key, `{"command":"ls"}`)
	n.wants(a, 200)
	if got := a.header.Get("RateLimit"); got != `"month";r=249;t=2678400` {
		t.Errorf("RateLimit %q", got)
	}
}

// TestMonthBoundaryIsUTC checks that a month is a month in UTC, even on a node in another time
// zone.
func TestMonthBoundaryIsUTC(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 14*3600)
	n := startNode(t, setup{clock: ledgertest.NewClock(time.Date(2026, 12, 1, 13, 59, 59, 0, east))}) // 30 November, 23:59:59 UTC
	key := n.issueKey()
	n.wants(n.post(quickPath, key, `{"command":"ls"}`), 200)
	n.clock.Set(time.Date(2026, 12, 1, 14, 0, 0, 0, east))
	if used := n.used(key); used != 0 {
		t.Errorf("%d used after midnight UTC", used)
	}
}

// TestQuotaIsExactUnderConcurrency checks that of 64 concurrent calls with a key that has 10 calls
// left, exactly 10 are answered, on one node and on two.
func TestQuotaIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	second := startNode(t, setup{on: n.db, clock: n.clock})
	for name, nodes := range map[string][]*node{"one node": {n}, "two nodes": {n, second}} {
		key := n.issueKey()
		n.spend(key, 240)
		answers := make([]answer, 64)
		parallel(64, func(i int) {
			answers[i], _ = nodes[i%len(nodes)].try("POST", quickPath, `{"command":"ls"}`, asJSON(key)...)
		})
		good := 0
		for i, a := range answers {
			if a.status == 200 {
				good++
				continue
			}
			nodes[i%len(nodes)].exhausted(a)
		}
		if good != 10 || n.used(key) != 250 {
			t.Errorf("%s: %d answers 200, %d used", name, good, n.used(key))
		}
	}
}

// TestWithoutASigningKey checks a node without a signing key: the workflow, which signs its
// answer, answers 503 and writes nothing. Requests that were answered before get the same answer
// again, and operations that sign nothing work.
func TestWithoutASigningKey(t *testing.T) {
	t.Parallel()
	signed := startNode(t, setup{})
	key := signed.issueKey()
	body := `{"command":"rm -rf /","idempotencyKey":"k"}`
	first := signed.post(runPath, key, body)
	signed.wants(first, 200)
	n := startNode(t, setup{on: signed.db, clock: signed.clock, noSigner: true})
	n.unchanged(func() {
		a := n.post(runPath, key, `{"command":"ls"}`)
		n.refused(a, 503, "signing_unavailable", "")
		n.refused(n.post(runPath, key, `{"command":""}`), 400, "-", "/command") // the body is checked first
		if replay := n.post(runPath, key, body); replay.status != 200 || string(replay.body) != string(first.body) {
			t.Errorf("replay: %v", replay)
		}
		n.refused(n.post(runPath, key, `{"command":"ls","idempotencyKey":"k"}`), 409, "idempotency_key_reused", "")
	})
	for _, path := range []string{quickPath, scorePath, triagePath} {
		n.wants(n.post(path, key, `{"command":"ls"}`), 200)
	}
	if used := n.used(key); used != 4 {
		t.Errorf("%d calls used, want 4", used)
	}
	n.issueKey()
	if ready := n.get("/readyz"); ready.status != 503 || !strings.Contains(string(ready.body), `"signer"`) {
		t.Errorf("readyz: %v", ready)
	}
}

// TestWithoutAVault checks that without a vault nothing personal can be written or read: the
// answer is 503, not 500.
func TestWithoutAVault(t *testing.T) {
	t.Parallel()
	signed := startNode(t, setup{})
	key := signed.issueKey()
	body := `{"command":"ls","idempotencyKey":"k"}`
	signed.wants(signed.post(runPath, key, body), 200)
	n := startNode(t, setup{on: signed.db, clock: signed.clock, noVault: true})
	n.unchanged(func() {
		for _, path := range actionPaths {
			n.refused(n.post(path, key, `{"command":"ls"}`), 503, "signing_unavailable", "")
		}
		n.refused(n.post(runPath, key, body), 503, "signing_unavailable", "")
		n.refused(n.post("/api/keys/free", "", `{"email":"a@example.com"}`), 503, "signing_unavailable", "")
		n.refused(n.send("GET", "/api/keys/free/status", "", "X-API-Key", key), 503, "signing_unavailable", "")
		n.refused(n.post(quickPath, "bad", `{"command":"ls"}`), 401, "unauthorized", "")
	})
}

// TestForeignAndRetiredSigningKeys checks that the ledger does not accept a retired key or the key
// of another environment, and that a running node whose key was retired signs nothing.
func TestForeignAndRetiredSigningKeys(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	foreign, err := seal.NewSigner(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	n.unchanged(func() {
		if err := n.app.Ledger.Activate(t.Context(), foreign, n.app.NewID("evt_")); !errors.Is(err, ledger.ErrForeignKey) {
			t.Errorf("a foreign key: %v", err)
		}
	})
	key := n.issueKey()
	body := `{"command":"ls","idempotencyKey":"k"}`
	first := n.post(runPath, key, body)
	n.wants(first, 200)

	_, history, err := n.app.Ledger.Home(key[5:17]).Keyring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	payload, err := canon.Marshal(events.SigningKeyRetired{KeyID: n.app.Signer.KeyID(), Reason: "rotated"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.app.Ledger.Append(t.Context(), ledger.Append{Tenant: history.Tenant, Events: []ledger.Pending{{
		Stream: history.Stream, Expect: history.At(), ID: n.app.NewID("evt_"), Type: events.TypeSigningKeyRetired,
		SchemaVersion: 1, Actor: "operator", Payload: payload}}}); err != nil {
		t.Fatal(err)
	}
	n.unchanged(func() {
		if err := n.app.Ledger.Activate(t.Context(), n.app.Signer, n.app.NewID("evt_")); !errors.Is(err, ledger.ErrForeignKey) {
			t.Errorf("a retired key: %v", err)
		}
		// The node has the key in memory, and the append detects that it is retired.
		n.refused(n.post(runPath, key, `{"command":"ls"}`), 503, "signing_unavailable", "")
		if replay := n.post(runPath, key, body); replay.status != 200 || string(replay.body) != string(first.body) {
			t.Errorf("replay: %v", replay)
		}
	})
	// Signatures from before the retirement remain valid.
	receipt, err := canon.Marshal(first.members(t)["receipt"])
	if err != nil {
		t.Fatal(err)
	}
	if valid := n.post("/api/verify", "", string(receipt)).members(t)["valid"]; valid != true {
		t.Error("a receipt from before the retirement is not valid")
	}
}
