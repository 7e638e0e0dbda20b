package packing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
)

// A released dictionary never changes: what was packed by it could not be read.
func TestDictionariesAreWhatTheyWere(t *testing.T) {
	for i, want := range []string{"c9a346098028b58667009fbb7cd1c13673e5c1c822da3ac9c619957f4fb3d640"} {
		if sum := sha256.Sum256(dictionaries[i]); hex.EncodeToString(sum[:]) != want {
			t.Errorf("v%d.dict has the SHA-256 %x", i+1, sum)
		}
	}
}

// A frame of the past is read for ever.
func TestAnOldFrameIsRead(t *testing.T) {
	const text = `{"charge":"free","priceCents":1,"service":"action-safety/quick","version":"1.0.0"}`
	for _, frame := range []string{"28b52ffd2101529d0000107b3104f09c466cd891658ccc1568cd255402"} {
		octets, err := hex.DecodeString(frame)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unpack(octets); err != nil || string(got) != text {
			t.Errorf("read as %q, %v", got, err)
		}
	}
	if frame := Pack([]byte(text)); len(frame) > len(text)*2/3 {
		t.Errorf("%d octets are packed as %d: %x", len(text), len(frame), frame)
	}
}

// A frame by a dictionary that is not here names it, and no memory is spent on what
// claims to be large.
func TestFramesThatCannotBeRead(t *testing.T) {
	frame := Pack([]byte(`{"charge":"free"}`))
	other := bytes.Clone(frame)
	at := bytes.IndexByte(other[5:], 1) + 5 // the number of the dictionary, in one octet
	other[at] = 200
	if _, err := Unpack(other); !errors.Is(err, ErrDictionary) {
		t.Errorf("another dictionary: %v", err)
	}
	if _, err := Unpack(Pack(make([]byte, Limit+1))); err == nil {
		t.Error("a text beyond the limit was unpacked")
	}
	for _, octets := range [][]byte{[]byte(magic), []byte("{}"), frame[:len(frame)-1]} {
		if _, err := Unpack(octets); err == nil {
			t.Errorf("%x was unpacked", octets)
		}
	}
}

// Fuzzing: whatever is packed comes back, and nothing that is no frame does harm.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte(`{"charge":"free"}`))
	f.Add(Pack([]byte(`{"charge":"free","priceCents":1}`)))
	f.Fuzz(func(t *testing.T, octets []byte) {
		if got, err := Unpack(Pack(octets)); err != nil || !bytes.Equal(got, octets) {
			t.Errorf("%x came back as %x, %v", octets, got, err)
		}
		_, _ = Unpack(octets)
	})
}
