// Package normal converts values that callers may write in several ways to the one form that
// countersign compares, binds and hashes: URLs, hosts, networks, addresses, token amounts and
// timestamps. Every function is pure and total: for any text it returns a value or an error, in
// time linear in the length of the text.
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
// Two values are equal if and only if their normal forms are the same bytes. A value without a
// normal form is an error, never a guess: if this package and a wallet guessed differently, the
// package would approve one payment and the wallet would make another.
//
// The package also checks structs against their own jsonschema tags (Bounds), so that a service
// that is called directly refuses the same requests as its schema.
package normal

import "errors"

// Reasons why a text has no normal form. Callers do not branch on them. They differ so that tests
// can check which rule refused a text.
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
