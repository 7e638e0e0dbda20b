package api_test

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/evidence"
)

// TestWhatAnAgentSpentLastWeek checks that the spending pages show what an agent spent per day,
// payee and tool, and which rule fires most, and that each row links to the list that it counts.
func TestWhatAnAgentSpentLastWeek(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	c := newCrew(t, s, "business", "acme.example")
	owner := c.people["owner"]
	owner.want(owner.get("/spend"), 200, "No decision in 30 days.")
	c.report(t, c.decide(t, decisionBody("k1", weather)).decision(t), "x402", "fulfilled")
	c.report(t, c.decide(t, decisionBody("k2", strings.Replace(weather, "250000", "1500", 1))).decision(t), "x402", "fulfilled")
	c.decide(t, toolBody("k3", "agent-8", "drop", "low"))

	page := owner.get("/spend?days=7")
	for _, part := range []string{"0.2515", "api.weather.example", "files/drop", "<a href=\"/agents/sub_", "agent-7", "US dollars spent per day"} {
		owner.want(page, 200, part)
	}
	links := regexp.MustCompile(`href="(/decisions\?[^"]*)"[^>]*>(\d+)<`).FindAllStringSubmatch(page.body, -1)
	if len(links) < 4 { // two agents, a payee, a tool; and rules
		t.Errorf("%d lists are linked", len(links))
	}
	for _, link := range links {
		list := owner.get(html.UnescapeString(link[1]))
		if n := strings.Count(list.body, `<td data-label="Result"`); list.status != 200 || link[2] != strconv.Itoa(n) {
			t.Errorf("%s lists %d decisions, the page counts %s", link[1], n, link[2])
		}
	}
	agent := regexp.MustCompile(`/agents/sub_[0-9A-Z]+`).FindString(page.body)
	for _, part := range []string{"The agent calls itself <span class=\"said\"", ">unverified<", "Newest decisions"} {
		owner.want(owner.get(agent), 200, part)
	}
	if title := regexp.MustCompile(`(?s)<h1>.*?</h1>|<title>.*?</title>`).FindAllString(owner.get(agent).body, -1); strings.Contains(strings.Join(title, ""), "agent-") {
		t.Errorf("the agent's own words are a title: %q", title)
	}
	owner.want(owner.get("/spend?days=8"), 400, "days must be 7, 30 or 90")
	owner.want(owner.get("/agents/sub_01ARZ3NDEKTSV4RRFFQ69G5FAV"), 404, "")
	// The developer has requested nothing.
	developer := c.people["developer"]
	developer.want(developer.get("/spend"), 200, "No decision of yours in 30 days.")
	developer.want(developer.get(agent), 404, "")
	for _, part := range []string{"Pending reviews", "0.2515", "/spend", "Up from 0 in the 30 days before", "agent-7"} {
		owner.want(owner.get("/overview"), 200, part)
	}
	// No filter can list the decisions of an agent whose name was erased, so no number links to a
	// list.
	erasure := evidence.Erasure{Tenant: c.orgID, KeyID: strings.TrimPrefix(agent, "/agents/"), Reason: "asked for", RequestedBy: "a", ApprovedBy: "b"}
	if _, err := s.app.EraseSubject(t.Context(), erasure); err != nil {
		t.Fatal(err)
	}
	page = owner.get(agent)
	for _, part := range []string{"The agent's name was erased.", `<td class="amount" data-label="Spent">0.2515</td>`} {
		owner.want(page, 200, part)
	}
	if strings.Contains(page.body, `href="/decisions?`) {
		t.Error("a number of an erased agent links to decisions of others")
	}
}
