package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/ledgertest"
)

// A read by sequence uses the index, even for an organization that is newer than the planner's
// statistics. It does not read the organization's whole history.
func TestStatisticsDoNotKnowTheTenant(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	l := fixture.Open(t, db)
	fill := func(tenant string, events int) {
		for n := 0; n < events; n += ledger.MaxEvents {
			a := ledger.Append{Tenant: tenant}
			for i := range ledger.MaxEvents {
				id := fmt.Sprint(tenant, "/", n+i)
				a.Events = append(a.Events, ledger.Pending{Stream: id, Expect: ledger.New(), ID: id, Type: "x", Payload: []byte(`{}`)})
			}
			if _, err := l.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	owner, err := pgx.Connect(t.Context(), db.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	inFirst := func(name string) string { // inFirst returns a name that is a tenant of the first partition.
		for l.Home(name).Number() != 0 {
			name += "_"
		}
		return name
	}
	fill(inFirst("org_old"), 16_384)
	if _, err := owner.Exec(t.Context(), `analyze events`); err != nil {
		t.Fatal(err)
	}
	newer := inFirst("org_new")
	fill(newer, 16_384)
	rows, err := owner.Query(t.Context(), `explain select * from events where p = 0 and tenant = '`+newer+`' and tseq = any('{`+strings.Repeat("1,", 25)+`2}'::bigint[])`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, "tseq = ANY") || strings.Contains(text, "Filter: (tseq") {
		t.Errorf("%v\n%s", err, text)
	}
}
