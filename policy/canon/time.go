package canon

import "time"

// Stamp writes a time as records, answers and messages have it: RFC 3339, UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
