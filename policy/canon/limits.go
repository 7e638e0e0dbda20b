package canon

// What one JSON text may hold.
const (
	MaxDepth   = 64        // a parser's stack and a reader's patience
	MaxMembers = 10_000    // per object; more is an attack on whoever sorts them
	MaxNumber  = 40        // characters of a number token: the longest double needs 24
	MaxInteger = 1<<53 - 1 // of a number that is computed with. RFC 7493: beyond it readers disagree

	// keptWriter is how large a buffer is kept for the next value: most records
	// have a few KB.
	keptWriter = 64 << 10
)
