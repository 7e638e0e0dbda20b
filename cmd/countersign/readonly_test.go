package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/localpg"
)

// If a ledger was rolled back or rewritten, and the database has no checkpoints any more, all
// commands report that it is read-only. They compare it with the signed note in the checkpoint
// folder.
func TestALedgerThatWasPutBackIsReadOnlyForEveryCommand(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]string{
		"put back": `delete from events where pos = (select max(pos) from events);
			update ledger_head set (pos, last_hash) = (select pos, hash from events order by pos desc limit 1);`,
		"rewritten": `update events set actor = 'cus_9', hash = sha256('x') where pos = (select max(pos) from events);
			update ledger_head set last_hash = sha256('x');`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			s := serveIn(t, dir)
			token := organizationToken(t, dir)
			for i := range 3 {
				if status, answer, err := post(s.base+decisionsPath, token, purchase(fmt.Sprint("k", i))); err != nil || status != 201 {
					t.Fatal(status, answer, err)
				}
			}
			ledgertest.Until(t, "a checkpoint of more events", func() bool {
				text, err := fetched(s.base + "/api/ledger/checkpoint")
				return err == nil && len(strings.Split(string(text), "\n")[1]) > 1
			})
			stop(t, s.cmd)
			a := &auditor{t, []string{"--data", dir}}
			a.run(0, "VALID", "verify")
			server, err := localpg.Start(t.Context(), localpg.Options{DataDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.Connect(t.Context(), server.URL(localpg.Superuser))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), `set session_replication_role = replica; `+tamper+`
				delete from checkpoints; delete from tiles; update tree_head set size = 0, root = sha256(''), edge = ''`); err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			note := filepath.Join(dir, "checkpoints")
			if out := a.run(1, "NOT VALID", "verify"); !strings.Contains(out, "READ ONLY: ") || !strings.Contains(out, note) {
				t.Errorf("verify does not name the note: %s", out)
			}
			a.run(1, "READ ONLY: ", "verify", "--chain-only")
			a.run(1, "READ ONLY: ", "doctor")
			a.run(0, "READ ONLY: ", "org", "list")
			a.run(2, "READ ONLY: ", "org", "create", "--name", "B", "--plan", "team", "--owner", "b@example.com")
			s = serveIn(t, dir)
			status, answer, err := post(s.base+decisionsPath, token, purchase("k9"))
			if err != nil || status != 503 {
				t.Errorf("an append: %d %s %v", status, answer, err)
			}
		})
	}
}
