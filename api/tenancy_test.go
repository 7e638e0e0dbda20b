package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
)

// belongings contains the id of one object of each kind that an organization can have. The key is
// the name of the variable in the path or, for {id}, the path segment before it.
type belongings map[string]string

// unknown contains well-formed ids that do not exist.
var unknown = belongings{
	"decisionId": "asd_01JD3Z8W5T0000000000000000", "receiptId": "asr_01JD3Z8W5T0000000000000000", "draftId": "evt_01JD3Z8W5T0000000000000000",
	"exportId": "exp_01JD3Z8W5T0000000000000000", "position": "9007199254740991", "members": "cus_01JD3Z8W5T0000000000000000", "tokens": "000000000000", "webhooks": "whk_01JD3Z8W5T0000000000000000",
}

var pathVariable = regexp.MustCompile(`([a-z]+)/\{([A-Za-z]+)\}`)

// in puts an id into the path of an operation. found is false if the path has no variable.
func (b belongings) in(t *testing.T, path string) (_ string, found bool) {
	t.Helper()
	return pathVariable.ReplaceAllStringFunc(path, func(part string) string {
		names := pathVariable.FindStringSubmatch(part)
		found = true
		id := b[names[2]]
		if names[2] == "id" {
			id = b[names[1]]
		}
		if id == "" {
			t.Fatalf("%s: this test knows no id for %s", path, part)
		}
		return names[1] + "/" + id
	}), found
}

// goodBodies are valid bodies for the operations with an id in their path, so that only the id
// decides the answer.
var goodBodies = map[string]string{
	"POST /api/assurance/decisions/{decisionId}/approval": `{"verdict":"rejected","reason":"not ours"}`,
	"POST /api/assurance/policies/{draftId}/activate":     `{"reason":"not ours"}`,
	"POST /api/assurance/webhooks/{id}/deliveries":        `{}`,
}

// furnish creates one object of each kind for an organization.
func (c *crew) furnish(t *testing.T) belongings {
	t.Helper()
	made := belongings{}
	keep := func(name, member string, got answer) {
		t.Helper()
		var members map[string]any
		if err := json.Unmarshal([]byte(got.body), &members); err != nil || got.status != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		made[name], _ = members[member].(string)
	}
	owner := c.people["owner"]
	d := c.decide(t, decisionBody("k1", strings.Replace(weather, `"network":"base",`, "", 1))).decision(t) // requires a review
	made["decisionId"], made["position"] = d.Record.DecisionID, strconv.FormatInt(d.Ledger.Position, 10)
	receipt := c.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":"x402","outcome":"rejected"}`,
		d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash))
	var bound struct {
		Record struct {
			ReceiptID string `json:"receiptId"`
		} `json:"record"`
	}
	if err := json.Unmarshal([]byte(receipt.body), &bound); err != nil || bound.Record.ReceiptID == "" {
		t.Fatalf("%d %s", receipt.status, receipt.body)
	}
	made["receiptId"] = bound.Record.ReceiptID
	made["tokens"] = c.token[5:17]
	keep("draftId", "draftId", c.people["admin"].post("/api/assurance/policies", `{"policyId":"default"}`))
	keep("members", "memberId", owner.post("/api/assurance/members", `{"email":"carl@acme.example","role":"auditor"}`))
	keep("webhooks", "webhookId", owner.post("/api/assurance/webhooks", `{"url":"https://siem.example.com/in"}`))
	keep("exportId", "exportId", owner.post("/api/assurance/exports", `{}`))
	return made
}

// history returns the number of events of the organization.
func (c *crew) history(t *testing.T) (n int) {
	t.Helper()
	err := c.site.app.Ledger.Pool().QueryRow(t.Context(), `select count(*) from events where p = $1 and tenant = $2`, c.site.app.Ledger.Home(c.orgID).Number(), c.orgID).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestIDsOfAnotherOrganization calls every operation, in every role of one organization, with ids
// of another one. The answers must be byte for byte those for an id that does not exist, and
// nothing of the other organization may change.
func TestIDsOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	victim, other := newCrew(t, s, "business", "acme.example"), newCrew(t, s, "business", "other.example")
	theirs := victim.furnish(t)
	// A position is relative to the organization's own partition. The other organization may have
	// an event at the same position of another partition, and would get that event.
	if home := s.app.Ledger.Home(other.orgID); home != s.app.Ledger.Home(victim.orgID) {
		head, err := home.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for n, position := 0, int64(0); position <= head; n++ {
			position = victim.decide(t, decisionBody(fmt.Sprint("beyond", n), weather)).decision(t).Ledger.Position
			theirs["position"] = strconv.FormatInt(position, 10)
		}
	}
	before := victim.history(t)
	all, _ := api.AssuranceRoutes()
	tried, readable := 0, []string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		method, pattern, _ := strings.Cut(name, " ")
		foreign, found := theirs.in(t, pattern)
		if !found {
			continue
		}
		nobodys, _ := unknown.in(t, pattern)
		ask := func(b *browser, path string, header ...string) answer {
			if method == http.MethodGet || method == http.MethodDelete {
				return b.do(method, path, "", "", header...)
			}
			return b.do(method, path, "application/json", goodBodies[name], header...)
		}
		compare := func(who string, b *browser, header ...string) {
			t.Helper()
			got, want := ask(b, foreign, header...), ask(b, nobodys, header...)
			if got.status != want.status || got.body != want.body || got.status != 404 && got.status != 403 {
				t.Errorf("%s as %s of another organization: %d %s; an unknown id gives %d %s", name, who, got.status, got.body, want.status, want.body)
			}
			tried++
		}
		for role, b := range other.people {
			compare(role, b)
		}
		for scope, token := range other.tokens {
			compare(scope, s.browser(t), "Authorization", "Bearer "+token)
		}
		if got := ask(other.people["owner"], foreign); got.status != 404 {
			t.Errorf("%s as owner of another organization: %d %s", name, got.status, got.body)
		}
		if method == http.MethodGet && !strings.HasSuffix(pattern, "/approval") {
			readable = append(readable, foreign)
		}
	}
	if tried < 100 {
		t.Errorf("only %d calls were compared", tried)
	}
	if after := victim.history(t); after != before {
		t.Errorf("%d events became %d", before, after)
	}
	// The ids are correct: their owner can read them, which may add to the access history.
	for _, path := range readable {
		if got := victim.people["owner"].get(path); got.status != 200 {
			t.Errorf("%s as its owner: %d %s", path, got.status, got.body)
		}
	}
	delete(theirs, "position") // a number that appears in many texts
	for _, path := range []string{"/api/assurance/history", "/api/assurance/decisions", "/api/assurance/members", "/api/assurance/tokens", "/api/assurance/webhooks", "/api/assurance/policies", "/api/assurance/organization"} {
		got := other.people["owner"].get(path)
		for kind, id := range theirs {
			if got.status != 200 || strings.Contains(got.body, id) {
				t.Errorf("%s of another organization: %d, %s in it", path, got.status, kind)
			}
		}
	}
	clean(t, s)
}

// TestReadingEvidenceIsSeen checks that the log line of a request contains the public ids of a
// caller who reads evidence, by token, session or page.
func TestReadingEvidenceIsSeen(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	d := c.decide(t, decisionBody("k1", weather)).decision(t)
	reads := map[string]int{}
	for _, path := range []string{"/api/assurance/history", "/api/assurance/decisions/" + d.Record.DecisionID, "/decisions"} {
		for range 2 {
			c.people["auditor"].want(c.people["auditor"].get(path), 200, "")
		}
		if strings.HasPrefix(path, "/api") {
			c.send(t, path, "").want(t, 200, "")
		}
	}
	for line := range strings.Lines(s.logs.String()) {
		var said struct{ Msg, Method, Route, Tenant, Actor string }
		if err := json.Unmarshal([]byte(line), &said, json.MatchCaseInsensitiveNames(true)); err != nil || said.Msg != "request" || said.Method != http.MethodGet {
			continue
		}
		if said.Tenant == c.orgID {
			reads[said.Route+" "+said.Actor[:5]]++
		}
	}
	want := map[string]int{
		"/api/assurance/history cus_0": 2, "/api/assurance/history svco_": 1,
		"/api/assurance/decisions/{decisionId} cus_0": 2, "/api/assurance/decisions/{decisionId} svco_": 1, "/decisions cus_0": 2,
	}
	if !maps.Equal(reads, want) {
		t.Errorf("the log counts %v, want %v", reads, want)
	}
}
