package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/keeper"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// TypeRecord is the payload type of the signed record at the beginning of an object.
const TypeRecord = "application/vnd.svc.archive.v1+json"

const (
	recordSchema = "svc-archive-v1"
	maxObject    = 256 << 20 // largest object in bytes, both compressed and uncompressed
)

// Record is the signed record at the beginning of an object. It lists the positions of the events
// that follow and proves that they are in the tree of a checkpoint: Before and Behind are the
// hashes in hex to the left and to the right of the events in that tree. Together with the leaves
// of the events they give the root.
type Record struct {
	Schema     string   `json:"schema"` // svc-archive-v1
	Origin     string   `json:"origin"`
	Partition  int16    `json:"partition"`
	First      int64    `json:"first"` // position of the first event; Last is that of the last one
	Last       int64    `json:"last"`
	EventsHash string   `json:"eventsHash"` // SHA-256 of the lines that follow
	Checkpoint string   `json:"checkpoint"` // signed note
	Before     []string `json:"before"`
	Behind     []string `json:"behind"`
}

// unpacked is the content of an object. An object is a file of lines of canonical JSON, compressed
// with gzip. The first line is the envelope {"integrity", "record"} of a Record, signed by a
// record key. Each following line is an event with all its columns and its payload (ledger.Line),
// in the order of positions.
type unpacked struct {
	record    Record
	integrity seal.Integrity
	canonical []byte // canonical form of the record
	events    []ledger.Event
	eventsSum string
}

// pack builds an object from events that the newest checkpoint covers.
func pack(ctx context.Context, p *ledger.Partition, signer *seal.Signer, events []ledger.Event) ([]byte, error) {
	proofs, covering, err := keeper.Proofs(ctx, p)
	if err != nil {
		return nil, err
	}
	first, last := events[0].Position, events[len(events)-1].Position
	before, behind, err := proofs.Range(covering.Size, first-1, last)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, e := range events {
		line, err := canon.Marshal(ledger.NewLine(e))
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	sum := sha256.Sum256(lines)
	envelope, err := signer.Sign(TypeRecord, Record{Schema: recordSchema, Origin: p.Origin(), Partition: p.Number(), First: first, Last: last,
		EventsHash: hex.EncodeToString(sum[:]), Checkpoint: string(covering.Note), Before: inHex(before), Behind: inHex(behind)})
	if err != nil {
		return nil, err
	}
	head, err := canon.Marshal(map[string]any{"integrity": envelope.Integrity, "record": envelope.Record})
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	for _, part := range [][]byte{head, {'\n'}, lines} {
		if _, err := zip.Write(part); err != nil {
			return nil, err
		}
	}
	err = zip.Close()
	return packed.Bytes(), err
}

func inHex(hashes []tree.Hash) []string {
	texts := make([]string, len(hashes))
	for i, h := range hashes {
		texts[i] = hex.EncodeToString(h[:])
	}
	return texts
}

// unpackObject parses an object. It checks neither its signature nor its hashes.
func unpackObject(packed []byte) (o unpacked, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return o, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxObject+1))
	if err != nil {
		return o, err
	}
	if len(text) > maxObject {
		return o, fmt.Errorf("the object is longer than %d bytes", maxObject)
	}
	head, lines, _ := bytes.Cut(text, []byte("\n"))
	members, err := canon.Members(head)
	if err != nil {
		return o, err
	}
	o.canonical = members["record"]
	if err := errors.Join(canon.Decode(members["record"], &o.record), canon.Decode(members["integrity"], &o.integrity)); err != nil {
		return o, err
	}
	sum := sha256.Sum256(lines)
	o.eventsSum = hex.EncodeToString(sum[:])
	for line := range bytes.Lines(lines) {
		var l ledger.Line
		if err := json.Unmarshal(line, &l); err != nil {
			return o, err
		}
		e, ok := l.Event()
		if !ok {
			return o, fmt.Errorf("position %d has a malformed hash", l.Position)
		}
		o.events = append(o.events, e)
	}
	return o, nil
}

// ErrUnsound means that an object does not pass Check.
var ErrUnsound = errors.New("the object of the archive is not valid")

// Check verifies an object without the database: a record key has signed it, and its events are
// complete, in order, and in the tree of a checkpoint that a checkpoint key has signed. It does
// not check whether the keys were valid at these positions.
func Check(packed []byte, record, checkpoints []ed25519.PublicKey) (Record, error) {
	o, err := unpackObject(packed)
	if err != nil {
		return o.record, fmt.Errorf("%w: %w", ErrUnsound, err)
	}
	if err := o.check(record, checkpoints); err != nil {
		return o.record, fmt.Errorf("%w: %w", ErrUnsound, err)
	}
	return o.record, nil
}

func (o unpacked) check(record, checkpoints []ed25519.PublicKey) error {
	r := o.record
	if r.Schema != recordSchema {
		return errors.New("schema must be " + recordSchema)
	}
	if !slices.ContainsFunc(record, func(key ed25519.PublicKey) bool {
		return seal.KeyID(key) == o.integrity.KeyID && seal.Signed(key, TypeRecord, o.canonical, o.integrity.Signature)
	}) {
		return errors.New("signature: it must be from a trusted record key")
	}
	if o.eventsSum != r.EventsHash {
		return errors.New("eventsHash does not match the events")
	}
	if r.First < 1 || int64(len(o.events)) != r.Last-r.First+1 {
		return errors.New("first and last do not match the number of events")
	}
	leaves := make([]tree.Hash, len(o.events))
	for i, e := range o.events {
		if e.Partition != r.Partition || e.Position != r.First+int64(i) || !e.Intact() {
			return fmt.Errorf("position %d: the event does not match its hash, or is at another position", e.Position)
		}
		leaves[i] = tree.Leaf(e.Hash)
	}
	c, err := checkpoint.Open([]byte(r.Checkpoint), r.Origin, checkpoints...)
	if err != nil {
		return err
	}
	before, err := fromHex(r.Before)
	behind, err2 := fromHex(r.Behind)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return tree.CheckRange(before, behind, c.Size, c.Root, r.First-1, leaves)
}

func fromHex(texts []string) ([]tree.Hash, error) {
	hashes := make([]tree.Hash, len(texts))
	for i, text := range texts {
		if n, err := hex.Decode(hashes[i][:], []byte(text)); err != nil || n != len(hashes[i]) || len(text) != 2*n {
			return nil, errors.New("before and behind must contain hashes in hex")
		}
	}
	return hashes, nil
}
