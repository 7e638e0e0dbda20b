package ground

import (
	"strings"
	"testing"
)

// FuzzCredential checks that every text that ParseCredential accepts has the length, the prefix
// and the checksum of a credential.
func FuzzCredential(f *testing.F) {
	text, _, _ := newCredential("svco_", func(string) bool { return true })
	for _, seed := range []string{text, "", "svco_", strings.Repeat("_", keyLength), text[:61] + "_AAAAAA", strings.Replace(text, "svco", "svck", 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, ok := ParseCredential("svco_", text)
		if ok && (len(text) != keyLength || len(id) != keyIDLength || len(secret) != 32 || text[:5] != "svco_" || checkDigits(text[:61]) != text[62:]) {
			t.Errorf("%q was taken for a credential", text)
		}
	})
}
