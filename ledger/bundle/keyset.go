package bundle

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/seal"
	"github.com/countersign/countersign/policy/canon"
)

// ReadKeySet parses the service's JSON Web Key Set and returns its Ed25519 keys. It skips other
// keys. A key without a purpose is a record key.
func ReadKeySet(text []byte) ([]Key, error) {
	var set struct {
		Keys []struct {
			KID       string `json:"kid"`
			X         string `json:"x"`
			CRV       string `json:"crv"`
			For       string `json:"svc_purpose"`
			Partition int    `json:"svc_partition"`
			From      int64  `json:"svc_from_position"`
			To        *int64 `json:"svc_to_position"`
			Void      int64  `json:"svc_void_from_position"`
		} `json:"keys"`
	}
	if err := canon.Check(text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("the file must be a JSON Web Key Set")
	}
	var keys []Key
	for _, key := range set.Keys {
		public, err := base64.RawURLEncoding.DecodeString(key.X)
		if err != nil || base64.RawURLEncoding.EncodeToString(public) != key.X || key.CRV != "Ed25519" || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != key.KID || key.Partition < 0 { // AnyPartition is only for keys from other sources
			continue
		}
		k := Key{Purpose: cmp.Or(key.For, ledger.PurposeRecord), Public: public, Partition: key.Partition, From: key.From, Void: key.Void}
		if key.To != nil {
			k.To = *key.To
		}
		keys = append(keys, k)
	}
	return keys, nil
}
