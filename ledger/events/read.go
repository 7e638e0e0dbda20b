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

// ErrVersion means that this program does not know the type or schema version of an event. A
// newer program has written the event.
var ErrVersion = errors.New("a newer program has written the event: start that one")

// Read decodes the payload of an event of a type and schema version into the present struct of
// that type. stored is a pointer to that struct. It reads every schema version, since a version
// differs from the one before only by which members are sealed, and by optional members. Sealed
// personal members stay commitments.
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

// ReadOpened is Read for a payload whose personal members have been put back. Members that were
// erased stay commitments. It does not check the payload, which was checked when it was sealed.
func ReadOpened(eventType string, schemaVersion int, payload []byte, stored any) error {
	if _, err := kindInto(eventType, schemaVersion, stored); err != nil {
		return err
	}
	return canon.DecodeChecked(payload, stored)
}

// kindInto returns the kind of a type, and an error unless stored points to its present struct.
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

// Stored is Read into a new struct of the event's type. It returns the struct as a value, so
// that a fold can switch over its type.
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

// As reads an event into the struct of its type.
func As[T any](e interface{ Read(stored any) error }) (stored T, err error) {
	err = e.Read(&stored)
	return stored, err
}

// Signed has the members that all events with a signed record have in common.
type Signed struct {
	Record    jsontext.Value // part of the payload it was read from
	Integrity seal.Integrity
	VerifyURL string // empty if the event does not have it
	Member    string // cus_… who caused it; empty if the event does not have it
}

// ReadSigned reads only these members, of an event of any type, and does not decode the
// record. signed is false if the event has none.
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

// RecordIn returns the record inside of a payload, nil if it has none.
func RecordIn(payload []byte) jsontext.Value {
	start, end, found := canon.Find(payload, "record")
	if !found {
		return nil
	}
	return jsontext.Value(payload[start:end:end])
}

// textIn returns a member of a payload that is a text, or an empty text if it is absent.
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
