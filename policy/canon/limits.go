package canon

// Limits of one JSON text.
const (
	MaxDepth   = 64        // limits a parser's stack
	MaxMembers = 10_000    // per object; more would be an attack on programs that sort them
	MaxNumber  = 40        // characters of a number token: the longest double needs 24
	MaxInteger = 1<<53 - 1 // of a number that is computed with; RFC 7493: beyond it readers disagree

	// keptWriter is the largest buffer that is kept for the next value. Most records have a few
	// KB.
	keptWriter = 64 << 10
)
