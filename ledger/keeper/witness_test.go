package keeper_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/transparency-dev/formats/log"
	formats "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/internal/fixture"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/timestamp"
)

// witness is a running C2SP tlog-witness for one log. It handles notes, proofs and cosignatures
// with libraries that are not ours.
type witness struct {
	url, vkey string
	log       note.Verifier
	signer    *formats.Signer

	mu      sync.Mutex // guards the following fields
	size    uint64
	root    []byte
	answers chan int // receives the status of each answer
}

func newWitness(t *testing.T, name, origin string, key ed25519.PublicKey) *witness {
	t.Helper()
	text := fixture.Must(note.NewEd25519VerifierKey(origin, key))
	skey, vkey, err := note.GenerateKey(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{log: fixture.Must(note.NewVerifier(text)), signer: fixture.Must(formats.NewSignerForCosignatureV1(skey)), vkey: fixture.Must(formats.VKeyToCosignatureV1(vkey)), answers: make(chan int, 999)}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status, kind, answer := w.add(body)
		if kind != "" {
			rw.Header().Set("Content-Type", kind)
		}
		rw.WriteHeader(status)
		_, _ = rw.Write(answer)
		w.answers <- status
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// add handles POST /add-checkpoint.
func (w *witness) add(body []byte) (status int, kind string, answer []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	head, text, ok := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	var old uint64
	if _, err := fmt.Sscanf(lines[0], "old %d", &old); !ok || err != nil {
		return http.StatusBadRequest, "", nil
	}
	var hashes [][]byte
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(h) != 32 {
			return http.StatusBadRequest, "", nil
		}
		hashes = append(hashes, h)
	}
	c, _, signed, err := log.ParseCheckpoint(text, w.log.Name(), w.log)
	switch {
	case err != nil:
		return http.StatusForbidden, "", nil
	case old != w.size:
		return http.StatusConflict, "text/x.tlog.size", fmt.Appendf(nil, "%d\n", w.size)
	case old > c.Size:
		return http.StatusBadRequest, "", nil
	case old == c.Size && old > 0 && !bytes.Equal(c.Hash, w.root):
		return http.StatusConflict, "", nil
	}
	if old > 0 && proof.VerifyConsistency(rfc6962.DefaultHasher, old, c.Size, hashes, w.root, c.Hash) != nil {
		return http.StatusUnprocessableEntity, "", nil
	}
	cosigned, err := note.Sign(&note.Note{Text: signed.Text}, w.signer)
	if err != nil {
		return http.StatusInternalServerError, "", nil
	}
	w.size, w.root = c.Size, c.Hash
	_, line, _ := bytes.Cut(cosigned, []byte("\n\n"))
	return http.StatusOK, "", line
}

// keepWitnessed starts a checkpoint keeper with this witness.
func (w *witness) keepWitnessed(t *testing.T, l *ledger.Ledger, folder string) {
	t.Helper()
	parsed, err := checkpoint.ParseWitness(w.vkey + " " + w.url)
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Start(t.Context(), l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder},
		Witnesses: []checkpoint.Witness{parsed}, Every: 10 * time.Millisecond}, fixture.Numbered("witnessed"+fmt.Sprint(time.Now().UnixNano()))); err != nil {
		t.Fatal(err)
	}
}

// cosigned waits until the published note has a signature line of the witness.
func (w *witness) cosigned(t *testing.T, l *ledger.Ledger) []byte {
	t.Helper()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		if p := keeper.Known(l.Partition(0)); p != nil && bytes.Contains(p.Note, []byte("witness.example")) {
			tick.Stop()
			return p.Note
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the checkpoint was never cosigned")
		}
	}
}

// A witness cosigns a growing ledger, even after a restart of the node, which then does not know
// what the witness has seen. It does not cosign a ledger with another history under the same name.
func TestAWitnessCosigns(t *testing.T) {
	t.Parallel()
	db, ctx := fixture.OnePartition(t), t.Context()
	l := fixture.Open(t, db)
	appended := func(l *ledger.Ledger, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := l.Append(ctx, fixture.One(fmt.Sprint("s/", i), ledger.New(), fmt.Sprint("a", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := filepath.Join(t.TempDir(), "notes")
	w := newWitness(t, "witness.example", l.Partition(0).Origin(), fixture.CheckpointSigner(t).Public())
	appended(l, 0, 300)
	w.keepWitnessed(t, l, folder)
	text := w.cosigned(t, l)
	theirs := fixture.Must(formats.NewVerifierForCosignatureV1(w.vkey))
	opened, err := note.Open(text, note.VerifierList(w.log, theirs))
	if err != nil || len(opened.Sigs) != 2 {
		t.Fatalf("%v, %+v", err, opened)
	}
	if at, err := formats.CoSigV1Timestamp(opened.Sigs[1]); err != nil || time.Since(at) > time.Hour {
		t.Errorf("the witness's time: %v, %v", at, err)
	}
	l.Close()

	again := fixture.Open(t, db)
	appended(again, 300, 700)
	w.keepWitnessed(t, again, folder)
	w.cosigned(t, again)
	w.mu.Lock()
	size := w.size
	w.mu.Unlock()
	if size < 700 {
		t.Errorf("the witness is at size %d", size)
	}
	again.Close()

	// A ledger with another history under the same origin and key.
	other := fixture.OnePartition(t)
	super := fixture.Must(pgx.Connect(ctx, other.SuperURL))
	defer super.Close(ctx)
	if _, err := super.Exec(ctx, `update ledger_head set origin = $1, last_hash = $2`, l.Partition(0).Origin(), genesisOf(l.Partition(0).Origin())); err != nil {
		t.Fatal(err)
	}
	forged := fixture.Must(ledger.Open(context.WithoutCancel(ctx), other.URL, ledger.Options{Log: slog.New(slog.DiscardHandler)}))
	defer forged.Close()
	appended(forged, 1000, 1800)
	for len(w.answers) > 0 {
		<-w.answers
	}
	w.keepWitnessed(t, forged, filepath.Join(t.TempDir(), "notes"))
	for status := range w.answers {
		if status == http.StatusConflict {
			continue // the witness answers with the size that it has seen
		}
		if status != http.StatusUnprocessableEntity {
			t.Errorf("another history: the witness answered %d", status)
		}
		break
	}
	if p := keeper.Known(forged.Partition(0)); p != nil && bytes.Contains(p.Note, []byte("witness.example")) {
		t.Error("another history was cosigned")
	}
}

// With several witnesses, the note has a line of each, in the ledger and in the folder.
func TestANoteHasALineOfEachWitness(t *testing.T) {
	t.Parallel()
	db, folder, ctx := fixture.OnePartition(t), t.TempDir(), t.Context()
	l := fixture.Open(t, db)
	key := fixture.CheckpointSigner(t).Public()
	verifiers := []note.Verifier{fixture.Must(note.NewVerifier(fixture.Must(note.NewEd25519VerifierKey(l.Partition(0).Origin(), key))))}
	var witnesses []checkpoint.Witness
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		w := newWitness(t, name, l.Partition(0).Origin(), key)
		verifiers = append(verifiers, fixture.Must(formats.NewVerifierForCosignatureV1(w.vkey)))
		witnesses = append(witnesses, fixture.Must(checkpoint.ParseWitness(w.vkey+" "+w.url)))
	}
	start := func(l *ledger.Ledger) {
		t.Helper()
		if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: folder}, Witnesses: witnesses,
			Every: 10 * time.Millisecond}, fixture.Numbered("witnessed")); err != nil {
			t.Fatal(err)
		}
	}
	start(l)
	var known *checkpoint.Published
	for known == nil || !bytes.Contains(known.Note, []byte("c.example")) {
		known = fixture.Must(keeper.At(ctx, l.Partition(0), keeper.Known(l.Partition(0)).Size))
	}
	opened, err := note.Open(known.Note, note.VerifierList(verifiers...))
	if err != nil || len(opened.Sigs) != len(verifiers) {
		t.Fatalf("%v, %+v", err, opened)
	}
	l.Close()

	files := fixture.Must(filepath.Glob(filepath.Join(folder, "*", "*", fmt.Sprintf("%019d.note", known.Size))))
	if len(files) != 1 || !bytes.Equal(fixture.Must(os.ReadFile(files[0])), known.Note) {
		t.Errorf("the folder has another note than\n%s", known.Note)
	}
}

// If one of several witnesses fails, the note still has the lines of the others.
func TestAWitnessThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	db, ctx := fixture.OnePartition(t), t.Context()
	l := fixture.Open(t, db)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	var witnesses []checkpoint.Witness
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		w := newWitness(t, name, l.Partition(0).Origin(), fixture.CheckpointSigner(t).Public())
		if name == "b.example" {
			w.url = down.URL
		}
		witnesses = append(witnesses, fixture.Must(checkpoint.ParseWitness(w.vkey+" "+w.url)))
	}
	if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: t.TempDir()}, Witnesses: witnesses,
		Every: 10 * time.Millisecond}, fixture.Numbered("failing")); err != nil {
		t.Fatal(err)
	}
	var note []byte
	for !bytes.Contains(note, []byte("c.example")) {
		note = fixture.Must(keeper.At(ctx, l.Partition(0), keeper.Known(l.Partition(0)).Size)).Note
	}
	if !witnesses[0].Signed(note) || witnesses[1].Signed(note) || !witnesses[2].Signed(note) {
		t.Errorf("the note is\n%s", note)
	}
}

// With two nodes, a witness may already have a newer note from the other node. That is no other
// history, so the node reports no error.
func TestAWitnessMayKnowANewerNoteOfAnotherNode(t *testing.T) {
	t.Parallel()
	db, ctx := fixture.OnePartition(t), t.Context()
	var logged lockedText
	l := fixture.Must(ledger.Open(ctx, db.URL, ledger.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}))
	defer l.Close()
	w := newWitness(t, "witness.example", l.Partition(0).Origin(), fixture.CheckpointSigner(t).Public())
	asked, release, handled := make(chan int64, 9), make(chan int, 9), make(chan int, 9)
	slow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, text, _ := bytes.Cut(body, []byte("\n\n"))
		asked <- fixture.Must(checkpoint.Parse(text)).Size
		<-release
		status, kind, answer := w.add(body)
		rw.Header().Set("Content-Type", kind)
		rw.WriteHeader(status)
		_, _ = rw.Write(answer)
	}))
	defer slow.Close()
	stamps := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { // is asked after the witnesses
		rw.WriteHeader(http.StatusServiceUnavailable)
		handled <- 1
	}))
	defer stamps.Close()
	if err := keeper.Start(ctx, l, keeper.Options{Signer: fixture.CheckpointSigner(t), Folder: checkpoint.Folder{Path: t.TempDir()},
		Witnesses: []checkpoint.Witness{fixture.Must(checkpoint.ParseWitness(w.vkey + " " + slow.URL))}, Authority: &timestamp.Authority{URL: stamps.URL},
		Every: 10 * time.Millisecond}, fixture.Numbered("two")); err != nil {
		t.Fatal(err)
	}
	older := <-asked
	if _, err := l.Append(ctx, fixture.One("s/1", ledger.New(), "a1")); err != nil {
		t.Fatal(err)
	}
	newer := fixture.Covered(t, l, older+1)
	other := fixture.Must(checkpoint.ParseWitness(w.vkey + " " + w.url))
	if _, err := other.Add(ctx, 0, nil, newer.Note); err != nil { // as the other node does
		t.Fatal(err)
	}
	close(release)
	<-handled
	if text := logged.String(); strings.Contains(text, "not witnessed") {
		t.Errorf("the witness has size %d and was sent size %d: %s", newer.Size, older, text)
	}
}

// lockedText is a text to which several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written.
func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func genesisOf(origin string) []byte {
	hash := ledger.Genesis(origin, "")
	return hash[:]
}
