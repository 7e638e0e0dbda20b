package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/countersign/countersign/commands/organizations"
	"github.com/countersign/countersign/ledger/forms"
	"github.com/countersign/countersign/projections"
)

// TestEventsOneByOne checks that an organization can read its own events by position, complete.
// Other organizations cannot read them.
func TestEventsOneByOne(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	credentials := func(name string, scope string) (orgID string, headers []string) {
		o, err := n.app.CreateOrganization(t.Context(), "operator", name, "team", "owner@"+name+".example.com")
		if err != nil {
			t.Fatal(err)
		}
		operator, err := n.app.Operator(t.Context(), o.OrgID)
		if err != nil {
			t.Fatal(err)
		}
		issued, err := n.app.IssueToken(t.Context(), operator, organizations.TokenOrder{Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		return o.OrgID, []string{"Authorization", "Bearer " + issued.Token}
	}
	ours, exporter := credentials("ours", "export:read")
	theirs, other := credentials("theirs", "export:read")
	_, reader := credentials("readers", "assurance:read")
	stored, err := n.app.Ledger.Home(ours).After(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range stored {
		path := projections.EventsPath + strconv.FormatInt(e.Position, 10)
		mine := n.send(http.MethodGet, path, "", exporter...)
		if e.Tenant != ours {
			if mine.status != http.StatusNotFound {
				t.Errorf("an event of %s: %v", e.Tenant, mine)
			}
			continue
		}
		found++
		var data forms.EventData
		if err := json.Unmarshal(mine.body, &data); mine.status != http.StatusOK || err != nil || data.Hash != e.Hash.String() || string(data.Payload) != string(e.Payload) {
			t.Errorf("%v %v", mine, err)
		}
		if a := n.send(http.MethodGet, path, "", reader...); a.status != http.StatusForbidden {
			t.Errorf("without the scope: %v", a)
		}
		if a := n.send(http.MethodGet, path, ""); a.status != http.StatusUnauthorized {
			t.Errorf("without a credential: %v", a)
		}
		if n.app.Ledger.Home(theirs) == n.app.Ledger.Home(ours) {
			if a := n.send(http.MethodGet, path, "", other...); a.status != http.StatusNotFound {
				t.Errorf("another organization: %v", a)
			}
		}
	}
	if found == 0 {
		t.Error("the organization has no events")
	}
	for _, bad := range []string{"0", "-1", "999999", "x", "1e3", "9223372036854775808"} {
		if a := n.send(http.MethodGet, projections.EventsPath+bad, "", exporter...); a.status != http.StatusNotFound {
			t.Errorf("%s: %v", bad, a)
		}
	}
}
