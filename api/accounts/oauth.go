package accounts

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/request"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/shape"
)

// The OAuth endpoints follow RFC 6749, 7009, 7591 and 7662: errors are {error, error_description},
// a body may be a form, and unknown members are ignored.

// Values that these RFCs define.
const (
	grantClientCredentials = "client_credentials"
	methodBasic            = "client_secret_basic"
	methodPost             = "client_secret_post"

	codeInvalidRequest  = "invalid_request"
	codeInvalidMetadata = "invalid_client_metadata"
)

// lenient is embedded in request types whose unknown members are ignored.
type lenient struct{}

// JSONSchemaExtend allows unknown members in the schema.
func (lenient) JSONSchemaExtend(s *jsonschema.Schema) { s.AdditionalProperties = jsonschema.TrueSchema }

// registration is the client metadata of RFC 7591.
type registration struct {
	lenient
	Name          string   `json:"client_name" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"Name of the agent, shown to people."`
	IdentityType  string   `json:"identity_type,omitempty" jsonschema:"enum=anonymous,enum=verified_email" jsonschema_description:"verified_email sends a link to email; opening it verifies the agent."`
	Email         string   `json:"email,omitempty" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"E-mail address of the agent's owner, for verified_email."`
	Method        string   `json:"token_endpoint_auth_method,omitempty" jsonschema_description:"client_secret_basic or client_secret_post; another value is replaced by client_secret_basic."`
	GrantTypes    []string `json:"grant_types,omitempty" jsonschema_description:"Only client_credentials is supported; other values are replaced by it in the answer."`
	ResponseTypes []string `json:"response_types,omitempty"`
	Scope         string   `json:"scope,omitempty"`
	metadata
}

// metadata are members that the service neither uses nor stores. The answer repeats them, because
// a client takes the answer as its complete registration (RFC 7591, section 3.2.1).
type metadata struct {
	RedirectURIs []string `json:"redirect_uris,omitempty" jsonschema_description:"Returned unchanged and not used, because no grant of this server redirects."`
	Contacts     []string `json:"contacts,omitempty"`
	ClientURI    string   `json:"client_uri,omitempty"`
	LogoURI      string   `json:"logo_uri,omitempty"`
	TermsURI     string   `json:"tos_uri,omitempty"`
	PolicyURI    string   `json:"policy_uri,omitempty"`
	JWKSURI      string   `json:"jwks_uri,omitempty"`
	SoftwareID   string   `json:"software_id,omitempty"`
	Version      string   `json:"software_version,omitempty"`
}

// registered is a new client. Its secret is returned only in this answer.
type registered struct {
	ClientID      string   `json:"client_id"`
	Secret        string   `json:"client_secret"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	SecretExpires int64    `json:"client_secret_expires_at" jsonschema_description:"0 means never."`
	Name          string   `json:"client_name"`
	IdentityType  string   `json:"identity_type"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Method        string   `json:"token_endpoint_auth_method"`
	Scope         string   `json:"scope"`
	metadata
}

var registerAgent = &op.Operation{
	Creates: true, ID: "register_agent", Method: http.MethodPost, Path: "/api/auth/register",
	Summary: "Register an agent as an OAuth client (RFC 7591). Its secret is shown once.",
	Input:   reflect.TypeFor[registration](), Output: reflect.TypeFor[registered](),
	Example: `{"client_name":"Ada's buyer"}`,
	OAuth:   codeInvalidMetadata, Success: http.StatusCreated, Errors: []int{400, 413, 429, 503},
	Refuses: []string{codeInvalidMetadata}, Conditions: []any{shape.When(shape.Given("email"), shape.Is("identity_type", "verified_email"))},
}

// OAuth registers agents, issues and revokes their tokens, and publishes the metadata documents.
type OAuth struct {
	Accounts *accounts.Accounts
	Mail     *Mail
	Callers  *request.Callers
	Answers  *request.Answers
}

// Operations lists the OAuth operations.
func (s *OAuth) Operations() []*op.Operation {
	return []*op.Operation{registerAgent.Does(s.registerAgent), requestAccessToken.Does(s.requestAccessToken), revokeAccessToken.Does(s.revokeAccessToken),
		introspectAccessToken.Does(s.introspectAccessToken), claimAgent.Does(s.claimAgent)}
}

func (s *OAuth) registerAgent(c *op.Call) (op.Reply, error) {
	if !s.Callers.Allow(op.ToRegister, c.Request) {
		return op.Reply{}, policy.Refuse(op.CodeRateLimited, "", "too many agents were registered: try again later")
	}
	var in registration
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.Email != "" {
		if err := s.Mail.mayMail(c.Request, in.Email); err != nil {
			return op.Reply{}, err
		}
	}
	made, err := s.Accounts.RegisterAgent(c.Request.Context(), accounts.AgentOrder{Name: in.Name, IdentityType: in.IdentityType, Email: in.Email})
	if err != nil {
		return op.Reply{}, err
	}
	if made.Address != "" {
		if err := s.Mail.sendAgentLink(c.Request, made); err != nil {
			return op.Reply{}, err
		}
	}
	if in.Method != methodPost {
		in.Method = methodBasic
	}
	return shownAgain(registered{
		ClientID: made.ClientID, Secret: made.Secret, IssuedAt: made.RegisteredAt.Unix(), Name: in.Name, IdentityType: made.IdentityType,
		GrantTypes: []string{grantClientCredentials}, ResponseTypes: []string{}, Method: in.Method,
		Scope: accounts.ScopeCatalog + " " + accounts.ScopeCheckout, metadata: in.metadata,
	})
}

// shownAgain answers with text that the caller sent. It escapes <, > and & so that a browser
// cannot interpret the text as HTML.
func shownAgain(value any) (op.Reply, error) {
	body, err := json.Marshal(value, json.Deterministic(true), jsontext.EscapeForHTML(true))
	return op.Reply{Body: body}, err
}

// tokenRequest requests an access token (RFC 6749, section 4.4; RFC 8707).
type tokenRequest struct {
	lenient
	GrantType string `json:"grant_type" jsonschema_description:"client_credentials"`
	Scope     string `json:"scope,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"Scopes separated by spaces. The token gets those that the agent may have; without this member it gets all that the agent may have."`
	Resource  string `json:"resource,omitempty" jsonschema:"maxLength=2048" jsonschema_description:"The base URL, or the URL of an MCP endpoint; a token for an MCP endpoint is valid only there."`
	credential.ClientSecret
}

type accessToken struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type" jsonschema:"enum=Bearer"`
	ExpiresIn   int64  `json:"expires_in"`
	Scope       string `json:"scope"`
}

var requestAccessToken = &op.Operation{
	ID: "request_access_token", Method: http.MethodPost, Path: "/api/auth/token",
	Summary: "Get an access token with the client credentials (RFC 6749), sent in the body or as HTTP Basic.",
	Input:   reflect.TypeFor[tokenRequest](), Output: reflect.TypeFor[accessToken](),
	Example: `{"grant_type":"client_credentials","client_id":"agt_01KAH0000000000000000000000","client_secret":"svca_…"}`,
	OAuth:   codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 503},
	Refuses: []string{codeInvalidRequest, request.CodeGrantType, accounts.CodeInvalidScope, request.CodeInvalidTarget},
}

func (s *OAuth) requestAccessToken(c *op.Call) (op.Reply, error) {
	var in tokenRequest
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.GrantType != grantClientCredentials {
		return op.Reply{}, policy.Refuse(request.CodeGrantType, "/grant_type", "grant_type must be client_credentials")
	}
	resource, ours := s.tokenResource(in.Resource)
	if !ours {
		return op.Reply{}, policy.Refuse(request.CodeInvalidTarget, "/resource", "resource must be the base URL or the address of an MCP endpoint")
	}
	token, err := s.Accounts.IssueAccessToken(c.Client, in.Scope, resource)
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Value: accessToken{token.Text, "Bearer", int64(token.ExpiresIn.Seconds()), token.Scope},
		Header: http.Header{"Cache-Control": {"no-store"}, "Pragma": {"no-cache"}}}, nil
}

// tokenResource checks the resource for which a token is requested (RFC 8707). It may be empty,
// the service, or one of its MCP endpoints. The result is spelled as in the metadata documents,
// even if the client writes scheme and host in upper case or adds a slash.
func (s *OAuth) tokenResource(text string) (resource string, ours bool) {
	if text == "" {
		return "", true
	}
	asked, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil {
		return "", false
	}
	asked.Scheme, asked.Host = strings.ToLower(asked.Scheme), strings.ToLower(asked.Host)
	path, ours := strings.CutPrefix(asked.String(), s.Accounts.BaseURL)
	return s.Accounts.BaseURL + path, ours && (path == "" || slices.Contains(op.MCPPaths, path))
}

// tokenQuery names the token to revoke or to introspect (RFC 7009, RFC 7662).
type tokenQuery struct {
	lenient
	Token string `json:"token" jsonschema:"minLength=1"`
	Hint  string `json:"token_type_hint,omitempty"`
	credential.ClientSecret
}

// namedToken returns the token in the body of a call.
func namedToken(c *op.Call) (string, error) {
	var in tokenQuery
	err := json.Unmarshal(c.Body, &in)
	return in.Token, err
}

const tokenQueryExample = `{"token":"eyJ…","client_id":"agt_01KAH0000000000000000000000","client_secret":"svca_…"}`

var revokeAccessToken = &op.Operation{
	ID: "revoke_access_token", Method: http.MethodPost, Path: "/api/auth/revoke",
	Summary: "Revoke an access token of the client (RFC 7009). A token that is not active, or belongs to another client, changes nothing. The client authenticates in the body or with HTTP Basic.",
	Input:   reflect.TypeFor[tokenQuery](), Output: reflect.TypeFor[struct{}](), Example: tokenQueryExample,
	OAuth: codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 429, 503},
	Refuses: []string{codeInvalidRequest},
}

func (s *OAuth) revokeAccessToken(c *op.Call) (op.Reply, error) {
	token, err := namedToken(c)
	if err != nil {
		return op.Reply{}, err
	}
	// Tokens are free, but each revocation is stored permanently. So revocations are limited.
	if !s.Callers.Rates.Allow(op.ToRevoke, c.Client.ID()) {
		return op.Reply{}, policy.Refuse(op.CodeRateLimited, "", "too many tokens were revoked: try again later")
	}
	return op.Reply{Value: struct{}{}}, s.Accounts.RevokeAccessToken(c.Request.Context(), c.Client, token)
}

// introspection describes a token. For a token that is not active it contains only active: false.
type introspection struct {
	Active    bool   `json:"active"`
	Scope     string `json:"scope,omitempty"`
	ClientID  string `json:"client_id,omitempty"`
	TokenType string `json:"token_type,omitempty"`
	Subject   string `json:"sub,omitempty"`
	Audience  string `json:"aud,omitempty"`
	Issuer    string `json:"iss,omitempty"`
	TokenID   string `json:"jti,omitempty"`
	IssuedAt  int64  `json:"iat,omitzero"`
	ExpiresAt int64  `json:"exp,omitzero"`
}

var introspectAccessToken = &op.Operation{
	ID: "introspect_access_token", Method: http.MethodPost, Path: "/api/auth/introspect",
	Summary: "Report whether an access token is active, and which scopes it has (RFC 7662). The client authenticates in the body or with HTTP Basic.",
	Input:   reflect.TypeFor[tokenQuery](), Output: reflect.TypeFor[introspection](), Example: tokenQueryExample,
	OAuth: codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 503},
	Refuses: []string{codeInvalidRequest},
}

func (s *OAuth) introspectAccessToken(c *op.Call) (op.Reply, error) {
	token, err := namedToken(c)
	if err != nil {
		return op.Reply{}, err
	}
	t, err := s.Accounts.Introspect(c.Request.Context(), token)
	if err != nil || !t.Active {
		return op.Reply{Value: introspection{}}, err
	}
	return op.Reply{Value: introspection{Active: true, Scope: strings.Join(t.Agent.Scopes, " "), ClientID: t.Agent.ClientID, TokenType: "Bearer",
		Subject: t.Agent.ClientID, Audience: t.Audience, Issuer: s.Accounts.BaseURL, TokenID: t.TokenID,
		IssuedAt: t.IssuedAt.Unix(), ExpiresAt: t.ExpiresAt.Unix()}}, nil
}

// AuthorizePath is the path of the authorization endpoint. The service refuses every request
// there, but the metadata must name it, because clients refuse metadata without it.
const AuthorizePath = "/api/auth/authorize"

// Authorize refuses the authorization flow, which the service does not support. A person who was
// sent here by a connector gets a page that explains how to connect instead.
func (s *OAuth) Authorize(w http.ResponseWriter, r *http.Request) {
	err := policy.Refuse(request.CodeResponseType, "", "only the client credentials grant is supported")
	if op.Weight(strings.Join(r.Header.Values("Accept"), ","), "text/html") > 0 {
		s.Answers.Page(w, r, policy.Refuse(request.CodeResponseType, "", "connectors cannot log in with OAuth: create an API key at "+s.Accounts.BaseURL+
			"/account and set it in the connector as the header X-API-Key, or connect without one"))
		return
	}
	s.Answers.Fail(w, r, false, request.OAuthRefusal(err, codeInvalidRequest))
}

// claimed is the answer to a claim.
type claimed struct {
	Status   string   `json:"status" jsonschema:"enum=claimed"`
	ClientID string   `json:"clientId"`
	Scopes   []string `json:"scopes" jsonschema_description:"Scopes that tokens issued from now on may have."`
	Next     string   `json:"next"`
}

// claimAgent takes no body. The bearer token protects it from cross-site requests.
var claimAgent = &op.Operation{
	ID: "claim_agent", Method: http.MethodPost, Path: "/api/auth/claim",
	Summary: "Claim an agent for the signed-in customer. Send the session cookie and the agent's bearer token together.",
	Output:  reflect.TypeFor[claimed](),
	Tries:   &op.ToClaim, Access: credential.Access{Kind: credential.Claimant}, Errors: []int{401, 403, 409, 429, 503},
}

func (s *OAuth) claimAgent(c *op.Call) (op.Reply, error) {
	scopes, err := s.Accounts.ClaimAgent(c.Request.Context(), c.Agent, c.Customer)
	return op.Reply{Value: claimed{"claimed", c.Agent.ClientID, scopes, "request a new token"}}, err
}
