package credential

import "time"

// Bounds of a session.
const (
	lifetime    = 7 * 24 * time.Hour
	idle        = 12 * time.Hour
	seenEvery   = time.Minute // how exactly idling is measured: not every request writes
	tokenLength = 43          // 32 octets, base64url
)
