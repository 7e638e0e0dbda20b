package ledger

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

	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// TypeArchive is the payload type of the record that an object of an archive begins
// with.
const TypeArchive = "application/vnd.svc.archive.v1+json"

const (
	archiveSchema = "svc-archive-v1"
	maxObject     = 256 << 20 // octets, packed or not
)

// ArchiveRecord is what is signed at the beginning of an object: which events follow,
// and how they hang in the tree of a checkpoint. Before and Behind are the hashes
// beside them in that tree, in hex: with the leaves of the events they give its root.
type ArchiveRecord struct {
	Schema     string   `json:"schema"` // svc-archive-v1
	Origin     string   `json:"origin"`
	Partition  int16    `json:"partition"`
	First      int64    `json:"first"` // positions
	Last       int64    `json:"last"`
	EventsHash string   `json:"eventsHash"` // SHA-256 of the lines that follow
	Checkpoint string   `json:"checkpoint"` // the signed note
	Before     []string `json:"before"`
	Behind     []string `json:"behind"`
}

// An archiveObject is a file of an archive: gzip over lines of canonical JSON. The
// first is the envelope {"integrity", "record"} of an ArchiveRecord, signed by a
// record key; each that follows is an event, with every column and its payload
// (Line), in the order of positions.
type archiveObject struct {
	record    ArchiveRecord
	integrity seal.Integrity
	canonical []byte // the record
	events    []Event
	eventsSum string
}

// packObject makes an object of events that a checkpoint covers.
func (p *Partition) packObject(ctx context.Context, signer *seal.Signer, events []Event) ([]byte, error) {
	proofs, covering, err := p.Proofs(ctx)
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
		line, err := canon.Marshal(NewLine(e))
		if err != nil {
			return nil, err
		}
		lines = append(append(lines, line...), '\n')
	}
	sum := sha256.Sum256(lines)
	envelope, err := signer.Sign(TypeArchive, ArchiveRecord{Schema: archiveSchema, Origin: p.origin, Partition: p.p, First: first, Last: last,
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

// unpackObject reads an object, without judging what it says.
func unpackObject(packed []byte) (o archiveObject, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return o, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxObject+1))
	if err != nil {
		return o, err
	}
	if len(text) > maxObject {
		return o, fmt.Errorf("it is longer than %d octets", maxObject)
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
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			return o, err
		}
		e, ok := l.Event()
		if !ok {
			return o, fmt.Errorf("position %d has a hash that is none", l.Position)
		}
		o.events = append(o.events, e)
	}
	return o, nil
}

// ErrNotArchived is an object that is not what it says to be.
var ErrNotArchived = errors.New("the object of the archive is not sound")

// CheckArchive checks an object by itself: that one of the record keys signed it, and
// that its events, whole and in order, are those of the tree of a checkpoint that one
// of the checkpoint keys signed. Whether the keys were valid then is for their ring.
func CheckArchive(packed []byte, record, checkpoints []ed25519.PublicKey) (ArchiveRecord, error) {
	o, err := unpackObject(packed)
	if err != nil {
		return o.record, fmt.Errorf("%w: %w", ErrNotArchived, err)
	}
	if err := o.check(record, checkpoints); err != nil {
		return o.record, fmt.Errorf("%w: %w", ErrNotArchived, err)
	}
	return o.record, nil
}

func (o archiveObject) check(record, checkpoints []ed25519.PublicKey) error {
	r := o.record
	if r.Schema != archiveSchema {
		return errors.New("schema: want " + archiveSchema)
	}
	if !slices.ContainsFunc(record, func(key ed25519.PublicKey) bool {
		return seal.KeyID(key) == o.integrity.KeyID && seal.Signed(key, TypeArchive, o.canonical, o.integrity.Signature)
	}) {
		return errors.New("signature: no trusted record key made it")
	}
	if o.eventsSum != r.EventsHash {
		return errors.New("eventsHash: it is not that of the events")
	}
	if r.First < 1 || int64(len(o.events)) != r.Last-r.First+1 {
		return errors.New("first, last: they are not the number of events")
	}
	leaves := make([]tree.Hash, len(o.events))
	for i, e := range o.events {
		if e.Partition != r.Partition || e.Position != r.First+int64(i) || !e.Intact() {
			return fmt.Errorf("position %d: the event is not the one that was hashed, or stands elsewhere", e.Position)
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
			return nil, errors.New("before, behind: want hashes in hex")
		}
	}
	return hashes, nil
}
