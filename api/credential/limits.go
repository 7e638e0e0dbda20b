package credential

import "time"

// Bounds of a session.
const (
	lifetime    = 7 * 24 * time.Hour
	idle        = 12 * time.Hour
	seenEvery   = time.Minute // the precision of the idle time: not every request writes
	tokenLength = 43          // 32 bytes in base64url
)
