package decisions

import "time"

const (
	maxKeptArguments = 64 << 10            // bytes of a tool's arguments that a decision keeps: more than a person reads
	cachedPolicies   = 1000                // normalized policies in memory; each may have thousands of entries
	previewWindow    = 30 * 24 * time.Hour // before now, whose decisions a preview evaluates again
	previewPage      = 500                 // events read at once
	MaxFlips         = 1000                // changed decisions that a preview lists; further ones are counted
)
