package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/countersign/countersign/api/evidence"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/ledgertest"
	"github.com/countersign/countersign/ledger/seal"
)

// keepCheckpoints starts to sign checkpoints on a node.
func keepCheckpoints(n *node) {
	n.t.Helper()
	keepCheckpointsIn(n, 0)
}

// keepCheckpointsIn is like keepCheckpoints. The tree grows by at most step events at a time.
func keepCheckpointsIn(n *node, step int64) {
	n.t.Helper()
	signer, err := seal.NewSigner(bytes.Repeat([]byte{0xc4}, 32))
	if err != nil {
		n.t.Fatal(err)
	}
	err = keeper.Start(n.t.Context(), n.app.Ledger, keeper.Options{Signer: signer, Folder: checkpoint.Folder{Path: n.t.TempDir()}, Step: step},
		func() string { return n.app.NewID("evt_") })
	if err != nil {
		n.t.Fatal(err)
	}
}

// tiles fetches tiles over HTTP for the library of another project.
type tiles struct {
	n    *node
	path string // path of the partition
}

func (f tiles) Height() int { return 8 }

func (f tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func (f tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, t := range wanted {
		// The library's paths contain the height; C2SP's do not.
		a := f.n.send(http.MethodGet, f.path+strings.Replace(t.Path(), "tile/8/", "tile/", 1), "")
		if a.status != http.StatusOK {
			return nil, fmt.Errorf("%s: %v", t.Path(), a)
		}
		found = append(found, a.body)
	}
	return found, nil
}

// TestWhileTheFirstTreeIsMade checks that there are no checkpoints and proofs while the first tree
// of a long ledger is being built, but that calls are answered.
func TestWhileTheFirstTreeIsMade(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{on: ledgertest.NewPartitioned(t, 1)}) // one partition, so that few events suffice
	key := n.issueKey()
	tree, err := pgx.Connect(t.Context(), n.db.SuperURL)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close(context.WithoutCancel(t.Context()))
	held, err := tree.Begin(t.Context())
	if err == nil {
		_, err = held.Exec(t.Context(), `select size from tree_head for update`)
	}
	if err != nil {
		t.Fatal(err)
	}
	keepCheckpointsIn(n, 1)
	for _, path := range []string{"/api/ledger/checkpoint", "/api/ledger/proof?position=1"} {
		if a := n.send(http.MethodGet, path, ""); a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "not signed yet") {
			t.Errorf("%s: %v", path, a)
		}
	}
	if a := n.post("/api/agent-services/action-safety/quick", key, `{"command":"ls"}`); a.status != http.StatusOK {
		t.Errorf("a call meanwhile: %v", a)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keeper.Covered(t.Context(), n.app.Ledger.Partition(0), 1) == nil {
		t.Fatal("no checkpoint")
	}
	if a := n.send(http.MethodGet, "/api/ledger/checkpoint", ""); a.status != http.StatusOK {
		t.Errorf("afterwards: %v", a)
	}
}

// TestAnotherClientProvesARecord checks that a client of another vendor can prove that a record is
// in the ledger, with only the public key, the checkpoint and the tiles.
func TestAnotherClientProvesARecord(t *testing.T) {
	t.Parallel()
	n := startNode(t, setup{})
	t.Run("there is no checkpoint before the first", func(t *testing.T) {
		n := n.in(t)
		if a := n.send(http.MethodGet, "/api/ledger/checkpoint", ""); a.status != http.StatusNotFound {
			t.Errorf("before the first checkpoint: %v", a)
		}
	})
	keepCheckpoints(n)
	key := n.issueKey()
	run := n.post("/api/agent-services/action-safety/run", key, `{"command":"ls"}`)
	if run.status != http.StatusOK {
		t.Fatal(run)
	}
	var answer struct{ Receipt seal.Envelope }
	if err := json.Unmarshal(run.body, &answer); err != nil || answer.Receipt.Ledger == nil {
		t.Fatalf("%s %v", run.body, err)
	}
	place := *answer.Receipt.Ledger
	if !t.Run("the service proves the record", func(t *testing.T) {
		n := n.in(t)
		verified := n.post("/api/verify?wait=proof", "", string(run.body))
		var proof struct {
			Valid     bool
			Inclusion *evidence.Inclusion
		}
		if err := json.Unmarshal(verified.body, &proof); err != nil || !proof.Valid || proof.Inclusion == nil || proof.Inclusion.Position != place.Position {
			t.Fatalf("%s, %v", verified.body, err)
		}
	}) {
		return
	}
	path := "/api/ledger/"
	if place.Partition > 0 {
		path += fmt.Sprint(place.Partition, "/")
	}
	verifier, err := note.NewVerifier(checkpoint.VerifierKey(n.app.Ledger.Partition(place.Partition).Origin(), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0xc4}, 32)).Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	var root string
	if !t.Run("the checkpoint is signed", func(t *testing.T) {
		n := n.in(t)
		head := n.send(http.MethodGet, path+"checkpoint", "")
		opened, err := note.Open(head.body, note.VerifierList(verifier))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(strings.SplitN(opened.Text, "\n", 2)[1], "%d\n%s", &size, &root); err != nil {
			t.Fatal(err)
		}
		newest := fmt.Sprintf("%d %s", size, root)
		if len(n.app.Ledger.Partitions()) > 1 {
			newest = fmt.Sprint(place.Partition, " ", newest)
		}
		if got := head.header.Values("Ledger-Checkpoint"); !slices.Contains(got, newest) {
			t.Errorf("header %q", got)
		}
	}) {
		return
	}
	rootHash, err := base64.StdEncoding.DecodeString(root)
	if err != nil {
		t.Fatal(err)
	}
	eventHash, err := hex.DecodeString(place.EventHash)
	if err != nil {
		t.Fatal(err)
	}
	var included tlog.RecordProof
	if !t.Run("the client proves the record from the tiles", func(t *testing.T) {
		client := tlog.TileHashReader(tlog.Tree{N: size, Hash: tlog.Hash(rootHash)}, tiles{n.in(t), path})
		included, err = tlog.ProveRecord(size, place.Position-1, client)
		if err == nil {
			err = tlog.CheckRecord(included, size, tlog.Hash(rootHash), place.Position-1, tlog.RecordHash(eventHash))
		}
		if err != nil {
			t.Fatal(err)
		}
	}) {
		return
	}
	t.Run("the service gives the same proof", func(t *testing.T) {
		n := n.in(t)
		var shown evidence.ProofOf
		a := n.send(http.MethodGet, fmt.Sprintf(path+"proof?position=%d&size=%d", place.Position, size), "")
		if err := json.Unmarshal(a.body, &shown); err != nil || len(shown.Hashes) != len(included) {
			t.Fatalf("%v, %v", a, err)
		}
		for i, h := range included {
			if shown.Hashes[i] != hex.EncodeToString(h[:]) {
				t.Errorf("hash %d is another one", i)
			}
		}
	})
	t.Run("the tree grew from its beginning", func(t *testing.T) {
		n := n.in(t)
		a := n.send(http.MethodGet, fmt.Sprintf(path+"consistency?from=1&to=%d", size), "")
		if a.status != http.StatusOK {
			t.Error(a)
		}
	})
	t.Run("the entries hold the hash of the event", func(t *testing.T) {
		n := n.in(t)
		a := n.send(http.MethodGet, fmt.Sprintf(path+"tile/entries/000.p/%d", size), "")
		if at := int(place.Position-1) * 34; a.status != http.StatusOK || !bytes.Equal(a.body[at+2:at+34], eventHash) {
			t.Errorf("entries: %v", a)
		}
	})
	t.Run("a bad address is refused", func(t *testing.T) {
		n := n.in(t)
		for bad, status := range map[string]int{
			"proof?position=0": 400, "proof": 400, "proof?position=9999": 404, "consistency?from=2&to=1": 400, "proof?position=2&size=1": 400, "consistency?from=99999": 404, "consistency?from=x": 400,
			"tile/0/999": 404, "tile/0/x": 404, "tile/x/000": 404, "tile/0/000.p/255": 404, "tile/entries/7": 404,
		} {
			if a := n.send(http.MethodGet, path+bad, ""); a.status != status {
				t.Errorf("%s: %v", bad, a)
			}
		}
	})
}
