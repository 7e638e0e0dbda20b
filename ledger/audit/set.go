package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/pace"
)

// set makes the checks that need all events at once, in bounded memory: versions are dense, keys
// and ids are used once, receipts match their decision. Each fact is a short entry under a
// fingerprint of its name, in one of many buckets. A bucket that grows moves to a temporary file.
// At the end each bucket is sorted and checked. Fingerprints have 128 bits and random seeds, so an
// attacker cannot make two names collide.
type set struct {
	seeds   [2]maphash.Seed
	most    int // bytes of a bucket in memory before it moves to a file
	buckets [setBuckets]bucket
}

type bucket struct {
	mu      sync.Mutex // guards the following fields
	entries []byte
	file    *os.File
}

const (
	setBuckets  = 128
	entrySize   = 16 + 1 + 8 + 8
	spillOctets = 64 << 10
)

// Kinds of entries, in the order in which entries under one fingerprint are sorted.
const (
	kindVersion     = iota // an event of a stream; a is its version
	kindIdem               // an idempotency key
	kindID                 // an event id
	kindDecision           // a decision; a is a fingerprint of the hashes that its receipt and approval must repeat
	kindUnread             // a decision in the archive that was not read
	kindFollower           // a receipt or approval; a is a fingerprint of the hashes that it repeats
	kindDataKey            // a row of subject_keys
	kindKeyUse             // an event encrypted with that key
	kindNumber             // a number in a series; a is the fingerprint of its event's hash
	kindAfter              // the event with the next number; a is the fingerprint of the hash that it names
	kindAgentNumber        // the same two kinds for the series of an agent
	kindAgentAfter
	kindAgentDecided  // the agent of a decision, by its stream
	kindAgentRepeated // the agent of its receipt or approval
	kindAgentKey      // the data key of an agent, by the agent's name
	kindAgentName     // the name of an agent, by its data key
	kindEntry         // a row of the directory; a is its position
	kindEntered       // an event with that entry
)

// family maps each kind to its family. Kinds of one family share their names.
var family = [...]byte{kindVersion, kindIdem, kindID, kindDecision, kindDecision, kindDecision, kindDataKey, kindDataKey,
	kindNumber, kindNumber, kindAgentNumber, kindAgentNumber, kindAgentDecided, kindAgentDecided, kindAgentKey, kindAgentName,
	kindEntry, kindEntry}

func newSet(most int) *set {
	if most == 0 {
		most = spillOctets
	}
	s := &set{most: most}
	for i := range s.seeds {
		s.seeds[i] = maphash.MakeSeed()
	}
	return s
}

func (s *set) close() {
	for i := range s.buckets {
		if f := s.buckets[i].file; f != nil {
			_ = f.Close()
		}
	}
}

// add adds a fact about a name: a is the value of the fact, and position is that of its event.
func (s *set) add(kind byte, a, position int64, name ...string) {
	var entry [entrySize]byte
	for i, seed := range s.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		_ = h.WriteByte(family[kind])
		for _, part := range name {
			_, _ = h.WriteString(part)
			_ = h.WriteByte(0)
		}
		binary.BigEndian.PutUint64(entry[8*i:], h.Sum64())
	}
	entry[16] = kind
	binary.BigEndian.PutUint64(entry[17:], uint64(a))
	binary.BigEndian.PutUint64(entry[25:], uint64(position))
	b := &s.buckets[entry[0]%setBuckets]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries = append(b.entries, entry[:]...); len(b.entries) >= s.most {
		s.spill(b)
	}
}

// spill moves the entries of a bucket to its file. If that fails they stay in memory.
func (s *set) spill(b *bucket) {
	if b.file == nil {
		f, err := os.CreateTemp("", "countersign-verify-*")
		if err != nil {
			return
		}
		_ = os.Remove(f.Name()) // the file continues to exist until it is closed
		b.file = f
	}
	if _, err := b.file.Write(b.entries); err == nil {
		b.entries = b.entries[:0]
	}
}

// addEvent adds the facts of every event: version, id and idempotency key.
func (s *set) addEvent(e *ledger.Event) {
	s.add(kindVersion, e.Version, e.Position, e.Tenant, e.Stream)
	s.add(kindID, 0, e.Position, e.ID)
	if e.IdemKey != nil {
		s.add(kindIdem, 0, e.Position, e.Tenant, string(e.IdemKey))
	}
}

// fingerprint returns a hash of parts, for comparison within this run.
func (s *set) fingerprint(parts ...string) int64 {
	var h maphash.Hash
	h.SetSeed(s.seeds[0])
	for _, part := range parts {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	return int64(h.Sum64())
}

type entry struct {
	kind        byte
	a, position int64
}

// entryOf parses an entry that add has written, without its name.
func entryOf(b []byte) entry {
	return entry{b[16], int64(binary.BigEndian.Uint64(b[17:])), int64(binary.BigEndian.Uint64(b[25:]))}
}

// restEvery is the number of bytes of entries that are sorted between two pauses: some
// milliseconds of work. A pause costs a query, and most buckets of a small ledger are empty.
const restEvery = 1 << 20

// check sorts each bucket and reports the faults in it.
func (s *set) check(ctx context.Context, pace *pace.Pace, fault func(Fault)) error {
	work := 0 // bytes since the last pause
	for i := range s.buckets {
		b := &s.buckets[i]
		if work += len(b.entries); work > restEvery || b.file != nil {
			work = 0
			if err := pace.Rest(ctx); err != nil {
				return err
			}
		}
		if b.file != nil {
			if _, err := b.file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			stored, err := io.ReadAll(bufio.NewReader(b.file))
			if err != nil {
				return errors.Join(errors.New("read the temporary file of a bucket"), err)
			}
			b.entries = append(stored, b.entries...)
		}
		sorted := make([][]byte, 0, len(b.entries)/entrySize)
		for at := 0; at < len(b.entries); at += entrySize {
			sorted = append(sorted, b.entries[at:at+entrySize])
		}
		slices.SortFunc(sorted, bytes.Compare)
		for len(sorted) > 0 {
			n := 1
			for n < len(sorted) && bytes.Equal(sorted[n][:16], sorted[0][:16]) {
				n++
			}
			checkEntries(sorted[:n], fault)
			sorted = sorted[n:]
		}
		b.entries = nil
	}
	return ctx.Err()
}

// checkEntries checks all entries of one name, which are sorted by kind and value.
func checkEntries(sorted [][]byte, fault func(Fault)) {
	var before entry
	for i, octets := range sorted {
		e := entryOf(octets)
		switch {
		case e.kind == kindVersion && e.a != int64(i)+1:
			fault(eventFault(e.position, "version", "must be %d in its stream", i+1))
			return
		case e.kind == kindIdem && i > 0:
			fault(eventFault(e.position, "idem_key", "position %d has the same key", before.position))
		case e.kind == kindID && i > 0:
			fault(eventFault(e.position, "event_id", "position %d has the same id", before.position))
		case e.kind == kindFollower && i > 0 && before.kind == kindUnread:
			return // the decision was not read, so there is no value to compare with
		case e.kind == kindFollower && (i == 0 || before.kind != kindDecision && before.kind != kindFollower):
			fault(eventFault(e.position, "payload", "its decision is missing"))
			return
		case e.kind == kindFollower && e.a != before.a:
			fault(eventFault(e.position, "payload", "its recordHash and bindingHash are not those of its decision"))
			return
		case e.kind == kindKeyUse && i == 0:
			fault(Fault{"subject_keys", fmt.Sprintf("of the event at %d", e.position), e.position, "key_id", "the row of the data key is missing"})
			return
		case e.kind == kindKeyUse:
			return // the row exists, so every use is right
		case e.kind == kindEntry && (len(sorted) == 1 || e.a != entryOf(sorted[1]).a):
			fault(Fault{"directory", fmt.Sprintf("pos %d", e.position), e.position, "pos", "the position is not that of the first event with this name and value"})
			return
		case e.kind == kindEntered && i == 0:
			fault(Fault{"directory", fmt.Sprintf("of the event at %d", e.position), e.position, "name", "the row of this event is missing"})
			return
		case e.kind >= kindEntry:
			return // the row belongs to the first of these events
		case e.kind >= kindNumber:
			if f, found := numberFault(before, e, i == 0); found {
				fault(f)
				return
			}
		}
		before = e
	}
}
