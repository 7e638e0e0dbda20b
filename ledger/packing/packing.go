// Package packing compresses JSON texts. It uses a dictionary of texts that countersign writes
// often: member names, rule texts and constant lists then take one or two bytes. A packed text is
//
//	0x02 ‖ the number of its dictionary ‖ the number of hashes ‖ the hashes ‖ an S2 block
//
// No JSON text begins with the byte 0x02. The block contains the text, in which the first strings
// of 64 lower-case hexadecimal digits, at most 255 of them, are replaced by the byte 0x00, which
// no JSON text contains. The hashes are the replaced strings in the same order, as 32 bytes each.
// S2 is Snappy's block format with repeated offsets, as package s2 of klauspost/compress describes
// and reads it.
//
// A dictionary is a file in Zstandard's format (RFC 8878, section 5), because the program zstd
// makes it. S2 uses its content, the bytes after the tables, with the first repeat at the start.
//
// Zstandard's frames would be a tenth to a fifth smaller for signed records. But a frame has a
// fixed cost, for a copy of its tables and a code for its literals: about a tenth of the processor
// time of a signed decision, three times that of a block.
//
// A released dictionary is never changed or removed, because texts packed with it must stay
// readable. The next dictionary gets the next number and a file of its own. New texts are packed
// with the newest dictionary. "bench packing --help" says how a dictionary is made.
package packing

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of the dictionaries
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

//go:embed v1.dict
var first []byte

// dictionaries lists all dictionaries that were ever released, the newest last.
var dictionaries = [][]byte{first}

const (
	mark       = 0x02 // first byte of a packed text
	head       = 3    // bytes of the header: mark, number of the dictionary, number of hashes
	mostHashes = 255
	hashMark   = 0x00 // replaces a hash in the text
)

// Limit is the largest number of bytes that Unpack returns, apart from the digits of hashes. It is
// far above the 2 MiB that an event's payload may have.
const Limit = 8 << 20

// contents has the contents of the dictionaries. It is created at first use, because most runs of
// the program read no ledger.
var contents = sync.OnceValue(func() []*s2.Dict {
	list := make([]*s2.Dict, len(dictionaries))
	for i, dictionary := range dictionaries {
		d, err := zstd.InspectDictionary(dictionary)
		if err != nil {
			panic(fmt.Sprintf("packing: dictionary %d: %v", i+1, err)) // cannot happen: the dictionary is embedded, and a test packs with it
		}
		list[i] = s2.MakeDictManual(d.Content(), 0)
	}
	return list
})

// ErrDictionary means that a text was packed with a dictionary that this program does not have. A
// newer version of the program has written it.
var ErrDictionary = errors.New("packed with a dictionary of a newer program: start the newer program")

// Pack returns the text in packed form.
func Pack(text []byte) []byte {
	number := len(dictionaries)
	rest, hashes := withoutHashes(text)
	packed := make([]byte, 0, head+len(hashes)+s2.MaxEncodedLen(len(rest)))
	packed = append(packed, mark, byte(number), byte(len(hashes)/sha256.Size))
	packed = append(packed, hashes...)
	block := contents()[number-1].Encode(packed[len(packed):cap(packed)], rest)
	return packed[:len(packed)+len(block)]
}

// withoutHashes splits a text into the text with hashMark for each hash, and the hashes. If the
// text already contains hashMark, it replaces none.
func withoutHashes(text []byte) (rest, hashes []byte) {
	if bytes.IndexByte(text, hashMark) >= 0 {
		return text, nil
	}
	rest = make([]byte, 0, len(text))
	for len(hashes) < mostHashes*sha256.Size {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			break
		}
		rest, text = append(rest, text[:quote+1]...), text[quote+1:]
		if len(text) > hexDigits && text[hexDigits] == '"' && lowerHex(text[:hexDigits]) {
			hashes, _ = hex.AppendDecode(hashes, text[:hexDigits]) // cannot fail: these are hex digits
			rest, text = append(rest, hashMark), text[hexDigits:]
		}
	}
	return append(rest, text...), hashes
}

const hexDigits = 2 * sha256.Size // length of a hash in hex digits

func lowerHex(digits []byte) bool {
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// withHashes replaces each hashMark by its hash.
func withHashes(rest, hashes []byte) ([]byte, error) {
	if len(hashes) == 0 {
		return rest, nil
	}
	text := make([]byte, 0, len(rest)+2*len(hashes))
	for len(hashes) > 0 {
		at := bytes.IndexByte(rest, hashMark)
		if at < 0 {
			return nil, errors.New("unpack: there are more hashes than marks")
		}
		text = hex.AppendEncode(append(text, rest[:at]...), hashes[:sha256.Size])
		rest, hashes = rest[at+1:], hashes[sha256.Size:]
	}
	return append(text, rest...), nil
}

// Packed reports whether the bytes are a packed text, and not the text itself.
func Packed(octets []byte) bool { return len(octets) > head && octets[0] == mark }

// Unpack returns the text that was packed.
func Unpack(packed []byte) ([]byte, error) {
	if !Packed(packed) {
		return nil, errors.New("unpack: the bytes are not packed")
	}
	number, end := int(packed[1]), head+int(packed[2])*sha256.Size
	switch {
	case number < 1 || number > len(dictionaries):
		return nil, ErrDictionary
	case end > len(packed):
		return nil, errors.New("unpack: there are fewer hashes than stated")
	}
	hashes, block := packed[head:end], packed[end:]
	if length, err := s2.DecodedLen(block); err != nil || length > Limit {
		return nil, errors.New("unpack: the block is malformed or too long")
	}
	rest, err := contents()[number-1].Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return withHashes(rest, hashes)
}
