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

// Prefixes of credentials. API keys and organization tokens have a prefix, and access tokens are
// JWTs, so the three kinds can be distinguished.
const (
	keyPrefix          = "svck_"
	organizationPrefix = "svco_"
)

// isOurs reports whether a bearer credential is an API key or an organization token.
func isOurs(bearer string) bool {
	return strings.HasPrefix(bearer, keyPrefix) || strings.HasPrefix(bearer, organizationPrefix)
}

func isJWT(text string) bool { return strings.Count(text, ".") == 2 }

// IsKey reports whether a request sends an API key or an organization token, as opposed to an
// OAuth token. The credential may be invalid.
func IsKey(h http.Header) bool {
	return len(h["X-Api-Key"]) > 0 || slices.ContainsFunc(h["Authorization"], func(value string) bool {
		_, text, _ := strings.Cut(value, " ")
		return isOurs(text)
	})
}

// Key returns the credential of a caller who pays for a call or reads a paid result: X-API-Key, or
// else a bearer token.
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

// Bearer returns the credential of a caller who acts for an organization or a customer: the bearer
// token, or an API key if there is no bearer token. The caller of Bearer must refuse API keys, but
// can then name the mistake.
func Bearer(h http.Header) (text string, present bool, err error) {
	bad := policy.Refuse(ground.CodeUnauthorized, "", "invalid or expired token: send the header Authorization once, as Bearer, a space and a token")
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
			return "", true, policy.Refuse(ground.CodeUnauthorized, "", "Authorization must be Bearer, a space and a key or token")
		}
		return token, true, nil
	}
	return "", true, policy.Refuse(ground.CodeUnauthorized, "", "Authorization must be given once")
}

// ClientSecret contains the id and the secret that an OAuth client sends.
type ClientSecret struct {
	ClientID string `json:"client_id,omitempty" jsonschema:"maxLength=200"`
	Secret   string `json:"client_secret,omitempty" jsonschema:"maxLength=200"`
}

// clientSecret returns the credentials of an OAuth client, from Basic authorization or from the
// body. It refuses credentials in both.
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
			return ClientSecret{}, policy.Refuse("invalid_request", "", "the client must authenticate either in the body or with HTTP Basic, not both")
		}
		return basic, nil
	}
	return body, nil
}

// basicClient parses a Basic authorization. Both parts are form-encoded (RFC 6749, section 2.3.1).
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
