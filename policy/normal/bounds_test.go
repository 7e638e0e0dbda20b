package normal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/normal"
)

type item struct {
	Name string `json:"name" jsonschema:"minLength=1,maxLength=4"`
}

type bounded struct {
	policy.Common
	Word  string         `json:"word" jsonschema:"minLength=2,maxLength=4"`
	Form  string         `json:"form,omitempty" jsonschema:"pattern=^[a\\,b]+$"`
	Kind  string         `json:"kind,omitempty" jsonschema:"enum=one,enum=two"`
	At    string         `json:"at,omitempty" jsonschema:"format=date-time"`
	Share *float64       `json:"share,omitempty" jsonschema:"minimum=0,maximum=1"`
	Hops  int            `json:"hops,omitempty" jsonschema:"minimum=0,maximum=10"`
	Above *float64       `json:"above,omitempty" jsonschema:"exclusiveMinimum=0"`
	Items []item         `json:"items" jsonschema:"minItems=1,maxItems=2"`
	Names []string       `json:"names,omitempty" jsonschema:"maxItems=2,minLength=1,maxLength=3"`
	Inner *item          `json:"inner,omitempty"`
	Must  *item          `json:"must"`
	Free  map[string]any `json:"free"`
}

func TestBounds(t *testing.T) {
	bounds := normal.BoundsOf[bounded]()
	number := func(x float64) *float64 { return &x }
	for _, tc := range []struct {
		name, code, path string
		change           func(*bounded)
	}{
		{"good", "", "", func(*bounded) {}},
		{"every limit", "", "", func(b *bounded) {
			b.Reference, b.Word, b.Form, b.Kind = strings.Repeat("é", 200), "größ", "a,b", "two"
			b.Share, b.Hops, b.Items, b.Names = number(1), 10, []item{{"abcd"}, {"a"}}, []string{"abc", "a"}
			b.At = "2026-01-02T03:04:05Z"
		}},
		{"embedded", "too_long", "/reference", func(b *bounded) { b.Reference = strings.Repeat("é", 201) }},
		{"absent", "missing_field", "/word", func(b *bounded) { b.Word = "" }},
		{"short", "out_of_range", "/word", func(b *bounded) { b.Word = "a" }},
		{"long", "too_long", "/word", func(b *bounded) { b.Word = "abcde" }},
		{"form", "out_of_range", "/form", func(b *bounded) { b.Form = "abc" }},
		{"enum", "invalid_enum", "/kind", func(b *bounded) { b.Kind = "three" }},
		{"date", "invalid_date", "/at", func(b *bounded) { b.At = "yesterday" }},
		{"above", "out_of_range", "/share", func(b *bounded) { b.Share = number(1.01) }},
		{"below", "out_of_range", "/share", func(b *bounded) { b.Share = number(-0.01) }},
		{"whole number", "out_of_range", "/hops", func(b *bounded) { b.Hops = 11 }},
		{"exclusive", "out_of_range", "/above", func(b *bounded) { b.Above = number(0) }},
		{"no list", "missing_field", "/items", func(b *bounded) { b.Items = nil }},
		{"empty list", "missing_field", "/items", func(b *bounded) { b.Items = []item{} }},
		{"many items", "too_many_items", "/items", func(b *bounded) { b.Items = []item{{"a"}, {"b"}, {"c"}} }},
		{"inside an item", "too_long", "/items/1/name", func(b *bounded) { b.Items = []item{{"a"}, {"abcde"}} }},
		{"item of a list", "too_long", "/names/1", func(b *bounded) { b.Names = []string{"a", "abcd"} }},
		{"too many names", "too_many_items", "/names", func(b *bounded) { b.Names = []string{"a", "b", "c"} }},
		{"behind a pointer", "missing_field", "/inner/name", func(b *bounded) { b.Inner = &item{} }},
		{"required object", "missing_field", "/must", func(b *bounded) { b.Must = nil }},
		{"required map", "missing_field", "/free", func(b *bounded) { b.Free = nil }},
		{"the first one counts", "missing_field", "/word", func(b *bounded) { b.Word, b.Items = "", nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := bounded{Word: "ab", Items: []item{{"a"}}, Must: &item{"a"}, Free: map[string]any{}}
			tc.change(&b)
			err := bounds.Check(b)
			var refusal *policy.Error
			if tc.code == "" && err != nil || tc.code != "" && (!errors.As(err, &refusal) || refusal.Code != tc.code || refusal.Path != tc.path) {
				t.Errorf("got %#v, want %s at %s", err, tc.code, tc.path)
			}
		})
	}
}

// A tag that cannot be parsed makes the first check panic.
func TestBoundsPanicOnABrokenTag(t *testing.T) {
	for name, broken := range map[string]func(){
		"integer": func() {
			type broken struct {
				A string `json:"a" jsonschema:"maxLength=x"`
			}
			normal.BoundsOf[broken]().Check(broken{})
		},
		"number": func() {
			type broken struct {
				A int `json:"a" jsonschema:"minimum=x"`
			}
			normal.BoundsOf[broken]().Check(broken{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			broken()
		})
	}
}
