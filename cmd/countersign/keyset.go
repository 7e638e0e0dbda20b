package main

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// keyOfSet is a key of a JSON Web Key Set as the service publishes it.
type keyOfSet struct {
	id, purpose string // no purpose: records
	public      ed25519.PublicKey
	partition   int16 // of the positions
	from, to    int64
	void        int64 // with a compromised key: what it signed from here on, or somewhere, counts for nothing
}

// readKeySet reads the Ed25519 keys of a set; keys of another kind are passed over.
func readKeySet(text []byte) ([]keyOfSet, error) {
	var set struct {
		Keys []struct {
			KID, X, CRV string
			For         string `json:"svc_purpose"`
			Partition   int16  `json:"svc_partition"`
			From        int64  `json:"svc_from_position"`
			To          *int64 `json:"svc_to_position"`
			Void        int64  `json:"svc_void_from_position"`
		}
	}
	if err := canon.Check(text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &set, json.MatchCaseInsensitiveNames(true)); err != nil {
		return nil, errors.New("want a JSON Web Key Set")
	}
	var keys []keyOfSet
	for _, key := range set.Keys {
		public, err := base64.RawURLEncoding.DecodeString(key.X)
		if err != nil || key.CRV != "Ed25519" || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != key.KID {
			continue
		}
		k := keyOfSet{id: key.KID, purpose: cmp.Or(key.For, ledger.PurposeRecord), public: public, partition: key.Partition, from: key.From, void: key.Void}
		if key.To != nil {
			k.to = *key.To
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// trustedKeys is how a verifier brings the keys it trusts.
type trustedKeys struct {
	Keys string   `help:"Keys you trust, as saved from /.well-known/jwks.json." placeholder:"FILE"`
	Key  []string `help:"A key you trust to sign records, as KEYID:HEX; one for checkpoints as KEYID:HEX:checkpoint." placeholder:"KEYID:HEX"`
}

// trusted reads them: those of the file, and those that were given one by one, which
// sign at whatever position. One of them must sign records.
func (c *trustedKeys) trusted() (ofFile, given []keyOfSet, err error) {
	if c.Keys != "" {
		text, err := os.ReadFile(c.Keys)
		if err != nil {
			return nil, nil, err
		}
		if ofFile, err = readKeySet(text); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Keys, err)
		}
	}
	for _, k := range c.Key {
		id, digits, _ := strings.Cut(k, ":")
		digits, purpose, _ := strings.Cut(digits, ":")
		purpose = cmp.Or(purpose, ledger.PurposeRecord)
		public, err := hex.DecodeString(digits)
		if err != nil || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != id || purpose != ledger.PurposeRecord && purpose != ledger.PurposeCheckpoint {
			return nil, nil, errors.New("--key: want KEYID:HEX, or KEYID:HEX:checkpoint, where KEYID begins the SHA-256 of the key")
		}
		given = append(given, keyOfSet{id: id, purpose: purpose, public: public})
	}
	if len(forRecords(ofFile, given)) == 0 {
		return nil, nil, errors.New("no key to trust: give --keys FILE (save it once from /.well-known/jwks.json of the service) or --key KEYID:HEX")
	}
	return ofFile, given, nil
}

// errNoCheckpointKey is that of verifiers of what a checkpoint covers.
var errNoCheckpointKey = errors.New("no key to trust for checkpoints: give --keys FILE (save it once from /.well-known/jwks.json of the service) or --key KEYID:HEX:checkpoint")

// recordKeys are the keys, by id, that the verifier trusts to sign records, whatever a
// record says: each with where it is good in every partition that the file tells of.
type recordKeys map[string][]keyOfSet

// forRecords leaves out the keys for other things, which must not sign records. What
// was given one by one counts more than what the file says of the same key.
func forRecords(ofFile, given []keyOfSet) recordKeys {
	keys := recordKeys{}
	for _, key := range slices.Concat(ofFile, given) {
		if key.purpose == ledger.PurposeRecord {
			keys[key.id] = append(keys[key.id], key)
		}
	}
	for _, key := range given {
		if key.purpose == ledger.PurposeRecord {
			keys[key.id] = []keyOfSet{key}
		}
	}
	return keys
}

// Find implements seal.Keys.
func (k recordKeys) Find(id string, partition int16, position int64) (ed25519.PublicKey, string) {
	of := k[id]
	if len(of) == 0 {
		return nil, "the key is not among those you trust"
	}
	key := of[0]
	if at := slices.IndexFunc(of, func(key keyOfSet) bool { return key.partition == partition }); at >= 0 {
		key = of[at]
	} else if key.from > 0 && position > 0 {
		return nil, fmt.Sprintf("the key is not known in partition %d", partition)
	}
	switch {
	case position > 0 && position < key.from:
		return nil, fmt.Sprintf("the key is valid from position %d", key.from)
	case position > 0 && key.to > 0 && position >= key.to:
		return nil, fmt.Sprintf("the key is valid below position %d", key.to)
	case key.void > 0 && (position == 0 || position >= key.void):
		return nil, fmt.Sprintf("the key is compromised from position %d on", key.void)
	}
	return key.public, ""
}
