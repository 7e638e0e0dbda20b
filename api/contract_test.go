package api

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/countersign/countersign/api/decisions"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/policy/canon"
)

// contractWalk checks a running service against its own OpenAPI document, with random requests
// that are generated from the document.
type contractWalk struct {
	*node
	t        *testing.T
	d        openAPIDocument
	draw     *rand.Rand
	compiled map[string]*jsonschema.Schema
	seen     map[string]int  // number of requests by operation, kind of credential and status, for the report
	told     map[string]bool // kinds of faults that were reported already; each is reported once
	ids      []string        // ids that exist
	cookie   string
	org      string // organization whose owner has signed in
	claimed  client
	nonce    int
	linked   map[string]bool // pages of rules to which answers linked
}

// TestTheContractHolds sends random requests to every operation, with every kind of credential. It
// fails for a status of 5xx other than a documented 503, for an undocumented status or media type,
// for an answer that violates its schema, for a valid body that is refused without a listed
// reason, and for an invalid body that is accepted. CONTRACT_DRAWS=200 sends 200 requests for each
// operation and credential.
func TestTheContractHolds(t *testing.T) {
	t.Parallel()
	draws := 2
	if text := os.Getenv("CONTRACT_DRAWS"); text != "" {
		var err error
		if draws, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	n := startNode(t, setup{dev: true})
	c := &contractWalk{node: n, t: t, d: n.openAPIDocument(), draw: rand.New(rand.NewPCG(1, uint64(draws))), compiled: map[string]*jsonschema.Schema{},
		seen: map[string]int{}, told: map[string]bool{}, linked: map[string]bool{}}
	c.begin()
	for _, o := range c.d.operations() {
		for _, kind := range c.credentials() {
			for range draws {
				c.try(o, kind)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.linked)) {
		if a := n.get(path); a.status != http.StatusOK {
			t.Errorf("a finding links %s, which answers %d", path, a.status)
		}
	}
	if len(c.linked) < 10 {
		t.Errorf("answers link only the pages %v", slices.Sorted(maps.Keys(c.linked)))
	}
	total := 0
	for _, n := range c.seen {
		total += n
	}
	t.Logf("%d requests to %d operations, %d statuses of them", total, len(c.d.operations()), len(c.seen))
}

// begin creates what the random requests refer to: an organization with a policy, an owner who has
// signed in, an agent that a customer has claimed, a key, and a decision.
func (c *contractWalk) begin() {
	ctx := c.t.Context()
	owner := fmt.Sprintf("owner%d@example.com", addresses.Add(1))
	o, err := c.app.CreateOrganization(ctx, "operator", "Acme", "team", owner)
	if err != nil {
		c.t.Fatal(err)
	}
	operator, err := c.app.Operator(ctx, o.OrgID)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err = c.app.DraftAndActivate(ctx, operator, []byte(`{"policyId":"default","maxUsdPerTransaction":1,"allowedNetworks":["base"],"requireHttps":true}`), "test"); err != nil {
		c.t.Fatal(err)
	}
	c.org = o.OrgID
	c.cookie = c.signIn(owner)
	c.claimed = c.register()
	c.wants(c.claim("Cookie", c.cookie, "Authorization", "Bearer "+c.token(c.claimed, "")), http.StatusOK)
	token := c.orgToken()
	a := c.post("/api/assurance/decisions", "", decisions.Decide.Example, "Authorization", "Bearer "+token)
	if a.status == http.StatusCreated {
		record, _ := a.members(c.t)["record"].(map[string]any)
		c.ids = append(c.ids, fmt.Sprint(record["decisionId"]))
	}
	c.ids = append(c.ids, o.OrgID, "verification-kit", "action-safety-pass", "1", "asd_01JD3Z8W5T0000000000000000", "nothing", "a b", "%E4%B8%AD", strings.Repeat("x", 300))
}

func (c *contractWalk) orgToken() string {
	operator, err := c.app.Operator(c.t.Context(), c.org)
	if err != nil {
		c.t.Fatal(err)
	}
	issued, err := c.app.IssueToken(c.t.Context(), operator, organizations.TokenOrder{Scopes: organizations.Scopes})
	if err != nil {
		c.t.Fatal(err)
	}
	return issued.Token
}

// credentialKind is one kind of credential, with the headers that it adds to a request.
type credentialKind struct {
	name    string
	headers func(o described) []string
}

// credentials returns the kinds of credentials. They are created again at each call, because a
// random request may have revoked them.
func (c *contractWalk) credentials() []credentialKind {
	key, token, agent, wild := c.issueKey(), "", "", ""
	lazily := func(made *string, make func() string) string {
		if *made == "" {
			*made = make()
		}
		return *made
	}
	fixed := func(headers ...string) func(described) []string {
		return func(described) []string { return headers }
	}
	return []credentialKind{
		{"nothing", fixed()},
		{"key", fixed("X-API-Key", key)},
		{"unknown key", fixed("X-API-Key", unknownKey("aaaaaaaaaaaa"))},
		{"no key", fixed("Authorization", "Bearer nonsense")},
		{"two credentials", fixed("Authorization", "Bearer a", "Authorization", "Bearer b")},
		{"organization", func(described) []string { return []string{"Authorization", "Bearer " + lazily(&token, c.orgToken)} }},
		{"agent", func(described) []string {
			return []string{"Authorization", "Bearer " + lazily(&agent, func() string { return c.token(c.claimed, "") })}
		}},
		{"stranger", func(described) []string {
			return []string{"Authorization", "Bearer " + lazily(&wild, func() string { return c.token(c.register(), "") })}
		}},
		{"client", fixed("Authorization", basic(c.claimed))},
		{"session", func(described) []string { return []string{"Cookie", c.session()} }},
		{"foreign session", func(described) []string {
			return []string{"Cookie", c.session(), "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}
		}},
		{"payment", func(o described) []string {
			if o.operation["x-payment-info"] == nil {
				return []string{"PAYMENT-SIGNATURE", "bm9uZQ=="}
			}
			c.nonce++
			return []string{"PAYMENT-SIGNATURE", c.order(o.path, fmt.Sprint("contract", c.nonce)).Header()}
		}},
		{"bad payment", fixed("PAYMENT-SIGNATURE", "e30=")},
	}
}

// session returns the owner's session. It signs in again if a random request has ended the
// session.
func (c *contractWalk) session() string {
	if c.get2("/api/auth/session", "Cookie", c.cookie).status != http.StatusOK {
		members, err := c.app.Operator(c.t.Context(), c.org)
		if err != nil {
			c.t.Fatal(err)
		}
		list, err := c.app.Members(c.t.Context(), members)
		if err != nil || len(list) == 0 {
			c.t.Fatal(err)
		}
		c.cookie = c.signIn(list[0].Email)
	}
	return c.cookie
}

func (c *contractWalk) get2(path string, headers ...string) answer {
	return c.send(http.MethodGet, path, "", headers...)
}

// drawnRequest is a random request.
type drawnRequest struct {
	path, body string
	headers    []string
	valid      bool // the body matches the published schema, or the operation takes no body and there is none
	plain      bool // valid is true, and headers and path are as documented, too
}

// try sends a random request and checks its answer against the document.
func (c *contractWalk) try(o described, kind credentialKind) {
	r := c.drawRequest(o)
	r.headers = append(r.headers, kind.headers(o)...)
	a, err := c.node.try(strings.ToUpper(o.method), r.path, r.body, r.headers...)
	if err != nil {
		c.fault(o, "no answer", "%v", err)
		return
	}
	c.seen[fmt.Sprint(o.operation["operationId"], " ", kind.name, " ", a.status)]++
	said := func() string {
		return fmt.Sprintf("%s\n%s %s %.400s\n%d %s %.400s", kind.name, o.method, r.path, r.body, a.status, a.header.Get("Content-Type"), a.body)
	}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		c.fault(o, fmt.Sprint("status ", a.status), "%s", said())
	}
	if problem := c.against(o, a); problem != "" {
		c.fault(o, fmt.Sprint(a.status, problem), "%s: %s", problem, said())
	}
	for _, link := range docPaths.FindAllSubmatch(a.body, -1) {
		c.linked[string(link[1])] = true
	}
	if a.status < 300 && !r.valid {
		c.fault(o, "invalid accepted", "a body without the published shape is accepted: %s", said())
	}
	if a.status == http.StatusBadRequest && r.plain && !c.mayRefuse(o, a) {
		c.fault(o, "valid refused", "a body with the published shape is refused: %s", said())
	}
}

// docPaths matches links to pages of rules.
var docPaths = regexp.MustCompile(`"docPath":"([^"]*)"`)

// fault reports a fault once for each operation and kind.
func (c *contractWalk) fault(o described, kind, format string, args ...any) {
	c.t.Helper()
	key := fmt.Sprint(o.operation["operationId"], " ", kind)
	if !c.told[key] {
		c.told[key] = true
		c.t.Errorf("%s: %s", key, fmt.Sprintf(format, args...))
	}
}

// mayRefuse reports whether the operation lists the reason of a refusal.
func (c *contractWalk) mayRefuse(o described, a answer) bool {
	endpoint := c.server.table.Find(fmt.Sprint(o.operation["operationId"]))
	said := a.members(c.t)
	code, _ := said["code"].(string)
	if endpoint.OAuth != "" {
		code, _ = said["error"].(string)
	}
	if endpoint.BareErrors { // bare errors contain no code
		return len(endpoint.Refuses) > 0
	}
	return slices.Contains(endpoint.Refuses, code)
}

// against describes how an answer differs from the document. It returns "" if it matches.
func (c *contractWalk) against(o described, a answer) string {
	responses, _ := o.operation["responses"].(map[string]any)
	status := strconv.Itoa(a.status)
	response, _ := responses[status].(map[string]any)
	if response == nil {
		return "undocumented status"
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 && len(a.body) == 0 {
		return ""
	}
	media := a.header.Get("Content-Type")
	if content[media] == nil {
		return "undocumented media type"
	}
	if !strings.Contains(media, "json") {
		return ""
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err == nil {
		err = c.schema("paths", o.path, o.method, "responses", status, "content", media, "schema").Validate(instance)
	}
	if err != nil {
		return "against its schema: " + err.Error()
	}
	return ""
}

// schema returns the compiled schema at a pointer. Each is compiled once.
func (c *contractWalk) schema(parts ...string) *jsonschema.Schema {
	at := strings.Join(parts, "\n")
	if c.compiled[at] == nil {
		c.compiled[at] = c.d.schema(c.t, parts...)
	}
	return c.compiled[at]
}

func (c *contractWalk) drawRequest(o described) drawnRequest {
	r := drawnRequest{path: c.drawPath(o.path), valid: true, plain: !strings.Contains(o.path, "{")}
	query := url.Values{}
	for _, p := range asList(o.operation["parameters"]) {
		parameter, _ := p.(map[string]any)
		if parameter["in"] != "query" || c.draw.IntN(3) > 0 {
			continue
		}
		value := c.value(parameter["schema"], 0)
		if c.draw.IntN(3) == 0 {
			value, r.plain = c.ids[c.draw.IntN(len(c.ids))], false
		}
		query.Set(fmt.Sprint(parameter["name"]), fmt.Sprint(value))
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	if c.draw.IntN(12) == 0 {
		r.headers = append(r.headers, "Idempotency-Key", fmt.Sprint("k", c.draw.IntN(3)))
		r.plain = false // this key may have been used with another body before, or the operation accepts no key
	}
	body, has := o.operation["requestBody"].(map[string]any)
	if !has {
		return r
	}
	c.drawBody(o, body, &r)
	return r
}

// drawPath fills the variables of a path, mostly with existing ids.
func (c *contractWalk) drawPath(path string) string {
	for {
		open := strings.IndexByte(path, '{')
		if open < 0 {
			return path
		}
		end := strings.IndexByte(path, '}')
		path = path[:open] + url.PathEscape(c.ids[c.draw.IntN(len(c.ids))]) + path[end+1:]
	}
}

// drawBody returns a random body: the example, one from the schema, a changed one, or nonsense.
func (c *contractWalk) drawBody(o described, body map[string]any, r *drawnRequest) {
	content, _ := body["content"].(map[string]any)
	described, _ := content["application/json"].(map[string]any)
	r.headers = append(r.headers, "Content-Type", "application/json")
	how := c.draw.IntN(10)
	var value any
	switch {
	case how < 2 && described["example"] != nil:
		value = described["example"]
	case how < 8:
		value = c.value(described["schema"], 0)
		if example, is := described["example"].(map[string]any); is && how < 6 { // the example with some members from the schema
			mixed := maps.Clone(example)
			drawn, _ := value.(map[string]any)
			for _, name := range sortedKeys(drawn) {
				if c.draw.IntN(4) == 0 {
					mixed[name] = drawn[name]
				}
			}
			value = mixed
		}
	case how == 8:
		r.body = []string{"", "{", "null", "[]", `"text"`, `{"a":1,"a":2}`, `{"command":"ls","COMMAND":"ls"}`, "{}", `{"unknownMember":true}`, "{} {}", "\xff", `{"command":"\ud800"}`}[c.draw.IntN(12)]
	default:
		r.body = `{"pad":"` + strings.Repeat("x", 20_000) + `"}`
	}
	if how < 8 {
		text, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			c.t.Fatal(err)
		}
		r.body = string(text)
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if r.body == "" && body["required"] != true {
		return
	}
	strict := canon.Check([]byte(r.body))
	shape := error(nil)
	if err == nil {
		shape = c.schema("paths", o.path, o.method, "requestBody", "content", "application/json", "schema").Validate(instance)
	}
	r.valid = err == nil && strict == nil && shape == nil
	r.plain = r.plain && r.valid
}

// value returns a random value that matches the types, enumerations, patterns and members of a
// schema. It ignores conditions.
func (c *contractWalk) value(schema any, depth int) any {
	m, _ := schema.(map[string]any)
	if ref, is := m["$ref"].(string); is {
		return c.value(c.d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), depth)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if ways := asList(m[word]); len(ways) > 0 && m["properties"] == nil {
			return c.value(ways[c.draw.IntN(len(ways))], depth)
		}
	}
	if constant, has := m["const"]; has {
		return constant
	}
	if values := asList(m["enum"]); len(values) > 0 {
		return values[c.draw.IntN(len(values))]
	}
	switch m["type"] {
	case "boolean":
		return c.draw.IntN(2) == 0
	case "integer", "number":
		return c.number(m)
	case "string":
		return c.text(m)
	case "array":
		list := []any{}
		for range c.draw.IntN(3) {
			list = append(list, c.value(m["items"], depth+1))
		}
		return list
	case "object":
		made := map[string]any{}
		properties, _ := m["properties"].(map[string]any)
		for _, name := range sortedKeys(properties) {
			if slices.Contains(asList(m["required"]), any(name)) || depth < 4 && c.draw.IntN(3) == 0 {
				made[name] = c.value(properties[name], depth+1)
			}
		}
		return made
	}
	return nil
}

func (c *contractWalk) number(m map[string]any) any {
	least, _ := m["minimum"].(float64)
	most, bounded := m["maximum"].(float64)
	if !bounded || most > least+1000 {
		most = least + 1000
	}
	edge := []float64{least, most, least + 1, (least + most) / 2, 0, -1, 1e-9, 1e15}[c.draw.IntN(8)]
	if m["type"] == "integer" {
		return float64(int64(edge))
	}
	return edge
}

// texts are random texts of many kinds. Some schemas refuse some of them.
var texts = []string{"a", "ls -la", "rm -rf /", "https://example.com/x", "0", "1.5", "2026-01-02", "2026-01-02T03:04:05Z", "ada@example.com", "base",
	"0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984", strings.Repeat("a", 64), "中文", "tab\there", "\u202e", "a\u0000b", "svck_x", "eip155:84532", "GET", ""}

func (c *contractWalk) text(m map[string]any) any {
	switch m["format"] {
	case "date":
		return []string{"2025-01-02", "2026-06-30", "2030-02-28"}[c.draw.IntN(3)]
	case "date-time":
		return []string{"2026-01-02T03:04:05Z", "2026-11-22T10:00:00.000Z"}[c.draw.IntN(2)]
	}
	text := texts[c.draw.IntN(len(texts))]
	if least, is := m["minLength"].(float64); is && len(text) < int(least) {
		text += strings.Repeat("a", int(least)-len(text))
	}
	return text
}
