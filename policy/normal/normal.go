// Package normal converts what callers write in many ways to the one form in which countersign
// compares, binds and hashes it: URLs, hosts, networks, addresses, token amounts, timestamps.
// Every function is pure and total: for any text it returns a value or an error, in time linear
// in the length of the text.
//
// The forms, with an example each:
//
//	URL        HTTPS://API.Example.:443?q=1#top   https://api.example/?q=1
//	host       ａｐｉ.example                        api.example
//	network    base                               eip155:8453
//	address    0xA0b8…eB48 (EIP-55)               0xa0b8…eb48
//	amount     250000 units of 6 decimals         0.25
//	timestamp  2026-01-02T03:04:05+01:00          a time.Time
//
// Two values are equal if and only if their normal forms are the same bytes. A value without
// normal form is an error, never a guess: a guard and a wallet that guess differently would
// approve one thing and pay another.
//
// The package also checks structs against their own jsonschema tags (Bounds), so that a service
// called directly refuses what its schema refuses.
package normal

import "errors"

// The reasons why a text has no normal form. Callers do not branch on them; they differ so that
// tests can check which rule refused.
var (
	ErrURL       = errors.New("not a valid absolute URL")
	ErrHost      = errors.New("not a valid host")
	ErrHostEntry = errors.New("not a valid host entry")
	ErrAddress   = errors.New("not a valid address")
	ErrChecksum  = errors.New("the address does not match its checksum")
	ErrZero      = errors.New("the zero address")
	ErrAmount    = errors.New("not a valid amount")
	ErrTimestamp = errors.New("not an RFC 3339 timestamp with zone")
	ErrText      = errors.New("white space at an end, or an invisible character")
)
