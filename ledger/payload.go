package ledger

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/countersign/countersign/ledger/events"
	"github.com/countersign/countersign/ledger/packing"
)

// A payload lies in its row as the text itself, which begins with "{", or packed: one
// frame (package packing), which does not, and the CRC-32C of that frame in 4 octets,
// big-endian. What is hashed is the text in either case. Two frames can hold one text,
// so the check is there for whoever looks for a changed octet: no frame is taken for
// another.
const (
	packPayload  = 256 // octets from which a payload is packed: below, little is saved and every reader pays
	payloadCheck = 4   // octets
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storedPayload is a payload as its row holds it.
func storedPayload(eventType string, payload []byte) []byte {
	if len(payload) < packPayload || events.ReadInSQL(eventType) {
		return payload
	}
	frame := packing.Pack(payload)
	if len(frame)+payloadCheck >= len(payload) {
		return payload
	}
	return binary.BigEndian.AppendUint32(frame, crc32.Checksum(frame, castagnoli))
}

// Payload is the payload of an event of which a row holds stored: for who reads rows
// without this package. What cannot be unpacked stays what it is, and has not the hash
// of its event.
func Payload(stored []byte) []byte {
	if !packing.Packed(stored) || len(stored) < payloadCheck {
		return stored
	}
	frame, check := stored[:len(stored)-payloadCheck], stored[len(stored)-payloadCheck:]
	if crc32.Checksum(frame, castagnoli) != binary.BigEndian.Uint32(check) {
		return stored
	}
	payload, err := packing.Unpack(frame)
	if err != nil {
		return stored
	}
	return payload
}

// payloadColumn scans the column into the payload.
type payloadColumn []byte

// ScanBytes takes the column's octets, whose memory is used again.
func (p *payloadColumn) ScanBytes(stored []byte) error {
	*p = Payload(bytes.Clone(stored))
	return nil
}
