package evidence

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy"
)

// proofWait limits how long POST /api/verify?wait=proof waits for a checkpoint.
const proofWait = 2 * time.Second

// Every answer has the header checkpointHeader with the newest head of the tree, if there is one.
// A client that stores the heads can later prove a rollback of the ledger.
const checkpointHeader = "Ledger-Checkpoint"

// Proofs serves the tree of the ledger: its signed heads, its tiles, and proofs against the heads.
type Proofs struct {
	Ledger  *ledger.Ledger
	Answers *request.Answers
}

// Operations lists the operations that return the newest head of the ledger's tree, and proofs
// against it. They are public, because heads and proofs contain only hashes.
func (s *Proofs) Operations() []*op.Operation {
	number := func(name, description string) op.Parameter {
		return op.Parameter{Name: name, Description: description, Schema: op.Object{"type": "integer", "minimum": 1}}
	}
	answer := func(of func(*http.Request) (op.Reply, error)) func(*op.Call) (op.Reply, error) {
		return func(c *op.Call) (op.Reply, error) { return of(c.Request) }
	}
	return op.ForEveryOrigin([]*op.Operation{
		{
			ID: "get_checkpoint", Method: http.MethodGet, Path: "/api/ledger/checkpoint", Media: "text/plain; charset=utf-8",
			Summary: "The newest signed head of the ledger's tree, a C2SP checkpoint. Keep it: with an old checkpoint a client can prove that history was changed or removed.",
			Output:  reflect.TypeFor[string](), Errors: []int{404, 503}, Run: answer(s.showCheckpoint),
		},
		{
			ID: "prove_inclusion", Method: http.MethodGet, Path: "/api/ledger/proof",
			Summary: "Proof that the tree of a given size contains the event at a position: the hashes on the path from the leaf to the root (RFC 6962).",
			Query:   []op.Parameter{number("position", "Position of the event."), number("size", "Size of the tree; by default that of the newest checkpoint.")},
			Needs:   []string{"position"}, Output: reflect.TypeFor[ProofOf](), Errors: []int{400, 404, 503}, Run: answer(s.showProof),
		},
		{
			ID: "prove_consistency", Method: http.MethodGet, Path: "/api/ledger/consistency",
			Summary: "Proof that a tree contains a smaller tree as its beginning (RFC 6962).",
			Query:   []op.Parameter{number("from", "The smaller size."), number("to", "The larger size; by default that of the newest checkpoint.")},
			Needs:   []string{"from"}, Output: reflect.TypeFor[ProofOf](), Errors: []int{400, 404, 503}, Run: answer(s.showConsistency),
		},
	})
}

// Routes adds the head and the tiles in the format of C2SP tlog-tiles, so that programs for other
// transparency logs can read this ledger. The number of path segments varies, which OpenAPI cannot
// describe, so these routes are not operations.
func (s *Proofs) Routes(add func(string, http.Handler, ...string)) {
	for path, answer := range map[string]func(*http.Request) (op.Reply, error){
		"/api/ledger/tile/{level:[0-9]+}/{n:.+}":            s.showTile,
		"/api/ledger/tile/entries/{n:.+}":                   s.showEntries,
		"/api/ledger/{p:[0-9]+}/checkpoint":                 s.showCheckpoint,
		"/api/ledger/{p:[0-9]+}/tile/{level:[0-9]+}/{n:.+}": s.showTile,
		"/api/ledger/{p:[0-9]+}/tile/entries/{n:.+}":        s.showEntries,
		"/api/ledger/{p:[0-9]+}/proof":                      s.showProof,
		"/api/ledger/{p:[0-9]+}/consistency":                s.showConsistency,
	} {
		o := &op.Operation{Success: http.StatusOK}
		add(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), op.HandlerTimeout)
			defer cancel()
			w.Header().Set("Access-Control-Allow-Origin", "*")
			result, err := answer(r.WithContext(ctx))
			if err != nil {
				s.Answers.Fail(w, r, false, err)
				return
			}
			s.Answers.Reply(w, r, o, result)
		}), http.MethodGet)
	}
}

var errNoCheckpoint = policy.Refuse(op.CodeNotFound, "", "there is no checkpoint yet: the operator must set CHECKPOINT_KEY")

// errCheckpointBegins is the answer while the first tree of a long ledger is being built.
var errCheckpointBegins = policy.Refuse(ground.CodeUnavailable, "", "the first checkpoint is not signed yet, because the tree over the events is being built: try again in a minute")

// lasting returns the cache headers of an answer that never changes.
func lasting() http.Header {
	return http.Header{"Cache-Control": {"public, max-age=31536000, immutable"}}
}

// partitionOf returns the partition that the path names. A path without a partition means the
// first one, which every ledger has.
func (s *Proofs) partitionOf(r *http.Request) (*ledger.Partition, error) {
	text, named := mux.Vars(r)["p"]
	if !named {
		return s.Ledger.Partitions()[0], nil
	}
	p, err := strconv.ParseInt(text, 10, 16)
	found := s.Ledger.Partition(int16(p))
	if err != nil || found == nil || strconv.FormatInt(p, 10) != text {
		return nil, policy.Refuse(op.CodeNotFound, "", "the ledger has no such partition")
	}
	return found, nil
}

// newestProofs returns the newest checkpoint of the partition that a request names, and the proofs
// against it.
func (s *Proofs) newestProofs(r *http.Request) (*tree.Proofs, *checkpoint.Published, error) {
	p, err := s.partitionOf(r)
	if err != nil {
		return nil, nil, err
	}
	proofs, newest, err := keeper.Proofs(r.Context(), p)
	switch {
	case err != nil:
		return nil, nil, ground.Unreadable(err)
	case newest == nil && keeper.Beginning(s.Ledger):
		return nil, nil, errCheckpointBegins
	case newest == nil:
		return nil, nil, errNoCheckpoint
	}
	return proofs, newest, nil
}

func (s *Proofs) showCheckpoint(r *http.Request) (op.Reply, error) {
	_, newest, err := s.newestProofs(r)
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Body: newest.Note, Media: "text/plain; charset=utf-8", Header: http.Header{"Cache-Control": {"no-cache"}}}, nil
}

// ProofOf is the answer with an inclusion proof or a consistency proof.
type ProofOf struct {
	Position int64    `json:"position,omitzero"`
	From     int64    `json:"from,omitzero"`
	Size     int64    `json:"size"`
	Root     string   `json:"root"`
	Hashes   []string `json:"hashes"`
}

func hexes(hashes []tree.Hash) []string {
	texts := make([]string, len(hashes))
	for i, h := range hashes {
		texts[i] = hex.EncodeToString(h[:])
	}
	return texts
}

// positive parses a positive number of the query. otherwise is the default; if it is 0, the number
// is required.
func positive(r *http.Request, name string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" && otherwise > 0 {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, policy.Refuse(op.CodeInvalidBody, "/"+name, name+" must be a positive integer")
	}
	return n, nil
}

func (s *Proofs) showProof(r *http.Request) (op.Reply, error) {
	return s.prove(r, "position", "size", "this position", func(p *tree.Proofs, position, size int64) (ProofOf, []tree.Hash, error) {
		hashes, err := p.Inclusion(size, position)
		return ProofOf{Position: position, Size: size}, hashes, err
	})
}

func (s *Proofs) showConsistency(r *http.Request) (op.Reply, error) {
	return s.prove(r, "from", "to", "these sizes", func(p *tree.Proofs, from, to int64) (ProofOf, []tree.Hash, error) {
		hashes, err := p.Consistency(from, to)
		return ProofOf{From: from, Size: to}, hashes, err
	})
}

// prove answers with a proof between two numbers of the query. Without the second, it uses the
// size of the newest checkpoint. wanted describes the first number in the error text.
func (s *Proofs) prove(r *http.Request, first, second, wanted string, of func(p *tree.Proofs, from, size int64) (ProofOf, []tree.Hash, error)) (op.Reply, error) {
	proofs, newest, err := s.newestProofs(r)
	if err != nil {
		return op.Reply{}, err
	}
	from, err := positive(r, first, 0)
	if err != nil {
		return op.Reply{}, err
	}
	size, err := positive(r, second, newest.Size)
	if err != nil {
		return op.Reply{}, err
	}
	if from > size && r.URL.Query().Has(second) {
		return op.Reply{}, policy.Refuse("out_of_range", "/"+first, first+" must not be greater than "+second)
	}
	if from > size || size > newest.Size {
		return op.Reply{}, policy.Refuse(op.CodeNotFound, "", "no checkpoint covers "+wanted+" yet; the newest is at /api/ledger/checkpoint")
	}
	root, err := proofs.Root(size)
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	proof, hashes, err := of(proofs, from, size)
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	proof.Root, proof.Hashes = hex.EncodeToString(root[:]), hexes(hashes)
	return op.Reply{Value: proof, Header: lasting()}, nil
}

func (s *Proofs) showTile(r *http.Request) (op.Reply, error) {
	level, err := strconv.ParseUint(mux.Vars(r)["level"], 10, 6)
	n, width, err2 := tree.ParseNumber(mux.Vars(r)["n"])
	if err := errors.Join(err, err2); err != nil {
		return op.Reply{}, policy.Refuse(op.CodeNotFound, "", "the path must be /api/ledger/tile/LEVEL/NUMBER as in C2SP tlog-tiles")
	}
	p, err := s.partitionOf(r)
	if err != nil {
		return op.Reply{}, err
	}
	data, err := keeper.Tile(r.Context(), p, int(level), n, width)
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	if data == nil {
		return op.Reply{}, policy.Refuse(op.CodeNotFound, "", "the newest checkpoint does not cover this tile")
	}
	return op.Reply{Body: data, Media: "application/octet-stream", Header: lasting()}, nil
}

// showEntries answers with a bundle of leaves. Each leaf is its length in two bytes, always 32,
// and the hash of an event.
func (s *Proofs) showEntries(r *http.Request) (op.Reply, error) {
	n, width, err := tree.ParseNumber(mux.Vars(r)["n"])
	if err != nil {
		return op.Reply{}, policy.Refuse(op.CodeNotFound, "", "the path must be /api/ledger/tile/entries/NUMBER as in C2SP tlog-tiles")
	}
	p, err := s.partitionOf(r)
	if err != nil {
		return op.Reply{}, err
	}
	tile, err := keeper.Tile(r.Context(), p, 0, n, width)
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	if tile == nil {
		return op.Reply{}, policy.Refuse(op.CodeNotFound, "", "the newest checkpoint does not cover these entries")
	}
	stored, err := p.After(r.Context(), n*tree.Width, width)
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	var body []byte
	for _, e := range stored {
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(e.Hash))), e.Hash[:]...)
	}
	return op.Reply{Body: body, Media: "application/octet-stream", Header: lasting()}, nil
}

// include returns a proof that the newest checkpoint covers an event, or nil if it does not. If
// wait is set, it first waits up to proofWait for such a checkpoint.
func (s *Proofs) include(ctx context.Context, at seal.LedgerPosition, wait bool) (*Inclusion, error) {
	p, position := s.Ledger.Partition(at.Partition), at.Position
	if wait {
		waiting, cancel := context.WithTimeout(ctx, proofWait)
		defer cancel()
		keeper.Covered(waiting, p, position)
	}
	proofs, newest, err := keeper.Proofs(ctx, p)
	if err != nil || newest == nil || newest.Size < position {
		return nil, err
	}
	hashes, err := proofs.Inclusion(newest.Size, position)
	if err != nil {
		return nil, &ground.Unavailable{Cause: err}
	}
	return &Inclusion{Partition: at.Partition, Position: position, Size: newest.Size, Root: hex.EncodeToString(newest.Root[:]), Hashes: hexes(hashes), Checkpoint: string(newest.Note)}, nil
}

// Mark sets the header with the newest head. If the ledger has several partitions, the header has
// one value "partition size root" for each.
func (s *Proofs) Mark(h http.Header) {
	all := s.Ledger.Partitions()
	for _, p := range all {
		newest := keeper.Known(p)
		switch {
		case newest == nil:
		case len(all) == 1:
			h[checkpointHeader] = []string{newest.Short}
		default:
			h[checkpointHeader] = append(h[checkpointHeader], strconv.Itoa(int(p.Number()))+" "+newest.Short)
		}
	}
}
