package ledgertest_test

import (
	"context"
	"os"
	"path/filepath"
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

// The content of a template is in every database, and each database has its own copy.
func TestTemplate(t *testing.T) {
	made := 0
	template := &ledgertest.Template{Make: func(ctx context.Context, db *ledgertest.DB) error {
		made++
		conn, err := pgx.Connect(ctx, db.OwnerURL)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, `create table made (n int)`)
		return err
	}}
	for range 2 {
		t.Run("database", func(t *testing.T) {
			conn, err := pgx.Connect(t.Context(), template.New(t).OwnerURL)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context())
			var rows int
			if err := conn.QueryRow(t.Context(), `select count(*) from made`).Scan(&rows); err != nil || rows != 0 {
				t.Errorf("%d rows, %v; want the empty table", rows, err)
			}
			if _, err := conn.Exec(t.Context(), `insert into made values (1)`); err != nil {
				t.Error(err)
			}
		})
	}
	if made != 1 && os.Getenv("TEST_DATABASE_URL") == "" {
		t.Errorf("made %d times", made)
	}
}

// A temporary folder of the test exists until the ledger on its database is closed, because
// closing writes the last note there.
func TestFoldersOutliveTheLedger(t *testing.T) {
	t.Parallel()
	t.Run("a test with a ledger", func(t *testing.T) {
		ledgertest.New(t)
		var folder string
		t.Cleanup(func() { // imitates the closing of a ledger
			if err := os.WriteFile(filepath.Join(folder, "note"), nil, 0o600); err != nil {
				t.Errorf("the folder is gone: %v", err)
			}
		})
		folder = t.TempDir()
	})
}
