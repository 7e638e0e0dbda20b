package decisions

import (
	"time"
)

const (
	maxKeptArguments = 64 << 10 // octets of a tool's arguments: more than a person reads, and the event stays small
	cachedPolicies   = 1000     // policies in normal form; each may have thousands of entries
	previewWindow    = 30 * 24 * time.Hour
	previewPage      = 500  // events read at once
	MaxFlips         = 1000 // listed; the others are counted
)
