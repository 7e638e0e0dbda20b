package evidence

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/seal"
)

// jwk is one public key (RFC 7517, RFC 8037). For a key that signs records, it contains the
// positions of the events that the key may sign.
type jwk struct {
	KTY string `json:"kty"`
	CRV string `json:"crv"`
	X   string `json:"x"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	KID string `json:"kid"`
	For string `json:"svc_purpose" jsonschema:"enum=record,enum=checkpoint,enum=access_token"`
	*between
}

type between struct {
	Partition int16  `json:"svc_partition,omitzero"` // absent for the first partition
	From      int64  `json:"svc_from_position"`
	To        *int64 `json:"svc_to_position" jsonschema:"nullable"`
	Void      int64  `json:"svc_void_from_position,omitzero" jsonschema_description:"The key is compromised: a signature of it at or above this position, or at an unknown position, is not valid."`
}

// JSONSchemaExtend makes the positions optional, because keys of access tokens have none.
func (jwk) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return strings.HasSuffix(name, "_position") })
}

func newJWK(public ed25519.PublicKey, purpose string) jwk {
	return jwk{KTY: "OKP", CRV: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public),
		Use: "sig", Alg: "EdDSA", KID: seal.KeyID(public), For: purpose}
}

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

// KeySet is the operation that returns the public keys.
var KeySet = &op.Operation{
	ID: "get_jwks", Method: http.MethodGet, Path: op.JWKSPath,
	Summary: "The public keys of signed records, with the ledger positions between which each is valid, and of access tokens.",
	Output:  reflect.TypeFor[jwkSet](), Media: "application/jwk-set+json", Errors: []int{503},
}

// PublicKeys serves the public keys of signatures.
type PublicKeys struct{ Accounts *accounts.Accounts }

// Operations lists the operation that returns the keys.
func (s *PublicKeys) Operations() []*op.Operation { return []*op.Operation{KeySet.Does(s.show)} }

func (s *PublicKeys) show(c *op.Call) (op.Reply, error) {
	rings, err := s.Accounts.Ledger.Keyrings(c.Request.Context())
	if err != nil {
		return op.Reply{}, ground.Unreadable(err)
	}
	set := jwkSet{Keys: []jwk{}}
	for p, ring := range rings {
		for _, key := range ring {
			k := newJWK(key.Public, key.Purpose)
			if k.between = (&between{Partition: int16(p), From: key.From, Void: key.Void}); key.To > 0 {
				k.To = &key.To
			}
			set.Keys = append(set.Keys, k)
		}
	}
	slices.SortFunc(set.Keys, func(a, b jwk) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.From, b.From))
	})
	for _, key := range s.Accounts.TokenKeys {
		set.Keys = append(set.Keys, newJWK(key.Public().(ed25519.PublicKey), "access_token"))
	}
	return op.DocumentOf(c, set)
}
