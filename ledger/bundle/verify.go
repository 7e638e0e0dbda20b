package bundle

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/checkpoint"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/ledger/tree"
	"github.com/countersign/countersign/policy/canon"
)

// Key is a public key that a verifier trusts, and the positions at which it is valid in one
// partition.
type Key struct {
	Purpose   string // "record" or "checkpoint"
	Public    ed25519.PublicKey
	Partition int   // partition of the positions, or AnyPartition
	From      int64 // position of its activation; 0 if unknown
	To        int64 // position of its retirement; 0 if the key is active
	Void      int64 // if the key is compromised, the position from which its signatures do not count; otherwise 0
}

// AnyPartition is the partition of a key that is trusted in every partition.
const AnyPartition = -1

// Result is the result of a verification.
type Result struct {
	Valid  bool     `json:"valid"`
	Reason string   `json:"reason"` // first check that failed; empty if none failed
	Gaps   []string `json:"gaps"`   // what the bundle does not prove
	Events int64    `json:"events"`
	Tenant string   `json:"tenant"`
	Size   int64    `json:"checkpointSize"`

	Proven  []string        `json:"proven,omitempty"` // what a selection or a dispute pack proves
	Stated  []string        `json:"stated,omitempty"` // what only the service's signature states
	Filters Filters         `json:"filters,omitzero"` // filters of the manifest
	Views   string          `json:"views"`            // "not checked"; the program that compares the views sets "same" or "different"
	Last    checkpoint.Seen `json:"-"`                // last event of the bundle
	Pin     []byte          `json:"-"`                // updated text of the given pin; nil if none was given or the bundle is not valid

	extent *extent // data for Join; nil if the bundle is not valid or a dispute pack
}

// reason is the error of a failed check: the bundle is not valid.
type reason string

// Error returns the reason.
func (r reason) Error() string { return string(r) }

// Unchecked is the error of a verification that lacked something, such as a key. The verification
// has neither found a fault nor proven anything.
type Unchecked string

// Error returns the text.
func (u Unchecked) Error() string { return string(u) }

// Texts that verify.py has too.
const (
	noRecordKey     = Unchecked("keys: there is no record key; save the keys from /.well-known/jwks.json of the service")
	noCheckpointKey = Unchecked("keys: there is no checkpoint key, but the bundle has a checkpoint; save the keys from /.well-known/jwks.json of the service")
	pinUnread       = Unchecked("pin: it must be a checkpoint of this ledger that a key you trust has signed; if the file is the pin of another ledger, name another file, and if the ledger has a new checkpoint key, save the ledger's keys again")
	pinUncovered    = Unchecked("pin: no checkpoint covers the events of this bundle, so nothing proves that these events continue the pinned history; ask for a new export")
)

// pinUnproven is the error of a bundle that has no proof that it extends the checkpoint of the
// pin.
func pinUnproven(pin, head int64) error {
	return Unchecked(fmt.Sprintf("pin: this bundle has no proof that its %d events continue the %d you have seen, and the pin was not changed; "+
		"update the pin from the service itself (countersign pin https://...), then ask for a new export", head, pin))
}

// falsef returns a reason.
func falsef(format string, args ...any) error { return reason(fmt.Sprintf(format, args...)) }

// Unprovable lists what no bundle can prove.
var Unprovable = []string{
	"that every action the agents took was submitted to the service",
	"that evidence supplied by a caller is true",
	"that this tenant has no event after the last one here (only the service's signature on the manifest says so)",
	"the time of any event; only the order of positions is proven (times are from the server's clock)",
}

// verifier is the state of one verification. It makes the checks of verify.py, in the same order.
type verifier struct {
	bundle   *Bundle
	progress Progress
	given    []Key
	keys     map[string]Key // keys that are valid in the manifest's partition, by id
	pin      []byte
	with     fs.FS
	m        relied
	filters  map[string]jsontext.Value
	from, to int64 // period of the filters, in microseconds since 1970; 0 means no limit

	seen     checkpoint.Seen            // event of this tenant in the pin; zero if there is none
	seenHere string                     // hash of the event in the bundle with the sequence of seen; empty if there is none
	pins     map[string]checkpoint.Seen // events in the pin, by checkpoint.SeriesName
	fork     reason                     // reason for the first event in a series that differs from the event in the pin; empty if there is none

	signatures seal.Verifier
	signer     Key // key that signed the manifest

	head      *checkpoint.Checkpoint // nil if no checkpoint covers the events
	at        map[int64]ledger.Hash  // hash of each event that has an inclusion proof, by position
	selection *Selection             // nil if the bundle is not a selection
	dispute   *Dispute               // nil if the bundle is not a dispute pack
	statement jsontext.Value         // statement in the manifest; nil if there is none
	tally     *Tally                 // recount of the statement; nil if there is none
	ranges    []*shown               // series of the selection
	ends      map[int64]bool         // positions that need a proof even in a long bundle

	kept *keptRecords // nil if no kept answers were given

	series   map[[16]byte]numbered        // last event of each series, by a hash of its name
	decided  map[[32]byte][32]byte        // hash of the fields that a receipt must repeat, by a hash of the id of its decision
	agents   map[[16]byte][16]byte        // hash of the agent of each decision, by a hash of its stream
	personal int64                        // number of events whose payload has a commitment
	nameOpen bool                         // an opening shows that the claim has the name of the agent in the filters
	void     struct{ count, first int64 } // number of records that a compromised key signed, and the position of the first one
	first    int64                        // position of the first event
	last     int64                        // position of the last event so far
	sequence int64                        // sequence of the last event so far
	occurred int64                        // time of the last event so far, for selections and dispute packs
	result   Result
}

// relied contains the members of a manifest that a verification needs. Of the other members it
// checks only that they are signed.
type relied struct {
	Schema          string            `json:"schema"`
	ExportID        string            `json:"exportId"`
	Origin          string            `json:"origin"`
	Partition       int64             `json:"partition"`
	Tenant          string            `json:"tenant"`
	FirstSequence   int64             `json:"firstSequence"`
	Count           int64             `json:"count"`
	PrevBeforeFirst string            `json:"prevBeforeFirst"`
	LastHash        string            `json:"lastHash"`
	CheckpointSize  int64             `json:"checkpointSize"`
	PriorDecisions  map[string]string `json:"priorDecisions"`
	Filters         Filters           `json:"filters"`
	Withheld        int64             `json:"withheld"`
	Files           map[string]string `json:"files"`
}

// Trust contains the verifier's own keys, pin and answers, which must not come from the bundle.
type Trust struct {
	Keys []Key
	Pin  []byte // checkpoint.Pin from an earlier verification; nil if there is none
	With fs.FS  // folder of kept signed answers, which the bundle must contain if its filters cover them; nil if there is none
}

// Verify verifies a bundle. If the bundle is not valid, Verify returns a result with a reason and
// no error. The error is Unchecked, or says what could not be read.
func Verify(ctx context.Context, b *Bundle, trust Trust, progress Progress) (Result, error) {
	v := &verifier{bundle: b, progress: progress, given: trust.Keys, keys: map[string]Key{}, pin: trust.Pin, with: trust.With, at: map[int64]ledger.Hash{}, series: map[[16]byte]numbered{}, decided: map[[32]byte][32]byte{}, agents: map[[16]byte][16]byte{}, ends: map[int64]bool{}, result: Result{Gaps: []string{}, Views: "not checked"}}
	if !v.holds(ledger.PurposeRecord) {
		return v.result, noRecordKey
	}
	for _, check := range []func(context.Context) error{v.manifest, v.keep, v.note, v.events, v.inclusion, v.openings, v.policies, v.missing, v.pinned} {
		err := check(ctx)
		var no reason
		var lacks Unchecked
		switch {
		case errors.As(err, &no):
			v.result.Reason = no.Error()
			return v.result, nil
		case errors.As(err, &lacks):
			return v.result, lacks
		case err != nil:
			return v.result, fmt.Errorf("read the bundle: %w", err)
		}
	}
	v.result.Valid, v.result.extent = true, &extent{relied: v.m, selection: v.selection}
	if v.dispute != nil {
		v.result.extent = nil // a dispute pack has no series to join
		return v.result, nil
	}
	if v.head != nil {
		v.result.extent.head = v.head.Root
	}
	return v.result, nil
}

func (v *verifier) gap(format string, args ...any) {
	v.result.Gaps = append(v.result.Gaps, fmt.Sprintf(format, args...))
}

// choose selects the keys for the manifest's partition. If a key was given for this partition and
// for AnyPartition, the key of this partition counts.
func (v *verifier) choose() {
	for _, key := range v.given {
		id := seal.KeyID(key.Public)
		if _, known := v.keys[id]; int64(key.Partition) == v.m.Partition || key.Partition == AnyPartition && !known {
			v.keys[id] = key
		}
	}
}

// holds reports whether a key for a purpose was given.
func (v *verifier) holds(purpose string) bool {
	return slices.ContainsFunc(v.given, func(k Key) bool { return k.Purpose == purpose })
}

// RetiredBy reports whether a key was retired at or before a position.
func (k Key) RetiredBy(position int64) bool { return k.To > 0 && position >= k.To }

// CompromisedAt reports whether a signature at a position does not count because the key is
// compromised. Position 0 means unknown.
func (k Key) CompromisedAt(position int64) bool {
	return k.Void > 0 && (position == 0 || position >= k.Void)
}

// recordKey returns a record key that is valid at a position, or nil. Position 0 skips the check
// of the position.
func (v *verifier) recordKey(id string, position int64) ed25519.PublicKey {
	key, known := v.keys[id]
	if !known || key.Purpose != ledger.PurposeRecord || position > 0 && (position < key.From || key.RetiredBy(position)) {
		return nil
	}
	return key.Public
}

func isHex(text string) bool {
	octets, err := hex.DecodeString(text)
	return err == nil && len(octets) == 32 && hex.EncodeToString(octets) == text
}

// isCanonical reports whether a text is canonical JSON whose numbers are integers up to 2^53-1.
// Every JSON text of a bundle must have this form. A payload may have larger integers, because it
// is a string in its line.
func isCanonical(text []byte) bool {
	return len(text) <= maxLine && canon.IsCanonical(text) && canon.AllIntegers(text)
}

func (v *verifier) manifest(ctx context.Context) error {
	const name = "manifest.json"
	whole, err := v.bundle.Text(name)
	if err != nil {
		return err
	}
	text, ok := bytes.CutSuffix(whole, []byte("\n"))
	members, err := canon.Members(text)
	if !ok || !isCanonical(text) || err != nil || len(members) != 2 || !isObject(members["record"]) || !isObject(members["integrity"]) {
		return falsef("%s: form", name)
	}
	// The record must have the members that the verification needs, in the right form.
	if signing, err := canon.Members(members["integrity"]); err != nil || len(signing) != integrityMembers {
		return falsef("%s: form", name) // a reader could mistake an unsigned member for a signed one
	}
	record, err := canon.Members(members["record"])
	if err != nil || !manifestKinds(record) || json.Unmarshal(members["record"], &v.m) != nil || !slices.Contains([]string{Schema, SelectionSchema, DisputeSchema}, v.m.Schema) {
		return falsef("%s: record", name)
	}
	if v.from, v.to, ok = v.m.Filters.Period(); !ok || min(v.m.FirstSequence, v.m.Count) < 1 { // without an event, nothing would show what is before the period
		return falsef("%s: record", name)
	}
	v.filters, _ = canon.Members(record["filters"]) // cannot fail: manifestKinds has checked that it is an object
	if of := record["selection"]; (of != nil) != (v.m.Schema == SelectionSchema) || of != nil && !v.selectionForm(of) {
		return falsef("%s: selection", name)
	}
	if v.statement = record["statement"]; v.statement != nil {
		if v.m.Schema != SelectionSchema || !v.m.Filters.stateable() {
			return falsef("%s: statement", name)
		}
		v.tally = NewTally()
	}
	if of := record["dispute"]; (of != nil) != (v.m.Schema == DisputeSchema) || of != nil && !v.disputeForm(of) {
		return falsef("%s: dispute", name)
	}
	// The bundle must have exactly the files in the manifest, with the same hashes.
	for _, other := range slices.Sorted(maps.Keys(v.bundle.names)) {
		switch _, named := v.m.Files[other]; {
		case named || other == name:
		case ofSystem(other):
			v.gap("the file %s, which is not part of the export and was not read", Shown(other))
		default:
			return falsef("files: %s is not in the manifest", Shown(other))
		}
	}
	for _, other := range slices.Sorted(maps.Keys(v.m.Files)) {
		if !v.bundle.names[other] {
			return falsef("files: %s is missing", Shown(other))
		}
	}
	for _, other := range slices.Sorted(maps.Keys(v.m.Files)) {
		switch sum, err := v.bundle.sum(ctx, other, v.progress); {
		case err != nil:
			return err
		case sum != v.m.Files[other]:
			return falsef("%s: hash", Shown(other))
		case !isOfBundle(other):
			v.gap("anything about the file %s (only its hash is compared with the manifest)", Shown(other))
		}
	}
	// A trusted key must have signed the manifest.
	v.choose()
	i := integrityOf(members["integrity"])
	key := v.recordKey(i.KeyID, 0)
	switch {
	case i.RecordHash != canon.Hash(members["record"]):
		return falsef("%s: recordHash", name)
	case !i.HasKnownAlgorithms():
		return falsef("%s: algorithms", name)
	case i.PayloadType != PayloadType:
		return falsef("%s: type", name)
	case key == nil || v.keys[i.KeyID].RetiredBy(v.m.CheckpointSize) || v.keys[i.KeyID].CompromisedAt(v.m.CheckpointSize):
		return falsef("%s: key", name) // no check of From: a key may sign a manifest whose checkpoint is older than the key
	case !v.signatures.Signed(key, i.PayloadType, members["record"], i.Signature):
		return falsef("%s: signature", name)
	}
	// Find the events in the pin, to compare them later.
	v.signer = v.keys[i.KeyID]
	if pin, err := checkpoint.ParsePin(v.pin); err == nil { // pinned reports a malformed pin
		v.seen, v.pins = pin.Tenants[v.m.Tenant], pin.Tenants
	}
	v.result.Tenant, v.result.Events, v.result.Size, v.result.Filters = v.m.Tenant, v.m.Count, v.m.CheckpointSize, v.m.Filters
	return nil
}

// integrityMembers is the number of members of integrity. All of them are checked.
const integrityMembers = 7

func isObject(text jsontext.Value) bool { return len(text) > 0 && text[0] == '{' }

// integrityOf parses the member integrity. A member that is not a string becomes empty.
func integrityOf(text jsontext.Value) (i seal.Integrity) {
	members, _ := canon.Members(text) // empty if it is not an object
	into := map[string]*string{"canonicalization": &i.Canonicalization, "hashAlgorithm": &i.HashAlgorithm, "recordHash": &i.RecordHash,
		"payloadType": &i.PayloadType, "signatureAlgorithm": &i.SignatureAlgorithm, "keyId": &i.KeyID, "signature": &i.Signature}
	for name, field := range into {
		_ = json.Unmarshal(members[name], field)
	}
	return i
}

// manifestKinds checks the JSON types of the members that the verifier needs.
func manifestKinds(record map[string]jsontext.Value) bool {
	if id := record["exportId"]; len(id) > 0 && id[0] != '"' { // exportId may be absent
		return false
	}
	for name, kind := range map[string]byte{"schema": '"', "origin": '"', "tenant": '"', "firstSequence": '0', "count": '0', "prevBeforeFirst": '"',
		"lastHash": '"', "checkpointSize": '0', "priorDecisions": '{', "filters": '{', "withheld": '0', "files": '{', "partition": '0'} {
		value := record[name]
		if len(value) == 0 || kind == '0' && (value[0] < '0' || value[0] > '9' || bytes.ContainsAny(value, ".eE")) || kind != '0' && value[0] != kind {
			return false
		}
		if kind != '{' {
			continue
		}
		members, err := canon.Members(value)
		for other, member := range members {
			if name == "filters" && !isFilter(other, member) || name == "files" && member[0] != '"' || name == "priorDecisions" && !isHex(textOf(member)) {
				return false
			}
		}
		if err != nil {
			return false
		}
	}
	return true
}

// isFilter reports whether the verifiers know a filter. They could not compare an unknown filter
// with the events.
func isFilter(name string, value jsontext.Value) bool {
	switch name {
	case "from", "to", "protocol", "decision", "agent", "run":
		return value[0] == '"' && len(value) > 2 // not empty
	case "noPersonal", "receipts":
		return value[0] == 't' || value[0] == 'f'
	}
	return false
}

// mayHide reports whether the filters allow an event without payload. Events outside of the period
// never show their payload. Within the period a payload may be missing only if the filters select
// decisions, and only from decisions and from the approvals and receipts in their streams.
func (v *verifier) mayHide(l ledger.Line) bool {
	return v.isOutside(l.OccurredUS) || strings.HasPrefix(l.Stream, "decision/") && v.m.Filters.Selects()
}

// isOutside reports whether a time in microseconds since 1970 is outside of the period.
func (v *verifier) isOutside(us int64) bool { return us < v.from || v.to > 0 && us >= v.to }

// ofBundle lists the files and folders that VERIFY.md describes.
var ofBundle = []string{"events.jsonl", "checkpoint.txt", "proofs", "keys.jsonl", "policies", "rules", "openings.jsonl", "redactions.jsonl", "pack", "timestamp", "views", "VERIFY.md", "verify.py"}

// isOfBundle reports whether VERIFY.md describes a file with this name.
func isOfBundle(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(ofBundle, first)
}

// ofSystem reports whether operating systems create files of this name automatically.
func ofSystem(name string) bool {
	switch base := path.Base(name); base {
	case ".DS_Store", "Thumbs.db", "desktop.ini":
		return true
	default:
		return strings.HasPrefix(base, "._")
	}
}

// Shown returns a file name that is safe to print. It escapes all characters except letters,
// digits and a few signs as in a URL, because an attacker may have chosen the name.
func Shown(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._/-", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// openNote opens a note that a checkpoint key has signed. A key does not count if it is
// compromised at the size of the tree, or if the tree contains its retirement. barred is true if
// only such keys have signed the note.
func (v *verifier) openNote(text []byte) (c *checkpoint.Checkpoint, barred bool) {
	said, _ := checkpoint.Parse(text) // Open reports a malformed note
	var good, all []ed25519.PublicKey
	for _, key := range v.keys {
		if key.Purpose != ledger.PurposeCheckpoint {
			continue
		}
		if all = append(all, key.Public); !key.CompromisedAt(said.Size) && !key.RetiredBy(said.Size) {
			good = append(good, key.Public)
		}
	}
	if opened, err := checkpoint.Open(text, v.m.Origin, good...); err == nil {
		return &opened, false
	}
	_, err := checkpoint.Open(text, v.m.Origin, all...)
	return nil, err == nil
}

func (v *verifier) note(context.Context) error {
	if v.m.CheckpointSize == 0 {
		v.gap("that the events are in the published tree (no checkpoint covers them)")
		return nil
	}
	text, err := v.bundle.Text("checkpoint.txt")
	if err != nil {
		return err
	}
	head, barred := v.openNote(text)
	switch {
	case !v.holds(ledger.PurposeCheckpoint):
		return noCheckpointKey
	case barred:
		return falsef("checkpoint.txt: key")
	case head == nil:
		return falsef("checkpoint.txt: note")
	case head.Size != v.m.CheckpointSize:
		return falsef("checkpoint.txt: size")
	}
	v.head = head
	return nil
}

// lines calls line for each line of a file, with its number from 1. If the file does not end in a
// line feed, lines returns a reason.
func (v *verifier) lines(ctx context.Context, name string, line func(n int, text []byte) error) error {
	ended, err := v.bundle.lines(ctx, name, line)
	if err == nil && !ended {
		return falsef("%s: end", name)
	}
	return err
}

func sumOf(parts ...string) [32]byte { return sha256.Sum256([]byte(strings.Join(parts, "\x00"))) }

// shortSum returns the first half of sumOf, for maps that can have millions of keys.
func shortSum(parts ...string) [16]byte {
	sum := sumOf(parts...)
	return [16]byte(sum[:16])
}

func (v *verifier) events(ctx context.Context) error {
	switch {
	case v.selection != nil:
		return v.selected(ctx)
	case v.dispute != nil:
		return v.disputed(ctx)
	}
	const name = eventsFile
	wanted, err := v.proven(ctx)
	if err != nil {
		return err
	}
	count, prev, more, occurred, withheld := int64(0), v.m.PrevBeforeFirst, 0, int64(0), int64(0)
	if genesis := ledger.Hash(ledger.Genesis(v.m.Origin, v.m.Tenant)).String(); v.m.FirstSequence == 1 && prev != genesis {
		return falsef("manifest.json: prevBeforeFirst")
	}
	if err := v.lines(ctx, name, func(n int, text []byte) error {
		bad := func(what string) error { return falsef("%s line %d: %s", name, n, what) }
		// Each event must follow the previous one, match its own hash, and show its payload
		// exactly if the filters select it.
		l, e, ok := parseLine(text)
		keyed := l.IdemKey != nil
		switch {
		case !ok:
			return bad("form")
		case l.Tenant != v.m.Tenant:
			return bad("tenant")
		case int64(l.P) != v.m.Partition:
			return bad("p")
		case l.Sequence != v.m.FirstSequence+count:
			return bad("tseq")
		case l.Position <= v.last:
			return bad("pos")
		case l.Prev != prev:
			return bad("prev")
		case l.Payload != nil && e.PayloadHash != sha256.Sum256(e.Payload):
			return bad("payload_hash")
		case e.Sum() != e.Hash:
			return bad("hash")
		case l.OccurredUS < occurred:
			return bad("occurred_us")
		case n > 1 && keyed != (more == 0):
			return bad("idem_key")
		case n > 1 && more > 0 && l.More != more-1:
			return bad("more")
		case n == 1 && v.m.FirstSequence > 1 && l.OccurredUS >= v.from && v.from > 0:
			return bad("from") // an event of the period may have been left out before it
		case l.Payload == nil && !v.mayHide(l) || l.Payload != nil && v.isOutside(l.OccurredUS):
			return bad("payload")
		}
		if no := v.numbers(&e); no != "" {
			return bad(no)
		}
		if !v.hasAgent(&e) {
			return bad("agent")
		}
		// Keep the values that the next event and the later checks need.
		count, prev, more, occurred = count+1, l.Hash, l.More, l.OccurredUS
		if v.progress != nil && count%1000 == 0 {
			v.progress(fmt.Sprintf("verified %d of %d events", count, v.m.Count))
		}
		v.remember(&l, &e, wanted)
		if l.Payload == nil {
			withheld++
		} else if what := v.record(l, v.m.PriorDecisions); what != "" {
			return bad(what)
		}
		v.meet(&l)
		return nil
	}); err != nil {
		return err
	}
	// The totals must match the manifest, and the events must not end within the period.
	switch {
	case more > 0:
		return falsef("%s: more", name)
	case count != v.m.Count:
		return falsef("%s: count", name)
	case prev != v.m.LastHash:
		return falsef("%s: lastHash", name)
	case occurred < v.to:
		return falsef("%s: to", name) // an event of the period may have been left out after it
	case withheld != v.m.Withheld:
		return falsef("manifest.json: withheld")
	case v.signer.RetiredBy(v.last) || v.signer.CompromisedAt(v.last): // the last event may be after the checkpoint
		return falsef("manifest.json: key")
	}
	v.sequence = v.m.FirstSequence + count - 1
	v.sayHidden(withheld)
	return nil
}

// remember keeps the data of an event that later checks need. proven contains the positions that
// have proofs; of these events it also keeps the hash.
func (v *verifier) remember(l *ledger.Line, e *ledger.Event, proven map[int64]bool) {
	v.first, v.last = cmp.Or(v.first, l.Position), l.Position
	if l.Sequence == v.seen.Sequence {
		v.seenHere = l.Hash
	}
	if proven[l.Position] {
		v.at[l.Position] = e.Hash
	}
	if bytes.Contains(e.Payload, committed) {
		v.personal++
	}
	v.compareWithPin(e.Series, "", e.SeriesN, e.Hash)
	v.compareWithPin(e.Series, e.Agent, e.AgentN, e.Hash)
}

// compareWithPin keeps a reason if the pin has another event with this number in a series.
func (v *verifier) compareWithPin(series, agent string, n int64, hash ledger.Hash) {
	if len(v.pins) == 0 || n == 0 || v.fork != "" {
		return
	}
	if seen := v.pins[checkpoint.SeriesName(v.m.Tenant, series, agent)]; seen.Sequence == n && seen.Hash != hash.String() {
		v.fork = pinFork(seriesIn(series, agent), n)
	}
}

func pinFork(series string, n int64) reason {
	return reason(fmt.Sprintf("pin: FORK: %s: %d is not the event you have seen", series, n))
}

// sayHidden reports as gaps how many records prove nothing: those that a compromised key signed,
// and those whose payloads are hidden.
func (v *verifier) sayHidden(hidden int64) {
	if v.void.count > 0 {
		v.gap("the records of %d events from position %d on, which a compromised key signed", v.void.count, v.void.first)
	}
	if hidden > 0 {
		v.gap("the payloads of %d events, which the filters withheld", hidden)
	}
}

// decodes decodes a text and reports whether encoding the result gives exactly the same text.
func decodes(text []byte, into any) bool {
	if json.Unmarshal(text, into) != nil {
		return false
	}
	again, err := canon.Marshal(into)
	return err == nil && bytes.Equal(again, text)
}

// parseLine parses a line that must be exactly what ledger.NewLine gives.
func parseLine(text []byte) (l ledger.Line, e ledger.Event, ok bool) {
	if !isCanonical(text) || !decodes(text, &l) || min(l.Position, l.Sequence, l.Version, l.OccurredUS) < 0 || min(int(l.P), l.SchemaVersion, l.More) < 0 {
		return l, e, false
	}
	e, ok = l.Event()
	return l, e, ok
}

// isPayload reports whether a text is a JSON object that isStrict accepts.
func isPayload(text string) bool { return strings.HasPrefix(text, "{") && isStrict(text) }

// isStrict reports whether a text is strict JSON without white space and within the allowed depth;
// numbers may be of any size. Strict and lenient JSON readers must read the same from it.
func isStrict(text string) bool {
	depth, inside := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '[' || c == '{':
			if depth++; depth > canon.MaxDepth {
				return false
			}
		case c == ']' || c == '}':
			depth--
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			return false
		}
	}
	return jsontext.Value(text).IsValid()
}

// textOf returns the value of a string member, or an empty text for any other member.
func textOf(value jsontext.Value) (text string) {
	_ = json.Unmarshal(value, &text)
	return text
}

// record verifies the signed record in a payload, if there is one, and returns what is wrong with
// it. prior has the recordHash of decisions that need not be in the bundle.
func (v *verifier) record(l ledger.Line, prior map[string]string) string {
	members, err := canon.Members([]byte(*l.Payload))
	if err != nil || !isPayload(*l.Payload) {
		return "payload"
	}
	said, _ := canon.Members(members["record"])   // empty if the record is missing or not an object
	sealed, _ := canon.Members(members["sealed"]) // empty if sealed is missing or not an object
	if no := isNumbered(l, said, sealed); no != "" {
		return no
	}
	// Some payloads have no record to verify.
	if ledger.IsService(l.Tenant) && l.Stream == ledger.SigningKeyStream {
		return "" // keys come from the verifier, not from the bundle
	}
	record := members["record"]
	if members["integrity"] == nil || record == nil {
		switch {
		case events.IsSigned(l.Type), members["integrity"] != nil, record != nil:
			return "record"
		case l.KeyID != "":
			return "key_id"
		}
		return ""
	}
	if said == nil || !isObject(record) || !isObject(members["integrity"]) {
		return "payload"
	}
	// The key must be trusted at this position, and the signature must be valid.
	i := integrityOf(members["integrity"])
	if signing, _ := canon.Members(members["integrity"]); len(signing) != integrityMembers || !i.HasKnownAlgorithms() {
		return "integrity"
	}
	if i.KeyID != l.KeyID {
		return "key_id"
	}
	key := v.recordKey(l.KeyID, l.Position)
	if key == nil {
		return "key"
	}
	if v.keys[l.KeyID].CompromisedAt(l.Position) { // not a fault: the operator has declared the key compromised, and the event itself is intact
		if v.void.count++; v.void.count == 1 {
			v.void.first = l.Position
		}
	}
	good := true
	signature := textOf(sealed["signature"])
	if signature != "" {
		good = v.signatures.Signed(key, seal.TypeCommitted, record, signature)
	}
	if signature == "" || !bytes.Contains(record, committed) { // if the record has commitments, integrity covers the record with its original values, which the method openings verifies
		good = good && canon.Hash(record) == i.RecordHash && v.signatures.Signed(key, i.PayloadType, record, i.Signature)
	}
	switch orgID := said["orgId"]; {
	case !good:
		return "signature"
	case orgID != nil && orgID.Kind() != 'n' && (orgID.Kind() != '"' || textOf(orgID) != l.Tenant):
		return "orgId"
	}
	// A receipt or approval must repeat the hashes of its decision.
	decisionID, binding := textOf(said["decisionId"]), textOf(said["bindingHash"])
	switch l.Type {
	case events.TypeDecisionRecorded:
		v.decided[sumOf(decisionID)] = sumOf(i.RecordHash, binding)
	case events.TypeReceiptRecorded, events.TypeApprovalRecorded:
		hash := textOf(said["decisionRecordHash"])
		if says, here := v.decided[sumOf(decisionID)]; here && says != sumOf(hash, binding) || !here && (hash == "" || prior[decisionID] != hash) {
			return "decision"
		}
	default:
		return ""
	}
	if l.Stream != "decision/"+decisionID {
		return "stream"
	}
	return ""
}

// proven returns the positions that have inclusion proofs. Only the hashes of these events are
// kept in memory.
func (v *verifier) proven(ctx context.Context) (map[int64]bool, error) {
	positions := map[int64]bool{}
	if v.head == nil {
		return positions, nil
	}
	_, err := v.bundle.lines(ctx, inclusionFile, func(_ int, text []byte) error {
		if position, _, ok := proofLine(text, "pos"); ok { // inclusion reports a malformed line
			positions[position] = true
		}
		return nil
	})
	return positions, err
}

const inclusionFile = "proofs/inclusion.jsonl"

// proofLine parses a line of a proof file.
func proofLine(text []byte, field string) (number int64, proof []tree.Hash, ok bool) {
	members, err := canon.Members(text)
	var p Proof
	if !isCanonical(text) || err != nil || len(members) != 2 || members[field] == nil || members["hashes"] == nil || json.Unmarshal(text, &p) != nil {
		return 0, nil, false
	}
	if kind := members[field][0]; kind < '0' && kind != '-' || kind > '9' || members["hashes"][0] != '[' {
		return 0, nil, false
	}
	for _, h := range p.Hashes {
		octets, err := hex.DecodeString(h)
		if err != nil || !isHex(h) {
			return 0, nil, false
		}
		proof = append(proof, tree.Hash(octets))
	}
	return cmp.Or(p.Position, p.From), proof, true
}

func (v *verifier) inclusion(ctx context.Context) error {
	const name = inclusionFile
	if v.head == nil {
		return nil
	}
	seen := map[int64]bool{}
	if err := v.lines(ctx, name, func(n int, text []byte) error {
		position, proof, ok := proofLine(text, "pos")
		hash, here := v.at[position]
		switch {
		case !ok:
			return falsef("%s line %d: form", name, n)
		case !here || position < 1 || position > v.head.Size:
			return falsef("%s line %d: pos", name, n)
		}
		if tree.CheckInclusion(proof, v.head.Size, v.head.Root, position, tree.Leaf(hash)) != nil {
			return falsef("%s line %d: proof", name, n)
		}
		seen[position] = true
		return nil
	}); err != nil {
		return err
	}
	whole := seen[v.first] && seen[v.last]
	for position := range v.ends {
		whole = whole && seen[position]
	}
	if v.m.Count <= AllProofs {
		whole = int64(len(seen)) == v.m.Count // every seen position belongs to an event
	}
	if !whole {
		return falsef("%s: missing", name)
	}
	return nil
}

// AllProofs is the largest number of events in a bundle with a proof for each event. In a larger
// bundle only the first and the last event need a proof, and in a selection or dispute pack the
// events in verifier.ends.
const AllProofs = 10_000

// policies checks that the files of policies and rules have the hashes in their names. Decisions
// refer to them by hash.
func (v *verifier) policies(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.m.Files)) {
		folder, _, _ := strings.Cut(name, "/")
		if folder != "policies" && folder != "rules" {
			continue
		}
		switch sum, err := v.bundle.sum(ctx, name, nil); {
		case err != nil:
			return err
		case name != folder+"/"+sum+".json":
			return falsef("%s: name", Shown(name))
		}
	}
	return nil
}

func (v *verifier) pinned(ctx context.Context) error {
	v.result.Last = checkpoint.Seen{Sequence: v.sequence, Hash: v.m.LastHash}
	if v.pin == nil {
		v.gap("that history was not replaced before you first saw it (no --pin given)")
		return nil
	}
	kept, err := checkpoint.ParsePin(v.pin)
	if err != nil {
		return pinUnread
	}
	pin, _ := v.openNote(kept.Note)
	if pin == nil {
		return pinUnread
	}
	if err := v.pinnedTenant(); err != nil {
		return err
	}
	if err := v.pinnedSeries(&kept); err != nil {
		return err
	}
	if v.head == nil {
		return pinUncovered
	}
	if err := v.continues(ctx, pin); err != nil {
		return err
	}
	if kept.Note, err = v.bundle.Text("checkpoint.txt"); err != nil {
		return err
	}
	if v.m.Count > 0 && v.sequence >= v.seen.Sequence {
		kept.Tenants[v.m.Tenant] = v.result.Last
	}
	v.result.Pin = kept.Text()
	return nil
}

// pinnedTenant compares the events with the event of this tenant in the pin. If the filters have
// no To, the bundle must not end before that event.
func (v *verifier) pinnedTenant() error {
	seen, last := v.seen.Sequence, v.sequence
	switch {
	case seen == 0:
		v.gap("that this tenant had no more events when you last looked (the pin does not know this tenant)")
	case v.seenHere != "" && v.seenHere != v.seen.Hash, v.m.Schema == Schema && seen == v.m.FirstSequence-1 && v.m.PrevBeforeFirst != v.seen.Hash:
		return falsef("pin: FORK: the event with sequence %d is not the one you have seen", seen)
	case v.m.Schema != Schema && v.seenHere == "":
		v.gap("that the event with sequence %d, which you have seen, is still the same (it is not in this export)", seen)
	case v.m.Schema != Schema:
	case seen > last && v.m.Filters.To == "":
		return falsef("pin: ROLLBACK: it ends at sequence %d, and you have seen sequence %d", last, seen)
	case v.seenHere == "" && seen != v.m.FirstSequence-1:
		v.gap("that the event with sequence %d, which you have seen, is still the same (it is not in this export)", seen)
	}
	return nil
}

// continues checks that the bundle's tree extends the tree of the pin.
func (v *verifier) continues(ctx context.Context, pin *checkpoint.Checkpoint) error {
	switch {
	case pin.Size > v.head.Size:
		return falsef("pin: ROLLBACK")
	case pin.Size == v.head.Size && pin.Root != v.head.Root, pin.Size == 0 && pin.Root != tree.Empty():
		return falsef("pin: FORK")
	case pin.Size == v.head.Size, pin.Size == 0: // every tree extends the empty tree
		return nil
	}
	shown := false
	if err := v.lines(ctx, ConsistencyFile, func(n int, text []byte) error {
		size, proof, ok := proofLine(text, "from")
		switch {
		case shown:
		case !ok:
			return falsef("%s line %d: form", ConsistencyFile, n)
		case size == pin.Size:
			shown = true
			if tree.CheckConsistency(proof, v.head.Size, v.head.Root, pin.Size, pin.Root) != nil {
				return falsef("pin: FORK")
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if !shown {
		return pinUnproven(pin.Size, v.head.Size)
	}
	return nil
}
