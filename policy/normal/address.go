package normal

import (
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/sha3"
)

// Address returns the normal form of an account or contract on a network. EVM addresses become
// lower case; mixed case must satisfy EIP-55. Solana addresses keep their case. On networks of
// other families the text itself is the normal form. Errors: ErrAddress, ErrChecksum, ErrZero.
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

// LooksEVM reports whether a text has the form 0x + 40 hexadecimal digits.
func LooksEVM(raw string) bool {
	if len(raw) != 2+evmHexDigits || raw[:2] != "0x" {
		return false
	}
	_, err := hex.DecodeString(raw[2:])
	return err == nil
}

// EVMAddress returns the lower-case form of an EVM address. Digits of a single case have no
// checksum; mixed case must satisfy EIP-55.
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

// checksummed returns the EIP-55 form: a letter is upper case if the same nibble of the legacy
// Keccak-256 of the lower-case digits is 8 or more.
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

// SolanaAddress accepts base58 of exactly 32 bytes and keeps the case. The system program (32
// zero bytes) is the zero address.
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

// SameAddress compares two addresses as wallets do: EVM addresses without regard to case,
// others byte by byte.
func SameAddress(a, b string) bool { return FoldAddress(a) == FoldAddress(b) }

// FoldAddress returns the form that SameAddress compares: lower case for a text that begins
// with 0x, others unchanged.
func FoldAddress(a string) string {
	if strings.HasPrefix(a, "0x") || strings.HasPrefix(a, "0X") {
		return strings.ToLower(a)
	}
	return a
}

const base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

// Base58 decodes the Bitcoin alphabet. It refuses empty texts and texts longer than MaxBase58,
// because decoding takes quadratic time.
func Base58(text string) ([]byte, bool) {
	if text == "" || len(text) > MaxBase58 {
		return nil, false
	}
	var little []byte // the number, least significant byte first
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
