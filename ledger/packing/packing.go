// Package packing compresses small JSON texts. It uses a dictionary of texts that countersign
// writes often: member names, rule texts and constant lists then take one or two bytes. A packed
// text has one of two forms, which differ in their first bytes. No JSON text begins like either of
// them.
//
// A long text is a Zstandard frame (RFC 8878), which names its dictionary. Any Zstandard program
// can decompress it:
//
//	zstd -d -D v1.dict
//
// A short text, below shortText bytes, is
//
//	0x02 ‖ the number of its dictionary ‖ the number of hashes ‖ the hashes ‖ an S2 block
//
// The block contains the text, in which each string of 64 lower-case hexadecimal digits is
// replaced by the byte 0x00, which no JSON text contains. The hashes are the replaced strings in
// the same order, as 32 bytes each. S2 is Snappy's block format with repeated offsets, as package
// s2 of klauspost/compress describes and reads it. Its dictionary is the content of the same file
// after the tables (RFC 8878, section 5), with the first repeat at its start.
//
// Short texts are not frames, because a frame has a fixed cost (a copy of its tables, a code for
// its literals) of five times the cost of a block. That was a quarter of the processor time of a
// call of the quick gate.
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
	frameMagic = "\x28\xb5\x2f\xfd" // first bytes of a frame
	blockMark  = 0x02               // first byte of a text that is packed as a block
	blockHead  = 3                  // bytes of the header: blockMark, number of the dictionary, number of hashes
	hashMark   = 0x00               // replaces a hash in the text

	// shortText is the length in bytes from which a frame is smaller at an acceptable cost. The
	// records of the quick gate are shorter, the answers of whole workflows longer.
	shortText = 1024
)

// Limit is the largest number of bytes that Unpack returns for a frame. It is far above the 2 MiB
// that an event's payload may have.
const Limit = 8 << 20

// encoder, decoder and blocks are created at first use, because most runs of the program read no
// ledger.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderDict(dictionaries[len(dictionaries)-1]), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true))
		if err != nil {
			panic(fmt.Sprintf("packing: the newest dictionary: %v", err)) // cannot happen: the dictionary is embedded, and a test packs with it
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderDicts(dictionaries...), zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(Limit))
		if err != nil {
			panic(fmt.Sprintf("packing: dictionaries: %v", err))
		}
		return d
	})
	blocks = sync.OnceValue(func() []*s2.Dict {
		list := make([]*s2.Dict, len(dictionaries))
		for i, dictionary := range dictionaries {
			d, err := zstd.InspectDictionary(dictionary)
			if err != nil {
				panic(fmt.Sprintf("packing: dictionary %d: %v", i+1, err))
			}
			list[i] = s2.MakeDictManual(d.Content(), 0)
		}
		return list
	})
)

// ErrDictionary means that a text was packed with a dictionary that this program does not have. A
// newer version of the program has written it.
var ErrDictionary = errors.New("packed with a dictionary of a newer program: start the newer program")

// Pack returns the text in packed form.
func Pack(text []byte) []byte {
	if len(text) >= shortText {
		return encoder().EncodeAll(text, make([]byte, 0, len(text)/2+64))
	}
	number := len(dictionaries)
	rest, hashes := withoutHashes(text)
	packed := make([]byte, 0, blockHead+len(hashes)+s2.MaxEncodedLen(len(rest)))
	packed = append(packed, blockMark, byte(number), byte(len(hashes)/sha256.Size))
	packed = append(packed, hashes...)
	block := blocks()[number-1].Encode(packed[len(packed):cap(packed)], rest)
	return packed[:len(packed)+len(block)]
}

// withoutHashes splits a text into the text with hashMark for each hash, and the hashes. If the
// text already contains hashMark, it replaces none.
func withoutHashes(text []byte) (rest, hashes []byte) {
	if bytes.IndexByte(text, hashMark) >= 0 {
		return text, nil
	}
	rest = make([]byte, 0, len(text))
	for {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			return append(rest, text...), hashes
		}
		rest, text = append(rest, text[:quote+1]...), text[quote+1:]
		if len(text) > hexDigits && text[hexDigits] == '"' && lowerHex(text[:hexDigits]) {
			hashes, _ = hex.AppendDecode(hashes, text[:hexDigits]) // cannot fail: these are hex digits
			rest, text = append(rest, hashMark), text[hexDigits:]
		}
	}
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
		mark := bytes.IndexByte(rest, hashMark)
		if mark < 0 {
			return nil, errors.New("unpack: there are more hashes than marks")
		}
		text = hex.AppendEncode(append(text, rest[:mark]...), hashes[:sha256.Size])
		rest, hashes = rest[mark+1:], hashes[sha256.Size:]
	}
	return append(text, rest...), nil
}

// Packed reports whether the bytes are a packed text, and not the text itself.
func Packed(octets []byte) bool { return framed(octets) || inBlock(octets) }

func framed(octets []byte) bool { return bytes.HasPrefix(octets, []byte(frameMagic)) }

func inBlock(octets []byte) bool { return len(octets) > blockHead && octets[0] == blockMark }

// Unpack returns the text that was packed.
func Unpack(packed []byte) ([]byte, error) {
	switch {
	case framed(packed):
		return unframe(packed)
	case !inBlock(packed):
		return nil, errors.New("unpack: the bytes are not packed")
	}
	number, end := int(packed[1]), blockHead+int(packed[2])*sha256.Size
	switch {
	case number < 1 || number > len(dictionaries):
		return nil, ErrDictionary
	case end > len(packed):
		return nil, errors.New("unpack: there are fewer hashes than stated")
	}
	hashes, block := packed[blockHead:end], packed[end:]
	if length, err := s2.DecodedLen(block); err != nil || length >= shortText {
		return nil, errors.New("unpack: the block is malformed or too long")
	}
	rest, err := blocks()[number-1].Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return withHashes(rest, hashes)
}

func unframe(frame []byte) ([]byte, error) {
	text, err := decoder().DecodeAll(frame, nil)
	switch {
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return nil, ErrDictionary
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return text, nil
}
