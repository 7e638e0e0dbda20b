package ledger

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/packing"
	"github.com/countersign/countersign/policy/canon"
)

// A payload lies in its row as the text itself, which begins with "{", or packed, which
// does not:
//
//	packed ‖ box ‖ the length of box ‖ CRC-32C of all that
//
// The first (package packing) holds the text, without the base64 of /sealed/box, which
// is encrypted and cannot be made smaller: its octets stand behind. The last
// two fields are 4 octets each, big-endian. What is hashed is the text in either case.
// Two packed forms can hold one text, so the check is there for whoever looks for a changed
// octet: no packed form is taken for another.
const (
	packPayload = 256 // octets from which a payload is packed: below, little is saved and every reader pays
	packedTail  = 8   // octets of length and check
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storedPayload is a payload as its row holds it.
func storedPayload(eventType string, payload []byte) []byte {
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

// Payload is the payload of an event of which a row holds stored: for who reads rows
// without this package. What cannot be unpacked stays what it is, and has not the hash
// of its event.
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

// withoutBox takes the octets of a sealed box out of a payload, none where it has none
// or they would not come back as the same text.
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

// payloadColumn scans the column into the payload.
type payloadColumn []byte

// ScanBytes takes the column's octets, whose memory is used again.
func (p *payloadColumn) ScanBytes(stored []byte) error {
	*p = Payload(bytes.Clone(stored))
	return nil
}
