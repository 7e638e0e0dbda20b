package api

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/ledger/seal"
)

// jwk is one public key (RFC 7517, RFC 8037), with the positions between which
// events may carry its signatures if it signs what is in events.
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
	Partition int16  `json:"svc_partition,omitzero"` // absent in the first
	From      int64  `json:"svc_from_position"`
	To        *int64 `json:"svc_to_position" jsonschema:"nullable"`
	Void      int64  `json:"svc_void_from_position,omitzero" jsonschema_description:"The key is compromised: what it signed at and above this position, or at an unknown one, counts for nothing."`
}

// JSONSchemaExtend says that keys of access tokens have no positions.
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

var jwks = &op.Operation{
	ID: "get_jwks", Method: http.MethodGet, Path: "/.well-known/jwks.json",
	Summary: "The public keys of signed records, with the ledger positions between which each is valid, and of access tokens.",
	Output:  reflect.TypeFor[jwkSet](), Media: "application/jwk-set+json", Errors: []int{503},
}

func (s *Server) jwks(c *op.Call) (op.Reply, error) {
	rings, err := s.app.Ledger.Keyrings(c.Request.Context())
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
	for _, key := range s.app.TokenKeys {
		set.Keys = append(set.Keys, newJWK(key.Public().(ed25519.PublicKey), "access_token"))
	}
	return op.DocumentOf(c, set)
}

// authorizationServer is the metadata of RFC 8414, with what agents look for
// beside it.
type authorizationServer struct {
	Issuer               string    `json:"issuer" jsonschema:"format=uri"`
	Authorization        string    `json:"authorization_endpoint" jsonschema:"format=uri" jsonschema_description:"There is no such flow here; clients refuse metadata without it."`
	Token                string    `json:"token_endpoint" jsonschema:"format=uri"`
	Registration         string    `json:"registration_endpoint" jsonschema:"format=uri"`
	Revocation           string    `json:"revocation_endpoint" jsonschema:"format=uri"`
	Introspection        string    `json:"introspection_endpoint" jsonschema:"format=uri"`
	JWKS                 string    `json:"jwks_uri" jsonschema:"format=uri"`
	Scopes               []string  `json:"scopes_supported"`
	ResponseTypes        []string  `json:"response_types_supported"`
	GrantTypes           []string  `json:"grant_types_supported"`
	TokenMethods         []string  `json:"token_endpoint_auth_methods_supported"`
	RevocationMethods    []string  `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionMethods []string  `json:"introspection_endpoint_auth_methods_supported"`
	Documentation        string    `json:"service_documentation" jsonschema:"format=uri"`
	AgentAuth            agentAuth `json:"agent_auth"`
}

type agentAuth struct {
	Skill         string   `json:"skill" jsonschema:"format=uri"`
	Register      string   `json:"register_uri" jsonschema:"format=uri"`
	Claim         string   `json:"claim_uri" jsonschema:"format=uri"`
	Revocation    string   `json:"revocation_uri" jsonschema:"format=uri"`
	IdentityTypes []string `json:"identity_types_supported"`
}

// openIDConfiguration is the same for readers that look only there. No ID tokens
// are issued.
type openIDConfiguration struct {
	authorizationServer
	SubjectTypes []string `json:"subject_types_supported"`
	IDTokenAlgs  []string `json:"id_token_signing_alg_values_supported"`
}

func (s *Server) authorizationServer() authorizationServer {
	base := s.app.BaseURL
	methods := []string{methodBasic, methodPost}
	return authorizationServer{
		Issuer: base, Authorization: base + authorizePath, Token: base + requestAccessToken.Path, Registration: base + registerAgent.Path,
		Revocation: base + revokeAccessToken.Path, Introspection: base + introspectAccessToken.Path, JWKS: base + jwks.Path,
		Scopes: accounts.AgentScopes, ResponseTypes: []string{}, GrantTypes: []string{grantClientCredentials},
		TokenMethods: methods, RevocationMethods: methods, IntrospectionMethods: methods, Documentation: base + authPath,
		AgentAuth: agentAuth{Skill: base + authPath, Register: base + registerAgent.Path, Claim: base + claimAgent.Path,
			Revocation: base + revokeAccessToken.Path, IdentityTypes: []string{accounts.IdentityAnonymous, accounts.IdentityVerifiedEmail}},
	}
}

// protectedResource is the metadata of RFC 9728.
type protectedResource struct {
	Resource      string   `json:"resource" jsonschema:"format=uri"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	JWKS          string   `json:"jwks_uri" jsonschema:"format=uri"`
	Name          string   `json:"resource_name"`
	Documentation string   `json:"resource_documentation" jsonschema:"format=uri"`
	Policy        string   `json:"resource_policy_uri" jsonschema:"format=uri"`
	Terms         string   `json:"resource_tos_uri" jsonschema:"format=uri"`
}

func (s *Server) protectedResource(path string, scopes []string) protectedResource {
	base := s.app.BaseURL
	return protectedResource{Resource: base + path, Servers: []string{base}, Scopes: scopes, Methods: []string{"header"},
		JWKS: base + jwks.Path, Name: "Countersign", Documentation: base + authPath, Policy: base + "/privacy", Terms: base + "/terms"}
}

// The metadata documents. The second of the protected resources is where RFC 9728
// puts that of {base}/mcp, for whose tools the scopes of a customer are no use.
var (
	oauthServer = &op.Operation{
		ID: "get_oauth_authorization_server", Method: http.MethodGet, Path: "/.well-known/oauth-authorization-server",
		Summary: "Where agents register and get access tokens (RFC 8414).",
		Output:  reflect.TypeFor[authorizationServer](),
	}
	openIDDocument = &op.Operation{
		ID: "get_openid_configuration", Method: http.MethodGet, Path: "/.well-known/openid-configuration",
		Summary: "The same metadata at OpenID's address. No ID tokens are issued.",
		Output:  reflect.TypeFor[openIDConfiguration](),
	}
	resourceDocument = &op.Operation{
		ID: "get_oauth_protected_resource", Method: http.MethodGet, Path: credential.ProtectedResourcePath,
		Summary: "Which authorization server issues tokens for this service (RFC 9728).",
		Output:  reflect.TypeFor[protectedResource](),
	}
	mcpResourceDocument = &op.Operation{
		ID: "get_oauth_protected_resource_mcp", Method: http.MethodGet, Path: credential.ProtectedResourcePath + mcpPath,
		Summary: "Which authorization server issues tokens for the MCP endpoint (RFC 9728).",
		Output:  reflect.TypeFor[protectedResource](),
	}
)

func (s *Server) oauthServer(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, s.authorizationServer())
}

func (s *Server) openIDDocument(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, openIDConfiguration{s.authorizationServer(), []string{"public"}, []string{"EdDSA"}})
}

func (s *Server) resourceDocument(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, s.protectedResource("", accounts.AgentScopes))
}

func (s *Server) mcpResourceDocument(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, s.protectedResource(mcpPath, []string{accounts.ScopeCatalog, accounts.ScopeCheckout}))
}

const (
	mcpPath  = "/mcp"
	authPath = "/auth.md"
	llmsPath = "/llms.txt"
)
