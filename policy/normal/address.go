package normal

import (
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/sha3"
)

// Address returns the normal form of an account or contract address on a network. It returns EVM
// addresses in lower case; a mixed-case address must satisfy EIP-55. Solana addresses are
// unchanged. On networks of other families any text is its own normal form. Errors: ErrAddress,
// ErrChecksum, ErrZero.
func Address(network, raw string) (string, error) {
	switch {
	case IsEVM(network):
		return EVMAddress(raw)
	case IsSolana(network):
		return SolanaAddress(raw)
	case raw == "":
		return "", ErrAddress
	}
	return raw, nil
}

// LooksEVM reports whether a text consists of 0x and 40 hexadecimal digits.
func LooksEVM(raw string) bool {
	if len(raw) != 2+evmHexDigits || raw[:2] != "0x" {
		return false
	}
	_, err := hex.DecodeString(raw[2:])
	return err == nil
}

// EVMAddress returns the lower-case form of an EVM address. It checks the EIP-55 checksum only of
// a mixed-case address, because digits in a single case contain no checksum.
func EVMAddress(raw string) (string, error) {
	if !LooksEVM(raw) {
		return "", ErrAddress
	}
	digits := raw[2:]
	lower := strings.ToLower(digits)
	if strings.Trim(lower, "0") == "" {
		return "", ErrZero
	}
	if digits != lower && digits != strings.ToUpper(digits) && digits != checksummed(lower) {
		return "", ErrChecksum
	}
	return "0x" + lower, nil
}

// checksummed returns the EIP-55 form of lower-case digits: a letter becomes upper case if the
// nibble at the same position of their legacy Keccak-256 hash is 8 or more.
func checksummed(lower string) string {
	h := sha3.NewLegacyKeccak256()
	h.Write([]byte(lower))
	sum := hex.EncodeToString(h.Sum(nil))
	mixed := []byte(lower)
	for i, c := range mixed {
		if c >= 'a' && sum[i] >= '8' {
			mixed[i] = c - 'a' + 'A'
		}
	}
	return string(mixed)
}

// SolanaAddress checks that a text is base58 of exactly 32 bytes, and returns it unchanged. It
// returns ErrZero for 32 zero bytes, the address of the system program.
func SolanaAddress(raw string) (string, error) {
	b, ok := Base58(raw)
	if !ok || len(b) != 32 {
		return "", ErrAddress
	}
	if strings.Trim(string(b), "\x00") == "" {
		return "", ErrZero
	}
	return raw, nil
}

// SameAddress reports whether two addresses are equal. The case of letters does not matter in
// texts that begin with 0x.
func SameAddress(a, b string) bool { return FoldAddress(a) == FoldAddress(b) }

// FoldAddress returns the form that SameAddress compares: a text that begins with 0x in lower
// case, any other text unchanged.
func FoldAddress(a string) string {
	if strings.HasPrefix(a, "0x") || strings.HasPrefix(a, "0X") {
		return strings.ToLower(a)
	}
	return a
}

const base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// Base58 decodes base58 with the Bitcoin alphabet. It refuses empty texts and texts longer than
// MaxBase58, because decoding takes quadratic time.
func Base58(text string) ([]byte, bool) {
	if text == "" || len(text) > MaxBase58 {
		return nil, false
	}
	var little []byte // the decoded bytes in reverse order, without leading zeros
	zeros := 0
	for i := range len(text) {
		digit := strings.IndexByte(base58Alphabet, text[i])
		if digit < 0 {
			return nil, false
		}
		if digit == 0 && zeros == i {
			zeros++
		}
		carry := digit
		for j := range little {
			carry += 58 * int(little[j])
			little[j] = byte(carry)
			carry >>= 8
		}
		for ; carry > 0; carry >>= 8 {
			little = append(little, byte(carry))
		}
	}
	out := make([]byte, zeros+len(little))
	for i, b := range little {
		out[len(out)-1-i] = b
	}
	return out, true
}
