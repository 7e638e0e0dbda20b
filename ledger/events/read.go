package events

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// ErrVersion means that this program does not know the type or schema version of an event, because
// a newer program has written it.
var ErrVersion = errors.New("a newer program has written the event: start the newer program")

// Read decodes the payload of an event into stored, a pointer to the current struct of its type.
// It reads every schema version, because versions differ only in optional members and in which
// members are encrypted. Encrypted personal members stay commitments.
func Read(eventType string, schemaVersion int, payload []byte, stored any) error {
	k, err := kindInto(eventType, schemaVersion, stored)
	switch {
	case err != nil:
		return err
	case k.sealed:
		return json.Unmarshal(payload, stored)
	}
	return canon.Decode(payload, stored)
}

// About returns the id of what an event in the access history is about: a member, token, webhook,
// policy or export, the data key of an erased subject, or the part of the service that showed
// personal data. It is empty if the event is about its organization.
func About(eventType string, payload []byte) string {
	name := kinds[eventType].about
	members, err := canon.Members(payload)
	if name == "" || err != nil {
		return ""
	}
	if record := members["record"]; record != nil {
		if members, err = canon.Members(record); err != nil {
			return ""
		}
	}
	var id Text
	_ = json.Unmarshal(members[name], &id) // stays empty if the member is absent
	return string(id)
}

// ReadOpened decodes a payload whose personal members were restored. Erased members stay
// commitments. ReadOpened does not check the payload again, because it was checked when it was
// encrypted.
func ReadOpened(eventType string, schemaVersion int, payload []byte, stored any) error {
	if _, err := kindInto(eventType, schemaVersion, stored); err != nil {
		return err
	}
	return canon.DecodeChecked(payload, stored)
}

// kindInto returns the kind of a type. It returns an error unless stored points to the type's
// current struct.
func kindInto(eventType string, schemaVersion int, stored any) (kind, error) {
	k, err := kindOf(eventType, schemaVersion)
	if err == nil && reflect.TypeOf(stored) != reflect.PointerTo(k.stored) {
		err = fmt.Errorf("read %s into %T, want *%s", eventType, stored, k.stored)
	}
	return k, err
}

func kindOf(eventType string, schemaVersion int) (kind, error) {
	k, known := kinds[eventType]
	oldest, newest := k.versions()
	switch {
	case !known:
		return k, fmt.Errorf("%w (type %s)", ErrVersion, eventType)
	case schemaVersion < oldest || schemaVersion > newest:
		return k, fmt.Errorf("%w (%s, schema version %d)", ErrVersion, eventType, schemaVersion)
	}
	return k, nil
}

// Stored decodes a payload into a new struct of the event's type. It returns the struct as a
// value, so that a fold can switch on its type.
func Stored(eventType string, schemaVersion int, payload []byte) (any, error) {
	k, err := kindOf(eventType, schemaVersion)
	if err != nil {
		return nil, err
	}
	stored := reflect.New(k.stored)
	if err := Read(eventType, schemaVersion, payload, stored.Interface()); err != nil {
		return nil, err
	}
	return stored.Elem().Interface(), nil
}

// As decodes an event into a struct of type T, which must be the struct of the event's type.
func As[T any](e interface{ Read(stored any) error }) (stored T, err error) {
	err = e.Read(&stored)
	return stored, err
}

// Signed contains the members that all events with a signed record have.
type Signed struct {
	Record    jsontext.Value // slice of the payload
	Integrity seal.Integrity
	VerifyURL string // empty if the event has none
	Member    string // cus_… of the member who caused the event; empty if the event has none
}

// IsSigned reports whether every event of a type has a signed record. Events of some other types
// may have one.
func IsSigned(eventType string) bool {
	k, known := kinds[eventType]
	if !known {
		return false
	}
	field, has := k.stored.FieldByName("Integrity")
	return has && field.Type == reflect.TypeFor[seal.Integrity]()
}

// ReadSigned reads the members of Signed from an event of any type, without decoding the record.
// signed is false if the event has no signed record.
func ReadSigned(eventType string, schemaVersion int, payload []byte) (s Signed, signed bool, err error) {
	if _, err := kindOf(eventType, schemaVersion); err != nil {
		return s, false, err
	}
	start, end, signed := canon.Find(payload, "integrity")
	if !signed || string(payload[start:end]) == "null" {
		return s, false, nil
	}
	if err := json.Unmarshal(payload[start:end], &s.Integrity); err != nil {
		return s, true, fmt.Errorf("integrity: %w", err)
	}
	s.Record = RecordIn(payload)
	if s.VerifyURL, err = textIn(payload, "verifyUrl"); err != nil {
		return s, true, err
	}
	s.Member, err = textIn(payload, "member")
	return s, true, err
}

// RecordIn returns the record in a payload, or nil.
func RecordIn(payload []byte) jsontext.Value {
	start, end, found := canon.Find(payload, "record")
	if !found {
		return nil
	}
	return jsontext.Value(payload[start:end:end])
}

// textIn returns a string member of a payload, or an empty text if it is absent.
func textIn(payload []byte, name string) (text string, err error) {
	start, end, found := canon.Find(payload, name)
	if !found {
		return "", nil
	}
	if err := json.Unmarshal(payload[start:end], &text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}
