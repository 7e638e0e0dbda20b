package keeper_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/audit"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
)

// retire replaces the checkpoint key and returns the position of the retirement of the old one.
func retire(t *testing.T, l *ledger.Ledger, next *seal.Signer) int64 {
	t.Helper()
	err := l.Rotate(t.Context(), ledger.Rotation{Purpose: ledger.PurposeCheckpoint, From: fixture.CheckpointSigner(t), To: next, Actor: "operator", EventIDs: [2]string{"evt_new", "evt_old"}})
	if err != nil {
		t.Fatal(err)
	}
	ring, _, err := l.Partition(0).Keyring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ring[fixture.CheckpointSigner(t).KeyID()].To
}

func next(t *testing.T) *seal.Signer {
	t.Helper()
	s, err := seal.NewSigner(bytes.Repeat([]byte{0x5c}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signedBy reports whether a key alone opens a note.
func signedBy(l *ledger.Ledger, s *seal.Signer, note []byte) bool {
	_, err := checkpoint.Open(note, l.Partition(0).Origin(), s.Public())
	return err == nil
}

// A node whose checkpoint key is retired signs no tree that contains the retirement, and says what
// to do. After a restart with the new key, checkpoints go on. verify reports a note of the retired
// key over such a tree.
func TestARetiredKeySignsNoCheckpoint(t *testing.T) {
	t.Parallel()
	db, folder, ctx := fixture.OnePartition(t), t.TempDir(), t.Context()
	l := fixture.Open(t, db)
	fixture.Keep(t, l, folder)
	fixture.Covered(t, l, 1)
	at := retire(t, l, next(t))
	kept := l.Partition(0).Kept().Load()
	for {
		news := kept.News.Wait()
		if keeper.Problem(l) != "" {
			break
		}
		<-news
	}
	if text := keeper.Problem(l); !strings.Contains(text, fmt.Sprintf("was retired at position %d: set CHECKPOINT_KEY to the new key and restart the node", at)) {
		t.Error(text)
	}
	if _, err := l.Append(ctx, fixture.One("s/1", ledger.New(), "a1")); err != nil {
		t.Errorf("appends continue: %v", err)
	}
	l.Close() // tries to sign a last checkpoint

	l = fixture.Open(t, db)
	if p, err := keeper.Newest(ctx, l.Partition(0)); err != nil || p == nil || p.Size >= at {
		t.Fatalf("the newest note has %+v, and the key was retired at %d, %v", p, at, err)
	}
	if err := keeper.Start(ctx, l, keeper.Options{Signer: next(t), Folder: checkpoint.Folder{Path: folder}, Every: 10 * time.Millisecond}, fixture.Numbered("x")); err != nil {
		t.Fatal(err)
	}
	p := fixture.Covered(t, l, at)
	if !signedBy(l, next(t), p.Note) || signedBy(l, fixture.CheckpointSigner(t), p.Note) {
		t.Errorf("%s", p.Note)
	}
	fixture.Clean(t, l, at+1)
	// An attacker with the retired key and the database replaces the note by one that the retired
	// key has signed.
	forged, err := checkpoint.Sign(p.Checkpoint, fixture.CheckpointSigner(t).Key())
	if err != nil {
		t.Fatal(err)
	}
	super := fixture.Must(pgx.Connect(ctx, db.SuperURL))
	defer super.Close(ctx)
	if _, err := super.Exec(ctx, `set session_replication_role = replica; update checkpoints set note = '`+string(forged)+`' where size = `+fmt.Sprint(p.Size)); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Ledger(ctx, l, nil)
	if err != nil || len(report.Faults) != 1 || !strings.Contains(report.Faults[0].Error(), "contains the retirement of the key that signed the note") {
		t.Errorf("%v, %v", report.Faults, err)
	}
}

// Of two nodes, the one that has the next key signs as soon as the rotation has made it the
// checkpoint key; the other one reads these checkpoints. Nothing is restarted.
func TestTheNextKeySignsWithoutARestart(t *testing.T) {
	t.Parallel()
	db, folder := fixture.OnePartition(t), t.TempDir()
	old, prepared := fixture.Open(t, db), fixture.Open(t, db)
	fixture.Keep(t, old, folder)
	fixture.Covered(t, old, 1)
	err := keeper.Start(t.Context(), prepared, keeper.Options{Signer: fixture.CheckpointSigner(t), Next: next(t), Folder: checkpoint.Folder{Path: folder}, Every: 10 * time.Millisecond}, fixture.Numbered("y"))
	if err != nil {
		t.Fatal(err)
	}
	at := retire(t, old, next(t))
	for _, l := range []*ledger.Ledger{prepared, old} {
		if p := fixture.Covered(t, l, at); !signedBy(l, next(t), p.Note) {
			t.Errorf("%s", p.Note)
		}
	}
	if problem := keeper.Problem(prepared); problem != "" {
		t.Error(problem)
	}
	fixture.Clean(t, old, at)
}
