package schema

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// TestATextHasAFormatAsTheLibrarySays compares our checks with the library's, on valid texts and
// on valid texts with a few changed characters.
func TestATextHasAFormatAsTheLibrarySays(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		by := libraryFormat(t, f.name)
		t.Run(f.name, rapid.MakeCheck(func(t *rapid.T) {
			text := []byte(rapid.SampledFrom(formatted).Draw(t, "text"))
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				at := rapid.IntRange(0, len(text)).Draw(t, "at")
				by := rapid.SampledFrom([]string{"", "-", ".", "..", ":", "@", "[", "]", "0", "6", "9", "+", " ", "t", "z", "ü", `"`, `\`, "/", "%", ","}).Draw(t, "by")
				text = slices.Replace(text, at, min(at+rapid.IntRange(0, 2).Draw(t, "less"), len(text)), []byte(by)...)
			}
			if signedNumber.Match(text) {
				t.Skip("the library takes a number with a sign of its own, which no format has")
			}
			if got, want := f.holds(string(text)), by.Validate(string(text)) == nil; got != want {
				t.Errorf("%q: %v", text, got)
			}
		}))
	}
}

var signedNumber = regexp.MustCompile(`[^0-9][+-][0-9]`)

var formatted = []string{
	"2026-01-02", "2024-02-29", "2023-02-29", "2026-01-02T03:04:05Z", "2026-01-02t03:04:05.123z", "2016-12-31T23:59:60Z", "2016-12-31T15:59:60.5-08:00",
	"2017-01-01T00:59:60+01:00", "2026-01-02T03:04:05+24:00", "ann@example.org", "a.b+c@x-y.example.", `"a b"@example.org`, "ann@[192.0.2.1]", "ann@[IPv6:2001:db8::1]",
	"@example.org", "https://example.org/a?b#c", "http://[2001:db8::1]:80/", "http://2001:db8::1/", "urn:a:b", "//example.org", "mailto:ann@example.org",
	strings.Repeat("a", 64) + "@" + strings.Repeat("b", 63) + ".example", strings.Repeat("a.", 126) + "b",
}

// libraryFormat returns the library's check of a format.
func libraryFormat(t *testing.T, name string) *jsonschema.Format {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("format.json", map[string]any{"format": name}); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("format.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Format
}
