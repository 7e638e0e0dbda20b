package normal_test

import (
	"strings"
	"testing"

	"github.com/countersign/countersign/policy/normal"
)

func TestSecretKinds(t *testing.T) {
	hex := strings.Repeat("5e", 32)
	for _, tc := range []struct{ name, text, want string }{
		{"privateKey", hex, "private key"},
		{"private_key", "0x" + hex, "private key"},
		{"", "wallet key=" + hex, "private key"},
		{"", "-----BEGIN OPENSSH PRIVATE KEY-----", "private key"},
		{"", "Bearer sk_live_abcdefghijklmnop", "API key"},
		{"", "(AKIAIOSFODNN7EXAMPLE)", "cloud key"},
		{"", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "GitHub token"},
		{"", "xoxp-1234567890-abc", "Slack token"},
		{"", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "JWT"},
		{"mnemonic", "legal winner thank year wave sausage worth useful legal winner thank yellow", "seed phrase"},
		{"", "token-ghp_abcdefghijklmnopqrstuvwxyz0123456789", "GitHub token"},
		{"", "KEY_AKIAIOSFODNN7EXAMPLE", "cloud key"},
		{"", "x-----BEGIN RSA PRIVATE KEY-----", "private key"},
		{"", "Seed Phrase = 'legal, winner, thank, year, wave, sausage, worth, useful, legal, winner, thank, yellow'", "seed phrase"},
		{"", `{"private-key": "0x` + hex + `"}`, "private key"},
		{"private_key", hex + "0", ""},
		{"", "the private keyboard " + hex, ""},
		{"", "public key " + hex, ""},
		{"hash", hex, ""},
		{"publicKey", hex, ""},
		{"", hex, ""},
		{"", "-----BEGIN CERTIFICATE-----", ""},
		{"", "task-management-of-many-things", ""},
		{"", "sk-short", ""},
		{"note", "legal winner thank year wave sausage worth useful legal winner thank yellow", ""},
		{"seed", "legal winner thank", ""},
		{"", "AKIAIOSFODNN7EXAMPLEX", ""},
	} {
		if got := normal.SecretKind(tc.name, tc.text); got != tc.want {
			t.Errorf("%s %q: got %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
}

// A megabyte of texts made to be slow is read to its end: a scan that is not
// linear would not come back within the test's time.
func TestTextsMadeToBeSlow(t *testing.T) {
	for _, unit := range []string{"word seed ", "seed abc def ", "seed:   ", "key:    ", "private key 4c08", "eyJabcdefghij.", " eyJ", "a.b@c-", "@", "+1 2 3 ", "4 1", "4111-", "sk-", "AKIA", "-----BEGIN A ", "1-"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		normal.SecretKind("seed", text)
		normal.PersonalDataKind(text)
	}
}

// The shortest of each are long enough to be looked at.
func TestShortestSecrets(t *testing.T) {
	for text, want := range map[string]string{"xoxb-1234567890": "Slack token", "sk-abcdefghijklmnop": "API key", "AKIAIOSFODNN7EXAM": "", "AKIAIOSFODNN7EXAMPLE": "cloud key"} {
		if got := normal.SecretKind("", text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
	for text, want := range map[string]string{"a@b.cc": "e-mail address", "+12345678": "phone number", "536-22-1234": "social security number", "4222222222222": "card number",
		"4111 1111 1111 1111": "card number", "4111111111111112": "", "3782-822463-10005": "card number", "4 111": ""} {
		if got := normal.PersonalDataKind(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add("seed", "seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow")
	f.Add("privateKey", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl ann@shop.example 4111 1111 1111 1111 536-22-1234 +49 151 23456789")
	f.Fuzz(func(t *testing.T, name, text string) {
		if kind := normal.SecretKind(name, text); kind != normal.SecretKind(name, text) {
			t.Fatal("two answers")
		}
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
		"1763724600000":                "", // milliseconds: no card starts with 1
		"078-05-1120":                  "social security number",
		"000-12-3456":                  "", // never given
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
