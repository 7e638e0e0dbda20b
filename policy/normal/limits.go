package normal

// Limits of the texts that this package reads.
const (
	MaxURL       = 2048 // code points; proxies and logs cut longer URLs
	MaxHost      = 253  // bytes of a name in DNS text form
	MaxBase58    = 128  // characters; 64 bytes (a Solana signature) need at most 88
	MaxUnits     = 78   // digits of 2^256-1, the largest token amount
	MaxDecimal   = 40   // characters of a decimal literal, as in canon.MaxNumber
	MaxExponent  = 400  // of a decimal literal; a float64 ends at 308, and a rational number with a larger exponent needs much memory
	MaxCAIP2     = 41   // characters: namespace 8, colon 1, reference 32
	MaxText      = 8192 // code points of a text without a limit of its own
	minYear      = 1900 // years before minYear and after maxYear are taken for typing errors
	maxYear      = 2199
	maxPort      = 65535
	maxShown     = 128 // largest number of code points of a caller's text that an answer repeats
	evmHexDigits = 40
)
