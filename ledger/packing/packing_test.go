package packing

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// A released dictionary never changes, because texts packed with it could not be read any more.
func TestDictionariesAreWhatTheyWere(t *testing.T) {
	for i, want := range []string{"aa15ebcfc1df106dacb58fcfb5ee37ec667935eeacb5b739a6c3c6a63dbc8e11"} {
		if sum := sha256.Sum256(dictionaries[i]); hex.EncodeToString(sum[:]) != want {
			t.Errorf("v%d.dict has the SHA-256 %x", i+1, sum)
		}
	}
}

const (
	ofThePast     = `{"charge":"free","priceCents":1,"service":"action-safety/quick","version":"1.0.0"}`
	blockOf       = "02010052007b4263352e830000314e35000edc101500100830227d"
	hashOfThePast = `{"charge":"free","inputHash":"ea18b77412e6c7c2431a64d1b0792f694ecec267bd78a812fbc7bdbc820d3acd","priceCents":1}`
	blockWithHash = "020101ea18b77412e6c7c2431a64d1b0792f694ecec267bd78a812fbc7bdbc820d3acd30007b7263350000019311001073223a317d"
)

// Texts that earlier versions have packed can still be read.
func TestWhatWasPackedIsRead(t *testing.T) {
	for _, tc := range []struct{ packed, text string }{{blockOf, ofThePast}, {blockWithHash, hashOfThePast}} {
		octets, err := hex.DecodeString(tc.packed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unpack(octets); err != nil || string(got) != tc.text || !Packed(octets) {
			t.Errorf("%s is read as %q, %v", tc.packed, got, err)
		}
	}
}

// Text from the dictionary takes almost no space, in short and in long texts.
func TestTheDictionaryIsUsed(t *testing.T) {
	long := "[" + strings.Repeat(ofThePast+",", 20) + "{}]"
	for _, text := range []string{ofThePast, long} {
		if packed := Pack([]byte(text)); len(packed) > len(ofThePast)*2/3 {
			t.Errorf("%d bytes are packed as %d: %x", len(text), len(packed), packed)
		}
	}
}

// A hash takes 32 bytes, wherever it is. A string that only resembles a hash stays unchanged.
func TestHashesTakeHalf(t *testing.T) {
	hash := sha256.Sum256([]byte("x"))
	digits := hex.EncodeToString(hash[:])
	for _, tc := range []struct {
		text   string
		hashes int
	}{
		{`{"a":"` + digits + `"}`, 1},
		{`["` + digits + `","` + digits + `",{"b":"` + digits + `"}]`, 3},
		{`["` + digits + `""` + digits + `"]`, 2},
		{`"` + digits + `"`, 1},
		{`["` + digits[1:] + `"]`, 0},
		{`["` + digits + `0"]`, 0},
		{`["` + strings.ToUpper(digits) + `"]`, 0},
		{`["\"` + digits + `\""]`, 0},
		{`["` + digits, 0},
		{"[\"\x00\",\"" + digits + "\"]", 0},
		{`["` + digits[:20] + "\x00" + digits[21:] + `"]`, 0},
	} {
		packed := Pack([]byte(tc.text))
		if got, err := Unpack(packed); err != nil || string(got) != tc.text || int(packed[2]) != tc.hashes {
			t.Errorf("%q: %d hashes, want %d; back as %q, %v", tc.text, packed[2], tc.hashes, got, err)
		}
	}
	many := []byte("[" + strings.Repeat(`"`+digits+`",`, mostHashes+45) + "{}]")
	if got, err := Unpack(Pack(many)); err != nil || !bytes.Equal(got, many) {
		t.Errorf("a text with %d hashes came back as %d bytes, %v", mostHashes+45, len(got), err)
	}
	packed := Pack([]byte(`["` + digits + `"]`))
	packed[2]++
	if _, err := Unpack(append(packed[:len(packed):len(packed)], make([]byte, 40)...)); err == nil {
		t.Error("a hash without a place was unpacked")
	}
}

// Texts of every length are restored. No text is mistaken for a packed one.
func TestEveryLengthComesBack(t *testing.T) {
	noise := make([]byte, 1100)
	rand.Read(noise)
	for n := range noise {
		for _, text := range [][]byte{noise[:n], bytes.Repeat([]byte{'{'}, n)} {
			if got, err := Unpack(Pack(text)); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
			}
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"a":1}`} {
		if Packed([]byte(text)) {
			t.Errorf("%q is no text", text)
		}
	}
}

// A text that was packed with an unknown dictionary gives ErrDictionary. A text that is longer
// than Limit is refused, and so is a block that states such a length, before memory is allocated
// for it.
func TestWhatCannotBeUnpacked(t *testing.T) {
	block := Pack([]byte(`{"charge":"free"}`))
	for _, number := range []byte{0, 200, 255} {
		other := bytes.Clone(block)
		other[1] = number
		if _, err := Unpack(other); !errors.Is(err, ErrDictionary) {
			t.Errorf("dictionary %d: %v", number, err)
		}
	}
	if _, err := Unpack(Pack(make([]byte, Limit+1))); err == nil {
		t.Error("a text beyond the limit was unpacked")
	}
	large := binary.AppendUvarint([]byte{mark, 1, 0}, Limit+1)
	for _, octets := range [][]byte{nil, {mark}, {mark, 1, 0}, {mark, 1, 1, 1, 0}, append(large, 0), []byte("{}"), block[:len(block)-1]} {
		if _, err := Unpack(octets); err == nil {
			t.Errorf("%x was unpacked", octets)
		}
	}
}

// Every packed text is restored, and other input does no harm.
func FuzzUnpack(f *testing.F) {
	f.Add([]byte(`{"charge":"free"}`))
	f.Add(Pack([]byte(`{"charge":"free","priceCents":1}`)))
	f.Add(Pack(make([]byte, 2000)))
	f.Fuzz(func(t *testing.T, octets []byte) {
		if got, err := Unpack(Pack(octets)); err != nil || !bytes.Equal(got, octets) {
			t.Errorf("%x came back as %x, %v", octets, got, err)
		}
		_, _ = Unpack(octets)
		_, _ = Unpack(append([]byte{mark, 1, 0}, octets...))
		_, _ = Unpack(append(append([]byte{mark, 1, 1}, make([]byte, 32)...), octets...))
	})
}
