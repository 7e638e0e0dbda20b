package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/policy"
)

const (
	quickPath  = "/api/agent-services/action-safety/quick"
	runPath    = "/api/agent-services/action-safety/run"
	scorePath  = "/api/agent-services/command-risk/score"
	triagePath = "/api/agent-services/review-triage/submit"
)

// actionPaths are the endpoints that accept an action.
var actionPaths = []string{quickPath, runPath, scorePath, triagePath}

// badJSON lists every kind of text that strict JSON forbids, with the canary in every place that a
// caller can fill.
var badJSON = []struct{ name, body, code, path, text string }{
	{"no body", ``, "invalid_json", "", "invalid JSON: the body is empty"},
	{"white space only", " \r\n\t", "invalid_json", "", "invalid JSON: the body is empty"},
	{"not JSON", canary, "invalid_json", "", ""},
	{"cut off", `{"command":"` + canary, "invalid_json", "", "invalid JSON: the text ends too early"},
	{"trailing text", `{"command":"ls"} ` + canary, "invalid_json", "", ""},
	{"trailing value", `{"command":"ls"}{"command":"` + canary + `"}`, "invalid_json", "", "invalid JSON: something follows the value"},
	{"trailing comma", `{"command":"ls",}`, "invalid_json", "", ""},
	{"byte order mark", "\uFEFF" + `{"command":"ls"}`, "invalid_json", "", ""},
	{"comment", `{"command":"ls"/*` + canary + `*/}`, "invalid_json", "", ""},
	{"line comment", "{\"command\":\"ls\"} //" + canary, "invalid_json", "", ""},
	{"NaN", `{"command":NaN}`, "invalid_json", "", ""},
	{"Infinity", `{"command":-Infinity}`, "invalid_json", "", ""},
	{"single quotes", `{'command':'` + canary + `'}`, "invalid_json", "", ""},
	{"unquoted name", `{command:"` + canary + `"}`, "invalid_json", "", ""},
	{"leading zero", `{"command":"ls","x":01}`, "invalid_json", "", ""},
	{"control character", "{\"command\":\"a\nb\"}", "invalid_json", "", ""},
	{"unknown escape", `{"command":"\x41"}`, "invalid_json", "", ""},
	{"UTF-16", "\xff\xfe{\x00}\x00", "invalid_json", "", ""},

	{"duplicate member", `{"command":"ls","command":"` + canary + `"}`, "duplicate_field", "", "invalid JSON: duplicate member"},
	{"duplicate after unescaping", `{"command":"ls","\u0063omman\u0064":"` + canary + `"}`, "duplicate_field", "", "invalid JSON: duplicate member"},
	{"duplicate in an object", `{"command":"ls","target":{"` + canary + `":1,"` + canary + `":2}}`, "duplicate_field", "/target", "invalid JSON: duplicate member"},
	{"duplicate in a list", `{"command":"ls","target":[{"a":1,"a":2}]}`, "duplicate_field", "-", "invalid JSON: duplicate member"},
	{"duplicate unknown member", `{"command":"ls","` + canary + `":1,"` + canary + `":1}`, "duplicate_field", "", "invalid JSON: duplicate member"},

	{"invalid UTF-8", "{\"command\":\"a\xffb\"}", "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"invalid UTF-8 in a name", "{\"command\":\"ls\",\"\xff\":1}", "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"overlong slash", "{\"command\":\"\xc0\xaf\"}", "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"surrogate as UTF-8", "{\"command\":\"\xed\xa0\x80\"}", "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"above U+10FFFF", "{\"command\":\"\xf4\x90\x80\x80\"}", "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"lone high surrogate", `{"command":"\ud800"}`, "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"lone low surrogate", `{"command":"\udc00x"}`, "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"surrogates in the wrong order", `{"command":"\udc00\ud800"}`, "invalid_json", "-", "invalid JSON: not valid UTF-8"},
	{"NUL", `{"command":"a\u0000b"}`, "invalid_json", "-", "invalid JSON: NUL in a string"},
	{"NUL in a name", `{"command":"ls","a\u0000":1}`, "invalid_json", "-", "invalid JSON: NUL in a string"},

	{"depth 65", `{"command":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "invalid_json", "-", "invalid JSON: nested deeper than 64"},
	{"200,000 brackets", strings.Repeat("[", 60_000), "invalid_json", "-", "invalid JSON: nested deeper than 64"},
	{"number of 41 characters", `{"command":1.` + strings.Repeat("0", 38) + `1}`, "invalid_json", "-", "invalid JSON: a number of more than 40 characters"},
	{"1e999", `{"command":1e999}`, "invalid_json", "-", "invalid JSON: a number too large for a double"},
}

// badMembers lists every kind of JSON body that violates the contract.
var badMembers = []struct{ name, body, code, path string }{
	{"a string", `"` + canary + `"`, "wrong_type", ""},
	{"a list", `["` + canary + `"]`, "wrong_type", ""},
	{"a number", `1`, "wrong_type", ""},
	{"null", `null`, "wrong_type", ""},
	{"true", `true`, "wrong_type", ""},
	{"no command", `{}`, "missing_field", "/command"},
	{"no command, only others", `{"repo":"acme"}`, "missing_field", "/command"},
	{"another case", `{"command":"ls","COMMAND":"` + canary + `"}`, "unknown_field", ""},
	{"another case alone", `{"Command":"` + canary + `"}`, "-", ""},
	{"look-alike name", `{"command":"ls","cоmmand":"` + canary + `"}`, "unknown_field", ""},
	{"unknown member", `{"command":"ls","` + canary + `":1}`, "unknown_field", ""},
	{"empty name", `{"command":"ls","":1}`, "unknown_field", ""},
	{"prototype", `{"command":"ls","__proto__":{"risk":"low"}}`, "unknown_field", ""},
	{"command null", `{"command":null}`, "-", "/command"},
	{"command a number", `{"command":1}`, "wrong_type", "/command"},
	{"command 2^53", `{"command":9007199254740992}`, "wrong_type", "/command"},
	{"command 2^53 as a float", `{"command":9007199254740992.0}`, "wrong_type", "/command"},
	{"target 2^53 in a nested list", `{"command":"ls","target":[[9007199254740993]]}`, "wrong_type", "/target"},
	{"command a list", `{"command":["` + canary + `"]}`, "wrong_type", "/command"},
	{"command an object", `{"command":{"` + canary + `":1}}`, "wrong_type", "/command"},
	{"command true", `{"command":true}`, "wrong_type", "/command"},
	{"command empty", `{"command":""}`, "out_of_range", "/command"},
	{"repo a number", `{"command":"ls","repo":1}`, "wrong_type", "/repo"},
	{"failClosedOnUnmatched a string", `{"command":"ls","failClosedOnUnmatched":"` + canary + `"}`, "wrong_type", "/failClosedOnUnmatched"},
	{"failClosedOnUnmatched 1", `{"command":"ls","failClosedOnUnmatched":1}`, "wrong_type", "/failClosedOnUnmatched"},

	// The error reports the first problem in the text.
	{"order: branch, command", `{"branch":"","command":""}`, "out_of_range", "/branch"},
	{"order: command, branch", `{"command":"","branch":""}`, "out_of_range", "/command"},
	{"order: repo, unknown", `{"command":"ls","repo":5,"` + canary + `":1}`, "wrong_type", "/repo"},
	{"order: unknown, repo", `{"command":"ls","` + canary + `":1,"repo":5}`, "unknown_field", ""},
	{"order: unknown before, between and after", `{"a` + canary + `":1,"command":"","b` + canary + `":1,"c` + canary + `":1}`, "unknown_field", ""},
	{"order: unknown only after", `{"command":"","a` + canary + `":1,"b` + canary + `":1,"c` + canary + `":1}`, "out_of_range", "/command"},
	{"order: empty name first", `{"":1,"command":""}`, "unknown_field", ""},
	{"order: empty name last", `{"command":"","":1}`, "out_of_range", "/command"},
	{"order: missing comes last", `{"repo":"","cwd":1}`, "out_of_range", "/repo"},
	{"order: syntax before shape", `{"command":"","repo":` + canary + `}`, "invalid_json", "-"},
}

func TestStrictJSONAtEveryActionEndpoint(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.unchanged(func() {
		for _, path := range actionPaths {
			for _, c := range badJSON {
				a := n.post(path, key, c.body)
				n.refused(a, 400, c.code, c.path)
				if text, _ := a.members(t)["error"].(string); !strings.HasPrefix(text, "invalid JSON: ") || c.text != "" && text != c.text {
					t.Errorf("%s %s: %q, want %q", path, c.name, text, c.text)
				}
			}
			for _, c := range badMembers {
				// Repeat it, because a random order of the errors would differ at some point.
				for range 5 {
					a := n.post(path, key, c.body)
					n.refused(a, 400, c.code, c.path)
					if t.Failed() {
						t.Fatalf("%s %s: %v", path, c.name, a)
					}
				}
			}
		}
	})
	if used := n.used(key); used != 0 {
		t.Errorf("%d refused calls were metered", used)
	}
}

// TestTheSchemaKnowsNUL checks that the quick gate and its published schema agree on control
// characters: both refuse NUL and accept the others.
func TestTheSchemaKnowsNUL(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	published := n.openAPIDocument().schema(t, "paths", quickPath, "post", "requestBody", "content", "application/json", "schema")
	for _, c := range []struct {
		body  string
		valid bool
	}{{`{"command":"a\u0000b"}`, false}, {`{"command":"ab","repo":"a\u0000b"}`, false}, {`{"command":"a\u0001b"}`, true}, {`{"command":"a b"}`, true}} {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if got := published.Validate(instance) == nil; got != c.valid {
			t.Errorf("%s: the schema says %v", c.body, got)
		}
		if a := n.post(quickPath, key, c.body); (a.status == 200) != c.valid {
			t.Errorf("%s: %v", c.body, a)
		}
	}
}

// TestTheEmailCheckJudgesNUL checks that the e-mail check accepts an escaped NUL in the address,
// over HTTP and MCP. In every other member, and in the e-mail address of a key, NUL is refused.
func TestTheEmailCheckJudgesNUL(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	const path, tool = "/api/agent-services/email-check/validate", "email_check_validate"
	session := n.dial("2025-06-18", "Authorization", "Bearer "+key)
	a := n.post(path, key, `{"email":"a\u0000b@acme.io"}`)
	n.wants(a, 200)
	if got := a.members(t)["recommendation"]; got != "reject" {
		t.Errorf("got %v", a)
	}
	if m := n.callTool(session, tool, `{"email":"a\u0000b@acme.io"}`); m.isError || !strings.Contains(m.structured, `"recommendation":"reject"`) {
		t.Errorf("over MCP: %+v", m)
	}
	n.refused(n.post(path, key, `{"email":"a@acme.io","reference":"\u0000"}`), 400, "invalid_json", "")
	n.refused(n.post("/api/keys/free", "", `{"email":"a\u0000b@acme.io"}`), 400, "invalid_json", "")
}

// TestNullIsAbsent checks over HTTP and MCP that null for an optional member means absent, and
// null for a required member means missing.
func TestNullIsAbsent(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	for _, member := range []string{"repo", "cwd", "branch", "actor", "intent", "diffStat", "environment", "target", "commit", "diffHash", "failClosedOnUnmatched"} {
		body := `{"command":"git status","` + member + `":null}`
		for _, path := range []string{quickPath, scorePath, triagePath, runPath} {
			a := n.post(path, key, body)
			n.wants(a, 200)
			if got := a.members(t)["actionHash"]; got != plainActionHash {
				t.Errorf("%s with %s null: actionHash %v", path, member, got)
			}
		}
	}
	for path, members := range map[string][]string{
		runPath: {"reference", "idempotencyKey"}, scorePath: {"reference"}, triagePath: {"reference", "priority", "requestedBy", "commandScoreRequestId"},
	} {
		for _, member := range members {
			n.wants(n.post(path, key, `{"command":"git status","`+member+`":null}`), 200)
		}
		n.refused(n.post(path, key, `{"command":null}`), 400, "missing_field", "/command")
	}
	n.refused(n.post(quickPath, key, `{"command":null}`), 400, "missing_field", "/command")
	n.refused(n.post("/api/keys/free", "", `{"email":null}`), 400, "missing_field", "/email")
	if a := n.callTool(n.dial(eras[0], "X-API-Key", key), "action_safety_quick_gate", `{"command":"git status","repo":null}`); a.isError {
		t.Errorf("over MCP: %+v", a)
	}

	token := n.tokenWithPolicy()
	decide := func(body string, status int) string {
		a := n.send(http.MethodPost, "/api/assurance/decisions", body, "Authorization", "Bearer "+token, "Content-Type", "application/json")
		n.wants(a, status)
		return string(a.body)
	}
	const plainly = `{"protocol":"x402","idempotencyKey":"k","subject":{"runId":"r"},"intent":{"resourceUrl":"https://a.example/","method":"GET"}}`
	first := decide(plainly, 201)
	// Absent members are not hashed, so this request returns the same decision.
	nulls := `{"protocol":"x402","idempotencyKey":"k","policy":null,"subject":{"runId":"r","agentId":null,"purpose":null},` +
		`"intent":{"resourceUrl":"https://a.example/","method":"GET","payTo":null,"amountUsd":null,"serverId":null}}`
	if again := decide(nulls, 200); again != first {
		t.Errorf("with nulls: %s\nwithout: %s", again, first)
	}
	if got := decide(`{"protocol":"x402","idempotencyKey":null}`, 400); !strings.Contains(got, "idempotencyKey is required") {
		t.Error(got)
	}
	if a := n.callTool(n.dial(eras[0], "Authorization", "Bearer "+token), "list_assurance_history", `{"limit":null,"cursor":null}`); a.isError {
		t.Errorf("over MCP: %+v", a)
	}
}

// TestMembersOfOtherServices checks that a service refuses members that only other services
// accept.
func TestMembersOfOtherServices(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.unchanged(func() {
		for member, allowed := range map[string][]string{
			`"reference":"r"`:                {runPath, scorePath, triagePath},
			`"idempotencyKey":"k"`:           {runPath},
			`"priority":"high"`:              {triagePath},
			`"requestedBy":"ada"`:            {triagePath},
			`"commandScoreRequestId":"crs_"`: {},
		} {
			for _, path := range actionPaths {
				if !strings.Contains(fmt.Sprint(allowed), path) {
					want := "unknown_field"
					if strings.HasPrefix(member, `"commandScore`) && path == triagePath {
						want = "out_of_range"
					}
					n.refused(n.post(path, key, `{"command":"ls",`+member+`}`), 400, want, "-")
				}
			}
		}
		for body, path := range map[string]string{
			`{"command":"ls","reference":""}`:                                                runPath,
			`{"command":"ls","reference":"` + strings.Repeat("r", 201) + `"}`:                runPath,
			`{"command":"ls","idempotencyKey":""}`:                                           runPath,
			`{"command":"ls","idempotencyKey":"` + strings.Repeat("k", 201) + `"}`:           runPath,
			`{"command":"ls","idempotencyKey":1}`:                                            runPath,
			`{"command":"ls","priority":"` + canary + `"}`:                                   triagePath,
			`{"command":"ls","requestedBy":"` + strings.Repeat("r", 201) + `"}`:              triagePath,
			`{"command":"ls","commandScoreRequestId":"crs_` + strings.Repeat("A", 32) + `"}`: triagePath,
		} {
			n.refused(n.post(path, key, body), 400, "-", "-")
		}
	})
}

func TestOversizeIs413(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	const limit = 65_536
	frame := `{"command":"ls"}`
	exact := frame + strings.Repeat(" ", limit-len(frame))
	for _, path := range actionPaths {
		n.wants(n.post(path, key, exact), 200)
		n.unchanged(func() {
			declared := n.post(path, key, exact+" ")
			n.refused(declared, 413, "too_large", "")
			n.refused(n.chunked(path, key, exact+" "), 413, "too_large", "")
			n.wants(n.post(path, "", exact+" "), 503) // without a credential the body is not read
		})
	}
	n.wants(n.chunked(quickPath, key, exact), 200)
	for path, limit := range map[string]int{"/api/keys/free": 16_384, "/api/verify": 524_288} {
		n.refused(n.post(path, "", strings.Repeat(" ", limit+1)), 413, "too_large", "")
		n.refused(n.chunked(path, "", strings.Repeat(" ", limit+1)), 413, "too_large", "")
		n.refused(n.post(path, "", strings.Repeat(" ", limit)), 400, "invalid_json", "")
	}
}

// TestDeclaredOversizeIsNotRead checks that a declared length above the limit is refused before
// the body is sent, and that the connection is closed.
func TestDeclaredOversizeIsNotRead(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	a := n.raw("POST " + quickPath + " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + n.issueKey() +
		"\r\nContent-Type: application/json\r\nContent-Length: 10000000000\r\n\r\n")
	n.refused(a, 413, "too_large", "")
	if a.header.Get("Connection") != "close" {
		t.Error("the connection stays open")
	}
}

// chunked sends a body without declaring its length.
func (n *node) chunked(path, key, body string) answer {
	n.t.Helper()
	r, err := http.NewRequest(http.MethodPost, n.url+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	resp, err := n.client.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

func TestContentTypeAndEncoding(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	body := `{"command":"ls"}`
	for _, good := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON", `application/json; charset="utf-8"`} {
		n.wants(n.send("POST", quickPath, body, "X-API-Key", key, "Content-Type", good), 200)
	}
	n.unchanged(func() {
		for _, bad := range []string{"", "text/plain", "text/json", "application/jsonp", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
			"application/json; charset=latin1", "application/json; charset=utf-16", "application/json; charset", canary + "/json", "application/" + canary} {
			n.refused(n.send("POST", quickPath, body, "X-API-Key", key, "Content-Type", bad), 400, "invalid_request", "")
		}
		n.refused(n.send("POST", quickPath, body, "X-API-Key", key), 400, "invalid_request", "")
		n.refused(n.send("POST", quickPath, body, "X-API-Key", key, "Content-Type", "application/json", "Content-Type", "text/plain"), 400, "invalid_request", "")
		for _, encoding := range []string{"gzip", "br", "identity", canary} {
			n.refused(n.post(quickPath, key, body, "Content-Encoding", encoding), 400, "invalid_request", "")
		}
	})
}

// TestUnknownMembersAreNamedByWhatWasMeant checks that the error for an unknown member names the
// object that contains it and, if there is one, a known member with a similar name, in the same
// words over HTTP and MCP.
func TestUnknownMembersAreNamedByWhatWasMeant(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key, token := n.issueKey(), n.tokenWithPolicy()
	for _, c := range []struct{ path, tool, credential, body, want string }{
		{quickPath, "action_safety_quick_gate", key, `{"comand":"ls"}`, "the body has an unknown member, did you mean command?"},
		{quickPath, "action_safety_quick_gate", key, `{"zzz":1,"command":"ls","Repo":"x"}`, "the body has an unknown member"},
		{"/api/agent-services/spend-assurance/run", "spend_assurance_run", key, `{"payment":{"resourceURL":"https://a.example"}}`, "payment has an unknown member, did you mean resourceUrl?"},
		{"/api/agent-services/portfolio-risk/score", "portfolio_risk_score", key, `{"positions":[{"symbol":"A","wieght":1}]}`, "positions.0 has an unknown member, did you mean weight?"},
		{"/api/agent-services/wallet-screen/score", "wallet_screen_score", key, `{"address":"0x1f9840a85d5af5bf1d1762f925bdaddc4201f984","fundSource":{"declarde":"other"}}`, "fundSource has an unknown member, did you mean declared?"},
		{"/api/assurance/decisions", "authorize_purchase_intent", token, `{"protocl":"x402"}`, "request: unknown field, did you mean protocol?"},
		{"/api/keys/free", "", key, `{"mail":"ada@example.com"}`, "the body has an unknown member, did you mean email?"},
	} {
		a := n.send(http.MethodPost, c.path, c.body, "Authorization", "Bearer "+c.credential, "Content-Type", "application/json")
		if got, _ := a.members(t)["error"].(string); a.status != 400 || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %v, want %s", c.path, c.body, a, c.want)
		}
		if c.tool == "" {
			continue
		}
		if m := n.callTool(n.dial("2025-06-18", "Authorization", "Bearer "+c.credential), c.tool, c.body); !m.isError || anyRequest(m.text) != anyRequest(string(a.body)) {
			t.Errorf("%s: %+v, REST %v", c.tool, m, a)
		}
	}
}

func TestWrongMethodIs405WithAllow(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}
	for path, allow := range map[string]string{
		quickPath: "POST, OPTIONS", runPath: "POST, OPTIONS", scorePath: "POST, OPTIONS", triagePath: "POST, OPTIONS", "/api/keys/free": "POST, OPTIONS", "/api/verify": "POST, OPTIONS",
		"/api/keys/free/status": "GET, HEAD, OPTIONS", "/api/health": "GET, HEAD", "/openapi.json": "GET, HEAD, OPTIONS", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD",
		"/api/agent-workflows/action-safety/status/asw_00000000-0000-0000-0000-000000000000": "GET, HEAD, OPTIONS",
	} {
		for _, method := range methods {
			if strings.Contains(allow, method) {
				continue
			}
			n.unchanged(func() {
				a := n.send(method, path, "", "X-API-Key", key)
				if a.status != 405 || a.header.Get("Allow") != allow {
					t.Errorf("%s %s: %v, Allow %q, want %q", method, path, a, a.header.Get("Allow"), allow)
				}
				switch {
				case method == "HEAD":
				case strings.HasPrefix(path, statusPath): // all errors of this operation have only the member "error"
					n.bare(a, 405, "method not allowed")
				default:
					n.refused(a, 405, "method_not_allowed", "")
				}
			})
		}
	}
}

func TestUnknownAndOddPathsAre404(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	n.unchanged(func() {
		n.bare(n.get(statusPath), 404, "not found")
		n.bare(n.get(statusPath+"asw_1/x"), 404, "not found")
		for _, path := range []string{
			"/api/" + canary, "/api/", "/api/agent-services", quickPath + "/", quickPath + "/" + canary, strings.ToUpper(quickPath),
			"//api/health", "/api//health", "/api/./health", "/./api/health", "/api/x/../health", "/../api/health", "/api/health/.", "/api/health/..",
			"/api%2fhealth", "/api%2Fhealth", "/api/%2e%2e/api/health", "/api/%2E/health", "/api/health%00", "/%00", "/api%5chealth", "/api\\health",
			"/api/health%20", "/api/health;x=1", "/.well-known/" + canary, "/.git/config", "/debug/pprof/", "/metrics",
			"/api/%ff", "/api/%c0%af",
			strings.Replace(quickPath, "quick", "%71uick%2f", 1),
		} {
			for _, method := range []string{"GET", "POST"} {
				a := n.raw(method + " " + path + " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\nContent-Length: 0\r\n\r\n")
				if a.status != 404 {
					t.Errorf("%s %s: %v", method, path, a)
					continue
				}
				n.refused(a, 404, "not_found", "")
			}
		}
	})
}

// TestBrokenHTTPIs400 checks that requests that are not valid HTTP get 400, and that the
// connection ends.
func TestBrokenHTTPIs400(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	head := "POST " + quickPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: " + key + "\r\n"
	n.unchanged(func() {
		for name, request := range map[string]string{
			"two lengths":        head + "Content-Length: 16\r\nContent-Length: 17\r\n\r\n{\"command\":\"ls\"}",
			"negative length":    head + "Content-Length: -1\r\n\r\n",
			"length of letters":  head + "Content-Length: 1x\r\n\r\n",
			"chunk garbage":      head + "Transfer-Encoding: chunked\r\n\r\nZZZ\r\n" + canary + "\r\n0\r\n\r\n",
			"unknown transfer":   head + "Transfer-Encoding: gzip\r\n\r\n",
			"header with a NUL":  head + "X-A: a\x00b\r\nContent-Length: 0\r\n\r\n",
			"no host":            "GET /api/health HTTP/1.1\r\n\r\n",
			"absolute target":    "GET http://" + canary + ".example/api/health HTTP/1.1\r\nHost: " + canary + ".example\r\n\r\n",
			"space in the path":  "GET /api/he alth HTTP/1.1\r\nHost: x\r\n\r\n",
			"bad percent escape": "GET /api/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		} {
			a := n.raw(request)
			if a.status != 400 && !(a.status == 501 && name == "unknown transfer") {
				t.Errorf("%s: %v", name, a)
			}
			if a.header.Get("Connection") != "close" {
				t.Errorf("%s: the connection stays open", name)
			}
			n.discreet(a)
		}
	})
	// RFC 9112, section 3.2.2: an absolute request target of this service is accepted.
	for _, target := range []string{n.url, "HTTP://127.0.0.1", "http://127.0.0.1:1", "http://user@127.0.0.1"} {
		if a := n.raw("GET " + target + "/api/health HTTP/1.1\r\nHost: x\r\n\r\n"); a.status != 200 || !strings.Contains(string(a.body), `"site":"`+n.url+`"`) {
			t.Errorf("%s: %v", target, a)
		}
	}
	if a := n.raw("POST " + n.url + quickPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: " + key + "\r\nContent-Length: 16\r\n\r\n{\"command\":\"ls\"}"); a.status != 200 {
		t.Errorf("a call in absolute form: %v", a)
	}
	cut := n.rawCut(head + "Content-Length: 100\r\n\r\n{\"command\":\"ls\"}")
	if cut.status != 400 {
		t.Errorf("a body shorter than declared: %v", cut)
	}
}

// TestHostileBodiesAreAnsweredAtOnce checks that bodies that can cost a parser much time or memory
// are refused and change nothing.
func TestHostileBodiesAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	var members strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&members, `,"m%d":1`, i)
	}
	n.unchanged(func() {
		for _, body := range map[string]string{
			"brackets":     strings.Repeat("[", 200_000),
			"braces":       strings.Repeat(`{"a":`, 40_000),
			"backslashes":  `{"command":"` + strings.Repeat(`\`, 60_000),
			"members":      `{"command":"ls"` + members.String() + `}`,
			"digits":       `{"command":` + strings.Repeat("9", 60_000) + `}`,
			"tiny number":  `{"command":1e-400000000}`,
			"white space":  strings.Repeat(" ", 60_000) + "x",
			"many escapes": `{"` + strings.Repeat(`\u0061`, 10_000) + `":1}`,
		} {
			a := n.post("/api/verify", "", body)
			n.refused(a, 400, "-", "-")
			n.refused(n.post(quickPath, key, body), statusFor(len(body)), "-", "-")
		}
	})
}

func statusFor(octets int) int {
	if octets > policy.ActionBody {
		return 413
	}
	return 400
}

func TestIdempotencyKeyHeader(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	body := `{"command":"ls"}`
	for _, good := range []string{"k", strings.Repeat("k", 200), strings.Repeat("é", 200)} {
		n.wants(n.post(quickPath, key, body, "Idempotency-Key", good), 200)
	}
	n.unchanged(func() {
		for _, bad := range []string{"", strings.Repeat("k", 201), "\xff" + canary} {
			n.refused(n.post(quickPath, key, body, "Idempotency-Key", bad), 400, "invalid_request", "")
		}
		n.refused(n.post(quickPath, key, body, "Idempotency-Key", "a", "Idempotency-Key", "a"), 400, "invalid_request", "")
	})
}

// TestCanariesAreNeitherEchoedNorLogged checks that secrets in every place that a caller can fill
// appear in no error and no log. The harness searches the log at the end of the test.
func TestCanariesAreNeitherEchoedNorLogged(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	key := n.issueKey()
	everywhere := []string{
		"Authorization", "Bearer " + canary, "Cookie", "countersign_session=" + canary, "PAYMENT-SIGNATURE", canary, "X-PAYMENT", canary,
		"User-Agent", canary, "Referer", "http://" + canary, "Origin", "http://" + canary, "X-Forwarded-For", canary, "X-Forwarded-Host", canary,
		"Forwarded", "for=" + canary, "X-Request-Id", canary, "Traceparent", canary, "Accept", canary, "If-None-Match", canary, "Idempotency-Key", canary, "X-" + canary, canary,
	}
	for _, path := range []string{quickPath, runPath, scorePath, triagePath, "/api/keys/free", "/api/verify", "/api/keys/free/status", "/api/health", "/openapi.json",
		"/api/agent-workflows/action-safety/status/asw_" + canary, "/api/" + canary, "/api/assurance/organization", "/api/assurance/tokens", "/signin"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			for _, body := range []string{"", canary, `{"` + canary + `":"` + canary + `"}`, `{"email":"` + canary + `"}`, `{"command":"` + canary + `","repo":1}`} {
				a := n.send(method, path+"?q="+canary+"&api_key="+key, body, append(everywhere, "Content-Type", "application/json")...)
				if a.status >= 400 {
					n.discreet(a)
				}
				if a.status >= 500 && a.status != 503 || strings.Contains(string(a.body), canary) {
					t.Errorf("%s %s: %v", method, path, a)
				}
			}
		}
	}
	// Valid calls with a canary in each member: the answer may contain members that belong to it,
	// but the log may not.
	var members strings.Builder
	for _, name := range []string{"repo", "cwd", "branch", "actor", "intent", "diffStat", "environment", "target", "commit", "diffHash"} {
		fmt.Fprintf(&members, `,"%s":"%s"`, name, canary)
	}
	for _, path := range actionPaths {
		n.wants(n.post(path, key, `{"command":"rm -rf /`+canary+`"`+members.String()+`}`, "Idempotency-Key", canary+path), 200)
	}
	n.wants(n.post("/api/keys/free", "", `{"email":"`+canary+`@example.com"}`), 201)
	n.wants(n.post("/api/keys/free", "", `{"email":"`+canary+`@example.com"}`), 201)
	n.discreet(n.raw(canary + " /api/health HTTP/1.1\r\nHost: " + canary + "\r\n\r\n"))
	if !strings.Contains(n.log.String(), `"route":"`+quickPath+`"`) {
		t.Error("no request was logged at all")
	}
	for _, secret := range []string{key, key[18:61]} {
		if strings.Contains(n.log.String(), secret) {
			t.Error("the log holds an API key")
		}
	}
	n.metricsAreDiscreet()
}

func (n *node) metricsAreDiscreet() {
	n.t.Helper()
	w := httptest.NewRecorder()
	n.server.Internal().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if text := w.Body.String(); strings.Contains(text, canary) || !strings.Contains(text, "countersign_request_seconds") {
		n.t.Error("the metrics hold a caller's value, or nothing")
	}
}
