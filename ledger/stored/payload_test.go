package stored

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/policy/canon"
)

// sealedIn returns a payload with a member sealed.
func sealedIn(box string) []byte {
	return fmt.Appendf(nil, `{"answer":{"$committed":"%064d"},"sealed":{"box":"%s","keyId":"sub_1","nonce":"AAAA"},"service":"%s"}`, 1, box, strings.Repeat("action-safety/quick", 10))
}

// Every payload is restored unchanged, and a repetitive one is packed.
func TestAPayloadIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 400)
	rand.Read(noise)
	for name, tc := range map[string]struct {
		eventType string
		payload   []byte
		packed    bool
	}{
		"short":           {"test.happened", []byte(`{}`), false},
		"long":            {"test.happened", []byte(`{"a":"` + strings.Repeat("needs_review ", 40) + `"}`), true},
		"text of a frame": {"test.happened", []byte(`{"a":"` + strings.Repeat("\x28\xb5/\xfd", 100) + `"}`), true},
		"noise":           {"test.happened", append([]byte(`{`), noise...), false},
		"2 MiB":           {"test.happened", bytes.Repeat([]byte("0123456789abcdef"), (2<<20)/16), true},
		"sealed":          {"test.happened", sealedIn(base64.StdEncoding.EncodeToString(noise)), true},
		"no box":          {"test.happened", sealedIn(""), true},
		"box of a line":   {"test.happened", sealedIn(base64.StdEncoding.EncodeToString(noise)[:76] + "\\n"), true},
		"other base64":    {"test.happened", sealedIn("AAAB"[:3] + "="), true},
		"loose base64":    {"test.happened", sealedIn("AB=="), true},
		"no base64":       {"test.happened", sealedIn("a-b"), true},
		"erased subject":  {events.TypeSubjectErased, []byte(`{"keyId":"` + strings.Repeat("a", 1000) + `"}`), false},
	} {
		stored := Form(tc.eventType, tc.payload)
		if packed := !bytes.Equal(stored, tc.payload); packed != tc.packed || packed && len(stored) >= len(tc.payload) {
			t.Errorf("%s: %d octets are stored as %d", name, len(tc.payload), len(stored))
		}
		if !bytes.Equal(Payload(stored), tc.payload) {
			t.Errorf("%s: read as another", name)
		}
	}
}

// Bytes that begin like a packed payload but are not one cause no panic.
func FuzzPayload(f *testing.F) {
	f.Add(Form("test.happened", sealedIn("AAAA")))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, octets []byte) {
		if got := Payload(Form("test.happened", octets)); isPayload(octets) && !bytes.Equal(got, octets) {
			t.Errorf("%x came back as %x", octets, got)
		}
		_ = Payload(octets)
		if len(octets) > packedTail {
			for _, begin := range []string{"\x28\xb5\x2f\xfd", "\x02\x01\x00"} {
				checked := binary.BigEndian.AppendUint32(append([]byte(begin), octets...), 0)
				_ = Payload(binary.BigEndian.AppendUint32(checked, crc32.Checksum(checked, castagnoli)))
			}
		}
	})
}

// isPayload reports whether bytes can be a payload.
func isPayload(octets []byte) bool {
	return len(octets) > 1 && octets[0] == '{' && canon.IsCanonical(octets)
}

// If any byte of a packed payload is changed or removed, the result differs from the payload, so
// its hash does not match.
func TestAChangedOctetOfAPackedPayloadIsSeen(t *testing.T) {
	t.Parallel()
	short := sealedIn(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("aabaab", 10))))
	long := slices.Concat(short[:len(short)-1], []byte(`,"text":"`+strings.Repeat("needs_review ", 100)+`"}`))
	for name, text := range map[string][]byte{"short": short, "long": long} { // one for each form of package packing
		stored := Form("test.happened", text)
		if bytes.Equal(stored, text) {
			t.Fatalf("%s: not packed", name)
		}
		for at := range stored {
			for bit := range 8 {
				changed := bytes.Clone(stored)
				changed[at] ^= 1 << bit
				if bytes.Equal(Payload(changed), text) {
					t.Errorf("%s: octet %d, bit %d: changed unseen", name, at, bit)
				}
			}
			if bytes.Equal(Payload(stored[:at]), text) || bytes.Equal(Payload(stored[at+1:]), text) {
				t.Errorf("%s: cut at octet %d, unseen", name, at)
			}
		}
	}
}
