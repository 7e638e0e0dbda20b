package events

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// Every type can be decoded, and only into its own struct.
func TestEveryTypeIsRead(t *testing.T) {
	for _, name := range Types {
		k := kinds[name]
		var other struct{}
		if err := Read(name, Newest(name), []byte(`{}`), &other); err == nil || !strings.Contains(err.Error(), "want *events.") {
			t.Errorf("%s into another struct: %v", name, err)
		}
		into := reflect.New(k.stored).Interface()
		for version := -1; version <= 3; version++ {
			err := Read(name, version, []byte(`{}`), into)
			if read := version == 1 && name != TypeWorkflowCompleted || version == 0 && name == TypeWorkflowCompleted; read == errors.Is(err, ErrVersion) {
				t.Errorf("%s, schema version %d: %v", name, version, err)
			}
		}
	}
	if err := Read("future.happened", 1, nil, nil); !errors.Is(err, ErrVersion) {
		t.Errorf("a type of a newer program: %v", err)
	}
}

// After a type gets a new schema version, new events have that version, and older ones are decoded
// into the same struct. No real type has two versions yet, so the test defines one.
func TestATypeWithTwoSchemaVersions(t *testing.T) {
	type happened struct {
		Name string `json:"name"`
		Note string `json:"note,omitempty"` // since version 2
	}
	const name = "test.happened"
	kinds[name] = kind{stored: reflect.TypeFor[happened](), newest: 2}
	defer delete(kinds, name)
	if Newest(name) != 2 {
		t.Errorf("it is written in version %d", Newest(name))
	}
	for version, payload := range map[int]string{1: `{"name":"a"}`, 2: `{"name":"a","note":"b"}`} {
		for what, read := range map[string]func(string, int, []byte, any) error{"Read": Read, "ReadOpened": ReadOpened} {
			var got happened
			want := happened{"a", []string{"", "b"}[version-1]}
			if err := read(name, version, []byte(payload), &got); err != nil || got != want {
				t.Errorf("%s, version %d: %+v, %v", what, version, got, err)
			}
		}
	}
	for _, version := range []int{-1, 0, 3} {
		var got happened
		if err := Read(name, version, []byte(`{"name":"a"}`), &got); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// The fast reader of signed records returns the same as the full decoder for every type.
func TestSignedAgreesWithTheWholeReader(t *testing.T) {
	integrity := seal.Integrity{Canonicalization: "svc-stable-json-v1", RecordHash: strings.Repeat("a", 64), KeyID: "0123456789abcdef", Signature: "c2ln"}
	members := map[string]any{
		"Record":    jsontext.Value(`{"integrity":{"recordHash":"not this one"},"member":"nor this","record":{"verifyUrl":"<"}}`),
		"Integrity": integrity, "VerifyURL": "https://example.com/\u00e4\"", "Member": "cus_1",
	}
	signed := 0
	for _, name := range Types {
		whole := reflect.New(kinds[name].stored)
		of := func(member string) reflect.Value { return whole.Elem().FieldByName(member) }
		for member, value := range members {
			switch field := of(member); {
			case !field.IsValid():
			case field.Kind() == reflect.Pointer:
				field.Set(reflect.ValueOf(&integrity))
			default:
				field.Set(reflect.ValueOf(value))
			}
		}
		payload, err := canon.Marshal(whole.Interface())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, found, err := ReadSigned(name, Newest(name), payload)
		if want := of("Integrity").IsValid(); err != nil || found != want {
			t.Errorf("%s: signed %v, want %v, %v", name, found, want, err)
		}
		if !found {
			continue
		}
		signed++
		want := Signed{Record: members["Record"].(jsontext.Value), Integrity: integrity}
		for member, into := range map[string]*string{"VerifyURL": &want.VerifyURL, "Member": &want.Member} {
			if of(member).IsValid() {
				*into = members[member].(string)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	if signed < 7 {
		t.Errorf("only %d types with a record were looked at", signed)
	}
	if _, _, err := ReadSigned(TypeDecisionRecorded, 2, []byte(`{}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("a newer version: %v", err)
	}
	if _, _, err := ReadSigned(TypeDecisionRecorded, 1, []byte(`{"integrity":[]}`)); err == nil {
		t.Error("an integrity that is none")
	}
}
