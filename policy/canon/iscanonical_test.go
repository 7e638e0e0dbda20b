package canon_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/policy/canon"
)

// For every text, IsCanonical gives the same result as comparing the text with its canonical form.
func TestIsCanonical(t *testing.T) {
	alphabet := []string{"{", "}", "[", "]", ",", ":", `"`, `"a"`, `"b"`, `"ab"`, `"é"`, `"\n"`, `"\/"`, `"\u0061"`, `"\u001f"`, "\x1f", "\x00", "\xff",
		"0", "-0", "1", "-1", "01", "1.5", "1.50", "1e3", "123456789012345", "1234567890123456", "true", "false", "null", "nul", " ", "\n", `\`, `{"a":1}`, `{"a":1,"b":[]}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`}
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for _, part := range rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(t, "parts") {
			text = append(text, part...)
		}
		canonical, err := canon.Canonical(text)
		if want := err == nil && bytes.Equal(canonical, text); canon.IsCanonical(text) != want {
			t.Fatalf("%q: %v, want %v", text, !want, want)
		}
	})
	for text, want := range map[string]bool{`{"a":[1,true,null,"x\n"],"b":{"c":-5}}`: true, `{"b":1,"a":2}`: false, `{"a":1,"a":1}`: false, `1.50`: false,
		`{"a":0.5}`: true, `"` + "\xff" + `"`: false, `"\u00e9"`: false, `"é"`: true, ``: false, `{"a":1`: false, `[1 ]`: false, `-0`: false, `["a"`: false} {
		if canon.IsCanonical([]byte(text)) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func FuzzIsCanonical(f *testing.F) {
	f.Add([]byte(`{"a":[1,true,null,"x\n"],"b":{"c":-5}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		canonical, err := canon.Canonical(text)
		if want := err == nil && bytes.Equal(canonical, text); canon.IsCanonical(text) != want {
			t.Fatalf("%q: want %v", text, want)
		}
	})
}
