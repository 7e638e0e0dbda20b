package x402

import (
	"encoding/hex"
	"errors"
	"math/big"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"golang.org/x/crypto/sha3"
)

// Address is the address of an account or contract on an EVM chain.
type Address [20]byte

// Hash is 32 bytes: a Keccak-256 hash, a nonce, or another word.
type Hash [32]byte

// Keccak returns the Keccak-256 of its concatenated parts, as Ethereum uses it. SHA3-256 has
// another padding.
func Keccak(parts ...[]byte) (sum Hash) {
	h := sha3.NewLegacyKeccak256()
	for _, part := range parts {
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// String returns 0x and 64 hex digits.
func (h Hash) String() string { return "0x" + hex.EncodeToString(h[:]) }

// String returns the address with its EIP-55 checksum: a letter is upper-case if the hex digit at
// its position in the Keccak of the lower-case text is 8 or more.
func (a Address) String() string {
	digits := []byte(hex.EncodeToString(a[:]))
	sum := Keccak(digits)
	for i, c := range digits {
		nibble := sum[i/2] >> 4
		if i%2 == 1 {
			nibble = sum[i/2] & 0xf
		}
		if c >= 'a' && nibble >= 8 {
			digits[i] = c - 'a' + 'A'
		}
	}
	return "0x" + string(digits)
}

// word returns the address padded to a word of 32 bytes.
func (a Address) word() []byte { return append(make([]byte, 12, 32), a[:]...) }

// parseAddress parses 0x and 40 hex digits of any case.
func parseAddress(text string) (a Address, ok bool) { return a, parseHex(text, a[:]) }

func parseHash(text string) (h Hash, ok bool) { return h, parseHex(text, h[:]) }

// parseHex decodes 0x and exactly two hex digits per byte into a slice.
func parseHex(text string, octets []byte) bool {
	digits, prefixed := strings.CutPrefix(text, "0x")
	if !prefixed || len(digits) != 2*len(octets) {
		return false
	}
	_, err := hex.Decode(octets, []byte(digits))
	return err == nil
}

// ParseAddress parses an address from the settings: 40 hex digits of one case or with a valid
// checksum, and not zero.
func ParseAddress(text string) (Address, error) {
	a, ok := parseAddress(text)
	switch digits := strings.TrimPrefix(text, "0x"); {
	case !ok:
		return Address{}, errors.New("the address must be 0x and 40 hex digits")
	case a == Address{}:
		return Address{}, errors.New("the zero address is not allowed, because it belongs to nobody")
	case digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && text != a.String():
		return Address{}, errors.New("the checksum of the address is wrong: check the address, including upper and lower case")
	}
	return a, nil
}

// parseUint parses a uint256: decimal digits without a sign or leading zeros.
func parseUint(text string) (*big.Int, bool) {
	if text == "" || len(text) > 78 || text[0] == '0' && len(text) > 1 || strings.Trim(text, "0123456789") != "" {
		return nil, false
	}
	n, ok := new(big.Int).SetString(text, 10)
	return n, ok && n.BitLen() <= 256
}

var (
	domainType   = Keccak([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))
	transferType = Keccak([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))
)

// Domain is the EIP-712 domain of an asset.
type Domain struct {
	Name, Version string
	ChainID       int64
	Asset         Address
}

// Separator returns the hash of the domain.
func (d Domain) Separator() Hash {
	name, version := Keccak([]byte(d.Name)), Keccak([]byte(d.Version))
	return Keccak(domainType[:], name[:], version[:], word(big.NewInt(d.ChainID)), d.Asset.word())
}

// Authorization is the EIP-3009 transfer that a buyer signs.
type Authorization struct {
	From, To                       Address
	Value, ValidAfter, ValidBefore *big.Int
	Nonce                          Hash
}

// Digest returns the hash to sign, for an asset's domain.
func (a Authorization) Digest(d Domain) Hash {
	transfer := Keccak(transferType[:], a.From.word(), a.To.word(), word(a.Value), word(a.ValidAfter), word(a.ValidBefore), a.Nonce[:])
	domain := d.Separator()
	return Keccak([]byte{0x19, 0x01}, domain[:], transfer[:])
}

func word(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }

// AddressOf returns the address of a public key.
func AddressOf(key *secp256k1.PublicKey) (a Address) {
	sum := Keccak(key.SerializeUncompressed()[1:])
	copy(a[:], sum[12:])
	return a
}

// signerOf returns the address whose key made a signature r ‖ s ‖ v of 65 bytes. v is 0, 1, 27
// or 28. s must be in the lower half: otherwise each payment would have a second valid signature,
// and no token accepts an upper s.
func signerOf(digest Hash, signature []byte) (Address, bool) {
	if len(signature) != walletSignature {
		return Address{}, false
	}
	v := signature[64]
	if v == 27 || v == 28 {
		v -= 27
	}
	var s secp256k1.ModNScalar
	if overflow := s.SetByteSlice(signature[32:64]); v > 1 || overflow || s.IsOverHalfOrder() {
		return Address{}, false
	}
	compact := append([]byte{27 + v}, signature[:64]...)
	key, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return Address{}, false
	}
	return AddressOf(key), true
}
