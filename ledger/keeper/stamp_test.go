package keeper_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/timestamp"
	"github.com/countersign/countersign/ledger/timestamp/timestamptest"
)

// A time stamp is of the note in the database, and is stored next to the note's file. A node that
// is restarted within an hour after a stamp requests no other. An authority that is down stops
// nothing.
func TestANoteIsTimeStamped(t *testing.T) {
	t.Parallel()
	db, folder, authority := fixture.OnePartition(t), t.TempDir(), timestamptest.Start(t)
	ctx := t.Context()
	start := func(l *ledger.Ledger, ids string) telling {
		t.Helper()
		mirror := telling{checkpoint.Folder{Path: t.TempDir()}, make(chan int64, 99)}
		err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder}, Mirrors: []checkpoint.Store{mirror},
			Authority: &timestamp.Authority{URL: authority.URL}, Every: 10 * time.Millisecond}, fixture.Numbered(ids))
		if err != nil {
			t.Fatal(err)
		}
		return mirror
	}
	authority.Down.Store(true)
	l := fixture.Open(t, db)
	start(l, "down")
	<-authority.Asked
	if _, err := l.Append(ctx, fixture.One("s/1", ledger.New(), "a1")); err != nil {
		t.Fatal(err)
	}
	fixture.Covered(t, l, 3)
	l.Close()
	authority.Down.Store(false)
	l = fixture.Open(t, db)
	start(l, "up")
	<-authority.Asked
	var stamped *keeper.StampedNote
	for err := error(nil); stamped == nil; {
		if stamped, err = keeper.Stamped(ctx, l.Partition(0), 1<<62, nil); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()

	l = fixture.Open(t, db)
	mirror := start(l, "again")
	if _, err := l.Append(ctx, fixture.One("s/2", ledger.New(), "a2")); err != nil {
		t.Fatal(err)
	}
	<-mirror.put
	fixture.Covered(t, l, 4)
	if len(authority.Asked) > 0 {
		t.Error("the authority was asked again within the hour")
	}
	if _, err := timestamp.Parse(stamped.Stamp, stamped.Note); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*", fmt.Sprintf("%019d.tsr", stamped.Size)))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !bytes.Equal(text, stamped.Stamp) {
		t.Error(err)
	}
	if none, err := keeper.Stamped(ctx, l.Partition(0), stamped.Size-1, nil); err != nil || none != nil {
		t.Errorf("%+v, %v", none, err)
	}
	fixture.Clean(t, l, 4)
}

// A node that is restarted without new events sends its last checkpoint to a new witness. If the
// note of this checkpoint has a time stamp, it does not change.
func TestAStampedNoteDoesNotChange(t *testing.T) {
	t.Parallel()
	db, folder, authority, ctx := fixture.OnePartition(t), t.TempDir(), timestamptest.Start(t), t.Context()
	l := fixture.Open(t, db)
	w := newWitness(t, "witness.example", l.Partition(0).Origin(), fixture.CheckpointSigner(t).Public())
	start := func(l *ledger.Ledger, witnesses ...checkpoint.Witness) {
		t.Helper()
		if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder}, Witnesses: witnesses,
			Authority: &timestamp.Authority{URL: authority.URL}, Every: 10 * time.Millisecond}, fixture.Numbered("stamped")); err != nil {
			t.Fatal(err)
		}
	}
	start(l)
	var stamped *keeper.StampedNote
	for err := error(nil); stamped == nil; {
		if stamped, err = keeper.Stamped(ctx, l.Partition(0), 1<<62, nil); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()

	l = fixture.Open(t, db)
	start(l, fixture.Must(checkpoint.ParseWitness(w.vkey+" "+w.url)))
	for status := range w.answers {
		if status == http.StatusOK {
			break
		}
	}
	l.Close()

	l = fixture.Open(t, db)
	note := fixture.Must(keeper.At(ctx, l.Partition(0), stamped.Size)).Note
	files, err := filepath.Glob(filepath.Join(folder, "*", "*", fmt.Sprintf("%019d.note", stamped.Size)))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if stored := fixture.Must(os.ReadFile(files[0])); !bytes.Equal(note, stamped.Note) || !bytes.Equal(stored, stamped.Note) {
		t.Errorf("the note changed to\n%s\nand in the folder to\n%s", note, stored)
	}
	fixture.Clean(t, l, 2)
}

// With two nodes, both may request a time stamp of one note. The first one stays in the database,
// and the other node stores none.
func TestTheFirstStampOfANoteStays(t *testing.T) {
	t.Parallel()
	db, folder, authority, ctx := fixture.OnePartition(t), t.TempDir(), timestamptest.Start(t), t.Context()
	asked, release := make(chan int, 99), make(chan int)
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body := fixture.Must(io.ReadAll(r.Body))
		asked <- 1
		<-release
		answer := fixture.Must(http.Post(authority.URL, r.Header.Get("Content-Type"), bytes.NewReader(body)))
		defer answer.Body.Close()
		rw.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		_, _ = io.Copy(rw, answer.Body)
	}))
	defer slow.Close()
	l := fixture.Open(t, db)
	if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder},
		Authority: &timestamp.Authority{URL: slow.URL}, Every: 10 * time.Millisecond}, fixture.Numbered("two")); err != nil {
		t.Fatal(err)
	}
	<-asked
	other := []byte("a stamp of another node")
	fixture.Must(l.Pool().Exec(ctx, `update checkpoints set stamp = $1`, other))
	close(release)
	for i := 1; len(asked) == 0; i++ { // the node asks again, because it cannot read the other stamp
		if _, err := l.Append(ctx, fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
			t.Fatal(err)
		}
		if files := fixture.Must(filepath.Glob(filepath.Join(folder, "*", "*", "*.tsr"))); len(files) > 0 {
			break
		}
	}
	first := fixture.Must(keeper.Stamped(ctx, l.Partition(0), 2, nil))
	if first == nil || !bytes.Equal(first.Stamp, other) {
		t.Error("the stamp of the first note was replaced")
	}
}
