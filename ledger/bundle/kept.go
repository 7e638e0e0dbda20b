package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// keptKinds lists, by payload type, the signed records that can be compared with an export. event
// is the type of the event that contains the record, name is the word for the record in messages,
// and id and time are the record's members with its id and its time.
var keptKinds = map[string]struct{ event, name, id, time string }{
	"application/vnd.svc.decision.v1+json":          {events.TypeDecisionRecorded, "decision", "decisionId", "issuedAt"},
	"application/vnd.svc.approval.v1+json":          {events.TypeApprovalRecorded, "approval", "approvalId", "issuedAt"},
	"application/vnd.svc.assurance-receipt.v1+json": {events.TypeReceiptRecorded, "receipt", "receiptId", "receivedAt"},
}

// recordingTime is the longest time from the time in a record to its event. A record without a
// position may be missing if its time is less than this before the end of the bundle.
const recordingTime = time.Minute

// keptRecord is a signed record that the recipient of an export has kept.
type keptRecord struct {
	file, event, name string
	id, decisionID    string
	hash              string // recordHash
	record            jsontext.Value
	members           map[string]jsontext.Value
	issued            int64 // time in the record, in microseconds since 1970
	position          int64 // position of its event, from the unsigned member ledger; 0 if it has none
	eventHash         string
	here              bool   // the bundle contains the record
	no                string // what does not match; empty if all does
}

// keptRecords contains the records of a folder, and the results of comparing them with the
// bundle's events.
type keptRecords struct {
	all        []*keptRecord
	byID       map[string][]*keptRecord // by event type and id
	byPosition map[int64][]*keptRecord
	decisions  map[string]bool // ids of the decisions of all kept records; true if the bundle shows the decision
	within     int64           // position of the last event before the end of the period
	ended      int64           // time of the last event
	foreign    []string        // files without a record of this organization
	unsigned   []string        // files with a record that no trusted key has signed
}

// keep reads the records in the folder Trust.With. The folder belongs to the verifier, so a file
// that cannot be compared is reported as a gap and does not make the bundle invalid.
func (v *verifier) keep(context.Context) error {
	if v.with == nil {
		return nil
	}
	v.kept = &keptRecords{byID: map[string][]*keptRecord{}, byPosition: map[int64][]*keptRecord{}, decisions: map[string]bool{}}
	if err := fs.WalkDir(v.with, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			v.kept.foreign = append(v.kept.foreign, name)
			return nil
		}
		file, err := v.with.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		text, err := io.ReadAll(io.LimitReader(file, maxLine+1))
		if err == nil {
			v.keepFile(name, text)
		}
		return err
	}); err != nil {
		return fmt.Errorf("with: %w", err)
	}
	if len(v.kept.all)+len(v.kept.foreign)+len(v.kept.unsigned) == 0 {
		return Unchecked("with: the folder has no files; name the one with the signed answers that you have kept")
	}
	return nil
}

// keepFile reads the records of a file. They may be anywhere in a JSON value.
func (v *verifier) keepFile(name string, text []byte) {
	found, unsigned := false, false
	if canonical, err := canon.Canonical(text); err == nil && len(text) <= maxLine {
		envelopes(canonical, func(members map[string]jsontext.Value) {
			r, ours, signed := v.keptRecord(members)
			if !ours {
				return
			}
			if !signed {
				unsigned = true
				return
			}
			found, r.file = true, name
			v.kept.all = append(v.kept.all, r)
			key := r.event + " " + r.id
			v.kept.byID[key] = append(v.kept.byID[key], r)
			v.kept.decisions[r.decisionID] = false
			if r.position > 0 {
				v.kept.byPosition[r.position] = append(v.kept.byPosition[r.position], r)
			}
		})
	}
	switch {
	case unsigned:
		v.kept.unsigned = append(v.kept.unsigned, name)
	case !found:
		v.kept.foreign = append(v.kept.foreign, name)
	}
}

// envelopes calls envelope for each signed record in a canonical value.
func envelopes(value jsontext.Value, envelope func(members map[string]jsontext.Value)) {
	switch {
	case !bytes.Contains(value, []byte(`"integrity":`)):
	case value.Kind() == '[':
		var list []jsontext.Value
		_ = json.Unmarshal(value, &list) // cannot fail: the value is canonical
		for _, element := range list {
			envelopes(element, envelope)
		}
	case value.Kind() == '{':
		members, _ := canon.Members(value) // cannot fail: the value is canonical
		if isObject(members["record"]) && isObject(members["integrity"]) {
			envelope(members)
			delete(members, "record") // do not search inside the record: nothing in it is an answer
		}
		for _, member := range members {
			envelopes(member, envelope)
		}
	}
}

// keptRecord parses an envelope. ours reports whether it is of this organization and of a kind
// that exports contain. signed reports whether its hash and signature are valid.
func (v *verifier) keptRecord(envelope map[string]jsontext.Value) (r *keptRecord, ours, signed bool) {
	record := envelope["record"]
	members, err := canon.Members(record)
	i := integrityOf(envelope["integrity"])
	kind, known := keptKinds[i.PayloadType]
	if err != nil || !known || textOf(members["orgId"]) != v.m.Tenant {
		return nil, false, false
	}
	r = &keptRecord{event: kind.event, name: kind.name, id: textOf(members[kind.id]), decisionID: textOf(members["decisionId"]),
		hash: i.RecordHash, record: record, members: members}
	var position seal.LedgerPosition
	if json.Unmarshal(envelope["ledger"], &position) == nil && position.Tenant == v.m.Tenant && int64(position.Partition) == v.m.Partition && isHex(position.EventHash) {
		r.position, r.eventHash = position.Position, position.EventHash
	}
	key := v.recordKey(i.KeyID, r.position)
	at, err := time.Parse(time.RFC3339Nano, textOf(members[kind.time]))
	r.issued = at.UnixMicro()
	signed = err == nil && r.id != "" && key != nil && !v.keys[i.KeyID].CompromisedAt(r.position) && canon.Hash(record) == i.RecordHash &&
		i.HasKnownAlgorithms() && seal.Signed(key, i.PayloadType, record, i.Signature)
	return r, true, signed
}

// meet compares an event of the bundle, which was verified, with the kept records.
func (v *verifier) meet(l *ledger.Line) {
	k := v.kept
	if k == nil {
		return
	}
	if k.ended = l.OccurredUS; v.to == 0 || l.OccurredUS < v.to {
		k.within = l.Position
	}
	for _, r := range k.byPosition[l.Position] {
		if r.eventHash != l.Hash {
			r.no = fmt.Sprintf("position %d has another event than its answer says", l.Position)
		}
	}
	if l.Payload == nil {
		return
	}
	for _, kind := range keptKinds {
		if kind.event != l.Type {
			continue
		}
		payload, _ := canon.Members([]byte(*l.Payload)) // cannot fail: record has parsed the payload
		record, _ := canon.Members(payload["record"])
		id := textOf(record[kind.id])
		if _, wanted := k.decisions[id]; wanted && l.Type == events.TypeDecisionRecorded {
			k.decisions[id] = true
		}
		for _, r := range k.byID[l.Type+" "+id] {
			r.here = true
			if integrityOf(payload["integrity"]).RecordHash != r.hash || !sameRecord(r.record, payload["record"]) {
				r.no = fmt.Sprintf("%s %s has another recordHash", r.name, Shown(r.id))
			}
		}
	}
}

// sameRecord compares a record with a stored one, in which commitments may replace personal
// members. Comparing recordHash would not be enough, because the signature over a record with
// commitments does not cover it.
func sameRecord(record, stored jsontext.Value) bool {
	if bytes.Equal(record, stored) {
		return true
	}
	if !isObject(stored) {
		return false
	}
	in, err := canon.Members(stored)
	if err != nil {
		return false
	}
	if len(in) == 1 && in["$committed"] != nil {
		return true
	}
	members, err := canon.Members(record)
	if err != nil || !isObject(record) || len(members) != len(in) {
		return false
	}
	for name, member := range members {
		if in[name] == nil || !sameRecord(member, in[name]) {
			return false
		}
	}
	return true
}

// missing returns a reason if a kept record does not match, or is missing although the bundle must
// contain it. Otherwise it reports how many records match, and which files prove nothing.
func (v *verifier) missing(context.Context) error {
	k := v.kept
	if k == nil {
		return nil
	}
	here, wrong, first := 0, 0, ""
	var apart []string
	for _, r := range k.all {
		switch {
		case r.no == "" && r.here:
			here++
			continue
		case r.no == "" && !v.covers(r):
			apart = append(apart, r.file)
			continue
		case r.no == "":
			r.no = fmt.Sprintf("%s %s is missing", r.name, Shown(r.id))
		}
		if wrong++; wrong == 1 {
			first = Shown(r.file) + ": " + r.no
		}
	}
	switch {
	case wrong > 1:
		return falsef("with: %s (and %d more)", first, wrong-1)
	case wrong == 1:
		return falsef("with: %s", first)
	case here > 0:
		v.result.Proven = append(v.result.Proven, fmt.Sprintf("kept: the %d kept records that the filters cover are in the export as they were signed", here))
	}
	v.named("kept records that the filters and the period do not cover", apart)
	v.named("kept files without a record of this organization", k.foreign)
	v.named("kept files whose record no trusted key has signed", k.unsigned)
	return nil
}

// named reports files that prove nothing about the bundle as a gap.
func (v *verifier) named(what string, files []string) {
	if len(files) == 0 {
		return
	}
	count := len(files)
	files = slices.Compact(slices.Clone(files))
	for i, name := range files {
		files[i] = Shown(name)
	}
	v.gap("anything about the %d %s: %s", count, what, strings.Join(files, ", "))
}

// covers reports whether a kept record must be in the bundle.
func (v *verifier) covers(r *keptRecord) bool {
	f := v.m.Filters
	shown := v.kept.decisions[r.decisionID]
	switch {
	case v.dispute != nil:
		return v.dispute.has("decision/"+r.decisionID) && r.isBefore(v.dispute.Through, v.kept.ended)
	case r.event != events.TypeDecisionRecorded && v.selection != nil && !f.Receipts:
		return shown && r.isBefore(v.selection.Through, v.kept.ended) // included with its decision, even outside of the period
	case r.event != events.TypeDecisionRecorded && f.Selects() && !shown && (v.selection == nil || f.Agent != ""):
		return false // its decision is not shown
	case r.event == events.TypeDecisionRecorded:
		subject, _ := canon.Members(r.members["subject"])
		for _, c := range []struct{ filter, is string }{{f.Protocol, textOf(r.members["protocol"])}, {f.Decision, textOf(r.members["decision"])},
			{f.Agent, textOf(subject["agentId"])}, {f.Run, textOf(subject["runId"])}} {
			if c.filter != "" && c.filter != c.is {
				return false
			}
		}
	}
	if v.isOutside(r.issued) {
		return false
	}
	through, ended := v.kept.within, v.kept.ended
	if v.selection != nil {
		through = min(through, v.selection.Through)
	}
	if v.to > 0 {
		ended = min(ended, v.to)
	}
	return r.isBefore(through, ended)
}

// isBefore reports whether the event of a record belongs into a bundle that ends at the position
// through and the time ended. If the record has no position, its time must be more than
// recordingTime before the end.
func (r *keptRecord) isBefore(through, ended int64) bool {
	return r.position > 0 && r.position <= through || r.issued+recordingTime.Microseconds() < ended
}
