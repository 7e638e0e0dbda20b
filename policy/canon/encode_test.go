package canon_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/canon"
)

type word string

type inside struct {
	Zebra string         `json:"zebra"`
	Ant   *string        `json:"ant"`
	Raw   jsontext.Value `json:"raw,omitempty"`
}

type outside struct {
	Name    string   `json:"name"`
	Empty   string   `json:"empty,omitempty"`
	Flag    bool     `json:"flag,omitzero"`
	Plain   bool     `json:"plain"`
	Count   int64    `json:"count"`
	Small   int8     `json:"small,omitzero"`
	Octets  []byte   `json:"octets"`
	Maybe   []byte   `json:"maybe,omitempty"`
	Words   []word   `json:"words"`
	Few     []string `json:"few,omitempty"`
	Inner   inside   `json:"inner"`
	Bare    struct{} `json:"bare,omitempty"`
	Pointed *inside  `json:"pointed,omitempty"`
	Hollow  *string  `json:"hollow,omitempty"`
	Both    string   `json:"both,omitempty,omitzero"`
	List    []inside `json:"list"`
	Any     any      `json:"any"`
	Left    string   `json:"-"`
	NoTag   string
	hidden  int
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[a-z "\\/\n\t<>&]{0,6}`), rapid.String(), rapid.Just(""), rapid.Just("a\u2028\u007f\U0001F600\x01"))
}

func anyRaw() *rapid.Generator[jsontext.Value] {
	return rapid.OneOf(rapid.Just(jsontext.Value(nil)), rapid.Map(rapid.OneOf(rapid.SampledFrom([]string{`null`, `""`, `[]`, ` {"b" : 1, "a":"\u0041"} `, `1.50`, `-0`, `9007199254740992`, `"\u0000"`,
		`{"a":1,"a":2}`, `{`, ``, `[1] 2`, "\"\xff\"", strings.Repeat("[", 63) + strings.Repeat("]", 63)}), rapid.Just(`{"x":[1,true,null]}`)),
		func(s string) jsontext.Value { return jsontext.Value(s) }))
}

func anyInside() *rapid.Generator[inside] {
	return rapid.Custom(func(t *rapid.T) inside {
		return inside{anyText().Draw(t, "zebra"), rapid.Ptr(anyText(), true).Draw(t, "ant"), anyRaw().Draw(t, "raw")}
	})
}

// Structs have their own code path (encode.go). It gives the same canonical form as the JSON
// library, and refuses what the library or Check refuses.
func TestStructsHaveTheSameCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := outside{
			Name: anyText().Draw(t, "name"), Empty: anyText().Draw(t, "empty"), Flag: rapid.Bool().Draw(t, "flag"), Plain: rapid.Bool().Draw(t, "plain"),
			Count: rapid.Int64Range(-1<<53-1, 1<<53+1).Draw(t, "count"), Small: rapid.Int8().Draw(t, "small"),
			Octets: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "octets"), Maybe: rapid.SliceOfN(rapid.Byte(), 0, 1).Draw(t, "maybe"),
			Few: rapid.SliceOfN(anyText(), 0, 2).Draw(t, "few"), Inner: inside{Raw: jsontext.Value("{}")},
			Hollow: rapid.Ptr(anyText(), true).Draw(t, "hollow"), Both: anyText().Draw(t, "both"), Left: "left", NoTag: "no tag", hidden: 1,
		}
		if rapid.Bool().Draw(t, "odd") {
			v.Inner = anyInside().Draw(t, "inner")
			v.Pointed = rapid.Ptr(anyInside(), true).Draw(t, "pointed")
			v.List = rapid.SliceOfN(anyInside(), 0, 2).Draw(t, "list")
			v.Any = rapid.SampledFrom([]any{"a text", v.Inner, &v.Inner, v.List, 1.5, map[string]any{"b": 1, "a": nil}, jsontext.Value(` {"b":1, "a":2}`),
				canon.Value(`{"a":1,"b":[true]}`), canon.Value(nil), (*inside)(nil)}).Draw(t, "any")
		}
		if rapid.Bool().Draw(t, "words") {
			v.Words = []word{"a", "\"b\""}
		}
		got, err := canon.Marshal(v)
		text, wantErr := json.Marshal(v, json.Deterministic(true))
		var want []byte
		if wantErr == nil {
			want, wantErr = canon.Canonical(text)
		}
		if max(v.Count, -v.Count) > canon.MaxInteger {
			want, wantErr = nil, errors.New("count is computed with")
		}
		if (err == nil) != (wantErr == nil) || string(got) != string(want) {
			t.Fatalf("%+v\n got %s, %v\nwant %s, %v", v, got, err, want, wantErr)
		}
	})
}

type ownForm struct{ text string }

// MarshalJSON makes ownForm a type with its own JSON form.
func (o ownForm) MarshalJSON() ([]byte, error) { return []byte(`{"z":1,"a":"` + o.text + `"}`), nil }

type ring struct {
	Next *ring `json:"next"`
}

type embedding struct {
	inside
	More string `json:"more"`
}

type Embedded struct {
	B int `json:"b"`
}

// Marshal leaves types without an encoder to the JSON library, and returns the canonical form of
// what the library writes.
func TestOtherTypesHaveTheSameCanonicalForm(t *testing.T) {
	type octets []byte
	for name, v := range map[string]any{
		"own form": struct{ O ownForm }{ownForm{"x"}}, "own form by pointer": &ownForm{"y"}, "time": struct{ T time.Time }{time.Unix(0, 0).UTC()},
		"ring": ring{&ring{}}, "embedding": struct {
			Embedded
			A int `json:"a"`
		}{Embedded{1}, 2},
		"map": map[string]int{"b": 1, "a": 2}, "float": struct{ F float64 }{1.5}, "any": []any{1, "x", nil}, "nil": nil, "pointer to nil": (*ring)(nil),
		"array of octets": struct{ A [2]byte }{}, "named octets": octets("x"), "text of a number": struct {
			N int `json:"n,string"`
		}{5}, "unsigned": uint8(3), "slice of bytes by name": []word{"x"}, "nil list": []string(nil),
	} {
		text, err := json.Marshal(v, json.Deterministic(true))
		if err != nil {
			t.Fatal(name, err)
		}
		want, err := canon.Canonical(text)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := canon.Marshal(v); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, want)
		}
	}
	for name, v := range map[string]any{
		"duration": struct{ D time.Duration }{time.Second}, "hidden with a name": embedding{},
	} {
		if _, err := json.Marshal(v); err == nil {
			continue // a newer version of the library can write the type
		}
		if got, err := canon.Marshal(v); err == nil {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Find returns the member that Members returns. Put gives the same object as replacing the member
// with Members and Object.
func TestPutReplacesWhatFindFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "ab", "b-"})
		object, err := canon.Marshal(rapid.MapOfN(names, rapid.MapOfN(rapid.OneOf(names, anyText()), anyValue(1), 0, 4), 0, 4).Draw(t, "object"))
		if err != nil {
			t.Skip(err)
		}
		outer, inner := names.Draw(t, "outer"), names.Draw(t, "inner")
		members, err := canon.Members(object)
		if err != nil {
			t.Fatal(err)
		}
		want, present := object, members[outer] != nil
		start, end, found := canon.Find(object, outer)
		if found != present || found && string(object[start:end]) != string(members[outer]) {
			t.Fatalf("%s of %s: %q", outer, object, object[start:end])
		}
		if present {
			within, err := canon.Members(members[outer])
			if err != nil {
				t.Fatal(err)
			}
			if present = within[inner] != nil; present {
				within[inner] = jsontext.Value(`{"put":1}`)
				members[outer] = canon.Object(within)
				want = canon.Object(members)
			}
		}
		if _, _, found := canon.Find(object, outer, inner); found != present {
			t.Fatalf("%s/%s of %s: found %v", outer, inner, object, found)
		}
		if got := canon.Put(object, []byte(`{"put":1}`), outer, inner); string(got) != string(want) {
			t.Fatalf("%s/%s of %s\n got %s\nwant %s", outer, inner, object, got, want)
		}
	})
	for _, text := range []string{``, `[]`, `1`, `{}`, `"a"`, `null`, `{"a"`, `{"a":`, `{"`, `{"b":{"a":1}}`} {
		if _, _, found := canon.Find([]byte(text), "a"); found {
			t.Errorf("found in %q", text)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	text := "asd_01JD3Z8W5T0000000000000000"
	v := outside{Name: text, Count: 5, List: []inside{{Zebra: text, Ant: &text, Raw: jsontext.Value(`{"a":1}`)}, {Zebra: text, Raw: jsontext.Value(`{"a":1}`)}}, Few: []string{text, text, text}, Inner: inside{Raw: jsontext.Value("{}")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canon.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
