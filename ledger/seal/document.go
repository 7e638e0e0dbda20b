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

// Unhashed lists the members of a service's answer that its outputHash does not cover: the
// receipt, which contains the hash, and members that depend on the time and the address of the
// service.
var Unhashed = []string{"outputHash", "receipt", "record", "integrity", "verifyUrl", "workflowId", "statusUrl", "createdAt", "expiresAt"}

// Gap is a member of a document that no signature covers.
type Gap struct {
	Path   string `json:"path" jsonschema_description:"JSON pointer of the member."`
	Detail string `json:"detail"`
}

// Examination is the result of examining a document.
type Examination struct {
	Valid bool `json:"valid"`
	// Says is a summary in one line: what is valid, or the first failed check.
	Says       string  `json:"says"`
	Checks     []Check `json:"checks"`
	NotCovered []Gap   `json:"notCovered" jsonschema_description:"Members of the document that no signature covers. Trust them only as far as you trust the sender of the document."`
}

// ErrNoRecord means that a document contains no signed record.
var ErrNoRecord = &canon.Error{Code: "missing_field", Message: "the document contains no signed record: it must be an object with record and integrity, an answer with a receipt, or a list of these"}

// ErrTooMany means that a document contains more records than Examiner.Most.
var ErrTooMany = &canon.Error{Code: "too_many_items", Message: "the document contains too many signed records; send them in parts"}

// ErrTooMuchUnsigned means that a document has more unsigned members than Examiner.Rest.
var ErrTooMuchUnsigned = &canon.Error{Code: "too_many_items", Message: "the document contains too many members that no signature covers; send the signed records alone, or use countersign verify"}

// Examiner verifies documents: a signed record, a service's answer with its receipt, the status
// record of a workflow, or any JSON value that contains some of these.
type Examiner struct {
	Keys   Keys
	Locate func(Envelope) Check // finds a record in the ledger; nil if there is no ledger
	Most   int                  // largest number of records in one document; 0 means no limit
	Rest   int                  // largest number of members to examine outside of the records; 0 means no limit
}

// Examine checks every member of a document, which must be strict JSON. If a signed record covers
// a member, Examine compares the member with the record, or its hash with a hash in the record.
// Other members are reported as gaps. The error is a *canon.Error: the document cannot be parsed,
// or nothing in it is signed.
func (x Examiner) Examine(text []byte) (Examination, error) {
	canonical, err := canon.Canonical(text)
	if err != nil {
		return Examination{}, err
	}
	if !holdsRecord(canonical) { // a fast refusal of large documents that contain no record
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

// document is the state of one examination.
type document struct {
	examiner Examiner
	checks   []Check
	gaps     []Gap
	found    []found
	looked   int // number of members examined outside of the records
}

// found is a signed record. path is that of its envelope.
type found struct {
	path     string
	envelope Envelope
	members  map[string]jsontext.Value // members of the record
	workflow map[string]jsontext.Value // members of the record's workflow; nil if it has none
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

// look counts an examined member and reports whether the count is still within the limit.
func (d *document) look() bool {
	d.looked++
	return d.examiner.Rest == 0 || d.looked <= d.examiner.Rest
}

const unsigned = "no signature covers it"

// holdsRecord reports whether a canonical value may contain a signed record.
func holdsRecord(text jsontext.Value) bool { return bytes.Contains(text, []byte(`"integrity":`)) }

// value searches a canonical value for signed records.
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

// envelope verifies a record. It reports the members ledger and verify, which are not signed, as
// gaps.
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
		d.gap(path+"/ledger", "its position in the ledger is not signed: POST the file to /api/verify, or find the event in an export")
	}
	if e.Verify != nil {
		d.gap(path+"/verify", "the address is not signed")
	}
	for _, c := range checks {
		d.check(path, c.Name, c.Result, c.Detail)
	}
	d.found = append(d.found, f)
	return nil
}

// answer compares the other members of an object that contains a receipt with the signed record.
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

// isStatusRecord reports whether an object has only members of a workflow's status record. A
// status record has no hash, so its members are compared one by one. An answer from which the hash
// was removed is not mistaken for one, because an answer has other members.
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

// remaining handles members that no hash covers. It compares each with the member of the same name
// in the signed record, and reports those without such a member as gaps.
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

// compare compares a member with the member of the same name in the signed record. It returns
// false if there is none.
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

// counterpart returns the member with this name from the workflow in a record, or else from the
// record itself. of says which of the two has it.
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

// escape returns a member name as a part of a JSON pointer. It hides names that are unsafe to
// show.
func escape(name string) string {
	if canon.SafePointer("/"+name) != "/"+name {
		return "(member with an unusual name)"
	}
	return name
}

// word returns a short plain value unchanged, and "another value" for all others. Values are shown
// on terminals, and the author of a document may be an attacker.
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
