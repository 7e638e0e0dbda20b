package ground

import (
	"crypto/rand"
	"encoding/base64"
	"hash/crc32"
	"strings"
)

// An API key has the form
//
//	svck_<12 id>_<43 secret>_<6 check>
//
// id is public and names the stream key/<id>. secret is 32 random bytes in base64url; only their
// SHA-256 is stored. check is the CRC-32 (IEEE) of everything before its underscore, in base64url,
// so that secret scanners can recognize a leaked key.
const (
	KeyPrefix    = "svck_"
	keyIDLength  = 12
	secretLength = 43
	keyLength    = len(KeyPrefix) + keyIDLength + 1 + secretLength + 1 + 6
)

// keyAlphabet has 32 digits and letters. It leaves out i, l, o and u, which are easily misread.
const keyAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// newCredential makes a credential and returns its text, public id and secret. The prefix must
// have five characters. It draws ids until fits accepts one.
func newCredential(prefix string, fits func(id string) bool) (text, id string, secret []byte) {
	random := make([]byte, keyIDLength+32)
	for id == "" || !fits(id) {
		rand.Read(random)
		letters := random[:keyIDLength]
		for i, b := range letters {
			letters[i] = keyAlphabet[b%32]
		}
		id, secret = string(letters), random[keyIDLength:]
	}
	body := prefix + id + "_" + base64.RawURLEncoding.EncodeToString(secret)
	return body + "_" + checkDigits(body), id, secret
}

// checkDigits returns the CRC-32 of the part of a credential before the check, in base64url.
func checkDigits(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	return base64.RawURLEncoding.EncodeToString([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
}

// ParseCredential splits a credential into its public id and its secret. ok is false if the text
// is not a credential with this prefix.
func ParseCredential(prefix, key string) (id string, secret []byte, ok bool) {
	if len(key) != keyLength || !strings.HasPrefix(key, prefix) || key[17] != '_' || key[61] != '_' || checkDigits(key[:61]) != key[62:] {
		return "", nil, false
	}
	secret, err := base64.RawURLEncoding.DecodeString(key[18:61])
	return key[5:17], secret, err == nil
}
