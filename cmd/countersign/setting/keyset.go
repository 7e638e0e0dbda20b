package setting

import (
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/countersign/countersign/ledger"
	"github.com/countersign/countersign/ledger/bundle"
	"github.com/countersign/countersign/ledger/seal"
)

// TrustedKeys has the flags that name the keys which a verifier trusts.
type TrustedKeys struct {
	Keys string   `help:"File with the keys that you trust, saved from /.well-known/jwks.json." placeholder:"FILE"`
	Key  []string `help:"Key that you trust to sign records (KEYID:HEX) or checkpoints (KEYID:HEX:checkpoint)." placeholder:"KEYID:HEX"`
}

// Trusted returns the trusted keys: those in the file of --keys, then those of --key, which are
// valid at all positions of all partitions. At least one key must be for records.
func (c *TrustedKeys) Trusted() (keys []bundle.Key, err error) {
	if c.Keys != "" {
		text, err := os.ReadFile(c.Keys)
		if err != nil {
			return nil, err
		}
		if keys, err = bundle.ReadKeySet(text); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Keys, err)
		}
	}
	for _, k := range c.Key {
		id, digits, _ := strings.Cut(k, ":")
		digits, purpose, _ := strings.Cut(digits, ":")
		purpose = cmp.Or(purpose, ledger.PurposeRecord)
		public, err := hex.DecodeString(digits)
		if err != nil || len(public) != ed25519.PublicKeySize || seal.KeyID(public) != id || purpose != ledger.PurposeRecord && purpose != ledger.PurposeCheckpoint {
			return nil, errors.New("--key must be KEYID:HEX or KEYID:HEX:checkpoint, where KEYID is the beginning of the SHA-256 of the key")
		}
		keys = append(keys, bundle.Key{Purpose: purpose, Public: public, Partition: bundle.AnyPartition})
	}
	if len(ForRecords(keys)) == 0 {
		return nil, errors.New("no key to trust: give --keys FILE (save it once from /.well-known/jwks.json of the service) or --key KEYID:HEX")
	}
	return keys, nil
}

// ErrNoCheckpointKey is the error if a command needs a trusted checkpoint key and none is given.
var ErrNoCheckpointKey = errors.New("no key to trust for checkpoints: give --keys FILE (save it once from /.well-known/jwks.json of the service) or --key KEYID:HEX:checkpoint")

// recordKeys has the trusted keys for records by id. An id has an entry for each partition, with
// the positions at which the key is valid there.
type recordKeys map[string][]bundle.Key

// ForRecords returns the keys that may sign records. A key of --key replaces the entries for the
// same key from the file.
func ForRecords(all []bundle.Key) recordKeys {
	keys := recordKeys{}
	for _, key := range all {
		switch id := seal.KeyID(key.Public); {
		case key.Purpose != ledger.PurposeRecord:
		case key.Partition == bundle.AnyPartition:
			keys[id] = []bundle.Key{key}
		default:
			keys[id] = append(keys[id], key)
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
	if at := slices.IndexFunc(of, func(key bundle.Key) bool { return key.Partition == int(partition) }); at >= 0 {
		key = of[at]
	} else if key.From > 0 && position > 0 {
		return nil, fmt.Sprintf("the key is not known in partition %d", partition)
	}
	switch {
	case position > 0 && position < key.From:
		return nil, fmt.Sprintf("the key is valid from position %d", key.From)
	case position > 0 && key.RetiredBy(position):
		return nil, fmt.Sprintf("the key is valid below position %d", key.To)
	case key.CompromisedAt(position):
		return nil, fmt.Sprintf("the key is compromised from position %d on", key.Void)
	}
	return key.Public, ""
}

// KeyFor returns the signer of a setting: a seed, or the public key of a key in an SSH agent. If
// the setting is empty and development is true, it creates a key in the data folder.
func (d *Ledger) KeyFor(name, text, file string, development bool) (*seal.Signer, error) {
	if text == "" && development {
		var err error
		if text, err = d.DevelopmentKey(file); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return nil, nil
	}
	signer, err := ParseSigner(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return signer, nil
}
