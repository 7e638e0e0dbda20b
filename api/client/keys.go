package client

import (
	"crypto/ed25519"
	"encoding/base64"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger/seal"
)

// trustedKey is a key of a JSON Web Key Set, valid in one partition of the ledger.
type trustedKey struct {
	KID       string `json:"kid"`
	X         string `json:"x"`
	CRV       string `json:"crv"`
	Purpose   string `json:"svc_purpose"`
	Partition int16  `json:"svc_partition"`
	From      int64  `json:"svc_from_position"`
	To        *int64 `json:"svc_to_position"`
	Void      *int64 `json:"svc_void_from_position"`

	public ed25519.PublicKey
}

// keySet contains the keys that the program trusts. The client never takes a key from an answer.
type keySet map[string][]trustedKey // by key id; one entry for each partition

func readKeys(text []byte) (keySet, error) {
	var set struct {
		Keys []trustedKey `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, &Error{Code: Misused, Message: "Keys must be a JSON Web Key Set, as saved from /.well-known/jwks.json of the service", Err: err}
	}
	keys := keySet{}
	for _, k := range set.Keys {
		public, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.CRV != "Ed25519" || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != k.KID {
			continue
		}
		k.public = public
		keys[k.KID] = append(keys[k.KID], k)
	}
	if len(keys) == 0 {
		return nil, misused("Keys has no Ed25519 key")
	}
	return keys, nil
}

// Find returns the trusted key that may sign records at a position of a partition. If there is
// none, it returns the reason.
func (s keySet) Find(id string, partition int16, position int64) (key ed25519.PublicKey, whyNot string) {
	for _, k := range s[id] {
		if k.Purpose != "record" { // check: key-purpose
			return nil, "it is not a key for records"
		}
		if k.Partition != partition {
			continue
		}
		if position < max(k.From, 1) || k.To != nil && position >= *k.To || k.Void != nil && position >= *k.Void { // check: key-position
			return nil, "it was not valid at this position"
		}
		return k.public, ""
	}
	return nil, "it is not trusted"
}
