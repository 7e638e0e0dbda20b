package normal_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/normal"
)

// PersonalDataKind reads a megabyte of the slowest texts. If a search were not linear, the test
// would run into its timeout.
func TestTextsMadeToBeSlow(t *testing.T) {
	for _, unit := range []string{"a.b@c-", "@", "+1 2 3 ", "4 1", "4111-", "1-"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		normal.PersonalDataKind(text)
	}
}

// PersonalDataKind finds personal data of the shortest possible form.
func TestShortestPersonalData(t *testing.T) {
	for text, want := range map[string]string{"a@b.cc": "e-mail address", "+12345678": "phone number", "536-22-1234": "social security number", "4222222222222": "card number",
		"4111 1111 1111 1111": "card number", "4111111111111112": "", "3782-822463-10005": "card number", "4 111": ""} {
		if got := normal.PersonalDataKind(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func FuzzPersonalData(f *testing.F) {
	f.Add("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ann@shop.example 4111 1111 1111 1111 536-22-1234 +49 151 23456789")
	f.Fuzz(func(t *testing.T, text string) {
		normal.PersonalDataKind(text)
		normal.Shown(text)
		normal.MaskAddress(text)
	})
}

func TestPersonalDataKinds(t *testing.T) {
	for text, want := range map[string]string{
		"write to ann@shop.example":    "e-mail address",
		"5500 0000 0000 0004":          "card number",
		"5500000000000005":             "",
		"1763724600000":                "", // a time in milliseconds; no card number begins with 1
		"078-05-1120":                  "social security number",
		"000-12-3456":                  "", // numbers of area 000 are never issued
		"666-12-3456":                  "",
		"123-00-4567":                  "",
		"2026-11-21":                   "",
		"call +1 202 555 0123":         "phone number",
		"UTC+01:00":                    "",
		"1.2.3+20261121":               "",
		"@handle, a@b, user@localhost": "",
	} {
		if got := normal.PersonalDataKind(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
