package ledger

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/events"
)

// Every payload comes back as it was, and what repeats is packed.
func TestAPayloadIsReadAsItWasWritten(t *testing.T) {
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
		"2 MiB":           {"test.happened", bytes.Repeat([]byte("0123456789abcdef"), MaxPayload/16), true},
		"settled payment": {events.TypePaymentSettled, []byte(`{"mode":"dev","a":"` + strings.Repeat("a", 1000) + `"}`), false},
		"erased subject":  {events.TypeSubjectErased, []byte(`{"keyId":"` + strings.Repeat("a", 1000) + `"}`), false},
	} {
		stored := storedPayload(tc.eventType, tc.payload)
		if packed := !bytes.Equal(stored, tc.payload); packed != tc.packed || packed && len(stored) >= len(tc.payload) {
			t.Errorf("%s: %d octets are stored as %d", name, len(tc.payload), len(stored))
		}
		if !bytes.Equal(Payload(stored), tc.payload) {
			t.Errorf("%s: read as another", name)
		}
	}
}

// Whatever octet of a packed payload is changed, or taken away, what is read is not the
// payload any more: so its hash finds it.
func TestAChangedOctetOfAPackedPayloadIsSeen(t *testing.T) {
	text := fmt.Appendf(nil, `{"reason":"%s","record":{"decision":"needs_review","findings":[],"findings2":[]}}`, strings.Repeat("aabaab", 100))
	stored := storedPayload("test.happened", text)
	if bytes.Equal(stored, text) {
		t.Fatal("not packed")
	}
	for at := range stored {
		for bit := range 8 {
			changed := bytes.Clone(stored)
			changed[at] ^= 1 << bit
			if bytes.Equal(Payload(changed), text) {
				t.Errorf("octet %d, bit %d: changed unseen", at, bit)
			}
		}
		if bytes.Equal(Payload(stored[:at]), text) || bytes.Equal(Payload(stored[at+1:]), text) {
			t.Errorf("cut at octet %d, unseen", at)
		}
	}
}
