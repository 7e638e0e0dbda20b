package keeper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/tree"
)

// telling is a store that reports the size of each checkpoint that it receives.
type telling struct {
	checkpoint.Store
	put chan int64
}

// Put implements checkpoint.Store.
func (s telling) Put(ctx context.Context, epoch int64, c checkpoint.Checkpoint, text []byte) error {
	err := s.Store.Put(ctx, epoch, c, text)
	s.put <- c.Size
	return err
}

// A ledger without checkpoints gets an event that states which existing events the first
// checkpoint covers. Each checkpoint is stored outside the database before it is published, and
// proves every event.
func TestCheckpointsOfAnExistingLedger(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	ctx := t.Context()
	for i := range 300 {
		if _, err := l.Append(ctx, fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	folder, mirror := filepath.Join(t.TempDir(), "notes"), telling{checkpoint.Folder{Path: t.TempDir()}, make(chan int64, 99)}
	fixture.Keep(t, l, folder, mirror)
	p := fixture.Covered(t, l, 302)
	history, err := l.Read(ctx, ledger.ServiceTenant, keeper.Stream)
	if err != nil || history.Version() != 1 {
		t.Fatalf("%d events, %v", history.Version(), err)
	}
	var begun events.CheckpointsBegun
	if err := json.Unmarshal(history.Events[0].Payload, &begun); err != nil || begun.Size != 300 || begun.Statement == "" {
		t.Errorf("%+v, %v", begun, err)
	}
	keys, err := keeper.Keys(ctx, l.Partition(0))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	_, outside, err := checkpoint.Folder{Path: folder}.Newest(ctx, l.Partition(0).Origin())
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(outside, l.Partition(0).Origin(), keys...)
	if err != nil || c != p.Checkpoint {
		t.Errorf("outside: %v, %v, published %v", c, err, p.Checkpoint)
	}
	stored, err := l.Partition(0).After(ctx, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	proofs, newest, err := keeper.Proofs(ctx, l.Partition(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range stored {
		proof, err := proofs.Inclusion(newest.Size, e.Position)
		if err == nil {
			err = tree.CheckInclusion(proof, newest.Size, newest.Root, e.Position, tree.Leaf(e.Hash))
		}
		if err != nil {
			t.Fatalf("position %d: %v", e.Position, err)
		}
	}
	if root, err := proofs.Root(300); err != nil || fmt.Sprintf("%x", root[:]) != begun.Root {
		t.Errorf("the first root: %v", err)
	}
	if data, err := keeper.Tile(ctx, l.Partition(0), 0, 1, 40); err != nil || len(data) != 40*32 {
		t.Errorf("tile: %d octets, %v", len(data), err)
	}
	if data, err := keeper.Tile(ctx, l.Partition(0), 0, 1, 200); err != nil || data != nil {
		t.Errorf("a tile wider than the tree: %d octets, %v", len(data), err)
	}
	<-mirror.put
	if _, text, err := mirror.Newest(ctx, l.Partition(0).Origin()); err != nil || len(text) == 0 {
		t.Errorf("mirrored: %s, %v", text, err)
	}
	fixture.Clean(t, l, 302)
}

// TestCheckpointsGoOnAfterARestart checks that a restarted node continues the tree where the last
// one stopped, also in the middle of a tile.
func TestCheckpointsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	db, folder := fixture.OnePartition(t), t.TempDir()
	var last *checkpoint.Published
	for round := range 4 {
		l, err := ledger.Open(t.Context(), db.URL, ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fixture.Keep(t, l, folder)
		for i := range 90 {
			result, err := l.Append(t.Context(), fixture.One(fmt.Sprint("s/", round, "/", i), ledger.New(), fmt.Sprint("r", round, "a", i)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 89 {
				p := fixture.Covered(t, l, result.Events[0].Position)
				proofs, newest, err := keeper.Proofs(t.Context(), l.Partition(0))
				if err == nil && last != nil {
					var proof []tree.Hash
					if proof, err = proofs.Consistency(last.Size, newest.Size); err == nil {
						err = tree.CheckConsistency(proof, newest.Size, newest.Root, last.Size, last.Root)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				last = p
			}
		}
		l.Close()
	}
	l := fixture.Open(t, db)
	fixture.Clean(t, l, 4*90+2)
}

// appendUnsigned appends an event long before the next checkpoint, and returns its position.
func appendUnsigned(t *testing.T, l *ledger.Ledger, folder checkpoint.Folder) int64 {
	t.Helper()
	err := keeper.Start(t.Context(), l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: folder, Every: time.Hour}, fixture.Numbered("checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	last, err := l.Append(t.Context(), fixture.One("s/1", ledger.New(), "a1"))
	if err != nil {
		t.Fatal(err)
	}
	return last.Events[0].Position
}

// newestIs fails the test unless the folder's newest note has this size.
func newestIs(t *testing.T, folder checkpoint.Folder, position int64) {
	t.Helper()
	_, note, err := folder.Newest(t.Context(), ledgertest.Origin+"/0")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := checkpoint.Parse(note); err != nil || c.Size != position {
		t.Errorf("the newest note is of %d events, %v; the last event is at %d", c.Size, err, position)
	}
}

// Close stores a note that covers the last event, so that a rollback while no node runs is
// detected.
func TestACloseLeavesANoteOfTheLastEvent(t *testing.T) {
	t.Parallel()
	l, folder := fixture.Open(t, fixture.OnePartition(t)), checkpoint.Folder{Path: t.TempDir()}
	last := appendUnsigned(t, l, folder)
	l.Close()
	newestIs(t, folder, last)
}

// The last step of Close may find the tree locked, by an interrupted session of its own or by
// another node. It waits for the lock and does not rely on the other session to sign.
func TestTheLastNoteWaitsForTheTree(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l, folder := fixture.Open(t, db), checkpoint.Folder{Path: t.TempDir()}
	last := appendUnsigned(t, l, folder)
	super, err := pgx.Connect(t.Context(), db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	other, err := super.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select from tree_head for update`); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	// The query for the other session's checkpoint shows that the step was tried once.
	for looked := false; !looked; {
		select {
		case <-closed:
			t.Fatal("the ledger closed while its tree was held, without a note of its last event")
		default:
		}
		if err := other.QueryRow(t.Context(), `select pg_stat_clear_snapshot() is not null and exists (
			select from pg_stat_activity where datname = current_database() and query like '%from checkpoints c%' and pid <> pg_backend_pid())`).Scan(&looked); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-closed
	newestIs(t, folder, last)
}

// A node answers with a checkpoint that another node has made a moment ago, and with its proofs and
// tiles. Otherwise a client that asks both nodes would think that events were removed.
func TestANodeKnowsTheCheckpointOfAnotherNode(t *testing.T) {
	t.Parallel()
	db, folder, ctx := fixture.OnePartition(t), t.TempDir(), t.Context()
	slow, quick := fixture.Open(t, db), fixture.Open(t, db)
	for l, every := range map[*ledger.Ledger]time.Duration{slow: time.Hour, quick: 10 * time.Millisecond} {
		if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder}, Every: every},
			fixture.Numbered(fmt.Sprint("every", every))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := quick.Append(ctx, fixture.One("s/1", ledger.New(), "a1")); err != nil {
		t.Fatal(err)
	}
	made := fixture.Covered(t, quick, 3)
	if known := keeper.Known(slow.Partition(0)); known.Size >= made.Size {
		t.Fatalf("the other node has size %d in memory, and the newest checkpoint has %d", known.Size, made.Size)
	}
	proofs, newest, err := keeper.Proofs(ctx, slow.Partition(0))
	if err != nil || newest.Size != made.Size {
		t.Fatalf("%+v, %v", newest, err)
	}
	if _, err := proofs.Consistency(1, made.Size); err != nil {
		t.Error(err)
	}
	if tile, err := keeper.Tile(ctx, slow.Partition(0), 0, 0, int(made.Size)); err != nil || tile == nil {
		t.Errorf("%x, %v", tile, err)
	}
}

// A checkpoint that cannot be stored outside the database is not published.
func TestNoCheckpointWithoutAPlaceOutside(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	file := filepath.Join(t.TempDir(), "not a folder")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := keeper.Start(t.Context(), l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: file}}, fixture.Numbered("c"))
	if err == nil {
		t.Fatal("checkpoints without a place for them")
	}
	if newest, err := keeper.Newest(t.Context(), l.Partition(0)); err != nil || newest != nil {
		t.Errorf("a checkpoint counts: %v, %v", newest, err)
	}
	if _, err := l.Append(t.Context(), fixture.One("s", ledger.New(), "a")); err != nil {
		t.Errorf("appends go on: %v", err)
	}
}

// Start does not wait for the tree of a ledger without checkpoints. The tree grows in the
// background while appends continue, and the event about the first checkpoint comes before that
// checkpoint.
func TestAStartDoesNotWaitForTheTree(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	ctx := t.Context()
	for i := range 100 {
		if _, err := l.Append(ctx, fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	held, err := l.Pool().Begin(ctx)
	if err == nil {
		_, err = held.Exec(ctx, `select size from tree_head for update`)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(context.WithoutCancel(ctx)) }()
	checking, cancel := context.WithTimeout(ctx, time.Minute) // a check that waited for the tree would never end
	defer cancel()
	found, _, err := keeper.CheckOutside(checking, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: t.TempDir()}})
	if found || err != nil {
		t.Fatalf("nothing lies outside, and there is nothing to compare: %v, %v", found, err)
	}
	err = keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: t.TempDir()},
		Every: 10 * time.Millisecond, Step: 10}, fixture.Numbered("checkpoint"))
	if err != nil || !keeper.Beginning(l) {
		t.Fatalf("begins %v, %v", keeper.Beginning(l), err)
	}
	if _, err := l.Append(ctx, fixture.One("meanwhile", ledger.New(), "b")); err != nil {
		t.Errorf("appends do not go on: %v", err)
	}
	if err := held.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	fixture.Covered(t, l, 103)
	history, err := l.Read(ctx, ledger.ServiceTenant, keeper.Stream)
	if err != nil || history.Version() != 1 {
		t.Fatalf("%d events, %v", history.Version(), err)
	}
	var begun events.CheckpointsBegun
	if err := json.Unmarshal(history.Events[0].Payload, &begun); err != nil || begun.Size != 101 {
		t.Errorf("%+v, %v", begun, err)
	}
	sizes, err := keeper.Sizes(ctx, l.Partition(0), 1000, 100)
	if err != nil || sizes[0] < history.Events[0].Position {
		t.Errorf("checkpoints of %v before the event at %d, %v", sizes, history.Events[0].Position, err)
	}
	fixture.Clean(t, l, 103)
}

// A record key cannot sign checkpoints, and a checkpoint key cannot sign records.
func TestKeysHaveOnePurpose(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	fixture.Keep(t, l, t.TempDir())
	if err := l.Activate(t.Context(), fixture.CheckpointSigner(t), "evt_x"); !errors.Is(err, ledger.ErrForeignKey) {
		t.Errorf("the checkpoint key for records: %v", err)
	}
	ring, _, err := l.Partition(0).Keyring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, whyNot := ring.Find(fixture.CheckpointSigner(t).KeyID(), 0, 0); whyNot == "" {
		t.Error("a checkpoint key is taken for records")
	}
}

// A running node detects that its database was rolled back, and stops its appends.
func TestADatabasePutBackStopsANode(t *testing.T) {
	t.Parallel()
	db := fixture.OnePartition(t)
	l := fixture.Open(t, db)
	fixture.Keep(t, l, t.TempDir())
	for i := range 5 {
		if _, err := l.Append(t.Context(), fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Covered(t, l, 7)
	super := fixture.Must(pgx.Connect(context.WithoutCancel(t.Context()), db.SuperURL))
	defer super.Close(t.Context())
	fixture.Must(super.Exec(t.Context(), fmt.Sprintf(putBack, 4)+`; notify countersign_events, '99'`))
	var err error
	for n := 0; !errors.Is(err, ledger.ErrStopped); n++ {
		if _, err = l.Append(t.Context(), fixture.One(fmt.Sprint("t/", n), ledger.New(), fmt.Sprint("b", n))); err == nil {
			t.Fatal("an append on a ledger that was put back")
		}
	}
}
