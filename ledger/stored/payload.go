// Package stored defines the form in which a row of the table events stores a payload. It is
// either the text, which begins with "{", or packed, which does not:
//
//	packed ‖ box ‖ the length of box ‖ CRC-32C of all that
//
// The first part (package packing) is the text without the base64 of /sealed/box. The box is
// ciphertext, which cannot be compressed, so its bytes follow unchanged. The last two fields are 4
// bytes each, big-endian. The payload hash is always that of the text. Two packed forms may have
// the same text, so the CRC is needed to detect every changed byte.
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
	packPayload = 256 // smallest payload in bytes that is packed; for smaller ones unpacking costs more than it saves
	packedTail  = 8   // bytes of length and CRC at the end
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Form returns a payload in the form in which its row stores it.
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

// Payload returns the payload of a stored column. If the column cannot be unpacked, Payload
// returns it unchanged; then it does not match the hash of its event.
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

// withoutBox splits a payload into its text without the encrypted box, and the bytes of the box.
// The box stays in the text if decoding and encoding it again would change the text.
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
