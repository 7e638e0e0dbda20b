package decisions

import "time"

const (
	maxKeptArguments = 64 << 10            // bytes; longer arguments of tools are not stored, as no reviewer would read them
	cachedPolicies   = 1000                // parsed policies in memory; each may have thousands of entries
	previewWindow    = 30 * 24 * time.Hour // a preview evaluates the decisions of this time
	previewPage      = 500                 // events that are read at a time
	MaxFlips         = 1000                // changed decisions that a preview lists; it counts the rest
)
