package seal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

// Unhashed lists the members of a service's answer that its outputHash leaves out:
// the receipt that carries the hash, and members that depend on time and place.
var Unhashed = []string{"outputHash", "receipt", "record", "integrity", "verifyUrl", "workflowId", "statusUrl", "createdAt", "expiresAt"}

// Gap is a member of a document that no signature covers.
type Gap struct {
	Path   string `json:"path" jsonschema_description:"JSON pointer of the member."`
	Detail string `json:"detail"`
}

// Examination is the result of examining a document.
type Examination struct {
	Valid bool `json:"valid"`
	// Says is one line: what is valid, or the first thing that is not.
	Says       string  `json:"says"`
	Checks     []Check `json:"checks"`
	NotCovered []Gap   `json:"notCovered" jsonschema_description:"Members of the document that no signature covers: believe them as far as you believe who gave you the document."`
}

// ErrNoRecord means that a document has no signed record in it.
var ErrNoRecord = &canon.Error{Code: "missing_field", Message: "there is no signed record in it: want an object with record and integrity, an answer with a receipt, or a list of them"}

// ErrTooMany means that a document has more records than the caller of Examine allows.
var ErrTooMany = &canon.Error{Code: "too_many_items", Message: "there are too many signed records in it; send them in parts"}

// ErrTooMuchUnsigned means that a document has more members without a signature than the
// caller of Examine allows.
var ErrTooMuchUnsigned = &canon.Error{Code: "too_many_items", Message: "there is too much in it that no signature covers; send the signed records alone, or use countersign verify"}

// Examiner examines documents: a signed record, the answer of a service with its
// receipt, a workflow's status record, or anything that holds some of these.
type Examiner struct {
	Keys   Keys
	Locate func(Envelope) Check // looks a record up in the ledger; nil: without a ledger
	Most   int                  // limit of records in one document; 0: any number
	Rest   int                  // limit of members outside of the records that are examined; 0: any number
}

// Examine checks every member of a document, which must be a strict JSON text. A member that
// a signed record covers is recomputed from the record or compared with it. A member that no
// record covers is reported as a gap. The error is a *canon.Error: the document cannot be read,
// or nothing in it is signed.
func (x Examiner) Examine(text []byte) (Examination, error) {
	canonical, err := canon.Canonical(text)
	if err != nil {
		return Examination{}, err
	}
	if !holdsRecord(canonical) { // which a megabyte of anything else is soon asked for
		return Examination{}, ErrNoRecord
	}
	d := document{examiner: x}
	if err := d.value("", canonical); err != nil {
		return Examination{}, err
	}
	if len(d.found) == 0 {
		return Examination{}, ErrNoRecord
	}
	if x.Rest > 0 && d.looked > x.Rest {
		return Examination{}, ErrTooMuchUnsigned
	}
	e := Examination{Valid: Good(d.checks), Checks: d.checks, NotCovered: append([]Gap{}, d.gaps...)}
	for _, f := range d.found {
		e.Valid = e.Valid && f.signed
	}
	e.Says = d.says(e.Valid)
	return e, nil
}

// document is one under examination.
type document struct {
	examiner Examiner
	checks   []Check
	gaps     []Gap
	found    []found
	looked   int // number of members outside of the records that were examined
}

// found is a signed record, at the path of the envelope.
type found struct {
	path     string
	envelope Envelope
	members  map[string]jsontext.Value // of the record
	workflow map[string]jsontext.Value // of its workflow, nil without one
	signed   bool
}

func (d *document) check(path, name, result, detail string) {
	d.checks = append(d.checks, Check{Name: name, Result: result, Detail: detail, Path: path})
}

func (d *document) gap(path, detail string) {
	if d.look() {
		d.gaps = append(d.gaps, Gap{path, detail})
	}
}

// look counts a member that is examined, and says whether it is still within the limit.
func (d *document) look() bool {
	d.looked++
	return d.examiner.Rest == 0 || d.looked <= d.examiner.Rest
}

const unsigned = "no signature covers it"

// holdsRecord says whether there may be a signed record in a canonical value.
func holdsRecord(text jsontext.Value) bool { return bytes.Contains(text, []byte(`"integrity":`)) }

// value looks for signed records in a canonical value.
func (d *document) value(path string, text jsontext.Value) error {
	if !holdsRecord(text) {
		d.gap(path, unsigned)
		return nil
	}
	switch text.Kind() {
	case '{':
		return d.object(path, text)
	case '[':
		var list []jsontext.Value
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		for i, element := range list {
			if err := d.value(path+"/"+strconv.Itoa(i), element); err != nil {
				return err
			}
		}
		return nil
	}
	d.gap(path, unsigned)
	return nil
}

func (d *document) object(path string, text jsontext.Value) error {
	members, err := canon.Members(text)
	if err != nil {
		return err
	}
	isEnvelope := members["record"] != nil && members["integrity"] != nil
	receipt, _ := canon.Members(members["receipt"])
	isAnswer := receipt["record"] != nil && receipt["integrity"] != nil
	switch {
	case isEnvelope:
		err = d.envelope(path, members)
	case !isAnswer:
		for _, name := range sortedNames(members) {
			if err := d.value(path+"/"+escape(name), members[name]); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	if isAnswer {
		if err := d.envelope(path+"/receipt", receipt); err != nil {
			return err
		}
		d.remaining(path+"/receipt", receipt, []string{"record", "integrity", "ledger", "verify"}, d.found[len(d.found)-1])
		d.answer(path, members, d.found[len(d.found)-1])
		return nil
	}
	d.remaining(path, members, []string{"record", "integrity", "ledger", "verify"}, d.found[len(d.found)-1])
	return nil
}

// envelope examines a record, and reports the members of the envelope that are not signed.
func (d *document) envelope(path string, members map[string]jsontext.Value) error {
	if d.examiner.Most > 0 && len(d.found) == d.examiner.Most {
		return ErrTooMany
	}
	var e Envelope
	own := map[string]jsontext.Value{}
	for _, name := range []string{"record", "integrity", "ledger", "verify"} {
		if members[name] != nil {
			own[name] = members[name]
		}
	}
	if err := canon.DecodeChecked(canon.Object(own), &e); err != nil {
		var refused *canon.Error
		if errors.As(err, &refused) {
			refused.Path = path + refused.Path
		}
		return err
	}
	switch {
	case e.Record.Kind() != '{':
		return &canon.Error{Code: "wrong_type", Path: path + "/record", Message: "record must be an object"}
	case e.Integrity.Signature == "" || e.Integrity.KeyID == "" || e.Integrity.RecordHash == "":
		return &canon.Error{Code: "missing_field", Path: path + "/integrity", Message: "integrity must have recordHash, keyId and signature"}
	}
	record, err := canon.Members(e.Record)
	if err != nil {
		return err
	}
	checks := e.Examine(d.examiner.Keys)
	workflow, _ := canon.Members(record["workflow"])
	f := found{path, e, record, workflow, Good(checks)}
	switch {
	case d.examiner.Locate != nil:
		checks = append(checks, d.examiner.Locate(e))
	case e.Ledger != nil:
		d.gap(path+"/ledger", "its position in the ledger is not signed: POST the file to /api/verify, or look for it in an export")
	}
	if e.Verify != nil {
		d.gap(path+"/verify", "an address, which is not signed")
	}
	for _, c := range checks {
		d.check(path, c.Name, c.Result, c.Detail)
	}
	d.found = append(d.found, f)
	return nil
}

// answer examines the other members of an object that has a receipt.
func (d *document) answer(path string, members map[string]jsontext.Value, receipt found) {
	signed, hash := receipt.members["outputHash"], members["outputHash"]
	if signed == nil || hash == nil && isStatusRecord(members) {
		d.remaining(path, members, []string{"receipt", "record", "integrity", "ledger", "verify"}, receipt)
		return
	}
	hashed := map[string]jsontext.Value{}
	var rest []string
	for name, value := range members {
		if slices.Contains(Unhashed, name) {
			continue
		}
		hashed[name] = value
		rest = append(rest, name)
	}
	got := canon.Hash(canon.Object(hashed))
	if quoted := `"` + got + `"`; quoted == string(signed) && (hash == nil || quoted == string(hash)) {
		d.check(path, "outputHash", Pass, "the members of the answer have the hash that the signed record names")
	} else {
		for _, name := range sortedNames(hashed) {
			d.compare(path+"/"+escape(name), name, members[name], receipt, false)
		}
		d.check(path, "outputHash", Fail, "the members of the answer hash to "+got+", the signed record says "+word(signed))
	}
	d.remaining(path, members, append(rest, "outputHash", "receipt", "record", "integrity", "ledger", "verify"), receipt)
}

// isStatusRecord says whether an object has only members of a workflow's status record. A
// status record has no hash, so its members are compared one by one. An answer whose hash was
// removed has other members, and is not taken for a status record.
func isStatusRecord(members map[string]jsontext.Value) bool {
	known := []string{"workflowId", "status", "risk", "decision", "requiresHumanReview", "audit", "createdAt", "expiresAt",
		"actionBindingVersion", "actionHash", "binding", "receipt", "boundaries"}
	for name := range members {
		if !slices.Contains(known, name) {
			return false
		}
	}
	return members["workflowId"] != nil
}

// remaining compares members that no hash covers with those of the same name in
// the signed record, and names those that have no counterpart.
func (d *document) remaining(path string, members map[string]jsontext.Value, done []string, f found) {
	left := maps.Clone(members)
	for _, name := range done {
		delete(left, name)
	}
	for _, name := range sortedNames(left) {
		if !d.look() {
			return
		}
		at := path + "/" + escape(name)
		switch {
		case name == "boundaries":
			parts, _ := canon.Members(members[name])
			d.remaining(at, parts, nil, f)
		case !d.compare(at, name, members[name], f, true):
			d.uncovered(at, name, members[name], f)
		}
	}
}

func (d *document) uncovered(path, name string, value jsontext.Value, f found) {
	if name == "statusUrl" {
		if _, id, found := f.counterpart("workflowId"); found && !strings.HasSuffix(string(value), "/"+strings.TrimPrefix(string(id), `"`)) {
			d.check(path, "member", Fail, "statusUrl is that of another workflow")
		}
	}
	d.gap(path, unsigned)
}

// compare compares a member with its counterpart in the signed record. It returns false if
// there is none.
func (d *document) compare(path, name string, value jsontext.Value, f found, tellEqual bool) bool {
	of, signed, found := f.counterpart(name)
	switch {
	case !found:
		return false
	case string(signed) != string(value):
		d.check(path, "member", Fail, fmt.Sprintf("%s: the file says %s, the signed record says %s", name, word(value), word(signed)))
	case tellEqual:
		d.check(path, "member", Pass, name+" is that of the signed "+of)
	}
	return true
}

// counterpart finds a member in the workflow of a record, or in the record itself.
func (f found) counterpart(name string) (of string, value jsontext.Value, ok bool) {
	if value := f.workflow[name]; value != nil {
		return "workflow", value, true
	}
	value, ok = f.members[name]
	return "record", value, ok
}

func sortedNames(members map[string]jsontext.Value) []string {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// escape makes a member name a part of a JSON pointer that can be shown.
func escape(name string) string {
	if canon.SafePointer("/"+name) != "/"+name {
		return "(member with an unusual name)"
	}
	return name
}

// word returns a short plain value as it is, and "another value" for all others. The author of
// a document may be an attacker, and the values are shown on terminals.
func word(value jsontext.Value) string {
	const most = 80
	text := string(value)
	if value.Kind() == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return "another value"
		}
	}
	shown := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-") == ""
	if text == "" || len(text) > most || !shown {
		return "another value"
	}
	return text
}
