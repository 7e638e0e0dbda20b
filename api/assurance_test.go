package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/assurance"
	"github.com/countersign/countersign/policy/canon"
)

const (
	activePolicy = `{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"],"requireHttps":true,"allowedMcpServers":["files"],"reviewMcpRiskAtOrAbove":"high"}`
	weather      = `{"resourceUrl":"https://api.weather.example/v1/forecast?city=Oslo","method":"GET","scheme":"exact","network":"base","asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","payTo":"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984","amountUnits":"250000"}`
)

// tenant is an organization with an active policy and a token.
type tenant struct {
	site     *site
	orgID    string
	operator organizations.Principal
	token    string
}

func newTenant(t *testing.T, s *site, plan, owner string) *tenant {
	t.Helper()
	o, err := s.app.CreateOrganization(t.Context(), "operator", "Acme", plan, owner)
	if err != nil {
		t.Fatal(err)
	}
	n := &tenant{site: s, orgID: o.OrgID}
	if n.operator, err = s.app.Operator(t.Context(), o.OrgID); err != nil {
		t.Fatal(err)
	}
	n.activate(t, activePolicy)
	issued, err := s.app.IssueToken(t.Context(), n.operator, organizations.TokenOrder{})
	if err != nil {
		t.Fatal(err)
	}
	n.token = issued.Token
	return n
}

func (n *tenant) activate(t *testing.T, policy string) {
	t.Helper()
	if _, err := n.site.app.DraftAndActivate(t.Context(), n.operator, []byte(policy), "test"); err != nil {
		t.Fatal(err)
	}
}

// send sends a POST with the tenant's token, or a GET if the body is empty.
func (n *tenant) send(t testing.TB, path, body string) answer {
	return n.sendTo(t, n.site.URL, path, body)
}

func (n *tenant) sendTo(t testing.TB, base, path, body string) answer {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return do(t, r)
}

func do(t testing.TB, r *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func decisionBody(key, intent string) string {
	return `{"protocol":"x402","idempotencyKey":"` + key + `","subject":{"runId":"run-1","agentId":"agent-7","purpose":"a forecast"},"intent":` + intent + `}`
}

func (n *tenant) decide(t testing.TB, body string) answer {
	return n.send(t, "/api/assurance/decisions", body)
}

func (a answer) want(t testing.TB, status int, message string) {
	t.Helper()
	if message != "" {
		text, _ := canon.Marshal(map[string]string{"error": message})
		message = string(text)
	}
	if a.status != status || message != "" && a.body != message {
		t.Errorf("got %d %.300s, want %d %s", a.status, a.body, status, message)
	}
}

type decided struct {
	Record    assurance.DecisionRecord
	Integrity seal.Integrity
	Ledger    seal.LedgerPosition
}

func (a answer) decision(t testing.TB) decided {
	t.Helper()
	var d decided
	if err := json.Unmarshal([]byte(a.body), &d, json.MatchCaseInsensitiveNames(true)); err != nil || d.Record.DecisionID == "" {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return d
}

// valid reports whether POST /api/verify accepts the envelope.
func (s *site) valid(t testing.TB, envelope string) bool {
	t.Helper()
	response, err := http.Post(s.URL+"/api/verify", "application/json", strings.NewReader(envelope))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return bytes.Contains(body, []byte(`"valid":true`))
}

func clean(t *testing.T, s *site) {
	t.Helper()
	report, err := audit.Ledger(t.Context(), s.app.Ledger, nil)
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v %v", err, report.Faults)
	}
}

func TestDecideAndBindAReceipt(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	first := n.decide(t, decisionBody("k1", weather))
	first.want(t, 201, "")
	d := first.decision(t)
	if d.Record.Decision != "allow" || d.Record.OrgID != n.orgID || d.Record.Subject.AgentID != "agent-7" || d.Record.Subject.Purpose != "a forecast" ||
		d.Record.AssuranceActionHash != "156f3bb8d855bc6e8a577bf11f1481366166bde4a9df10e6ca25d23efa755acf" ||
		d.Record.Policy.ActivatedSequence == 0 || d.Record.Policy.ActivatedSequence >= d.Ledger.Sequence {
		t.Errorf("%s", first.body)
	}
	if !s.valid(t, first.body) || s.valid(t, strings.Replace(first.body, `"allow"`, `"deny"`, 1)) {
		t.Error("the record does not verify, or a changed one does")
	}
	again := n.decide(t, decisionBody("k1", weather))
	again.want(t, 200, "")
	if again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a replay differs:\n%s\n%s", first.body, again.body)
	}
	n.decide(t, decisionBody("k1", strings.Replace(weather, "250000", "250001", 1))).want(t, 409, "idempotencyKey was already used with different content")
	n.decide(t, strings.Replace(decisionBody("k1", weather), "run-1", "run-2", 1)).want(t, 409, "idempotencyKey was already used with different content")

	evidence := fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled","responseStatus":200,"settlementId":"0x1"}`,
		d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)
	receipt := n.send(t, "/api/assurance/receipts", evidence)
	receipt.want(t, 201, "")
	if !s.valid(t, receipt.body) || !strings.Contains(receipt.body, `"conformance":"conforming"`) {
		t.Errorf("receipt %s", receipt.body)
	}
	if again := n.send(t, "/api/assurance/receipts", evidence); again.status != 200 || again.body != receipt.body {
		t.Errorf("a replayed receipt differs: %d %s", again.status, again.body)
	}
	n.send(t, "/api/assurance/receipts", strings.Replace(evidence, "0x1", "0x2", 1)).want(t, 409, "a receipt with different content is already recorded for this decision")

	if got := n.send(t, "/api/assurance/decisions/"+d.Record.DecisionID, ""); got.status != 200 || got.body != first.body {
		t.Errorf("the stored decision differs: %d %s", got.status, got.body)
	}
	var r struct{ Record assurance.ReceiptRecord }
	_ = json.Unmarshal([]byte(receipt.body), &r, json.MatchCaseInsensitiveNames(true))
	if got := n.send(t, "/api/assurance/receipts/"+r.Record.ReceiptID, ""); got.status != 200 || got.body != receipt.body {
		t.Errorf("the stored receipt differs: %d %s", got.status, got.body)
	}
	n.send(t, "/api/assurance/decisions/asd_unknown", "").want(t, 404, "not found")
	n.send(t, "/api/assurance/receipts/asr_unknown", "").want(t, 404, "not found")
	n.send(t, "/api/assurance/nothing", "").want(t, 404, "not found")
	n.send(t, "/api/assurance/history", "{}").want(t, 405, "method not allowed")
	clean(t, s)
}

// TestViolationsAreRecorded checks that a receipt that contradicts its decision is recorded as a
// violation instead of refused.
func TestViolationsAreRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	for i, c := range []struct{ intent, decision, finding string }{
		{strings.Replace(weather, "250000", "250000000", 1), "deny", "receipt.executed_after_deny"},
		{strings.Replace(weather, `"network":"base",`, "", 1), "needs_review", "receipt.executed_without_approval"},
	} {
		d := n.decide(t, decisionBody(fmt.Sprint("k", i), c.intent)).decision(t)
		if d.Record.Decision != c.decision {
			t.Fatalf("decision %s, want %s", d.Record.Decision, c.decision)
		}
		a := n.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled"}`,
			d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash))
		if a.status != 201 || !strings.Contains(a.body, `"conformance":"violation"`) || !strings.Contains(a.body, c.finding) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	clean(t, s)
}

// TestReceiptsOfOthersAnswerLikeUnknownOnes checks that a decision of another organization gets
// the same answer as an unknown one.
func TestReceiptsOfOthersAnswerLikeUnknownOnes(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n, other := newTenant(t, s, "team", "ada@example.com"), newTenant(t, s, "business", "bob@example.com")
	d := n.decide(t, decisionBody("k", weather)).decision(t)
	body := func(id, recordHash, bindingHash, protocol string) string {
		return fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":%q,"outcome":"rejected"}`, id, recordHash, bindingHash, protocol)
	}
	const no = "receipt does not match a decision of this organization"
	right := body(d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash, "x402")
	other.send(t, "/api/assurance/receipts", right).want(t, 409, no)
	for _, wrong := range []string{
		body("asd_01JD3Z8W5T0000000000000000", d.Integrity.RecordHash, d.Record.BindingHash, "x402"),
		body("../policy", d.Integrity.RecordHash, d.Record.BindingHash, "x402"),
		body(d.Record.DecisionID, d.Record.BindingHash, d.Record.BindingHash, "x402"),
		body(d.Record.DecisionID, d.Integrity.RecordHash, d.Integrity.RecordHash, "x402"),
		body(d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash, "mcp"),
	} {
		n.send(t, "/api/assurance/receipts", wrong).want(t, 409, no)
	}
	other.send(t, "/api/assurance/decisions/"+d.Record.DecisionID, "").want(t, 404, "not found")
	receipt := n.send(t, "/api/assurance/receipts", right)
	receipt.want(t, 201, "")
	var r struct{ Record assurance.ReceiptRecord }
	_ = json.Unmarshal([]byte(receipt.body), &r, json.MatchCaseInsensitiveNames(true))
	other.send(t, "/api/assurance/receipts/"+r.Record.ReceiptID, "").want(t, 404, "not found")
	other.send(t, "/api/assurance/receipts", right).want(t, 409, no) // also when it has a receipt
	if page := other.send(t, "/api/assurance/history", ""); page.body != `{"items":[],"limit":25,"nextCursor":null}` {
		t.Errorf("the other's history is %s", page.body)
	}
	other.decide(t, decisionBody("k", weather)).want(t, 201, "") // another organization may use the same key
}

// TestOrderAndTextsOfErrors checks that the first failing check determines the answer.
func TestOrderAndTextsOfErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	free, err := s.app.IssueFreeKey(t.Context(), "eve@example.com", "")
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := s.app.IssueToken(t.Context(), n.operator, organizations.TokenOrder{Scopes: []string{organizations.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	good := decisionBody("k", weather)
	large := strings.Repeat("x", assurance.MaxDecisionBody+1)
	request := func(t *testing.T, path, token, body string, headers ...string) answer {
		r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return do(t, r)
	}
	const decisions, receipts = "/api/assurance/decisions", "/api/assurance/receipts"
	t.Run("the credential is checked first", func(t *testing.T) {
		none := request(t, decisions, "", large, "Content-Type", "text/plain")
		none.want(t, 401, "authentication required")
		if !strings.HasPrefix(none.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("challenge %q", none.header.Get("WWW-Authenticate"))
		}
		request(t, decisions+"?access_token="+n.token, "", good).want(t, 401, "authentication required")
		request(t, decisions, "svco_rubbish", large).want(t, 401, organizations.ErrToken.Error())
		request(t, decisions, n.token[:len(n.token)-1]+"!", good).want(t, 401, organizations.ErrToken.Error())
		request(t, decisions, free.APIKey, large).want(t, 403, "organization credential required")
		request(t, decisions, readOnly.Token, large).want(t, 403, "missing scope assurance:decide")
		request(t, receipts, readOnly.Token, large).want(t, 403, "missing scope assurance:receipt")
	})
	t.Run("the size and the headers are checked before the body", func(t *testing.T) {
		request(t, decisions, n.token, large, "Content-Type", "text/plain").want(t, 413, "request body is larger than 262144 bytes")
		request(t, receipts, n.token, large[:assurance.MaxReceiptBody+1], "Content-Encoding", "gzip").want(t, 413, "request body is larger than 65536 bytes")
		request(t, decisions, n.token, "{", "Content-Type", "text/plain").want(t, 400, "content type must be application/json")
		request(t, decisions, n.token, "{", "Content-Encoding", "gzip").want(t, 400, "content encoding is not supported")
		request(t, decisions, n.token, "{", "Content-Encoding", "identity").want(t, 400, "content encoding is not supported")
	})
	t.Run("the body is checked last", func(t *testing.T) {
		request(t, decisions, n.token, `{"subject":{},"subject":{}}`).want(t, 400, "invalid JSON: duplicate member") // duplicate members are found before the schema is checked
		request(t, decisions, n.token, `{"protocol":"x402","idempotencyKey":"k"}`).want(t, 400, "subject is required")
	})

	weaker := func(key, member string) string {
		return strings.TrimSuffix(decisionBody(key, weather), "}") + `,"policy":{"policyId":"default","version":1` + member + `}}`
	}
	t.Run("a policy that weakens the active one is refused", func(t *testing.T) {
		request(t, decisions, n.token, good).want(t, 201, "")
		request(t, decisions, n.token, weaker("k", `,"requireHttps":false`)).want(t, 409, "idempotencyKey was already used with different content")
		request(t, decisions, n.token, weaker("k2", `,"requireHttps":false`)).want(t, 409, "policy assertion weakens the active policy: requireHttps")
		request(t, decisions, n.token, strings.Replace(weaker("k2", ``), `"version":1`, `"version":2`, 1)).want(t, 409, "policy assertion does not match the active policy")
		request(t, decisions, n.token, weaker("k2", `,"maxUsdPerTransaction":1.00000000000000000001`)).want(t, 409, "policy assertion weakens the active policy: maxUsdPerTransaction")
	})

	// Without a signing key, a valid request is refused and nothing is written. Repeated requests
	// are still answered.
	signer := s.app.Signer
	s.app.Signer = nil
	t.Run("without a signing key nothing is written", func(t *testing.T) {
		head := api.Total(t, s.app)
		request(t, decisions, n.token, weaker("k3", `,"requireHttps":false`)).want(t, 409, "policy assertion weakens the active policy: requireHttps")
		request(t, decisions, n.token, decisionBody("k3", weather)).want(t, 503, "signing is unavailable")
		request(t, decisions, n.token, good).want(t, 200, "")
		if now := api.Total(t, s.app); now != head {
			t.Errorf("%d events were written without a signer", now-head)
		}
	})
	s.app.Signer = signer

	t.Run("an organization without a policy gets no decision", func(t *testing.T) {
		empty, err := s.app.CreateOrganization(t.Context(), "operator", "New", "team", "new@example.com")
		if err != nil {
			t.Fatal(err)
		}
		operator, err := s.app.Operator(t.Context(), empty.OrgID)
		if err != nil {
			t.Fatal(err)
		}
		issued, err := s.app.IssueToken(t.Context(), operator, organizations.TokenOrder{})
		if err != nil {
			t.Fatal(err)
		}
		request(t, decisions, issued.Token, good).want(t, 409, "organization has no active policy")
	})
	t.Run("the log holds nothing of a request", func(t *testing.T) {
		if strings.Contains(s.logs.String(), n.token) || strings.Contains(s.logs.String(), "a forecast") {
			t.Error("the log holds a token or what was sent")
		}
	})
	clean(t, s)
}

// TestBadInputOnTheRealEndpoint checks every rule for input on a real endpoint: the code, a body
// with only "error", no value of the caller in the answer, and that the service works afterwards.
func TestBadInputOnTheRealEndpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	with := func(from, to string) string { return decisionBody("k", strings.Replace(weather, from, to, 1)) }
	host := func(host string) string { return with("api.weather.example", host) }
	bad := map[string]string{
		"no body":              " ",
		"not JSON":             "canary",
		"trailing data":        decisionBody("k", weather) + "{}",
		"byte order mark":      "\ufeff" + decisionBody("k", weather),
		"duplicate member":     strings.Replace(decisionBody("k", weather), `"protocol":"x402"`, `"protocol":"x402","protocol":"canary"`, 1),
		"duplicate in intent":  with(`"method":"GET"`, `"method":"GET","\u006dethod":"POST"`),
		"another case":         with(`"method":"GET"`, `"Method":"GET"`),
		"unknown member":       with(`"method":"GET"`, `"method":"GET","canary":1`),
		"lone surrogate":       with("GET", `\ud800`),
		"invalid UTF-8":        with("GET", "\xff"),
		"NUL":                  with("GET", `\u0000`),
		"1e999":                with(`"amountUnits":"250000"`, `"amountUsd":1e999`),
		"2^53":                 with(`"amountUnits":"250000"`, `"amountUsd":9007199254740992`),
		"a long number":        with(`"amountUnits":"250000"`, `"amountUsd":0.`+strings.Repeat("1", 40)),
		"depth":                strings.Replace(decisionBody("k", `{"serverId":"files","toolName":"t","toolArguments":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`), "x402", "mcp", 1),
		"null":                 with(`"GET"`, `null`),
		"a number for a text":  with(`"GET"`, `1`),
		"a list for an object": decisionBody("k", `[]`),
		"both shapes":          with(`"method":"GET"`, `"method":"GET","toolName":"canary"`),
		"the other shape":      decisionBody("k", `{"serverId":"files","toolName":"canary"}`),
		"127.1":                host("127.1"),
		"hexadecimal host":     host("0x7f000001"),
		"decimal host":         host("2130706433"),
		"two trailing dots":    host("api.weather.example.."),
		"empty label":          host("a..b"),
		"label of 64":          host(strings.Repeat("a", 64) + ".example"),
		"xn-- nothing":         host("xn--"),
		"backslash":            host(`api.example\\canary`),
		"IPv6 zone":            host("[fe80::1%25eth0]"),
		"port 65536":           host("api.example:65536"),
		"encoded dots":         host("api.example/%2e%2e"),
		"dot segment":          host("api.example/.."),
		"white space in a URL": host("api.example/a b"),
		"relative URL":         with("https://api.weather.example", ""),
		"a long URL":           host("api.example/" + strings.Repeat("a", 2048)),
		"bad method":           with("GET", "G ET"),
		"key of 201":           decisionBody(strings.Repeat("k", 201), weather),
		"bidi control":         strings.Replace(decisionBody("k", weather), "agent-7", `\u202ecanary`, 1),
		"NBSP at an edge":      strings.Replace(decisionBody("k", weather), "agent-7", "\u00a0agent", 1),
	}
	t.Run("an input that breaks a rule is refused", func(t *testing.T) {
		for name, body := range bad {
			a := n.decide(t, body)
			var e map[string]string
			if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.status != 400 || len(e) != 1 || e["error"] == "" {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			if strings.Contains(a.body, "canary") || len(e["error"]) > 200 {
				t.Errorf("%s: the answer repeats the input: %s", name, a.body)
			}
		}
	})
	t.Run("a well-formed but odd request is never allowed", func(t *testing.T) {
		for name, c := range map[string][2]string{
			"userinfo":                 {host("user:canary@api.weather.example"), "x402.url.userinfo"},
			"mixed-case EVM checksum":  {with("0x1f9840a85d5aF5", "0x1F9840a85d5aF5"), "x402.payto.invalid"},
			"EVM address on Solana":    {with(`"network":"base"`, `"network":"solana"`), "x402.payto.invalid"},
			"base58 with a zero":       {strings.Replace(with(`"network":"base"`, `"network":"solana"`), "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984", "0PjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 1), "x402.payto.invalid"},
			"network in another case":  {with(`"network":"base"`, `"network":"BASE"`), "x402.network.not_allowed"},
			"units with leading zero":  {with(`"250000"`, `"0250000"`), "x402.amount.invalid"},
			"an exploding number":      {with(`"amountUnits":"250000"`, `"amountUsd":1e-400000000`), "x402.amount.invalid"},
			"above the maximum":        {with(`"amountUnits":"250000"`, `"amountUsd":1.00000000000000000001`), "x402.amount.over_limit"},
			"another resource to pay":  {with(`"method"`, `"paymentPayloadResource":"https://evil.example/","method"`), "x402.binding.mismatch"},
			"http":                     {with("https", "http"), "x402.https.required"},
			"method nobody knows":      {with("GET", "BREW"), "x402.method.unknown"},
			"private address":          {host("169.254.169.254"), "x402.host.private"},
			"scheme nobody knows":      {with("exact", "stream"), "x402.scheme.unknown"},
			"asset that looks like it": {with("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USDC"), "x402.asset.unknown"},
		} {
			a := n.decide(t, strings.Replace(c[0], `"k"`, `"`+url.QueryEscape(name)+`"`, 1))
			if a.status != 201 || a.decision(t).Record.Decision == "allow" || !strings.Contains(a.body, c[1]) || strings.Contains(a.body, "canary") {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
		}
	})
	n.activate(t, `{"policyId":"default","allowedHosts":["api.weather.example"]}`)
	t.Run("a look-alike of a host does not match", func(t *testing.T) {
		// A look-alike is another host: it does not match, and the record contains its A-label.
		if a := n.decide(t, strings.Replace(host("аpi.weather.example"), `"k"`, `"look-alike"`, 1)); !strings.Contains(a.body, "x402.host.not_allowed") || !strings.Contains(a.body, "xn--pi-6kc.weather.example") {
			t.Errorf("look-alike: %s", a.body)
		}
	})
	t.Run("another spelling of a host matches", func(t *testing.T) {
		for key, same := range map[string]string{"dot": "api.weather.example.", "case": "API.Weather.Example", "port": "api.weather.example:443", "wide": "ａｐｉ.weather.example"} {
			if a := n.decide(t, strings.Replace(host(same), `"k"`, `"`+key+`"`, 1)); a.decision(t).Record.Decision != "allow" {
				t.Errorf("%s: %s", same, a.body)
			}
		}
	})
	t.Run("a refused request does not consume the key", func(t *testing.T) {
		n.decide(t, decisionBody("k", weather)).want(t, 201, "")
	})
	clean(t, s)
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	for i := range 30 {
		n.decide(t, decisionBody(fmt.Sprint("k", i), weather)).want(t, 201, "")
	}
	type page struct {
		Items []struct {
			Kind, DecisionID, RunID, Decision string
			Sequence                          int64
			Alerts, RuleIDs                   []string
		}
		Limit      int
		NextCursor *string
		Warnings   []string
	}
	get := func(t *testing.T, query string) page {
		a := n.send(t, "/api/assurance/history"+query, "")
		var p page
		if err := json.Unmarshal([]byte(a.body), &p, json.MatchCaseInsensitiveNames(true)); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s %v", query, a.status, a.body, err)
		}
		return p
	}
	t.Run("a page has the size of its limit", func(t *testing.T) {
		for query, want := range map[string]int{
			"": 25, "?limit=": 25, "?limit=ten": 25, "?limit=1.5": 25, "?limit=1e1": 25, "?limit=%zz": 25, "?limit=--1": 25, "?limit=0x10": 25, "?limit=%2B": 25,
			"?limit=0": 1, "?limit=-1": 1, "?limit=-99999999999999999999999": 1, "?limit=1": 1, "?limit=100": 30, "?limit=101": 30,
			"?limit=99999999999999999999999": 30, "?limit=7&limit=9": 7, "?other=1": 25, "?limit=0026": 26,
			// A wrong cursor must not return the first page again.
			"?cursor=rubbish&limit=3": 0, "?cursor=YmVmb3JlOjA": 0, "?cursor=YmVmb3JlOi0x": 0, "?cursor=YmVmb3JlOjAwNw": 0, "?cursor=YmVmb3JlOjc=": 0,
		} {
			if p := get(t, query); len(p.Items) != want || p.Limit < 1 || p.Limit > 100 {
				t.Errorf("%s: %d items, limit %d, want %d", query, len(p.Items), p.Limit, want)
			}
		}
	})
	t.Run("the answer names what was not understood", func(t *testing.T) {
		// The answer names parameters that were not understood, so that a reader does not take all
		// decisions for denied ones.
		for query, want := range map[string]string{
			"": "", "?limit=3": "", "?decision=deny": "decision is not a parameter of this list and was ignored",
			"?limt=3":          "limt is not a parameter of this list and was ignored, did you mean limit?",
			"?a%3Cb=1":         "a parameter is not a parameter of this list and was ignored",
			"?limit=1&limit=2": "limit is given more than once: the first value was used",
			"?limit=ten":       "limit is not a whole number: 25 is used",
			"?limit=%zz":       "a part of the query could not be read and was ignored",
			"?cursor=nope":     "cursor was not returned by a page, so nothing follows it: leave it out to get the first page",
			"?from=1&to=2":     "from is not a parameter of this list and was ignored; to is not a parameter of this list and was ignored",
		} {
			p := get(t, query)
			if got := strings.Join(p.Warnings, "; "); got != want {
				t.Errorf("%s: warnings %q, want %q", query, got, want)
			}
			if query == "?cursor=nope" && (len(p.Items) > 0 || p.NextCursor != nil) {
				t.Errorf("%s: %+v", query, p)
			}
		}
	})
	t.Run("the pages list each decision once", func(t *testing.T) {
		seen, last, pages, cursor := map[string]bool{}, int64(1<<62), 0, ""
		for {
			p := get(t, "?limit=7&cursor="+cursor)
			pages++
			for _, item := range p.Items {
				if item.Sequence >= last || seen[item.DecisionID] || item.RunID != "run-1" || item.Kind != "decision" {
					t.Errorf("item %+v after %d", item, last)
				}
				last, seen[item.DecisionID] = item.Sequence, true
			}
			if p.NextCursor == nil {
				break
			}
			cursor = *p.NextCursor
		}
		if len(seen) != 30 || pages != 5 {
			t.Errorf("%d decisions on %d pages", len(seen), pages)
		}
	})
	t.Run("a settlement under two decisions is reported for both", func(t *testing.T) {
		for i := range 2 {
			d := n.decide(t, decisionBody(fmt.Sprint("k", i), weather)).decision(t)
			n.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"fulfilled","settlementId":"0xsame"}`,
				d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash)).want(t, 201, "")
			alerts := 0
			for _, item := range get(t, "?limit=100").Items {
				alerts += len(item.Alerts)
			}
			if want := i * 4; alerts != want {
				t.Errorf("%d alerts after receipt %d, want %d", alerts, i+1, want)
			}
		}
	})
}

// TestALapsedPlanKeepsItsEvidence checks that the decisions of an organization whose plan has
// lapsed can still be read, but that it gets no new decision. While the organization is suspended,
// it can do neither.
func TestALapsedPlanKeepsItsEvidence(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	first := n.decide(t, decisionBody("k", weather))
	d := first.decision(t)
	// Another process makes the changes, and this process must notice them.
	elsewhere := commands.New(&ground.Ground{Ledger: s.app.Ledger, Clock: s.app.Clock, Signer: s.app.Signer, Vault: s.app.Vault})
	change := func(c organizations.OrganizationChange) {
		t.Helper()
		if _, err := elsewhere.UpdateOrganization(t.Context(), "operator", n.orgID, c); err != nil {
			t.Fatal(err)
		}
	}
	change(organizations.OrganizationChange{State: organizations.StateLapsed, Reason: "unpaid"})
	n.decide(t, decisionBody("k", weather)).want(t, 403, "organization plan required") // repeated requests are refused, too
	n.decide(t, decisionBody("k2", weather)).want(t, 403, "organization plan required")
	n.send(t, "/api/assurance/receipts", "{}").want(t, 403, "organization plan required")
	if a := n.send(t, "/api/assurance/history", ""); a.status != 200 || !strings.Contains(a.body, d.Record.DecisionID) {
		t.Errorf("history of a lapsed plan: %d %s", a.status, a.body)
	}
	if a := n.send(t, "/api/assurance/decisions/"+d.Record.DecisionID, ""); a.status != 200 || a.body != first.body {
		t.Errorf("a decision of a lapsed plan: %d %s", a.status, a.body)
	}
	change(organizations.OrganizationChange{State: organizations.StateSuspended, Reason: "abuse"})
	n.decide(t, decisionBody("k", weather)).want(t, 403, "organization is suspended")
	n.send(t, "/api/assurance/history", "").want(t, 403, "organization is suspended")
	n.decide(t, decisionBody("k3", weather)).want(t, 403, "organization is suspended")
	change(organizations.OrganizationChange{State: organizations.StateActive, Reason: "paid"})
	if a := n.decide(t, decisionBody("k", weather)); a.status != 200 || a.body != first.body {
		t.Errorf("back again: %d %s", a.status, a.body)
	}
	clean(t, s)
}

// TestIdempotencyKeyHeaderMustAgree checks that the header and the member must have the same
// value, as on every endpoint.
func TestIdempotencyKeyHeaderMustAgree(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	n := newTenant(t, s, "team", "ada@example.com")
	for header, status := range map[string]int{"k": 201, "other": 400} {
		r, err := http.NewRequest(http.MethodPost, s.URL+"/api/assurance/decisions", strings.NewReader(decisionBody("k", weather)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+n.token)
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		r.Header.Set("Idempotency-Key", header)
		do(t, r).want(t, status, "")
	}
}
