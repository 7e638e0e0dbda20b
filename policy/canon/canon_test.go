package canon_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign/countersign/policy/canon"
)

func TestCheckRefuses(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	many := `{"x":0`
	for i := range canon.MaxMembers {
		many += `,"x` + strconv.Itoa(i) + `":0`
	}
	many += `}`
	for _, tc := range []struct{ name, text, code, message string }{
		{"no body", "", "invalid_json", "empty"},
		{"white space only", " \n", "invalid_json", "empty"},
		{"not JSON", "hello", "invalid_json", "syntax error"},
		{"single quotes", `{'a':1}`, "invalid_json", "syntax error"},
		{"comment", `{"a":1/*x*/}`, "invalid_json", "syntax error"},
		{"NaN", `{"a":NaN}`, "invalid_json", "syntax error"},
		{"cut off", `{"a":`, "invalid_json", "ends too early"},
		{"trailing data", `{"a":1} {"b":2}`, "invalid_json", "follows"},
		{"trailing rubbish", `{"a":1}x`, "invalid_json", "follows"},
		{"byte order mark", "\ufeff{}", "invalid_json", "syntax error"},
		{"duplicate member", `{"a":1,"a":2}`, "duplicate_field", "duplicate member"},
		{"duplicate after unescaping", `{"a":1,"\u0061":2}`, "duplicate_field", "duplicate member"},
		{"duplicate nested", `{"o":{"a":1,"a":2}}`, "duplicate_field", "duplicate member"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "invalid_json", "UTF-8"},
		{"overlong NUL", "{\"a\":\"\xc0\x80\"}", "invalid_json", "UTF-8"},
		{"lone surrogate", `{"a":"\ud800"}`, "invalid_json", "UTF-8"},
		{"NUL escaped", `{"a":"\u0000"}`, "invalid_json", "NUL"},
		{"NUL in a name", `{"\u0000":1}`, "invalid_json", "NUL"},
		{"not finite", `{"a":1e999}`, "invalid_json", "too large"},
		{"integer of 41 digits", `{"a":1` + strings.Repeat("0", 40) + `}`, "invalid_json", "40 characters"},
		{"number of 41 characters", `{"a":0.` + strings.Repeat("1", 39) + `}`, "invalid_json", "40 characters"},
		{"depth 65", deep, "invalid_json", "deeper than 64"},
		{"too many members", many, "invalid_json", "10000 members"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := canon.Check([]byte(tc.text))
			var refusal *canon.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("accepted, or another error: %v", err)
			}
			if refusal.Code != tc.code || !strings.Contains(refusal.Message, tc.message) {
				t.Errorf("got %s %q, want %s with %q", refusal.Code, refusal.Message, tc.code, tc.message)
			}
		})
	}
}

func TestCheckAcceptsTheLimits(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
		`{"a":9007199254740991,"b":-9007199254740991}`,
		`{"a":1308129394817110129,"b":-9223372036854775808,"c":1` + strings.Repeat("0", 39) + `,"d":9007199254740992.0}`,
		`{"a":1e300,"b":-1E-300,"c":0.` + strings.Repeat("1", 38) + `}`,
		`{"a":"\ud83d\ude00","A":"` + "\u00a0\ufeff" + `"}`,
		" [ ] \r\n", `"text"`, `null`,
	} {
		if err := canon.Check([]byte(text)); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

func TestErrorsNeverRepeatTheCaller(t *testing.T) {
	type small struct {
		Command string `json:"command"`
	}
	for _, text := range []string{
		`{"canary value":1}`, `{"COMMAND":"canary"}`, `{"command":{"canary":1}}`,
		`{"canary canary":{"a":1,"a":2}}`, `{"command":"canary` + "\xff" + `"}`,
	} {
		var s small
		err := canon.Decode([]byte(text), &s)
		var refusal *canon.Error
		if !errors.As(err, &refusal) {
			t.Fatalf("%s: accepted, or another error: %v", text, err)
		}
		if strings.Contains(refusal.Message+refusal.Path, "canary") {
			t.Errorf("%s: the answer repeats the caller: %+v", text, refusal)
		}
	}
}

func TestCanonicalIsRFC8785(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1.50, "a": "\u0041"}`:           `{"a":"A","b":1.5}`,
		`[1e21, 1e-7, 0.000001, -0, 1E2, 1.0]`: `[1e+21,1e-7,0.000001,0,100,1]`,
		`[9007199254740993, 1308129394817110129, -9223372036854775808, 18446744073709551615, 9999999999999999999999999999999999999999]`: `[9007199254740993,1308129394817110129,-9223372036854775808,18446744073709551615,9999999999999999999999999999999999999999]`,
		`{"é": 9007199254740993, "b": 1e17, "c": 9007199254740994.0}`:                                                                   `{"b":100000000000000000,"c":9007199254740994,"é":9007199254740993}`,
		`{"\ud83d\ude00":1,"\ufb33":2,"a":"/"}`:                                                                                         "{\"a\":\"/\",\"\U0001F600\":1,\"\ufb33\":2}",
	} {
		got, err := canon.Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
	}
	example, _ := canon.Canonical([]byte(`{"b": 1.50, "a": "\u0041"}`))
	if got := canon.Hash(example); got != "be5f1ce885c41d70c068a81970b44f7ec2ac60de83e9b1e154e7d1afab7a3571" {
		t.Errorf("the package comment's example hashes to %s", got)
	}
	large, _ := canon.Canonical([]byte(`{"message_id": 1308129394817110129, "n": 1e2}`))
	if got := canon.Hash(large); got != "91df0d7136df5b8f408295a6f81ef6fc365f296089cc86e6ba9599cd63f0e3cb" {
		t.Errorf("the package comment's example of a large integer hashes to %s", got)
	}
}

// An integer beyond 2^53-1 keeps its digits in a raw JSON value, because the program only hashes
// it or passes it on. For a Go number, with which the program computes, it is refused.
func TestIntegersBeyondTheLimitAreKeptWhereNobodyComputesWithThem(t *testing.T) {
	type request struct {
		Amount   float64        `json:"amount,omitzero"`
		Count    int64          `json:"count,omitzero"`
		Lines    []int          `json:"lines,omitempty"`
		At       time.Time      `json:"at,omitzero"`
		Manifest jsontext.Value `json:"manifest,omitempty"`
	}
	for text, path := range map[string]string{
		`{"amount":9007199254740993}`: "/amount", `{"count":-9007199254740992}`: "/count", `{"lines":[1,9223372036854775807]}`: "/lines/1",
	} {
		var r request
		err := canon.Decode([]byte(text), &r)
		var refusal *canon.Error
		if !errors.As(err, &refusal) || refusal.Path != path || !strings.Contains(refusal.Message, "must be a number from -9007199254740991 to 9007199254740991") {
			t.Errorf("%s: %v", text, err)
		}
	}
	const text = `{"at":"2026-11-25T00:00:00Z","count":9007199254740991,"manifest":{"maximum":9223372036854775807,"minimum":-9223372036854775808}}`
	var r request
	if err := canon.Decode([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if got, err := canon.Marshal(r); err != nil || string(got) != text {
		t.Errorf("%s, %v", got, err)
	}
	for number, exact := range map[string]bool{
		"9007199254740991": true, "9007199254740992": false, "-9007199254740992": false, "9007199254740992.0": false, "1e17": false,
		"1e21": true, "1000000000000000000000": false, "0.1234567890123456": true, "1e300": true,
	} {
		if canon.IsExact(number) != exact {
			t.Errorf("IsExact(%s) is %t", number, !exact)
		}
		integer := exact && !strings.ContainsAny(number, ".e")
		if canon.AllIntegers([]byte(`{"1308129394817110129":["1308129394817110129",`+number+`]}`)) != integer {
			t.Errorf("AllIntegers with %s is %t", number, !integer)
		}
	}
}

// An independent implementation of RFC 8785 gives the same canonical form for every value without
// an integer beyond 2^53-1. The canonical form of a canonical text is that text.
func TestCanonicalAgreesWithAnotherImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(anyValue(4).Draw(t, "value"))
		if err != nil {
			t.Skip(err)
		}
		got, err := canon.Canonical(text)
		if err != nil {
			t.Skip(err) // the value contains a NUL
		}
		want, err := jcs.Transform(text)
		if err == nil && string(got) != string(want) {
			t.Fatalf("ours %s, other %s", got, want)
		}
		again, err := canon.Canonical(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("not a fixed point: %s, %v", again, err)
		}
	})
}

func anyValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(),
		rapid.Float64Range(-1e15, 1e15).AsAny(), rapid.Float64Range(-1e-9, 1e-9).AsAny(),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.SliceOfN(anyValue(depth-1), 0, 4).AsAny(),
		rapid.MapOfN(rapid.StringN(0, 5, -1), anyValue(depth-1), 0, 4).AsAny())
}

// plainValue draws the kind of value that most texts contain: ASCII names, short integers, and
// strings with short escapes.
func plainValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.StringMatching(`[a-z0-9 é"\\\n\t/,:\[\]{}]{0,8}`).AsAny(),
		rapid.Int64Range(-1e16, 1e16).AsAny(), rapid.IntRange(-20, 20).AsAny(),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.SliceOfN(plainValue(depth-1), 0, 4).AsAny(),
		rapid.MapOfN(rapid.StringMatching(`[a-cA-C0-2_ -]{0,4}`), plainValue(depth-1), 0, 6).AsAny())
}

// Plain texts have their own code path (plain.go). It gives the same canonical form as the JSON
// library, whatever the order of the members and the white space.
func TestPlainTextsHaveTheSameCanonicalForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := plainValue(4).Draw(t, "value")
		for _, indent := range []string{"", " ", "\t"} {
			text, err := json.Marshal(value, jsontext.WithIndent(indent)) // writes maps in random order
			if err != nil {
				t.Fatal(err)
			}
			got, err := canon.Canonical(text)
			if err != nil {
				t.Fatal(err)
			}
			want := jsontext.Value(text)
			if err := want.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil || string(got) != string(want) {
				t.Fatalf("of %s\n got %s\nwant %s, %v", text, got, want, err)
			}
			var members, same map[string]jsontext.Value
			if got[0] != '{' {
				continue
			}
			walked := map[string]jsontext.Value{}
			if err := canon.Walk(text, func(name string, value jsontext.Value) (err error) {
				walked[name], err = canon.CanonicalChecked(value)
				return err
			}); err != nil || string(canon.Object(walked)) != string(got) {
				t.Fatalf("walk of %s: %s, %v", text, walked, err)
			}
			if members, err = canon.Members(got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got, &same); err != nil || !maps.EqualFunc(members, same, func(a, b jsontext.Value) bool { return string(a) == string(b) }) {
				t.Fatalf("members of %s: %s", got, members)
			}
		}
	})
}

// Canonical checks the text while it builds the canonical form. For texts that differ from a plain
// text by one edit, it returns the same error as Check.
func TestCanonicalRefusesWhatCheckRefuses(t *testing.T) {
	edits := []string{"", "\x00", "\x1f", "\xff", "\xed\xa0\x80", "é", `\`, `\u0000`, `\ud800`, `\/`, `"`, "0", "1", "-", ".", "e", ",", ":", "[", "]", "{", "}", " ", "t", "true", "nul",
		`"a":1,`, `"a":1,"a":2,`, "\ufeff", strings.Repeat("[", 65), strings.Repeat("[", 30) + strings.Repeat("]", 30), strings.Repeat("1", 20)}
	refused, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(plainValue(4).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := min(len(text), from+rapid.IntRange(0, 2).Draw(t, "octets"))
		text = slices.Concat(text[:from], []byte(rapid.SampledFrom(edits).Draw(t, "edit")), text[to:])
		_, err = canon.Canonical(text)
		if want := canon.Check(text); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Fatalf("%q: %v, the check says %v", text, err, want)
		}
		if err != nil {
			refused++
		} else {
			accepted++
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d were refused and %d accepted: no test of both", refused, accepted)
	}
}

func TestAnObjectOfTooManyMembersIsRefused(t *testing.T) {
	for members, accepted := range map[int]bool{canon.MaxMembers: true, canon.MaxMembers + 1: false} {
		for _, format := range []string{`"m%06d":0`, `"m%d":"x"`} {
			var b strings.Builder
			for i := range members {
				fmt.Fprintf(&b, ","+format, i)
			}
			text := "{" + b.String()[1:] + "}"
			if _, err := canon.Canonical([]byte(text)); (err == nil) != accepted {
				t.Errorf("%d members like %s: %v", members, format, err)
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e3,"x\u00e9"],"b":null}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Add([]byte(` {"b" : {"z":[1,-2], "y":"\n\"\\"},"a":-0, "ab":9007199254740991 , "é":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := canon.Canonical(text)
		if refused := canon.Check(text); fmt.Sprint(refused) != fmt.Sprint(err) {
			t.Fatalf("%q: %v, the check says %v", text, err, refused)
		}
		if err != nil {
			return
		}
		again, err := canon.Canonical(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("not a fixed point: %q -> %q, %v", got, again, err)
		}
		want := jsontext.Value(bytes.Clone(text))
		if err := want.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil || string(got) != string(want) {
			t.Fatalf("%q -> %q, the library says %q, %v", text, got, want, err)
		}
	})
}

// Marshal calls Check only if a quick search finds something suspicious. The search must find
// everything that Check would refuse.
func TestMarshalRefusesWhatCannotBeReadBack(t *testing.T) {
	deep := any(1)
	for range canon.MaxDepth + 1 {
		deep = []any{deep}
	}
	for name, v := range map[string]any{
		"NUL": "a\x00b", "NUL in a name": map[string]int{"\x00": 1}, "2^53": 1 << 53, "-2^53": -1 << 53, "1e17": 1e17, "depth 65": deep,
	} {
		if text, err := canon.Marshal(v); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(4).Draw(t, "value")
		text, err := canon.Marshal(v)
		if err != nil {
			return
		}
		if err := canon.Check(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}

func TestObjectIsTheCanonicalFormOfItsMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := canon.Marshal(rapid.MapOfN(rapid.String(), anyValue(2), 0, 5).Draw(t, "object"))
		if err != nil {
			t.Skip(err)
		}
		members, err := canon.Members(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := canon.Object(members); string(got) != string(text) {
			t.Fatalf("got %s, want %s", got, text)
		}
	})
}
