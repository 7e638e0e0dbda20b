package sealing

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

func testOpenings(answer string) []Opening {
	return []Opening{{Pointer: "/answer", Salt: bytes.Repeat([]byte{7}, 32), Value: canon.Value(answer)}}
}

// Long boxes are packed, because they repeat text. Short boxes are not. Both can be decrypted.
func TestLongBoxesAreCompressed(t *testing.T) {
	t.Parallel()
	key, err := Cipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	finding := `{"evidence":"git push --force","message":"Rewrites a branch on the remote","path":"/command"}`
	for _, tc := range []struct {
		findings int
		most     int // largest allowed size of the box in bytes
	}{{1, 1 << 10}, {50, 1 << 10}, {20_000, 64 << 10}} {
		want := testOpenings(`[` + strings.Repeat(finding+",", tc.findings-1) + finding + `]`)
		s := Sealed{KeyID: "sub_1"}
		if err := s.Seal(key, "service", "evt_1", want); err != nil || len(s.Box) > tc.most {
			t.Errorf("%d findings: a box of %d octets, want at most %d: %v", tc.findings, len(s.Box), tc.most, err)
		}
		if got, err := s.Open(key, "service", "evt_1"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d findings: %v", tc.findings, err)
		}
		if _, err := s.Open(key, "service", "evt_2"); err == nil {
			t.Errorf("%d findings: opened for another event", tc.findings)
		}
		plain, err := canon.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		s.Box = key.Seal(nil, s.Nonce, plain, s.additional("service", "evt_1"))
		if got, err := s.Open(key, "service", "evt_1"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d findings, as they are: %v", tc.findings, err)
		}
	}
}

// A box is refused if it unpacks to more than a payload may have, or to nothing.
func TestBoxThatDoesNotUnpack(t *testing.T) {
	t.Parallel()
	key, err := Cipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	huge := fmt.Appendf(nil, `[{"value":%q}]`, strings.Repeat("a", packing.Limit))
	packed := packing.Pack(huge)
	for name, plain := range map[string][]byte{"huge": packed, "cut": packed[:len(packed)/2], "another mark": {0x01}, "empty": {}, "text": []byte("x")} {
		s := Sealed{KeyID: "sub_1", Nonce: make([]byte, key.NonceSize())}
		s.Box = key.Seal(nil, s.Nonce, plain, s.additional("service", "evt_1"))
		if _, err := s.Open(key, "service", "evt_1"); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
