package api_test

import (
	"encoding/csv"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/api"
)

// toolPolicy allows the tools read and write, and requires a review of calls that are declared
// critical.
const toolPolicy = `{"policyId":"default","allowedMcpTools":["read","write"],"reviewMcpRiskAtOrAbove":"critical","allowedHosts":["api.weather.example"],"allowedNetworks":["base"]}`

func toolBody(key, agent, tool, risk string) string {
	return fmt.Sprintf(`{"protocol":"mcp","idempotencyKey":%q,"subject":{"runId":"run-%[1]s","agentId":%q,"purpose":"tidy up the archive"},`+
		`"intent":{"serverId":"files","toolName":%q,"declaredRisk":%q,"toolArguments":{"path":"/srv/archive/2019","recursive":true}}}`, key, agent, tool, risk)
}

// report binds a receipt to a decision.
func (n *tenant) report(t testing.TB, d decided, protocol, outcome string) {
	t.Helper()
	got := n.send(t, "/api/assurance/receipts", fmt.Sprintf(`{"decisionId":%q,"decisionRecordHash":%q,"bindingHash":%q,"protocol":%q,"outcome":%q,"responseStatus":200}`,
		d.Record.DecisionID, d.Integrity.RecordHash, d.Record.BindingHash, protocol, outcome))
	if got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
}

// TestAReviewSaysWhatAPersonNeeds checks that a review shows who requested it, the exact action,
// the reasons and earlier decisions, and that a verdict leads to the next review.
func TestAReviewSaysWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	first := c.decide(t, toolBody("k1", "agent-7", "write", "critical")).decision(t).Record.DecisionID
	second := c.decide(t, toolBody("k2", "agent-7", "write", "critical")).decision(t).Record.DecisionID
	admin := c.people["admin"]
	admin.want(plain(admin.get("/reviews")), 200, "“agent-7” call “write” of “files”")
	page := admin.get("/reviews/" + second)
	admin.want(plain(page), 200, "“agent-7” wants to call “write” of “files”")
	for _, part := range []string{
		"<title>Review asd_", "<h1>Tool call</h1>", "tidy up the archive", "run-k2", "they match the signed hash",
		`&#34;path&#34;: &#34;/srv/archive/2019&#34;`, "mcp.risk.threshold", "Similar decisions before", first, `name="reason"`, "policies/2",
	} {
		admin.want(page, 200, part)
	}
	got := admin.form("/reviews/"+second, url.Values{"verdict": {"approved"}, "reason": {"the archive may go"}})
	if want := "/reviews/" + first + "?resolved=" + second; got.status != 303 || got.header.Get("Location") != want {
		t.Errorf("%d to %s, want %s", got.status, got.header.Get("Location"), want)
	}
	admin.want(admin.get("/reviews/"+first+"?resolved="+second), 200, "You approved it:")
	clean(t, s)
}

// TestArgumentsThatWereNotKeptCanBeCompared checks that a reviewer can compare arguments that an
// agent shows with the signed hash.
func TestArgumentsThatWereNotKeptCanBeCompared(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	c.activate(t, toolPolicy)
	id := c.decide(t, toolBody("k1", "agent-7", "drop", "low")).decision(t).Record.DecisionID // denied, so the arguments are not stored
	admin := c.people["admin"]
	admin.want(admin.get("/decisions/"+id), 200, "Only the hash of the arguments was stored.")
	for pasted, want := range map[string]string{
		`{"recursive": true, "path":"/srv/archive/2019"}`: "The same.",
		`{"path":"/srv/archive"}`:                         "Different.",
		`{"path":`:                                        "This is not strict JSON",
	} {
		admin.want(admin.form("/reviews/"+id, url.Values{"do": {"check"}, "arguments": {pasted}}), 200, want)
	}
}

// TestDecisionsAreFiltered checks each filter in the address, on the page and in the API.
func TestDecisionsAreFiltered(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	allowed := c.decide(t, toolBody("k1", "agent-7", "read", "low")).decision(t)
	denied := c.decide(t, toolBody("k2", "agent-8", "drop", "low")).decision(t)
	paid := c.decide(t, decisionBody("k3", weather)).decision(t)
	waiting := c.decide(t, toolBody("k4", "agent-7", "write", "critical")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	admin := c.people["admin"]
	all := map[string]string{"read": allowed.Record.DecisionID, "drop": denied.Record.DecisionID, "pay": paid.Record.DecisionID, "write": waiting.Record.DecisionID}
	t.Run("each filter selects its decisions", func(t *testing.T) {
		admin := admin.in(t)
		for query, want := range map[string]string{
			"":                      "write pay drop read",
			"decision=allow":        "pay read",
			"conformance=violation": "drop",
			"conformance=none":      "write pay read",
			"protocol=x402":         "pay",
			"agent=agent-7":         "write pay read",
			"agent=agent-8":         "drop",
			"run=run-k2":            "drop",
			"rule=mcp.tool.not_allowed&decision=deny": "drop",
			"text=WEATHER":                  "pay",
			"text=archive":                  "write drop read",
			"from=2020-01-01&to=2020-12-31": "",
			"from=2020-01-01":               "write pay drop read",
			"agent=nobody":                  "",
		} {
			var page struct {
				Items []struct{ DecisionID string }
			}
			got := admin.get("/api/assurance/decisions?" + query)
			if err := json.Unmarshal([]byte(got.body), &page, json.MatchCaseInsensitiveNames(true)); err != nil || got.status != 200 {
				t.Fatalf("%s: %d %s", query, got.status, got.body)
			}
			var ids []string
			for _, item := range page.Items {
				for name, id := range all {
					if id == item.DecisionID {
						ids = append(ids, name)
					}
				}
			}
			if strings.Join(ids, " ") != want {
				t.Errorf("%s: %s, want %s", query, ids, want)
			}
			shown := admin.get("/decisions?" + query)
			for name, id := range all {
				if inList := strings.Contains(shown.body, `<a href="/decisions/`+id+`"`); inList != (" "+want+" " != strings.ReplaceAll(" "+want+" ", " "+name+" ", " ")) {
					t.Errorf("the page with %q: %s is there: %v", query, name, inList)
				}
			}
			rows, err := csv.NewReader(strings.NewReader(admin.get("/decisions.csv?" + query).body)).ReadAll()
			if err != nil || len(rows) != len(ids)+1 {
				t.Errorf("%s: %d rows of CSV, %v", query, len(rows), err)
			}
			if lines := strings.Count(admin.get("/decisions.jsonl?"+query).body, "\n"); lines != len(ids) {
				t.Errorf("%s: %d lines", query, lines)
			}
		}
	})
	t.Run("a list shows the target that filters it", func(t *testing.T) {
		admin := admin.in(t)
		for _, list := range []string{"/decisions", "/reviews"} { // it also links to the list without this filter
			admin.want(plain(admin.get(list+"?run=run-k2&target=files%2Fdrop")), 200, "Payee or tool “files/drop”")
			admin.want(admin.get(list+"?run=run-k2&target=files%2Fdrop"), 200, `<a class="chip chosen" href="`+list+`?run=run-k2">`)
		}
	})
	t.Run("the list states its sums", func(t *testing.T) {
		admin := admin.in(t)
		admin.want(admin.get("/decisions?agent=agent-7"), 200, "3 decisions: 2 allowed (0.25 US dollars)")
	})
	t.Run("a wrong filter is refused", func(t *testing.T) {
		admin := admin.in(t)
		admin.want(admin.get("/api/assurance/decisions?decision=maybe"), 400, "decision must be one of the documented values")
		admin.want(admin.get("/decisions?from=yesterday"), 400, "from must be a date")
	})
	t.Run("a developer sees only own decisions", func(t *testing.T) {
		dev := c.people["developer"].in(t)
		dev.want(dev.get("/decisions"), 200, "No decision of yours yet.")
		dev.want(dev.get("/decisions/"+denied.Record.DecisionID), 404, "not found")
		dev.want(dev.get("/decisions.csv"), 403, "missing scope export:read")
	})

	t.Run("a page shows the whole decision", func(t *testing.T) {
		admin := admin.in(t)
		page := admin.get("/decisions/" + denied.Record.DecisionID)
		admin.want(plain(page), 200, "“agent-8” wanted to call “drop” of “files”")
		for _, part := range []string{"<h1>Tool call</h1>", "the tool is not allowed", "receipt.executed_after_deny", "violation", "reproduced", denied.Record.BindingHash} {
			admin.want(page, 200, part)
		}
	})
	t.Run("each downloaded line is valid", func(t *testing.T) {
		admin := admin.in(t)
		for _, line := range strings.Split(strings.TrimSpace(admin.get("/decisions/"+denied.Record.DecisionID+"/download").body), "\n") {
			if !s.valid(t, line) {
				t.Errorf("%s is not valid", line)
			}
		}
	})
	clean(t, s)
}

// TestListsGoOn checks that the pages of a list follow one another by cursor without a gap.
func TestListsGoOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "team", "acme.example")
	for n := range 30 {
		c.decide(t, decisionBody(fmt.Sprint("k", n), weather))
	}
	admin := c.people["admin"]
	seen, cursor := map[string]bool{}, ""
	for range 10 {
		var page struct {
			Items      []struct{ DecisionID string }
			NextCursor *string
		}
		if err := json.Unmarshal([]byte(admin.get("/api/assurance/decisions?limit=7&cursor="+cursor).body), &page, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			seen[item.DecisionID] = true
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if len(seen) != 30 {
		t.Errorf("%d decisions", len(seen))
	}
	admin.want(admin.get("/decisions"), 200, `rel="next">Older`)
}
