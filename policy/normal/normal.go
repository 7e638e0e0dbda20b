// Package normal brings what callers write in many ways into the one form in
// which countersign compares, binds and hashes it: URLs, hosts, networks,
// addresses, token amounts, timestamps. Every function is pure and total: for
// any text it answers a value or an error, in time linear in its length.
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
// Two values mean the same exactly if their normal forms are equal bytes. What
// has no normal form is an error, never a best guess: a guard and a wallet that
// guess differently would approve one thing and pay another.
//
// The package also holds structs to their own jsonschema tags (Bounds), so that
// a service called directly refuses what its schema refuses.
package normal

import "errors"

// The reasons why a text has no normal form. Callers branch on none of them;
// they are apart so that tests can say which rule refused.
var (
	ErrURL       = errors.New("not a valid absolute URL")
	ErrHost      = errors.New("not a valid host")
	ErrHostEntry = errors.New("not a valid host entry")
	ErrAddress   = errors.New("not a valid address")
	ErrChecksum  = errors.New("the address does not match its checksum")
	ErrZero      = errors.New("the zero address")
	ErrAmount    = errors.New("not a valid amount")
	ErrTimestamp = errors.New("not an RFC 3339 timestamp with zone")
	ErrText      = errors.New("white space at an edge, or a character that does not show")
)
