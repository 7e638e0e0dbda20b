package canon

import "time"

// Stamp formats a time as records and answers contain it: RFC 3339, UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
