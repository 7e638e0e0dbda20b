package ledgertest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
)

func TestNewGivesAMigratedDatabaseInThreeRoles(t *testing.T) {
	db := ledgertest.New(t)
	for url, want := range map[string]string{
		db.URL:      "countersign_app",
		db.OwnerURL: "countersign_owner",
		db.SuperURL: "postgres",
	} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var role, origin string
		err = conn.QueryRow(t.Context(), `select current_user, origin from ledger_head where p = 0`).Scan(&role, &origin)
		if err != nil {
			t.Fatal(err)
		}
		if role != want || origin != ledgertest.Origin+"/0" {
			t.Errorf("role %q, origin %q; want %q, %q", role, origin, want, ledgertest.Origin+"/0")
		}
	}
}
