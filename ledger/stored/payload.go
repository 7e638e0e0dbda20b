// Package stored has the form in which a row of the table events stores a payload:
// as text, which begins with "{", or packed, which does not:
//
//	packed ‖ box ‖ the length of box ‖ CRC-32C of all that
//
// The first part (package packing) has the text without the base64 of /sealed/box. That is
// ciphertext, which does not compress, so its bytes follow as they are. The last two fields
// are 4 bytes each, big-endian. The hash is always that of the text. Since two packed forms
// can have the same text, the CRC is needed to detect a changed byte in every case.
package stored

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

const (
	packPayload = 256 // bytes from which a payload is packed: below, unpacking costs more than it saves
	packedTail  = 8   // bytes of length and CRC
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Form returns the payload of an event of a type in the form of its row.
func Form(eventType string, payload []byte) []byte {
	if len(payload) < packPayload || events.ReadInSQL(eventType) {
		return payload
	}
	text, box := withoutBox(payload)
	packed := append(packing.Pack(text), box...)
	packed = binary.BigEndian.AppendUint32(packed, uint32(len(box)))
	packed = binary.BigEndian.AppendUint32(packed, crc32.Checksum(packed, castagnoli))
	if len(packed) >= len(payload) {
		return payload
	}
	return packed
}

// Payload returns the payload of a row, for readers of the table. stored is the column. If it
// cannot be unpacked it is returned as it is, and then does not have the hash of its event.
func Payload(stored []byte) []byte {
	end := len(stored) - packedTail
	if end < 0 || !packing.Packed(stored) ||
		binary.BigEndian.Uint32(stored[end+4:]) != crc32.Checksum(stored[:end+4], castagnoli) {
		return stored
	}
	octets := int64(binary.BigEndian.Uint32(stored[end:]))
	if octets > int64(end) {
		return stored
	}
	packed, box := stored[:end-int(octets)], stored[end-int(octets):end]
	text, err := packing.Unpack(packed)
	if err != nil {
		return stored
	}
	return withBox(text, box)
}

// withoutBox splits a payload into its text without the sealed box and the bytes of the box.
// The box stays in the text if decoding and encoding it would change the text.
func withoutBox(payload []byte) (text, box []byte) {
	start, end, sealed := canon.Find(payload, "sealed", "box")
	if !sealed || end-start < 2 {
		return payload, nil
	}
	box, err := base64.StdEncoding.Strict().DecodeString(string(payload[start+1 : end-1]))
	if err != nil || base64.StdEncoding.EncodedLen(len(box)) != end-start-2 {
		return payload, nil
	}
	return slices.Concat(payload[:start+1], payload[end-1:]), box
}

func withBox(text, box []byte) []byte {
	at, end, found := canon.Find(text, "sealed", "box")
	if len(box) == 0 || !found || end-at != len(`""`) {
		return text
	}
	payload := make([]byte, 0, len(text)+base64.StdEncoding.EncodedLen(len(box)))
	payload = base64.StdEncoding.AppendEncode(append(payload, text[:at+1]...), box)
	return append(payload, text[at+1:]...)
}
