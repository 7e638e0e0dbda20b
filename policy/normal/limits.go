package normal

// Limits of normal forms.
const (
	MaxURL       = 2048 // code points; proxies and logs cut longer ones
	MaxHost      = 253  // bytes of a name in DNS text form
	MaxBase58    = 128  // characters; 64 bytes (a Solana signature) need at most 88
	MaxUnits     = 78   // decimal digits of 2^256-1, the largest token amount
	MaxDecimal   = 40   // characters of a decimal literal, the same as canon.MaxNumber
	MaxExponent  = 400  // of a decimal literal; doubles end at 308, and rationals would become huge
	MaxCAIP2     = 41   // 8 characters of namespace, a colon, 32 of reference
	MaxText      = 8192 // code points of a string without another limit
	minYear      = 1900 // timestamps outside these years are typing errors
	maxYear      = 2199
	maxPort      = 65535
	maxShown     = 128 // code points of a caller's text repeated in an answer
	evmHexDigits = 40
)
