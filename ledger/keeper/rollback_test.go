package keeper_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
)

// putBack removes all events after a position, like the restore of an older copy. It locks the
// tree head before the tiles, as a keeper does, so that the two cannot deadlock.
const putBack = `set session_replication_role = replica;
	select from tree_head for update;
	delete from events where pos > %[1]d; delete from checkpoints where size > %[1]d;
	delete from tiles; update tree_head set size = 0, root = sha256(''), edge = '';
	update ledger_head set pos = %[1]d, last_hash = (select hash from events where pos = %[1]d)`

// restarted makes a ledger of 9 events with a checkpoint, changes its database with the statement
// tamper, and opens the ledger again.
func restarted(t *testing.T, folder checkpoint.Folder, tamper string) (*ledgertest.DB, *ledger.Ledger, *seal.Signer) {
	t.Helper()
	db := fixture.OnePartition(t)
	record := fixture.Must(seal.NewSigner(make([]byte, 32)))
	first := fixture.Must(ledger.Open(t.Context(), db.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)}))
	if err := first.Activate(t.Context(), record, "evt_key"); err != nil {
		t.Fatal(err)
	}
	fixture.Keep(t, first, folder.Path)
	for i := range 6 {
		if _, err := first.Append(t.Context(), fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Covered(t, first, 9)
	first.Close()
	super := fixture.Must(pgx.Connect(t.Context(), db.SuperURL))
	fixture.Must(super.Exec(t.Context(), tamper))
	if err := super.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db, fixture.Open(t, db), record
}

func outside(t *testing.T, folder checkpoint.Folder) keeper.Options {
	return keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: folder}
}

// A start refuses a restored older database, a truncated one and a rewritten history, and names
// the missing positions. It accepts an unchanged database.
func TestADatabaseThatWasPutBackIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, tamper, want string
		from, to           int64
	}{
		{"nothing", `select`, "", 0, 0},
		{"older copy", fmt.Sprintf(putBack, 5), "it ends at position 5", 6, 9},
		{"older than its checkpoint key", fmt.Sprintf(putBack, 1), "it ends at position 1", 2, 9},
		{"another history", `set session_replication_role = replica; update events set hash = sha256(hash) where pos = 4;
			delete from tiles; update tree_head set size = 0, root = sha256(''), edge = ''`, "are not those", 1, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := checkpoint.Folder{Path: t.TempDir()}
			_, l, _ := restarted(t, folder, c.tamper)
			found, _, err := keeper.CheckOutside(t.Context(), l, outside(t, folder))
			if c.want == "" {
				if err != nil || !found {
					t.Fatalf("found %v, %v", found, err)
				}
				return
			}
			var rollback *keeper.Rollback
			if c.name == "another history" && errors.Is(err, ledger.ErrTampered) {
				return // the check of the last events has already found it
			}
			if !errors.As(err, &rollback) || rollback.From != c.from || rollback.To != c.to || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--accept-rollback") {
				t.Fatalf("%v", err)
			}
			l.Refuse(err)
			if _, err := l.Append(t.Context(), fixture.One("x", ledger.New(), "x")); !errors.Is(err, ledger.ErrStopped) {
				t.Errorf("an append: %v", err)
			}
			if check := audit.SelfCheck(t.Context(), l, nil, folder); check.False == "" || l.Condition().Sentence != ledger.SaysReadOnly {
				t.Errorf("it verified itself: %+v, %+v", check, l.Condition())
			}
			if _, err := l.Partition(0).After(t.Context(), 0, 10); err != nil {
				t.Errorf("reading: %v", err)
			}
		})
	}
}

// If no checkpoint is kept outside the database, a rollback cannot be detected. CheckOutside
// then returns no error and reports that it found no checkpoint.
func TestNoNoteOutsideIsSaid(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	_, l, _ := restarted(t, folder, `select`)
	found, unreachable, err := keeper.CheckOutside(t.Context(), l, outside(t, checkpoint.Folder{Path: t.TempDir()}))
	if err != nil || found || len(unreachable) != 0 {
		t.Errorf("found %v, %v, %v", found, unreachable, err)
	}
}

// Accepting a rollback appends a signed event, raises the epoch, stops the other nodes and keeps
// the old note. The ledger then verifies, and a second rollback is detected.
func TestAnAcceptedRollback(t *testing.T) {
	t.Parallel()
	folder := checkpoint.Folder{Path: t.TempDir()}
	db, l, record := restarted(t, folder, fmt.Sprintf(putBack, 5))
	other := fixture.Open(t, db)
	if _, err := other.Append(t.Context(), fixture.One("x", ledger.New(), "x")); err != nil { // position 6; this node has not read the note
		t.Fatal(err)
	}
	_, old, err := folder.Newest(t.Context(), l.Partition(0).Origin())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = keeper.CheckOutside(t.Context(), l, outside(t, folder))
	var rollback *keeper.Rollback
	if !errors.As(err, &rollback) {
		t.Fatal(err)
	}
	if report := fixture.Must(audit.Ledger(t.Context(), l, nil, folder)); !strings.Contains(fmt.Sprint(report.Faults), "ROLLBACK") {
		t.Errorf("verified before: %v", report.Faults)
	}
	if check := audit.SelfCheck(t.Context(), l, nil, folder); !strings.Contains(check.False, "ROLLBACK") {
		t.Errorf("it verified itself before: %+v", check)
	}
	if err := keeper.AcceptRollback(t.Context(), l, rollback, record, "evt_back"); err != nil {
		t.Fatal(err)
	}
	if report := fixture.Must(audit.Ledger(t.Context(), l, nil, folder)); len(report.Faults) > 0 {
		t.Errorf("verified behind it: %v", report.Faults)
	}
	if _, err := other.Append(t.Context(), fixture.One("y", ledger.New(), "y")); !errors.Is(err, ledger.ErrStopped) || !strings.Contains(err.Error(), "start this node again") {
		t.Errorf("the other node: %v", err)
	}
	fixture.Keep(t, l, folder.Path)
	fixture.Covered(t, l, 7)
	history, err := l.Read(t.Context(), ledger.ServiceTenant, keeper.Stream)
	if err != nil || history.Events[history.Version()-1].Type != events.TypeRollbackDeclared {
		t.Fatalf("%+v, %v", history, err)
	}
	fixture.Clean(t, l, 7)
	if _, _, err := keeper.CheckOutside(t.Context(), fixture.Open(t, db), outside(t, folder)); err != nil {
		t.Errorf("the next start: %v", err)
	}
	// A mirror that has only the old note does not stop the start.
	stale := checkpoint.Folder{Path: t.TempDir()}
	if err := stale.Put(context.Background(), 1, checkpoint.Checkpoint{Origin: l.Partition(0).Origin(), Size: 9}, old); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keeper.CheckOutside(t.Context(), fixture.Open(t, db), keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: folder, Mirrors: []checkpoint.Store{stale}}); err != nil {
		t.Errorf("with an old note on a mirror: %v", err)
	}
	l.Close()
	super := fixture.Must(pgx.Connect(t.Context(), db.SuperURL))
	defer super.Close(context.WithoutCancel(t.Context()))
	fixture.Must(super.Exec(t.Context(), fmt.Sprintf(putBack, 6)))
	if _, _, err := keeper.CheckOutside(t.Context(), fixture.Open(t, db), outside(t, folder)); !errors.Is(err, ledger.ErrRollback) {
		t.Errorf("a second rollback: %v", err)
	}
}

// movingStore is a store in which a newer note appears at each read, as if another node were
// writing.
type movingStore struct {
	checkpoint.Store
	move func()
}

// Newest implements checkpoint.Store.
func (s movingStore) Newest(ctx context.Context, origin string) (int64, []byte, error) {
	s.move()
	return s.Store.Newest(ctx, origin)
}

// A node that starts while another appends reports no lost positions.
func TestANodeStartsBesideOneThatWrites(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	writing, folder := fixture.Open(t, db), checkpoint.Folder{Path: t.TempDir()}
	fixture.Keep(t, writing, folder.Path)
	n := 0
	move := func() {
		n++
		result, err := writing.Append(t.Context(), fixture.One(fmt.Sprint("s/", n), ledger.New(), fmt.Sprint("a", n)))
		if err != nil {
			t.Fatal(err)
		}
		fixture.Covered(t, writing, result.Events[0].Position)
	}
	starting := fixture.Open(t, db)
	found, _, err := keeper.CheckOutside(t.Context(), starting, keeper.Options{Signer: fixture.CheckpointSigner(t),
		Folder: checkpoint.Folder{Path: t.TempDir()}, Mirrors: []checkpoint.Store{movingStore{folder, move}}})
	if err != nil || !found || n == 0 {
		t.Errorf("found %v, moved %d times: %v", found, n, err)
	}
}
