package api

import (
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign/countersign/api/mail"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/countersign/countersign/api/credential"
	"github.com/countersign/countersign/api/op"
	"github.com/countersign/countersign/api/web"
	"github.com/countersign/countersign/commands/accounts"
	"github.com/countersign/countersign/commands/ground"
	"github.com/countersign/countersign/policy"
	"github.com/countersign/countersign/policy/canon"
)

// The OAuth endpoints speak RFC 6749, 7009, 7591 and 7662: errors are
// {error, error_description}, a body may be a form, and members that nobody here
// knows are ignored.

// Words of those documents.
const (
	grantClientCredentials = "client_credentials"
	methodBasic            = "client_secret_basic"
	methodPost             = "client_secret_post"

	codeInvalidRequest  = "invalid_request"
	codeInvalidMetadata = "invalid_client_metadata"
	codeInvalidTarget   = "invalid_target"
	codeGrantType       = "unsupported_grant_type"
	codeResponseType    = "unsupported_response_type"
	codeServerError     = "server_error"
)

// oauthProblem is the body of their errors.
type oauthProblem struct {
	Error       string `json:"error" jsonschema_description:"A code of RFC 6749, 7591 or 8707."`
	Description string `json:"error_description" jsonschema_description:"One clause for people."`
}

// oauthRefusal is a refusal by an OAuth endpoint, in whose words code names bad
// input.
type oauthRefusal struct {
	error
	code string
}

// Unwrap returns the refusal itself.
func (o *oauthRefusal) Unwrap() error { return o.error }

// in says the problem in OAuth's words.
func (o *oauthRefusal) in(status int, p op.Problem) oauthProblem {
	switch p.Code {
	case accounts.CodeInvalidClient, accounts.CodeInvalidScope, codeInvalidTarget, codeGrantType, codeResponseType:
		return oauthProblem{p.Code, p.Error}
	}
	switch {
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return oauthProblem{ground.CodeUnavailable, p.Error}
	case status >= http.StatusInternalServerError:
		return oauthProblem{codeServerError, p.Error}
	}
	return oauthProblem{o.code, p.Error}
}

// readOAuth reads the body of an OAuth endpoint as canonical JSON: a form becomes
// an object of the members the operation knows. Members without a value are as
// good as absent.
func readOAuth(w http.ResponseWriter, r *http.Request, o *op.Operation) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !o.Form || err != nil || media != "application/x-www-form-urlencoded" {
		text, err := readBody(w, r, o.Limit, false)
		if o.Form && errors.Is(err, errMedia) {
			err = policy.Refuse(op.CodeInvalidBody, "", "content type must be application/x-www-form-urlencoded or application/json")
		}
		if err != nil {
			return nil, err
		}
		return canon.Canonical(text)
	}
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return nil, policy.Refuse(op.CodeInvalidBody, "", "content encoding is not supported")
	}
	form, err := web.ReadForm(w, r, o.Limit)
	if err != nil {
		return nil, err
	}
	members := map[string]string{}
	properties, _ := o.Schema.Document["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch values := form[name]; {
		case len(values) > 1:
			return nil, policy.Refuse(op.CodeInvalidBody, "/"+name, name+" is given twice")
		case len(values) == 1 && values[0] != "":
			members[name] = values[0]
		}
	}
	text, err := canon.Marshal(members)
	if err != nil {
		return nil, policy.Refuse(op.CodeInvalidBody, "", "the form is not UTF-8")
	}
	return text, nil
}

// lenient is the part of a request whose other members are ignored.
type lenient struct{}

// JSONSchemaExtend lets other members pass.
func (lenient) JSONSchemaExtend(s *jsonschema.Schema) { s.AdditionalProperties = jsonschema.TrueSchema }

// registration is client metadata (RFC 7591).
type registration struct {
	lenient
	Name          string   `json:"client_name" jsonschema:"minLength=1,maxLength=200" jsonschema_description:"For people who read about the agent."`
	IdentityType  string   `json:"identity_type,omitempty" jsonschema:"enum=anonymous,enum=verified_email" jsonschema_description:"With verified_email and an address, its owner is mailed a link that verifies the agent."`
	Email         string   `json:"email,omitempty" jsonschema:"minLength=3,maxLength=254" jsonschema_description:"Of who stands for the agent; with verified_email."`
	Method        string   `json:"token_endpoint_auth_method,omitempty" jsonschema_description:"client_secret_basic or client_secret_post; any other becomes the first."`
	GrantTypes    []string `json:"grant_types,omitempty" jsonschema_description:"client_credentials is served; any other becomes it, as the answer says."`
	ResponseTypes []string `json:"response_types,omitempty"`
	Scope         string   `json:"scope,omitempty"`
	metadata
}

// metadata is what a client may say of itself that the service neither needs nor keeps.
// The answer repeats it, since clients read the answer as all that they registered (RFC
// 7591, section 3.2.1).
type metadata struct {
	RedirectURIs []string `json:"redirect_uris,omitempty" jsonschema_description:"Returned, and not used: no grant here redirects."`
	Contacts     []string `json:"contacts,omitempty"`
	ClientURI    string   `json:"client_uri,omitempty"`
	LogoURI      string   `json:"logo_uri,omitempty"`
	TermsURI     string   `json:"tos_uri,omitempty"`
	PolicyURI    string   `json:"policy_uri,omitempty"`
	JWKSURI      string   `json:"jwks_uri,omitempty"`
	SoftwareID   string   `json:"software_id,omitempty"`
	Version      string   `json:"software_version,omitempty"`
}

// registered is a client just made. The secret in it is shown this once.
type registered struct {
	ClientID      string   `json:"client_id"`
	Secret        string   `json:"client_secret"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	SecretExpires int64    `json:"client_secret_expires_at" jsonschema_description:"0: never."`
	Name          string   `json:"client_name"`
	IdentityType  string   `json:"identity_type"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Method        string   `json:"token_endpoint_auth_method"`
	Scope         string   `json:"scope"`
	metadata
}

var registerAgent = &op.Operation{
	Anew: true, ID: "register_agent", Method: http.MethodPost, Path: "/api/auth/register",
	Summary: "Register an agent as an OAuth client (RFC 7591). Its secret is shown once.",
	Input:   reflect.TypeFor[registration](), Output: reflect.TypeFor[registered](),
	Example: `{"client_name":"Ada's buyer"}`,
	OAuth:   codeInvalidMetadata, Success: http.StatusCreated, Errors: []int{400, 413, 429, 503},
}

func (s *Server) registerAgent(c *op.Call) (op.Reply, error) {
	if !s.rates.Allow(op.ToRegister, s.network(c.Request)) {
		return op.Reply{}, policy.Refuse(op.CodeRateLimited, "", "too many agents were registered, try again later")
	}
	var in registration
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.Email != "" {
		if err := s.mayMail(c.Request, in.Email); err != nil {
			return op.Reply{}, err
		}
	}
	made, err := s.app.RegisterAgent(c.Request.Context(), accounts.AgentOrder{Name: in.Name, IdentityType: in.IdentityType, Email: in.Email})
	if err != nil {
		return op.Reply{}, err
	}
	if made.Address != "" {
		if err := s.sendAgentLink(c.Request, made); err != nil {
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

// shownAgain is an answer that repeats what a caller said, with <, > and &
// escaped for whoever takes it for a page.
func shownAgain(value any) (op.Reply, error) {
	body, err := json.Marshal(value, json.Deterministic(true), jsontext.EscapeForHTML(true))
	return op.Reply{Body: body}, err
}

// sendAgentLink mails the link that verifies an agent. It says nothing that the
// agent said: anybody may register one with anybody's address.
func (s *Server) sendAgentLink(r *http.Request, made accounts.RegisteredAgent) error {
	link, err := s.app.RequestAgentLink(r.Context(), made.Address, made.ClientID)
	if err != nil {
		return err
	}
	address := s.app.BaseURL + web.ConfirmAgentPath + "?token=" + url.QueryEscape(link.Token)
	return s.post(r, mail.Message{To: link.Address, At: s.app.Clock(), Subject: "Verify an agent for Countersign", Link: address,
		Text: "An agent, " + made.ClientID + ", was registered with your address.\nOpen this link and press the button if it is yours. It works once, for 10 minutes.\n\n" +
			address + "\n\nIf you know nothing of it, do nothing.\n"})
}

// tokenRequest asks for an access token (RFC 6749, section 4.4; RFC 8707).
type tokenRequest struct {
	lenient
	GrantType string `json:"grant_type" jsonschema_description:"client_credentials"`
	Scope     string `json:"scope,omitempty" jsonschema:"maxLength=1000" jsonschema_description:"Scopes apart by spaces; what the agent may have of them is granted. Without it: all it may have."`
	Resource  string `json:"resource,omitempty" jsonschema:"maxLength=2048" jsonschema_description:"The base URL, or that of an MCP endpoint: then the token is good there alone."`
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
	Summary: "Get an access token with the client credentials (RFC 6749), in the body or as HTTP Basic.",
	Input:   reflect.TypeFor[tokenRequest](), Output: reflect.TypeFor[accessToken](),
	Example: `{"grant_type":"client_credentials","client_id":"agt_01KAH0000000000000000000000","client_secret":"svca_…"}`,
	OAuth:   codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 503},
}

func (s *Server) requestAccessToken(c *op.Call) (op.Reply, error) {
	var in tokenRequest
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return op.Reply{}, err
	}
	if in.GrantType != grantClientCredentials {
		return op.Reply{}, policy.Refuse(codeGrantType, "/grant_type", "grant_type must be client_credentials")
	}
	resource, ours := s.tokenResource(in.Resource)
	if !ours {
		return op.Reply{}, policy.Refuse(codeInvalidTarget, "/resource", "resource must be the base URL or the address of an MCP endpoint")
	}
	token, err := s.app.IssueAccessToken(c.Client, in.Scope, resource)
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{Value: accessToken{token.Text, "Bearer", int64(token.ExpiresIn.Seconds()), token.Scope},
		Header: http.Header{"Cache-Control": {"no-store"}, "Pragma": {"no-cache"}}}, nil
}

// tokenResource is what a token may be asked for (RFC 8707): the service, one of its MCP
// endpoints, or none. It is returned as it is in our documents, however the client
// writes scheme, host and a slash at the end.
func (s *Server) tokenResource(text string) (resource string, ours bool) {
	if text == "" {
		return "", true
	}
	asked, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil {
		return "", false
	}
	asked.Scheme, asked.Host = strings.ToLower(asked.Scheme), strings.ToLower(asked.Host)
	path, ours := strings.CutPrefix(asked.String(), s.app.BaseURL)
	return s.app.BaseURL + path, ours && (path == "" || doorAt(path) != nil)
}

// tokenQuery names a token to be ended or told about (RFC 7009, RFC 7662).
type tokenQuery struct {
	lenient
	Token string `json:"token" jsonschema:"minLength=1"`
	Hint  string `json:"token_type_hint,omitempty"`
	credential.ClientSecret
}

// namedToken is the token that a call names, to end it or to ask about it.
func namedToken(c *op.Call) (string, error) {
	var in tokenQuery
	err := json.Unmarshal(c.Body, &in)
	return in.Token, err
}

const tokenQueryExample = `{"token":"eyJ…","client_id":"agt_01KAH0000000000000000000000","client_secret":"svca_…"}`

var revokeAccessToken = &op.Operation{
	ID: "revoke_access_token", Method: http.MethodPost, Path: "/api/auth/revoke",
	Summary: "End an access token of the client (RFC 7009). A token that is not live, or not the client's, changes nothing. The client shows itself in the body or by HTTP Basic.",
	Input:   reflect.TypeFor[tokenQuery](), Output: reflect.TypeFor[struct{}](), Example: tokenQueryExample,
	OAuth: codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 429, 503},
}

func (s *Server) revokeAccessToken(c *op.Call) (op.Reply, error) {
	token, err := namedToken(c)
	if err != nil {
		return op.Reply{}, err
	}
	// A token costs nothing to get, and its end is recorded for ever.
	if !s.rates.Allow(op.ToRevoke, c.Client.ID()) {
		return op.Reply{}, policy.Refuse(op.CodeRateLimited, "", "too many tokens were revoked, try again later")
	}
	return op.Reply{Value: struct{}{}}, s.app.RevokeAccessToken(c.Request.Context(), c.Client, token)
}

// introspection tells about a token; of one that is not live only that.
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
	Summary: "Whether an access token is live, and what it allows (RFC 7662). The client shows itself in the body or by HTTP Basic.",
	Input:   reflect.TypeFor[tokenQuery](), Output: reflect.TypeFor[introspection](), Example: tokenQueryExample,
	OAuth: codeInvalidRequest, Form: true, Access: credential.Access{Kind: credential.Client}, Errors: []int{400, 401, 413, 503},
}

func (s *Server) introspectAccessToken(c *op.Call) (op.Reply, error) {
	token, err := namedToken(c)
	if err != nil {
		return op.Reply{}, err
	}
	t, err := s.app.Introspect(c.Request.Context(), token)
	if err != nil || !t.Active {
		return op.Reply{Value: introspection{}}, err
	}
	return op.Reply{Value: introspection{Active: true, Scope: strings.Join(t.Agent.Scopes, " "), ClientID: t.Agent.ClientID, TokenType: "Bearer",
		Subject: t.Agent.ClientID, Audience: t.Audience, Issuer: s.app.BaseURL, TokenID: t.TokenID,
		IssuedAt: t.IssuedAt.Unix(), ExpiresAt: t.ExpiresAt.Unix()}}, nil
}

// authorizePath is in the metadata because clients refuse metadata without it.
const authorizePath = "/api/auth/authorize"

// authorize refuses the flow that is not spoken here. Who opens it in a browser was sent
// by a connector, and reads what to do instead.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	err := policy.Refuse(codeResponseType, "", "only the client credentials grant is supported")
	if op.Weight(strings.Join(r.Header.Values("Accept"), ","), "text/html") > 0 {
		s.web.ShowError(w, r, policy.Refuse(codeResponseType, "", "connectors do not log in here: make an API key at "+s.app.BaseURL+
			"/account and set it in the connector as the header X-API-Key, or connect without one"))
		return
	}
	s.fail(w, r, false, &oauthRefusal{err, codeInvalidRequest})
}

// claimed is what became of an agent.
type claimed struct {
	Status   string   `json:"status" jsonschema:"enum=claimed"`
	ClientID string   `json:"clientId"`
	Scopes   []string `json:"scopes" jsonschema_description:"What tokens issued from now on may carry."`
	Next     string   `json:"next"`
}

// claimAgent takes no body: the bearer token shows that the request is meant.
var claimAgent = &op.Operation{
	ID: "claim_agent", Method: http.MethodPost, Path: "/api/auth/claim",
	Summary: "Claim an agent for the signed-in customer: session cookie and the agent's bearer token together.",
	Output:  reflect.TypeFor[claimed](),
	Tries:   &op.ToClaim, Access: credential.Access{Kind: credential.Claimant}, Errors: []int{401, 403, 409, 429, 503},
}

func (s *Server) claimAgent(c *op.Call) (op.Reply, error) {
	scopes, err := s.app.ClaimAgent(c.Request.Context(), c.Agent, c.Customer)
	return op.Reply{Value: claimed{"claimed", c.Agent.ClientID, scopes, "request a new token"}}, err
}

// describeOAuth is the security scheme of access tokens.
func (s *Server) describeOAuth() op.Object {
	return op.Object{"type": "oauth2", "flows": op.Object{"clientCredentials": op.Object{
		"tokenUrl": s.app.BaseURL + "/api/auth/token", "scopes": scopeMeanings}}}
}

// scopeMeanings says what each scope grants.
var scopeMeanings = map[string]string{
	accounts.ScopeCatalog:      "read the product catalog",
	accounts.ScopeCheckout:     "start checkout sessions",
	accounts.ScopeBilling:      "open the billing portal for subscribers",
	accounts.ScopeEntitlements: "inspect the claimed customer's live product access",
	accounts.ScopeSupport:      "operator-approved clients only; inspect customer entitlements",
}
