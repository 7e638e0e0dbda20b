package credential

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
)

// Credentials are distinguished by their form: keys and organizations' tokens have a prefix, and an
// access token is a JWT.
const (
	keyPrefix          = "svck_"
	organizationPrefix = "svco_"
)

// isOurs reports whether a bearer credential is a key or an organization's token.
func isOurs(bearer string) bool {
	return strings.HasPrefix(bearer, keyPrefix) || strings.HasPrefix(bearer, organizationPrefix)
}

func isJWT(text string) bool { return strings.Count(text, ".") == 2 }

// IsKey reports whether the credential of a request has the form of an API key or an organization's
// token, and so is no OAuth token. It need not be valid.
func IsKey(h http.Header) bool {
	return len(h["X-Api-Key"]) > 0 || slices.ContainsFunc(h["Authorization"], func(value string) bool {
		_, text, _ := strings.Cut(value, " ")
		return isOurs(text)
	})
}

// Key returns the credential that pays for a call, or that reads what was paid: X-API-Key, or else
// a bearer credential.
func Key(h http.Header) (text string, present bool, err error) {
	switch values := h["X-Api-Key"]; len(values) {
	case 0:
	case 1:
		return values[0], true, nil
	default:
		return "", true, policy.Refuse(ground.CodeUnauthorized, "", "X-API-Key must be given once")
	}
	return bearer(h)
}

// Bearer returns the credential that acts for an organization or a customer: a bearer credential,
// or an API key. An API key is refused there, and the refusal says that it is one.
func Bearer(h http.Header) (text string, present bool, err error) {
	bad := policy.Refuse(ground.CodeUnauthorized, "", "invalid or expired token")
	if text, present, err = bearer(h); err != nil {
		return "", true, bad
	}
	if present {
		return text, true, nil
	}
	keys := h["X-Api-Key"]
	if len(keys) > 1 || len(keys) == 1 && !strings.HasPrefix(keys[0], keyPrefix) {
		return "", true, bad
	}
	return strings.Join(keys, ""), len(keys) == 1, nil
}

func bearer(h http.Header) (text string, present bool, err error) {
	switch values := h["Authorization"]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		scheme, token, _ := strings.Cut(values[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", true, policy.Refuse(ground.CodeUnauthorized, "", "Authorization must be Bearer and a key or token")
		}
		return token, true, nil
	}
	return "", true, policy.Refuse(ground.CodeUnauthorized, "", "Authorization must be given once")
}

// ClientSecret is the id and the secret of a client in an OAuth request.
type ClientSecret struct {
	ClientID string `json:"client_id,omitempty" jsonschema:"maxLength=200"`
	Secret   string `json:"client_secret,omitempty" jsonschema:"maxLength=200"`
}

// clientSecret reads how a client authenticates: by Basic authorization or by members of the body.
// Both together are refused.
func clientSecret(h http.Header, body ClientSecret) (ClientSecret, error) {
	bad := policy.Refuse(accounts.CodeInvalidClient, "", "client authentication failed")
	switch values := h["Authorization"]; {
	case len(values) > 1:
		return ClientSecret{}, bad
	case len(values) == 1:
		basic, ok := basicClient(values[0])
		if !ok {
			return ClientSecret{}, bad
		}
		if body.Secret != "" || body.ClientID != "" && body.ClientID != basic.ClientID {
			return ClientSecret{}, policy.Refuse("invalid_request", "", "the client must authenticate in one way only")
		}
		return basic, nil
	}
	return body, nil
}

// basicClient reads a Basic authorization, whose two parts are form-encoded
// (RFC 6749, section 2.3.1).
func basicClient(header string) (ClientSecret, bool) {
	scheme, text, _ := strings.Cut(header, " ")
	pair, err := base64.StdEncoding.DecodeString(text)
	id, secret, ok := strings.Cut(string(pair), ":")
	if !strings.EqualFold(scheme, "Basic") || err != nil || !ok {
		return ClientSecret{}, false
	}
	id, idErr := url.QueryUnescape(id)
	secret, secretErr := url.QueryUnescape(secret)
	return ClientSecret{id, secret}, idErr == nil && secretErr == nil
}
