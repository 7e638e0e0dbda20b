package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/api"
	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/events"
)

// TestEveryReaderOfPersonalDataIsInTheAccessHistory checks that the access history names each person who
// read the name of an agent or the e-mail address of another member, on every page and in every answer.
// Another member reads each page, because a member gets only one entry per day.
func TestEveryReaderOfPersonalDataIsInTheAccessHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t, api.Databases.New(t))
	s.keepCheckpoints(t)
	c := newCrew(t, s, "business", "acme.example")
	c.activate(t, toolPolicy)
	waiting := c.decide(t, toolBody("k1", "agent-of-4711", "write", "critical")).decision(t).Record.DecisionID
	denied := c.decide(t, toolBody("k2", "agent-of-4711", "drop", "low")).decision(t)
	c.report(t, denied, "mcp", "fulfilled")
	exported := c.people["owner"].do("POST", "/api/assurance/exports", "application/json", `{}`)
	_, rest, _ := strings.Cut(exported.body, `"exportId":"`)
	exportID, _, _ := strings.Cut(rest, `"`)

	places := []string{"/api/assurance/decisions/" + waiting, "/api/assurance/exports/" + exportID, "/", "/overview", "/spend", "/spend?days=7", "/activity", "/evidence", "/start", "/search?q=files",
		"/reviews", "/reviews/" + waiting, "/decisions", "/decisions/" + waiting, "/decisions/" + denied.Record.DecisionID,
		"/policies", "/policies/1", "/policies/new", "/members", "/keys", "/guard", "/webhooks", "/account", "/ledger", "/verify", "/docs"}
	for _, r := range routes {
		if r.method == http.MethodGet && r.status == http.StatusOK {
			places = append(places, r.path)
		}
	}
	shown := 0
	for i, place := range places {
		address := fmt.Sprintf("reader-%d@acme.example", i)
		reader, err := s.app.AddMember(t.Context(), c.now(t), address, organizations.RoleAdmin)
		if err != nil {
			t.Fatal(err)
		}
		b := s.browser(t)
		b.signIn(address)
		page := b.door("GET", place)
		if page.status >= 400 {
			t.Errorf("%s: %d %s", place, page.status, page.body)
		}
		opened := openedOf(t, s, c.orgID, reader.MemberID)
		body := strings.ReplaceAll(strings.ReplaceAll(page.body, address, ""), `value="agent-of-4711"`, "") // the reader's own address, and a value from the request
		for what, noted := range map[string]string{"agent-of-4711": "decisions", "@acme.example": "members"} {
			if strings.Contains(body, what) {
				if shown++; !slices.Contains(opened, noted) {
					t.Errorf("%s shows %s, and the access history of the reader has %v", place, what, opened)
				}
			}
		}
		if strings.Contains(place, "/exports/") && !slices.Contains(opened, "exports") {
			t.Errorf("a bundle was handed out, and the access history of the reader has %v", opened)
		}
		if again := b.door("GET", place); again.status != page.status || len(opened) != len(openedOf(t, s, c.orgID, reader.MemberID)) {
			t.Errorf("%s: reading it again adds an entry", place)
		}
	}
	if shown < 10 {
		t.Errorf("%d places show personal data", shown)
	}
	owner := c.people["owner"]
	owner.want(owner.get("/activity"), 200, "@acme.example</strong> read personal data in")
}

// openedOf lists in which places personal data was decrypted for an actor.
func openedOf(t *testing.T, s *site, orgID, actor string) (places []string) {
	t.Helper()
	history, err := s.app.Ledger.Read(t.Context(), orgID, "opened/"+actor)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history.Events {
		fact, err := events.As[events.PersonalOpened](e)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, fact.Place)
	}
	return places
}
