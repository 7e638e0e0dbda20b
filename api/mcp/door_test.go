package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// canary is a value that a caller sends and that no error may repeat.
const canary = "CANARY7f3a91"

// anyObject is the schema of tools that validate their arguments themselves.
var anyObject = jsontext.Value(`{"type":"object"}`)

// open starts a server with a few tools, resources and a prompt. It listens on a loopback address
// and has a public base URL.
func open(t testing.TB, change func(*Config)) *httptest.Server {
	t.Helper()
	c := Config{
		Name: "test", Title: "Test", Version: "1.0.0", Website: "https://gate.example", Instructions: "Ask first.",
		BaseURL: "https://gate.example", Loopback: true, Origins: []string{"https://app.example:8443"},
		Admit: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("X-Api-Key") != "" && r.Header.Get("X-Api-Key") != "good" {
				w.Header().Set("WWW-Authenticate", `Bearer realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
				return false
			}
			return true
		},
		Panicked: func(context.Context, any) {},
		Compute:  func(context.Context, int) (func(), error) { return func() {}, nil },
		Unread: func(http.Header, error) (int, string) {
			return http.StatusBadRequest, "the body could not be read"
		},
		Tools: []Tool{
			{Name: "echo", Title: "Echo", Description: "Says it again.", PriceUSD: "0.25", ReadOnly: true,
				Input: anyObject, Output: anyObject,
				Call: func(_ context.Context, c Call) Result {
					body, _ := json.Marshal(map[string]any{"arguments": c.Arguments, "payment": c.Payment, "key": c.Request.Header.Get("X-Api-Key")}, json.Deterministic(true))
					return Result{Body: body, Structured: true, Meta: map[string]any{"x402/payment-response": map[string]any{"success": true}}}
				}},
			{Name: "refuse", Input: anyObject,
				Call: func(context.Context, Call) Result { return Result{Body: []byte(`{"error":"no"}`), Failed: true} }},
			{Name: "garble", Input: anyObject,
				Call: func(context.Context, Call) Result { return Result{Body: []byte(`{`), Structured: true} }},
			{Name: "panic", Input: anyObject, Call: func(context.Context, Call) Result { panic("at the disco") }},
		},
		Resources: []Resource{
			{URI: "test://rules", Name: "rules", Media: "application/json", Listed: true, Public: true,
				Read: func(context.Context, *http.Request, string) (string, error) { return `{"rules":[]}`, nil }},
			{URI: "test://workflows/{id}", Name: "workflow", Media: "application/json",
				Read: func(_ context.Context, _ *http.Request, id string) (string, error) {
					switch id {
					case "1":
						return `{"id":"1"}`, nil
					case "down":
						return "", fmt.Errorf("dial: %w", ErrUnavailable)
					}
					return "", ErrNotFound
				}},
		},
		Prompts: []Prompt{{Name: "preflight", Arguments: []Argument{{Name: "command", Required: true}, {Name: "environment"}},
			Text: func(a map[string]string) string { return "check " + a["command"] + a["environment"] }}},
	}
	if change != nil {
		change(&c)
	}
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	return s
}

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   string
}

func send(t testing.TB, s *httptest.Server, method, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		switch name := http.CanonicalHeaderKey(headers[i]); {
		case name == "Host":
			r.Host = headers[i+1]
		case name == "Content-Type":
			r.Header.Set(name, headers[i+1])
		default:
			r.Header[name] = append(r.Header[name], headers[i+1])
		}
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := fmt.Fprint(&b, readAll(t, resp)); err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b.String()}
}

func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// request returns a call in a version without a handshake: the body with its _meta, and the
// headers that repeat members of it.
func request(method, params string) (body string, headers []string) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + meta + `}}`,
		[]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
}

// legacy returns a call in a version with a handshake.
func legacy(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`
}

// errorOf returns the JSON-RPC error of an answer.
func errorOf(t testing.TB, a answer) (code int, id, text string, data map[string]any) {
	t.Helper()
	var response struct {
		JSONRPC string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Error   struct {
			Code    int            `json:"code"`
			Message string         `json:"message"`
			Data    map[string]any `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(a.body), &response); err != nil || response.JSONRPC != "2.0" {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if response.ID != nil {
		id = fmt.Sprint(response.ID)
	}
	return response.Error.Code, id, response.Error.Message, response.Error.Data
}

// TestRefusals checks the errors for requests that the endpoint or the protocol does not allow, in
// protocol versions with and without a handshake.
func TestRefusals(t *testing.T) {
	s := open(t, nil)
	discover, modernHeaders := request("server/discover", "")
	call, callHeaders := request("tools/call", `"name":"echo","arguments":{}`)
	with := func(base []string, more ...string) []string { return append(append([]string{}, base...), more...) }
	noMeta := func(params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{` + params + `}}`
	}
	cases := []struct {
		name    string
		body    string
		headers []string
		status  int
		code    int
		id      string
	}{
		{"Host of somebody else", legacy("ping", ""), []string{"Host", "evil.example"}, 403, -32600, ""},
		{"Host that only begins like ours", legacy("ping", ""), []string{"Host", "gate.example.evil.example"}, 403, -32600, ""},
		{"Host of a loopback name with a suffix", legacy("ping", ""), []string{"Host", "127.0.0.1.evil.example"}, 403, -32600, ""},
		{"Origin of somebody else", legacy("ping", ""), []string{"Origin", "https://evil.example"}, 403, -32600, ""},
		{"Origin null", legacy("ping", ""), []string{"Origin", "null"}, 403, -32600, ""},
		{"Origin empty", legacy("ping", ""), []string{"Origin", ""}, 403, -32600, ""},
		{"own Origin with another port", legacy("ping", ""), []string{"Origin", "https://gate.example:444"}, 403, -32600, ""},
		{"own Origin with another scheme", legacy("ping", ""), []string{"Origin", "http://gate.example"}, 403, -32600, ""},
		{"Origin with a path", legacy("ping", ""), []string{"Origin", "https://gate.example/x"}, 403, -32600, ""},
		{"Origin twice", legacy("ping", ""), []string{"Origin", "https://gate.example", "Origin", "https://gate.example"}, 403, -32600, ""},
		{"too large", legacy("ping", `"x":"`+strings.Repeat("x", maxMessage)+`"`), nil, 413, -32600, ""},
		{"text/plain", legacy("ping", ""), []string{"Content-Type", "text/plain"}, 415, -32600, ""},
		{"another charset", legacy("ping", ""), []string{"Content-Type", "application/json; charset=latin1"}, 415, -32600, ""},
		{"compressed", legacy("ping", ""), []string{"Content-Encoding", "gzip"}, 415, -32600, ""},
		{"empty", "", nil, 400, -32700, ""},
		{"garbage", canary, nil, 400, -32700, ""},
		{"two equal members in the arguments", legacy("tools/call", `"name":"echo","arguments":{"command":"ls","command":"rm"}`), nil, 400, -32700, ""},
		{"two methods", `{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}`, nil, 400, -32700, ""},
		{"a lone surrogate", legacy("ping", `"x":"\ud800"`), nil, 400, -32700, ""},
		{"something after it", legacy("ping", "") + "{}", nil, 400, -32700, ""},
		{"a batch after they were removed", "[" + legacy("ping", "") + "]", []string{"MCP-Protocol-Version", "2025-06-18"}, 400, -32600, ""},
		{"a batch of too many", "[" + strings.Repeat(legacy("ping", "")+",", maxBatch) + legacy("ping", "") + "]", nil, 400, -32600, ""},
		{"a batch that is no JSON", "[" + legacy("ping", "") + ",]", nil, 400, -32700, ""},
		{"an empty batch", "[]", []string{"MCP-Protocol-Version", "2025-03-26"}, 400, -32600, ""},
		{"a string", `"` + canary + `"`, nil, 400, -32600, ""},
		{"no jsonrpc", `{"id":7,"method":"ping"}`, nil, 400, -32600, "7"},
		{"another jsonrpc", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, nil, 400, -32600, "7"},
		{"no method", `{"jsonrpc":"2.0","id":7}`, nil, 400, -32600, "7"},
		{"method a number", `{"jsonrpc":"2.0","id":7,"method":5}`, nil, 400, -32600, "7"},
		{"method in another case", `{"jsonrpc":"2.0","id":7,"Method":"ping"}`, nil, 400, -32600, "7"},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, nil, 400, -32600, ""},
		{"id a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, nil, 400, -32600, ""},
		{"id an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, nil, 400, -32600, ""},
		{"a version nobody speaks", discover, []string{"MCP-Protocol-Version", "2027-01-01"}, 400, -32022, "7"},
		{"a version of before", legacy("ping", ""), []string{"MCP-Protocol-Version", "2023-01-01"}, 400, -32022, "7"},
		{"a version that is none", legacy("ping", ""), []string{"MCP-Protocol-Version", canary + "<>"}, 400, -32022, "7"},
		{"two versions", discover, with(modernHeaders, "MCP-Protocol-Version", "2025-11-25"), 400, -32020, "7"},
		{"a bad credential", discover, with(modernHeaders, "X-API-Key", canary), 401, 0, ""},

		{"modern: no version header", discover, []string{"Mcp-Method", "server/discover"}, 400, -32020, "7"},
		{"modern: another version in the header", discover, []string{"MCP-Protocol-Version", "2025-11-25", "Mcp-Method", "server/discover"}, 400, -32020, "7"},
		{"modern: no Mcp-Method", discover, modernHeaders[:2], 400, -32020, "7"},
		{"modern: another Mcp-Method", discover, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", canary}, 400, -32020, "7"},
		{"modern: no Mcp-Name", call, callHeaders, 400, -32020, "7"},
		{"modern: another Mcp-Name", call, with(callHeaders, "Mcp-Name", canary), 400, -32020, "7"},
		{"modern: Mcp-Name that does not decode", call, with(callHeaders, "Mcp-Name", "=?base64?***?="), 400, -32020, "7"},
		{"modern: no _meta", noMeta(""), modernHeaders, 400, -32602, "7"},
		{"modern: no version in _meta", noMeta(`"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`), modernHeaders, 400, -32602, "7"},
		{"modern: no capabilities in _meta", noMeta(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), modernHeaders, 400, -32602, "7"},
		{"modern: _meta a string", noMeta(`"_meta":"` + canary + `"`), modernHeaders, 400, -32602, "7"},
		{"modern: params a list", `{"jsonrpc":"2.0","id":7,"method":"server/discover","params":["` + canary + `"]}`, modernHeaders, 400, -32602, "7"},
	}
	for _, method := range []string{"ping", "initialize", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "completion/complete", canary} {
		body, headers := request(method, `"uri":"test://rules","level":"info","ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}`)
		cases = append(cases, struct {
			name    string
			body    string
			headers []string
			status  int
			code    int
			id      string
		}{"modern: method " + method, body, headers, 404, -32601, "7"})
	}
	for _, method := range []string{"server/discover", "subscriptions/listen", "logging/setLevel", "resources/subscribe", "completion/complete", canary} {
		cases = append(cases, struct {
			name    string
			body    string
			headers []string
			status  int
			code    int
			id      string
		}{"legacy: method " + method, legacy(method, ""), []string{"MCP-Protocol-Version", "2025-11-25"}, 200, -32601, "7"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := send(t, s, http.MethodPost, c.body, c.headers...)
			if a.status != c.status || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %v %s, want %d", a.status, a.header, a.body, c.status)
			}
			if c.code == 0 {
				if a.header.Get("WWW-Authenticate") == "" {
					t.Error("no challenge")
				}
				return
			}
			code, id, text, data := errorOf(t, a)
			if code != c.code || id != c.id || text == "" || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("code %d id %q in %s, want %d %q", code, id, a.body, c.code, c.id)
			}
			if strings.Contains(a.body, canary) || strings.Contains(a.body, "mcp.") || strings.Contains(a.body, "unmarshal") {
				t.Errorf("the error repeats the caller or shows the library: %s", a.body)
			}
			if supported, _ := data["supported"].([]any); c.code == -32022 && len(supported) < 5 {
				t.Errorf("data %v", data)
			}
		})
	}
}

// TestParamsThatDoNotFit checks calls of known methods whose params name something unknown.
func TestParamsThatDoNotFit(t *testing.T) {
	s := open(t, nil)
	for _, c := range []struct{ name, method, params, text string }{
		{"unknown tool", "tools/call", `"name":"` + canary + `","arguments":{}`, "unknown tool"},
		{"tool without a name", "tools/call", `"arguments":{}`, "unknown tool"},
		{"name a number", "tools/call", `"name":5`, ""},
		{"unknown resource", "resources/read", `"uri":"test://nothing"`, "resource not found"},
		{"resource with a control character", "resources/read", `"uri":"test://\u007f\u0007"`, "resource not found"},
		{"another's resource", "resources/read", `"uri":"test://workflows/2"`, "resource not found"},
		{"unknown prompt", "prompts/get", `"name":"` + canary + `"`, "unknown prompt"},
		{"prompt without its argument", "prompts/get", `"name":"preflight","arguments":{"environment":"` + canary + `"}`, "argument command is required"},
		{"prompt with a number", "prompts/get", `"name":"preflight","arguments":{"command":5}`, ""},
		{"tools cursor", "tools/list", `"cursor":"` + canary + `"`, "unknown cursor"},
		{"resources cursor", "resources/list", `"cursor":"` + canary + `"`, "unknown cursor"},
		{"templates cursor", "resources/templates/list", `"cursor":"` + canary + `"`, "unknown cursor"},
		{"prompts cursor", "prompts/list", `"cursor":"` + canary + `"`, "unknown cursor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, headers := request(c.method, c.params)
			for _, name := range []string{canary, "preflight", "test://nothing", "test://workflows/2"} {
				if strings.Contains(c.params, `":"`+name+`"`) && !strings.HasSuffix(c.method, "/list") {
					headers = append(headers, "Mcp-Name", name)
					break
				}
			}
			old := send(t, s, http.MethodPost, legacy(c.method, c.params), "MCP-Protocol-Version", "2025-11-25")
			for status, a := range map[int]answer{200: old, 400: send(t, s, http.MethodPost, body, headers...)} {
				code, _, text, _ := errorOf(t, a)
				if status == 400 && code == -32020 { // the params have no name that the header could repeat
					continue
				}
				if a.status != status || code != -32602 || c.text != "" && text != c.text {
					t.Errorf("%d %s, want %d -32602 %s", a.status, a.body, status, c.text)
				}
				if strings.Contains(a.body, canary) {
					t.Errorf("the caller's value comes back: %s", a.body)
				}
			}
		})
	}
}

// TestWhoMayAsk checks that every allowed host and origin is accepted. Host names and origins of
// this machine are accepted only if the server listens on a loopback address.
func TestWhoMayAsk(t *testing.T) {
	s := open(t, nil)
	for _, headers := range [][]string{
		nil,
		{"Host", "gate.example"}, {"Host", "GATE.example:8443"}, {"Host", "localhost:3000"}, {"Host", "127.0.0.1"}, {"Host", "[::1]:9"}, {"Host", "127.8.8.8"},
		{"Origin", "https://gate.example"}, {"Origin", "https://gate.example:443"}, {"Origin", "https://app.example:8443"},
		{"Origin", "http://localhost:5173"}, {"Origin", "http://127.0.0.1"}, {"Origin", "http://[::1]:8080"},
	} {
		a := send(t, s, http.MethodPost, legacy("ping", ""), headers...)
		if a.status != 200 {
			t.Errorf("%v: %d %s", headers, a.status, a.body)
		}
		want := ""
		if headers != nil && headers[0] == "Origin" {
			want = headers[1]
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); got != want || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%v: Access-Control-Allow-Origin %q", headers, got)
		}
	}
	remote := open(t, func(c *Config) { c.Loopback = false })
	for _, headers := range [][]string{{"Host", "localhost"}, {"Host", "127.0.0.1"}, {"Host", "gate.example", "Origin", "http://localhost:5173"}} {
		if a := send(t, remote, http.MethodPost, legacy("ping", ""), headers...); a.status != 403 {
			t.Errorf("on a listener for others, %v: %d", headers, a.status)
		}
	}
	if a := send(t, remote, http.MethodPost, legacy("ping", ""), "Host", "gate.example"); a.status != 200 {
		t.Errorf("through a proxy: %d", a.status)
	}
}

// TestMethods checks that only POST and preflight requests are accepted.
func TestMethods(t *testing.T) {
	s := open(t, nil)
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut, http.MethodHead} {
		a := send(t, s, method, "", "Origin", "https://gate.example")
		if a.status != 405 || a.header.Get("Allow") != "POST, OPTIONS" || a.header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s: %d %v", method, a.status, a.header)
		}
	}
	a := send(t, s, http.MethodOptions, "", "Origin", "https://app.example:8443", "Access-Control-Request-Method", "POST")
	allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"mcp-protocol-version", "mcp-method", "mcp-name", "payment-signature", "x-api-key", "authorization", "content-type"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("the preflight does not allow %s", name)
		}
	}
	if a.status != 204 || a.header.Get("Access-Control-Max-Age") != "600" || a.body != "" || a.header.Get("Access-Control-Allow-Origin") != "https://app.example:8443" {
		t.Errorf("preflight %d %v", a.status, a.header)
	}
	if a := send(t, s, http.MethodOptions, "", "Origin", "https://evil.example"); a.status != 403 {
		t.Errorf("a stranger's preflight: %d", a.status)
	}
}

// Clients of 2025-03-26 and earlier may send a batch. A client that names no version counts as
// such a client. The answer contains an answer to each request of the batch.
func TestBatches(t *testing.T) {
	s := open(t, nil)
	batch := "[" + strings.Join([]string{
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"echo","arguments":{"n":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"none"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `5`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"panic"}}`}, ",") + "]"
	for _, headers := range [][]string{nil, {"MCP-Protocol-Version", "2025-03-26"}, {"MCP-Protocol-Version", "2024-11-05"}} {
		a := send(t, s, http.MethodPost, batch, headers...)
		var answers []struct {
			ID     jsontext.Value `json:"id"`
			Result jsontext.Value `json:"result"`
			Error  *struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(a.body), &answers); err != nil || a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%v: %d %v %s", headers, a.status, a.header, a.body)
		}
		var got []string
		for _, answer := range answers {
			code := 0
			if answer.Error != nil {
				code = answer.Error.Code
			}
			got = append(got, fmt.Sprint(string(answer.ID), " ", code))
		}
		want := []string{"9007199254740993 0", `"b" -32602`, "1 -32600", "2 0", " -32600", "3 -32603"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s\n%s", headers, diff, a.body)
		}
	}
	if a := send(t, s, http.MethodPost, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); a.status != 202 || a.body != "" {
		t.Errorf("notifications alone: %d %s", a.status, a.body)
	}
	if a := send(t, s, http.MethodPost, "["+legacy("ping", "")+"]", "X-API-Key", "bad"); a.status != 401 {
		t.Errorf("a bad credential: %d %s", a.status, a.body)
	}
}

// The body of initialize determines the version: a client of an unknown later version gets a
// version that we support.
func TestInitializeIsNegotiatedByItsBody(t *testing.T) {
	s := open(t, nil)
	for _, c := range []struct{ header, body, want string }{
		{"2027-01-15", "2027-01-15", "2025-11-25"}, {"2027-01-15", "2025-06-18", "2025-06-18"}, {"", "2027-01-15", "2025-11-25"},
		{"2025-11-25", "2025-03-26", "2025-03-26"}, {"2026-07-28", "2025-11-25", "2025-11-25"}, {"1999-01-01", "2024-11-05", "2024-11-05"},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{"MCP-Protocol-Version", c.header}
		}
		a := send(t, s, http.MethodPost, legacy("initialize", `"protocolVersion":"`+c.body+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}`), headers...)
		if a.status != 200 || !strings.Contains(a.body, `"protocolVersion":"`+c.want+`"`) {
			t.Errorf("header %s, body %s: %d %s, want %s", c.header, c.body, a.status, a.body, c.want)
		}
	}
}

// An id is only sent back, so an integer keeps all of its digits.
func TestAnIDKeepsItsDigits(t *testing.T) {
	s := open(t, nil)
	for _, id := range []string{"7", "-1", `"a"`, "9007199254740993", "1308129394817110129", "-9223372036854775808", "18446744073709551615", "9999999999999999999999999999999999999999"} {
		for _, tc := range []struct{ name, tool, params string }{
			{"a result", "echo", `"name":"echo","arguments":{"message_id":1308129394817110129}`}, {"an error", "none", `"name":"none"`},
		} {
			for era, body := range map[string]string{"legacy": legacy("tools/call", tc.params), "modern": ""} {
				var headers []string
				if body == "" {
					body, headers = request("tools/call", tc.params)
					headers = append(headers, "Mcp-Name", tc.tool)
				}
				a := send(t, s, "POST", strings.Replace(body, `"id":7`, `"id":`+id, 1), headers...)
				var got struct {
					ID     jsontext.Value `json:"id"`
					Result jsontext.Value `json:"result"`
				}
				if err := json.Unmarshal([]byte(a.body), &got); err != nil || string(got.ID) != id {
					t.Errorf("%s of a %s call with id %s: %d %s", tc.name, era, id, a.status, a.body)
				}
				if tc.name == "a result" && !strings.Contains(string(got.Result), `"message_id":1308129394817110129`) {
					t.Errorf("id %s: the argument was changed: %s", id, a.body)
				}
			}
		}
	}
}

// TestNotificationsAreAccepted checks that known and unknown notifications get 202 without a body,
// in protocol versions with and without a handshake.
func TestNotificationsAreAccepted(t *testing.T) {
	s := open(t, nil)
	for _, c := range []struct {
		body    string
		headers []string
	}{
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{"MCP-Protocol-Version", "2025-11-25"}},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, []string{"MCP-Protocol-Version", "2025-06-18"}},
		{`{"jsonrpc":"2.0","method":"notifications/of/tomorrow"}`, nil},
		{`{"jsonrpc":"2.0","id":7,"result":{}}`, nil},
		{`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}`, nil},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "notifications/cancelled"}},
	} {
		if a := send(t, s, http.MethodPost, c.body, c.headers...); a.status != 202 || a.body != "" || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", c.body, a.status, a.body)
		}
	}
}

// TestBothEras checks that a client gets the server's features by initialize in protocol versions
// with a handshake, and by server/discover in the version without one.
func TestBothEras(t *testing.T) {
	s := open(t, nil)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1999-01-01", "2026-07-28"} {
		a := send(t, s, http.MethodPost, legacy("initialize", `"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}`))
		var r struct {
			Result struct {
				ProtocolVersion, Instructions string
				ServerInfo                    map[string]any
				Capabilities                  map[string]any
			}
		}
		if err := json.Unmarshal([]byte(a.body), &r, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		if version == "1999-01-01" || version == "2026-07-28" { // these versions have no handshake, so the server offers its newest version that has one
			version = "2025-11-25"
		}
		if r.Result.ProtocolVersion != version || r.Result.ServerInfo["version"] != "1.0.0" || r.Result.Instructions != "Ask first." || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %s", version, a.body)
		}
		want := map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "prompts": map[string]any{}}
		if diff := cmp.Diff(want, r.Result.Capabilities); diff != "" {
			t.Errorf("capabilities (-want +got):\n%s", diff)
		}
		if a := send(t, s, http.MethodPost, legacy("tools/list", ""), "MCP-Protocol-Version", version); a.status != 200 || !strings.Contains(a.body, `"echo"`) {
			t.Errorf("%s tools/list: %d %s", version, a.status, a.body)
		}
	}
	body, headers := request("server/discover", "")
	a := send(t, s, http.MethodPost, body, headers...)
	for _, want := range []string{`"supportedVersions":["2026-07-28","2025-11-25"`, `"ttlMs":300000`, `"cacheScope":"public"`, `"resultType":"complete"`, `"io.modelcontextprotocol/serverInfo"`} {
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("discover lacks %s: %d %s", want, a.status, a.body)
		}
	}
	body, headers = request("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	if a := send(t, s, http.MethodPost, body, headers...); a.status != 200 || !strings.Contains(a.body, "notifications/subscriptions/acknowledged") {
		t.Errorf("listen, to nothing: %d %s", a.status, a.body)
	}
}

// TestAToolGetsWhatWasSent checks that a tool receives the arguments and the payment with every
// digit of their numbers, and the request with its headers, and that its result is sent unchanged.
func TestAToolGetsWhatWasSent(t *testing.T) {
	s := open(t, nil)
	body, headers := request("tools/call", `"name":"echo","arguments":{"b":1.50,"a":"\u0041"}`)
	body = strings.Replace(body, `"_meta":{`, `"_meta":{"x402/payment":{"x402Version":2,"payload":{"value":"10000"}},`, 1)
	want := `{"arguments":{"b":1.50,"a":"A"},"key":"good","payment":{"x402Version":2,"payload":{"value":"10000"}}}`
	for name, a := range map[string]answer{
		"modern":  send(t, s, http.MethodPost, body, append(headers, "Mcp-Name", "=?base64?ZWNobw==?=", "X-API-Key", "good")...),
		"legacy":  send(t, s, http.MethodPost, strings.Replace(body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1), "X-API-Key", "good", "MCP-Protocol-Version", "2025-11-25"),
		"old":     send(t, s, http.MethodPost, strings.Replace(body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1), "X-API-Key", "good"),
		"no json": send(t, s, http.MethodPost, strings.Replace(body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28",`, "", 1), "X-API-Key", "good", "Accept", "text/html"),
	} {
		var r struct {
			Result struct {
				Meta       map[string]any   `json:"_meta"`
				Structured map[string]any   `json:"structuredContent"`
				Content    []map[string]any `json:"content"`
				IsError    bool             `json:"isError"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s: %v", name, a.status, a.body, err)
		}
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, r.Result.Structured); diff != "" || r.Result.IsError {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(r.Result.Content) != 1 || r.Result.Content[0]["text"] != want {
			t.Errorf("%s: text %v", name, r.Result.Content)
		}
		if r.Result.Meta["x402/payment-response"] == nil {
			t.Errorf("%s: no payment response in %v", name, r.Result.Meta)
		}
	}
	for _, none := range []string{`{}`, `{"x402/payment":null}`} {
		a := send(t, s, http.MethodPost, legacy("tools/call", `"name":"echo","_meta":`+none))
		if !strings.Contains(a.body, `\"payment\":null`) {
			t.Errorf("without a payment: %s", a.body)
		}
	}
	a := send(t, s, http.MethodPost, legacy("tools/call", `"name":"refuse"`))
	if a.status != 200 || strings.Contains(a.body, "structuredContent") || !strings.Contains(a.body, `"isError":true`) || !strings.Contains(a.body, `{\"error\":\"no\"}`) {
		t.Errorf("a tool that refuses: %d %s", a.status, a.body)
	}
}

// TestAPanicEndsOneRequest checks that a panic in a tool ends only its request. The SDK runs tools
// in its own goroutines, where a panic would end the process.
func TestAPanicEndsOneRequest(t *testing.T) {
	var told any
	s := open(t, func(c *Config) { c.Panicked = func(_ context.Context, p any) { told = p } })
	a := send(t, s, http.MethodPost, legacy("tools/call", `"name":"panic"`))
	if code, id, text, _ := errorOf(t, a); code != -32603 || id != "7" || text != "internal error" || told != "at the disco" {
		t.Errorf("%d %s; told %v", a.status, a.body, told)
	}
}

// TestAResultThatIsNoJSON checks that a tool whose result is not JSON gets an error answer.
func TestAResultThatIsNoJSON(t *testing.T) {
	a := send(t, open(t, nil), http.MethodPost, legacy("tools/call", `"name":"garble"`))
	if code, _, text, _ := errorOf(t, a); code != -32603 || text != "internal error" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestResources reads a public resource, a resource with a variable, and one that is unavailable.
func TestResources(t *testing.T) {
	s := open(t, nil)
	read := func(uri string) answer {
		body, headers := request("resources/read", `"uri":"`+uri+`"`)
		return send(t, s, http.MethodPost, body, append(headers, "Mcp-Name", uri)...)
	}
	if a := read("test://rules"); a.status != 200 || !strings.Contains(a.body, `"ttlMs":300000`) || !strings.Contains(a.body, `"cacheScope":"public"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := read("test://workflows/1"); a.status != 200 || !strings.Contains(a.body, `"ttlMs":0`) || !strings.Contains(a.body, `"cacheScope":"private"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if code, _, text, _ := errorOf(t, read("test://workflows/down")); code != -32603 || text != "temporarily unavailable" {
		t.Errorf("%d %s", code, text)
	}
}

// TestTheSDKsClientUnderstands checks that the official client can list the tools and the resource
// templates, and get a prompt and a resource.
func TestTheSDKsClientUnderstands(t *testing.T) {
	s := open(t, nil)
	client := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 4 {
		t.Fatalf("%v %v", tools, err)
	}
	echo := tools.Tools[0]
	if echo.Name != "echo" || !echo.Annotations.ReadOnlyHint || !echo.Annotations.IdempotentHint || *echo.Annotations.DestructiveHint || *echo.Annotations.OpenWorldHint {
		t.Errorf("%+v", echo)
	}
	if diff := cmp.Diff(map[string]any{"usd": "0.25"}, echo.Meta["x402/price"]); diff != "" {
		t.Errorf("price (-want +got):\n%s", diff)
	}
	prompt, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "preflight", Arguments: map[string]string{"command": "ls"}})
	if err != nil || prompt.Messages[0].Content.(*sdk.TextContent).Text != "check ls" {
		t.Errorf("%v %v", prompt, err)
	}
	if _, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "test://workflows/1"}); err != nil {
		t.Error(err)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Errorf("%v %v", templates, err)
	}
}

// TestConfigurationThatCannotBe checks that New refuses an invalid configuration.
func TestConfigurationThatCannotBe(t *testing.T) {
	for name, c := range map[string]Config{
		"no base":          {BaseURL: "gate.example"},
		"an origin's path": {BaseURL: "https://gate.example", Origins: []string{"https://app.example/x"}},
		"origin *":         {BaseURL: "https://gate.example", Origins: []string{"*"}},
		"no schema":        {BaseURL: "https://gate.example", Tools: []Tool{{Name: "x"}}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// FuzzMessage checks that every message gets one of the documented statuses, with JSON or an event
// stream except for 202, and that nothing panics.
func FuzzMessage(f *testing.F) {
	s := open(f, nil)
	for _, method := range []string{"server/discover", "tools/list", "tools/call", "resources/read", "prompts/get", "initialize", "subscriptions/listen"} {
		body, _ := request(method, `"name":"echo","uri":"test://workflows/1","arguments":{}`)
		f.Add(body, "2026-07-28", method, "echo")
		f.Add(legacy(method, `"name":"echo","arguments":null`), "2025-11-25", "", "")
	}
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}`, "2026-07-28", "notifications/cancelled", "")
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","inputResponses":{"x":{"action":1}}}}`, "", "", "=?base64?eA==?=")
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header["Content-Type"] = []string{"application/json"}
		for header, value := range map[string]string{"Mcp-Protocol-Version": version, "Mcp-Method": method, "Mcp-Name": name} {
			if value != "" {
				r.Header[header] = []string{value}
			}
		}
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		switch w.Code {
		case 202:
		case 200, 400, 404, 413, 503:
			if media := w.Header().Get("Content-Type"); media != "application/json" && media != "text/event-stream" {
				t.Fatalf("%d %s %s", w.Code, media, w.Body)
			}
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	})
}
