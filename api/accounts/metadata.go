package accounts

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/commands/accounts"
)

// authorizationServer is the metadata of RFC 8414, with additional members that agents read.
type authorizationServer struct {
	Issuer               string    `json:"issuer" jsonschema:"format=uri"`
	Authorization        string    `json:"authorization_endpoint" jsonschema:"format=uri" jsonschema_description:"This server has no authorization flow. The member exists because clients refuse metadata without it."`
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

// openIDConfiguration repeats the metadata for clients that read only the OpenID document. The
// service issues no ID tokens.
type openIDConfiguration struct {
	authorizationServer
	SubjectTypes []string `json:"subject_types_supported"`
	IDTokenAlgs  []string `json:"id_token_signing_alg_values_supported"`
}

func (s *OAuth) authorizationServer() authorizationServer {
	base := s.Accounts.BaseURL
	methods := []string{methodBasic, methodPost}
	return authorizationServer{
		Issuer: base, Authorization: base + AuthorizePath, Token: base + requestAccessToken.Path, Registration: base + registerAgent.Path,
		Revocation: base + revokeAccessToken.Path, Introspection: base + introspectAccessToken.Path, JWKS: base + op.JWKSPath,
		Scopes: accounts.AgentScopes, ResponseTypes: []string{}, GrantTypes: []string{grantClientCredentials},
		TokenMethods: methods, RevocationMethods: methods, IntrospectionMethods: methods, Documentation: base + op.AuthPath,
		AgentAuth: agentAuth{Skill: base + op.AuthPath, Register: base + registerAgent.Path, Claim: base + claimAgent.Path,
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

func (s *OAuth) protectedResource(path string, scopes []string) protectedResource {
	base := s.Accounts.BaseURL
	return protectedResource{Resource: base + path, Servers: []string{base}, Scopes: scopes, Methods: []string{"header"},
		JWKS: base + op.JWKSPath, Name: op.Name, Documentation: base + op.AuthPath, Policy: base + "/privacy", Terms: base + "/terms"}
}

// Operations that return the metadata documents. RFC 9728 defines the path of the document for
// {base}/mcp. That document omits the scopes of a customer, because no tool requires them.
var (
	oauthServer = &op.Operation{
		ID: "get_oauth_authorization_server", Method: http.MethodGet, Path: "/.well-known/oauth-authorization-server",
		Summary: "Metadata of the authorization server, where agents register and get access tokens (RFC 8414).",
		Output:  reflect.TypeFor[authorizationServer](),
	}
	openIDDocument = &op.Operation{
		ID: "get_openid_configuration", Method: http.MethodGet, Path: "/.well-known/openid-configuration",
		Summary: "The metadata of the authorization server at the address of OpenID Connect. No ID tokens are issued.",
		Output:  reflect.TypeFor[openIDConfiguration](),
	}
	resourceDocument = &op.Operation{
		ID: "get_oauth_protected_resource", Method: http.MethodGet, Path: credential.ProtectedResourcePath,
		Summary: "The authorization server that issues tokens for this service (RFC 9728).",
		Output:  reflect.TypeFor[protectedResource](),
	}
	mcpResourceDocument = &op.Operation{
		ID: "get_oauth_protected_resource_mcp", Method: http.MethodGet, Path: credential.ProtectedResourcePath + op.MCPPath,
		Summary: "The authorization server that issues tokens for the MCP endpoint (RFC 9728).",
		Output:  reflect.TypeFor[protectedResource](),
	}
)

// Documents lists the metadata documents of the service and of its main MCP endpoint.
func (s *OAuth) Documents() []*op.Operation {
	return []*op.Operation{oauthServer.Does(s.oauthServer), openIDDocument.Does(s.openIDDocument), resourceDocument.Does(s.resourceDocument),
		mcpResourceDocument.Does(s.mcpResource(op.MCPPath))}
}

// MCPDocuments lists the metadata documents of the other MCP endpoints, each at the path that RFC
// 9728 defines. A client refuses a document whose resource is not the address that the client
// uses.
func (s *OAuth) MCPDocuments() (list []*op.Operation) {
	for _, path := range op.MCPPaths {
		if path == op.MCPPath {
			continue
		}
		o := *mcpResourceDocument
		o.ID, o.Path = mcpResourceDocument.ID+strings.ReplaceAll(strings.TrimPrefix(path, op.MCPPath), "/", "_"), credential.ProtectedResourcePath+path
		list = append(list, o.Does(s.mcpResource(path)))
	}
	return list
}

func (s *OAuth) oauthServer(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, s.authorizationServer())
}

func (s *OAuth) openIDDocument(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, openIDConfiguration{s.authorizationServer(), []string{"public"}, []string{"EdDSA"}})
}

func (s *OAuth) resourceDocument(c *op.Call) (op.Reply, error) {
	return op.DocumentOf(c, s.protectedResource("", accounts.AgentScopes))
}

// mcpResource returns a handler that answers with the metadata of the MCP endpoint at a path.
func (s *OAuth) mcpResource(path string) func(*op.Call) (op.Reply, error) {
	return func(c *op.Call) (op.Reply, error) {
		return op.DocumentOf(c, s.protectedResource(path, []string{accounts.ScopeCatalog, accounts.ScopeCheckout}))
	}
}
