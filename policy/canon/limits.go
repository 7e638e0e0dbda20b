package canon

// Limits of a JSON text.
const (
	MaxDepth   = 64        // levels of nesting; protects the stack of a parser
	MaxMembers = 10_000    // members of one object; sorting more could overload a program
	MaxNumber  = 40        // characters of a number; the longest double needs 24
	MaxInteger = 1<<53 - 1 // largest absolute value of a Go number; beyond it readers disagree (RFC 7493)

	// keptWriter is the largest buffer, in bytes, that is kept for the next value. Most records
	// have a few KB.
	keptWriter = 64 << 10
)
