package normal

// What a normal form accepts.
const (
	MaxURL       = 2048 // code points; longer ones are cut by proxies and logs
	MaxHost      = 253  // octets of a name in DNS text form
	MaxBase58    = 128  // characters; 64 bytes (a Solana signature) need at most 88
	MaxUnits     = 78   // decimal digits of 2^256-1, the largest token amount
	MaxDecimal   = 40   // characters of a decimal literal, as canon.MaxNumber
	MaxExponent  = 400  // of a decimal literal; doubles end at 308, rationals would explode
	MaxCAIP2     = 41   // 8 characters of namespace, a colon, 32 of reference
	MaxText      = 8192 // code points of a string no rule bounds otherwise
	minYear      = 1900 // timestamps outside are typing errors
	maxYear      = 2199
	maxPort      = 65535
	maxShown     = 128 // code points of a caller's short text repeated in an answer
	evmHexDigits = 40
)
