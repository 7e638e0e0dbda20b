package credential

import "time"

// Limits of a session.
const (
	lifetime    = 7 * 24 * time.Hour
	idle        = 12 * time.Hour
	seenEvery   = time.Minute // precision of the idle time: not every request writes to the database
	tokenLength = 43          // 32 bytes in base64url
)
